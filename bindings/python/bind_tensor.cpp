// SPDX-License-Identifier: MIT
#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>

#include <sstream>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

nb::tuple shape_tuple(const PyTensor& self) {
  nb::list extents;
  for (int d = 0; d < self.value.shape().dims(); ++d) extents.append(self.value.shape()[d]);
  return nb::tuple(extents);
}

Shape shape_of(const std::vector<Index>& extents, Index size) {
  std::vector<Index> all = extents;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != -1) continue;
    Index others = 1;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (j != i) others *= all[j];
    all[i] = others > 0 ? size / others : 0;
  }
  return Shape(all);
}

/// begin and end of a slice with step 1.
std::pair<Index, Index> range_of(const nb::slice& slice, Index length) {
  const auto [start, stop, step, count] = slice.compute(static_cast<std::size_t>(length));
  require<InputError>(step == 1, "a slice with step ", step, ", expected 1");
  return {static_cast<Index>(start), static_cast<Index>(start) + static_cast<Index>(count)};
}

PyTensor rows_of(const PyTensor& self, nb::handle key) {
  if (nb::isinstance<nb::slice>(key)) {
    const auto [begin, end] = range_of(nb::cast<nb::slice>(key), self.value.num_rows());
    return compute([&] { return slice_rows(self.value, begin, end); });
  }
  if (nb::isinstance<nb::int_>(key)) {
    const auto row = nb::cast<Index>(key);
    const Index at = row < 0 ? row + self.value.num_rows() : row;
    if (at < 0 || at >= self.value.num_rows())
      throw nb::index_error(concat("row ", row, " of ", self.value.num_rows()).c_str());
    return compute([&] { return slice_rows(self.value, at, at + 1); });
  }
  nb::object ids = nb::borrow(key);
  if (nb::hasattr(key, "dtype") && dtype_of(key) == "bool") {
    const nb::object shape = key.attr("shape");
    require<ShapeError>(shape.equal(nb::make_tuple(self.value.num_rows())), "a mask of shape ",
                        text_of(shape), " for a tensor of shape ", self.value.shape(),
                        ", expected one bool for each row");
    ids = nb::module_::import_("numpy").attr("flatnonzero")(key);
  }
  const Ids numbers(ids, "row numbers");
  return compute([&] {
    if (!self.value.requires_grad()) return deferred_gather_rows(self.value.value(), numbers.rows());
    return gather_rows(self.value, numbers.rows());
  });
}

PyTensor item_of(const PyTensor& self, nb::handle key) {
  if (!nb::isinstance<nb::tuple>(key)) return rows_of(self, key);
  require<InputError>(nb::len(key) == 2 && nb::isinstance<nb::slice>(key[1]),
                      "an index of two dimensions is x[rows, begin:end]");
  const PyTensor rows = rows_of(self, key[0]);
  const Index width = self.value.shape()[self.value.shape().dims() - 1];
  const auto [begin, end] = range_of(nb::cast<nb::slice>(nb::object(key[1])), width);
  if (begin == 0 && end == width) return rows;
  return compute([&] { return slice_columns(rows.value, begin, end); });
}

PyTensor reduced(const PyTensor& self, std::optional<int> dim, Variable (*f)(Variable, ReduceDim)) {
  const int dims = self.value.shape().dims();
  require<InputError>(!dim || *dim == 0 || *dim == -1 || *dim == dims - 1, "dim is ", dim.value_or(0),
                      ", expected None, 0 (rows) or -1 (columns)");
  const ReduceDim over = !dim ? ReduceDim::all : *dim == 0 ? ReduceDim::rows : ReduceDim::columns;
  return compute([&] { return f(self.value, over); });
}

/// x == y, x < y, ... with an array, tensor or number, as NumPy's array of bool. Others are not comparable.
nb::object compared(const PyTensor& self, nb::handle other, const char* name) {
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(other);
  const nb::object dtype = array.attr("dtype"), kind = dtype.attr("kind");
  if (std::string_view("fiub").find(text_of(kind)) == std::string_view::npos)
    return nb::borrow(Py_NotImplemented);
  return numpy_of(self.value.value()).attr(name)(array);
}

/// The buffer of the NumPy array on the same memory.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  PyObject* const array = PyObject_CallMethod(self, "numpy", nullptr);
  if (array == nullptr) return -1;
  const int status = PyObject_GetBuffer(array, view, flags);
  Py_DECREF(array);
  return status;
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

template <class F>
void both_ways(nb::class_<PyTensor>& c, const char* name, const char* reversed, F f) {
  c.def(
      name, [f](const PyTensor& a, const Variable& b) { return compute([&] { return f(a.value, b); }); },
      nb::is_operator());
  c.def(
      name,
      [f](const PyTensor& a, double b) { return compute([&] { return f(a.value, static_cast<real>(b)); }); },
      nb::is_operator());
  c.def(
      reversed,
      [f](const PyTensor& a, double b) { return compute([&] { return f(static_cast<real>(b), a.value); }); },
      nb::is_operator());
}

}  // namespace

void bind_tensor(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<PyTensor> tensor(
      module, "Tensor", nb::type_slots(slots),
      "Numbers in memory, [rows, ...], with 1 to 4 dimensions. numpy() and numpy.asarray() "
      "show the same memory; sar.tensor() makes one of an array.");
  tensor.def_prop_ro("shape", &shape_tuple)
      .def_prop_ro("ndim", [](const PyTensor& self) { return self.value.shape().dims(); })
      .def_prop_ro("size", [](const PyTensor& self) { return self.value.shape().size(); })
      .def_prop_ro(
          "dtype",
          [](nb::handle) {
            return nb::module_::import_("numpy").attr("dtype")(sizeof(real) == 4 ? "float32" : "float64");
          })
      .def_prop_ro("requires_grad", [](const PyTensor& self) { return self.value.requires_grad(); })
      .def_prop_ro("is_leaf", [](const PyTensor& self) { return self.recording == nullptr; })
      .def_prop_rw(
          "grad",
          [](const PyTensor& self) -> std::optional<PyTensor> {
            const Tensor grad = self.value.grad();
            if (!grad.defined()) return std::nullopt;
            return PyTensor{Variable(grad)};
          },
          [](PyTensor& self, std::optional<PyTensor> grad) {
            require<InputError>(!grad || self.value.requires_grad(),
                                "a gradient for a tensor that requires none");
            require<ShapeError>(!grad || grad->value.shape() == self.value.shape(), "a gradient of shape ",
                                grad ? grad->value.shape() : Shape(), " for a tensor of shape ",
                                self.value.shape());
            self.value.zero_grad();
            if (grad) self.value.gradient()->add(grad->value.value().clone());
          },
          nb::for_setter(nb::arg("grad").none()),
          "The gradient, which backward() adds to; None if there is none. Setting it to None clears it.")
      .def(
          "requires_grad_",
          [](nb::handle_t<PyTensor> handle, bool requires_grad) {
            auto& self = nb::cast<PyTensor&>(handle);
            require<InputError>(self.recording == nullptr,
                                "requires_grad_() of a result that was computed from other tensors");
            require<InputError>(
                requires_grad || !self.value.requires_grad(),
                "requires_grad_(False) of a tensor that requires a gradient: use detach(), or freeze() of "
                "its module");
            if (requires_grad && !self.value.requires_grad()) self.value = Variable(self.value.value(), true);
            return nb::borrow(handle);
          },
          "requires_grad"_a = true, "Local. Makes a constant a leaf, whose gradient backward() computes.")
      .def(
          "backward",
          [](const PyTensor& self, nb::object gradient) {
            backward(self, gradient.is_none() ? Tensor() : tensor_of(gradient));
          },
          "gradient"_a = nb::none(),
          "Collective if recorded operations are. Adds the gradient of a number, or of sum(self * gradient), "
          "to the leaves "
          "it was computed from, and ends the recording: a second call from the same results raises "
          "sar.Error.")
      .def(
          "numpy", [](const PyTensor& self) { return numpy_of(self.value.value()); },
          "Local. A NumPy array on the same memory, which it keeps alive.")
      .def(
          "__array__",
          [](const PyTensor& self, nb::object dtype, nb::object copy) {
            const nb::object array = numpy_of(self.value.value());
            const bool copies = nb::isinstance<nb::bool_>(copy) && nb::cast<bool>(copy);
            if (dtype.is_none()) return copies ? nb::object(array.attr("copy")()) : array;
            return nb::object(array.attr("astype")(dtype, nb::arg("copy") = copies));
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__",
           [](const PyTensor& self, nb::kwargs options) {
             return numpy_of(self.value.value()).attr("__dlpack__")(**options);
           })
      .def("__dlpack_device__", [](const PyTensor&) { return nb::make_tuple(1, 0); })
      .def("item", [](const PyTensor& self) { return self.value.value().item(); })
      .def("__float__", [](const PyTensor& self) { return static_cast<double>(self.value.value().item()); })
      .def("__bool__",
           [](const PyTensor& self) { return nb::cast<bool>(nb::bool_(numpy_of(self.value.value()))); })
      .def("__len__", [](const PyTensor& self) { return self.value.num_rows(); })
      .def(
          "detach", [](const PyTensor& self) { return PyTensor{self.value.detach()}; },
          "Local. The same values as a constant.")
      .def(
          "clone",
          [](const PyTensor& self) {
            return compute([&] {
              if (!self.value.requires_grad()) return Variable(self.value.value().clone());
              return concat_columns({self.value});
            });
          },
          "Local. A copy in memory of its own, as an operation: its gradient reaches this tensor. "
          "detach().clone() is a "
          "constant.")
      .def(
          "copy_",
          [](nb::handle_t<PyTensor> handle, nb::object values) {
            Tensor mine = nb::cast<PyTensor&>(handle).value.value();
            mine.copy_from(tensor_of(values));
            return nb::borrow(handle);
          },
          "values"_a, "Local. Overwrites the values, in place.")
      .def("zero_grad", [](PyTensor& self) { self.value.zero_grad(); })
      .def("__getitem__", &item_of,
           "Rows x[ids], x[mask], x[a:b], x[i] (which stays [1, ...]); with columns x[rows, a:b]. Constant "
           "rows are read when they are used, so x must not change before.")
      .def(
          "reshape",
          [](const PyTensor& self, nb::args extents) {
            const nb::object all = extents.size() == 1 && !nb::isinstance<nb::int_>(extents[0])
                                       ? nb::object(extents[0])
                                       : nb::object(extents);
            const Shape shape = shape_of(nb::cast<std::vector<Index>>(all), self.value.shape().size());
            return compute([&] { return reshape(self.value, shape); });
          },
          "Local. The same values in another shape; one extent may be -1.")
      .def(
          "sum", [](const PyTensor& self, std::optional<int> dim) { return reduced(self, dim, &sum); },
          "dim"_a = nb::none(),
          "Local. The sum over all elements, over rows (dim=0) or columns (dim=-1), of this rank.")
      .def(
          "flatten",
          [](const PyTensor& self, int start_dim) {
            const Shape& shape = self.value.shape();
            require<InputError>(0 <= start_dim && start_dim < shape.dims(), "start_dim is ", start_dim,
                                ", expected 0 to ", shape.dims() - 1);
            std::vector<Index> extents;
            for (int d = 0; d < shape.dims(); ++d) {
              if (d <= start_dim)
                extents.push_back(shape[d]);
              else
                extents.back() *= shape[d];
            }
            return compute([&] { return reshape(self.value, Shape(extents)); });
          },
          "start_dim"_a = 0, "Local. The dimensions from start_dim on as one: heads side by side for 1.")
      .def(
          "mean",
          [](const PyTensor& self, std::optional<int> dim) {
            if (dim == 1 && self.value.shape().dims() == 3)
              return PyTensor(compute([&] { return head_mean(self.value); }));
            return reduced(self, dim, &mean);
          },
          "dim"_a = nb::none(),
          "Local. The mean, as sum(), or over the heads of [rows, heads, columns] (dim=1).")
      .def(
          "__matmul__",
          [](const PyTensor& a, const Variable& b) { return compute([&] { return matmul(a.value, b); }); },
          nb::is_operator())
      .def("__neg__", [](const PyTensor& self) { return compute([&] { return -self.value; }); })
      .def("__pow__",
           [](const PyTensor& self, int exponent) {
             require<InputError>(exponent == 2, "x ** ", exponent, ", expected 2");
             return compute([&] { return self.value * self.value; });
           })
      .def("__repr__",
           [](const PyTensor& self) {
             const std::string values = text_of(numpy_of(self.value.value()));
             return concat("sar.Tensor(", values, self.value.requires_grad() ? ", requires_grad=True)" : ")");
           })
      .def("__reduce__",
           [](const PyTensor& self) {
             const nb::object make = nb::module_::import_("sar.autograd").attr("unpickled");
             return nb::make_tuple(make,
                                   nb::make_tuple(numpy_of(self.value.value()),
                                                  self.value.requires_grad() && self.recording == nullptr));
           })
      .def("__copy__", [](const PyTensor& self) { return self; })
      .def(
          "__deepcopy__",
          [](const PyTensor& self, nb::handle) {
            return PyTensor{Variable(self.value.value().clone(),
                                     self.value.requires_grad() && self.recording == nullptr)};
          },
          "memo"_a);
  for (const char* const name : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
    tensor.def(
        name, [name](const PyTensor& self, nb::handle other) { return compared(self, other, name); },
        "other"_a.none());
  tensor.attr("__hash__") = nb::module_::import_("builtins").attr("object").attr("__hash__");
  tensor.attr("__array_ufunc__") = nb::none();  // array * tensor calls __rmul__
  both_ways(tensor, "__add__", "__radd__", [](const auto& a, const auto& b) { return a + b; });
  both_ways(tensor, "__sub__", "__rsub__", [](const auto& a, const auto& b) { return a - b; });
  both_ways(tensor, "__mul__", "__rmul__", [](const auto& a, const auto& b) { return a * b; });
  both_ways(tensor, "__truediv__", "__rtruediv__", [](const auto& a, const auto& b) { return a / b; });

  module.def(
      "tensor",
      [](nb::handle data, bool requires_grad, bool copy) {
        return PyTensor{Variable(tensor_of(data, copy), requires_grad)};
      },
      "data"_a, "requires_grad"_a = false, "copy"_a = false,
      "Local. Numbers as a tensor. A C-ordered array of the library's precision is used without a copy and "
      "kept alive: "
      "later changes of the array are changes of the tensor. Everything else is converted, which copies. "
      "With "
      "requires_grad, a leaf.");
  module.def(
      "zeros", [](const std::vector<Index>& shape) { return PyTensor{Tensor::zeros(Shape(shape))}; },
      "shape"_a);
  module.def(
      "full",
      [](const std::vector<Index>& shape, double value) {
        return PyTensor{Tensor::full(Shape(shape), static_cast<real>(value))};
      },
      "shape"_a, "value"_a);
  module.def("_set_grad_enabled", &set_grad_enabled, "enabled"_a);
  module.def(
      "_enter_reproducible",
      [](const Communicator* comm) { enter_reproducible(comm != nullptr ? *comm : default_communicator()); },
      "comm"_a.none());
  module.def("_leave_reproducible", &leave_reproducible);
  module.def("_enter_mixed_precision", &enter_mixed_precision, "enabled"_a);
  module.def("_leave_mixed_precision", &leave_mixed_precision);
  module.def("is_grad_enabled", &grad_enabled, "Local. Whether operations of this thread are recorded.");
}

}}}  // namespace sar
