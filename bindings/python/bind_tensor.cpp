// SPDX-License-Identifier: MIT
#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

nb::tuple shape_tuple(const PyTensor& self) {
  nb::list extents;
  for (int d = 0; d < self.value.shape().dims(); ++d) extents.append(self.value.shape()[d]);
  return nb::tuple(extents);
}

Shape shape_of(const std::vector<Index>& extents, Index size) {
  std::vector<Index> all = extents;
  const auto unknown = std::ranges::count(extents, -1);
  require<ShapeError>(unknown <= 1, "a shape with ", unknown, " extents of -1, expected at most one");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != -1) continue;
    Index others = 1;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (j != i) others *= all[j];
    all[i] = others > 0 ? size / others : 0;
  }
  return Shape(all);
}

/// A shape: an extent, or a list of them.
using Extents = std::variant<Index, std::vector<Index>>;

Shape shape_of(const Extents& given) {
  if (const Index* const extent = std::get_if<0>(&given)) return {*extent};
  return Shape(std::get<1>(given));
}

/// Returns f(operand) as an object of Python, or NotImplemented, from which Python makes a TypeError that
/// names both operands.
template <class F>
nb::object with_operand(nb::handle other, const F& f) {
  const Operand operand(other);
  if (!operand.defined()) return nb::borrow(Py_NotImplemented);
  return nb::cast(compute([&] { return f(operand); }));
}

/// Rows [begin, end) of a dimension that an index selects, and whether the dimension is left out.
struct Part {
  Index begin, end;
  bool dropped;
};

/// Whether the key is an integer of Python, NumPy or torch.
bool is_integer(nb::handle key) {
  if (nb::isinstance<nb::int_>(key)) return !nb::isinstance<nb::bool_>(key);
  if (PyIndex_Check(key.ptr()) == 0) return false;
  if (!nb::hasattr(key, "dtype")) return !nb::hasattr(key, "__len__");
  return nb::cast<int>(key.attr("ndim")) == 0 && !dtype_of(key).ends_with("bool");
}

/// Throws IndexError unless the tensor has this row, column or other element of a dimension; returns it
/// counted from 0.
Index place_of(Index given, int dim, const Shape& shape) {
  const Index at = given < 0 ? given + shape[dim] : given;
  if (at < 0 || at >= shape[dim])
    throw nb::index_error(concat("index ", given, " of dimension ", dim, " of a tensor of shape ", shape,
                                 ", expected ", -shape[dim], " to ", shape[dim] - 1)
                              .c_str());
  return at;
}

/// The part that an integer or a slice with step 1 selects; none for other keys.
std::optional<Part> part_of(nb::handle key, int dim, const Shape& shape) {
  if (nb::isinstance<nb::slice>(key)) {
    const auto [start, stop, step, count] =
        nb::cast<nb::slice>(key).compute(static_cast<std::size_t>(shape[dim]));
    if (step != 1) return std::nullopt;
    return Part{static_cast<Index>(start), static_cast<Index>(start) + static_cast<Index>(count), false};
  }
  if (!is_integer(key)) return std::nullopt;
  const Py_ssize_t given = PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError);
  if (given == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  const Index at = place_of(given, dim, shape);
  return Part{at, at + 1, true};
}

/// The rows with these numbers, negative ones counted from the end.
std::vector<Index> rows_of(const Ids& numbers, const Shape& shape) {
  std::vector<Index> rows(numbers.span().begin(), numbers.span().end());
  const bool as_they_are =
      std::ranges::all_of(rows, [n = shape[0]](Index row) { return 0 <= row && row < n; });
  if (!as_they_are)
    for (Index& row : rows) row = place_of(row, 0, shape);
  return rows;
}

/// The rows that a list of row numbers, a mask of rows or a slice with a step selects; none if the key has
/// more dimensions.
std::optional<std::vector<Index>> row_numbers(nb::handle key, const Shape& shape) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object ids;
  if (nb::isinstance<nb::slice>(key)) {
    const auto [start, stop, step, count] =
        nb::cast<nb::slice>(key).compute(static_cast<std::size_t>(shape[0]));
    std::vector<Index> rows;
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(static_cast<Index>(start) + static_cast<Index>(i) * step);
    return rows;
  }
  if (nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> plain;
      nb::try_cast(key, plain, false))
    return rows_of(Ids(key, "row numbers"), shape);
  ids = array_of(key, "row numbers");
  const int dims = nb::cast<int>(ids.attr("ndim"));
  if (dtype_of(ids) == "bool") {
    const nb::object extents = ids.attr("shape");
    const bool fits = dims == 1 && nb::cast<Index>(extents[0]) == shape[0];
    if (!fits && dims > 1) return std::nullopt;
    require<ShapeError>(fits, "a mask of shape ", text_of(extents), " for a tensor of shape ", shape,
                        ", expected one bool for each row or each element");
    ids = numpy.attr("flatnonzero")(ids);
  } else if (dims > 1) {
    return std::nullopt;
  }
  return rows_of(Ids(ids, "row numbers"), shape);
}

/// What the rows x[rows of a mini-batch] that exist are read from.
std::vector<std::weak_ptr<GatheredTable>>& deferred_tables() {
  static std::vector<std::weak_ptr<GatheredTable>> all;
  return all;
}

/// x[rows of a mini-batch] of a constant, which products and sums read from x. before_write() copies them.
Variable batch_rows(const Tensor& x, std::vector<Index> rows) {
  Variable y = deferred_gather_rows(x, RowIds(std::move(rows)));
  std::erase_if(deferred_tables(), [](const auto& each) { return each.expired(); });
  deferred_tables().push_back(gathered_rows(y)->source());
  return y;
}

/// Copies the rows that results before this call read from the memory of a tensor that is written next.
void before_write(const Tensor& x) {
  const std::span<const real> written = x.values();
  for (const auto& each : deferred_tables())
    if (const auto source = each.lock()) {
      const std::span<const real> read = source->table.reals().values();
      if (std::less{}(read.data(), written.data() + written.size()) &&
          std::less{}(written.data(), read.data() + read.size()))
        source->detach();
    }
}

/// x[key] for keys whose first part selects rows, and whose others are integers and slices with step 1.
/// Others, which are rare, are computed in Python. A dimension with an integer is left out, unless it is the
/// only one.
nb::object item_of(nb::handle_t<PyTensor> handle, nb::handle key) {
  const PyTensor& self = nb::cast<const PyTensor&>(handle);
  const Shape& shape = self.value.shape();
  if (nb::isinstance<nb::slice>(key))
    if (const auto part = part_of(key, 0, shape))
      return nb::cast(compute([&] { return slice_rows(self.value, part->begin, part->end); }));
  const auto general = [&] { return nb::module_::import_("sar._tensor").attr("part")(handle, key); };
  const bool several = nb::isinstance<nb::tuple>(key);
  const nb::tuple keys = several ? nb::cast<nb::tuple>(nb::borrow(key)) : nb::make_tuple(key);
  const int count = static_cast<int>(nb::len(keys));
  for (int d = 0; d < count; ++d)
    if (keys[d].is_none() || nb::object(keys[d]).is(nb::ellipsis())) return general();
  if (count == 0 || count > shape.dims()) return general();
  std::vector<Part> parts;
  std::optional<std::vector<Index>> rows;
  for (int d = 0; d < count; ++d) {
    const nb::object each = keys[d];
    const auto part = part_of(each, d, shape);
    if (!part && d == 0) {
      rows = row_numbers(each, shape);
      if (!rows) return general();
    } else if (!part) {
      return general();
    }
    parts.push_back(part.value_or(Part{0, shape[0], false}));
  }
  const bool of_batch =
      rows && !self.value.requires_grad() &&
      PyObject_IsInstance(keys[0].ptr(), nb::module_::import_("sar._tensor").attr("BatchRows").ptr()) == 1;
  return nb::cast(compute([&] {
    Variable y = self.value;
    std::vector<Index> extents, kept;
    for (int d = 0; d < shape.dims(); ++d) extents.push_back(shape[d]);
    if (rows) {
      extents[0] = std::ssize(*rows);
      y = of_batch && sparse_matrix(y) == nullptr ? batch_rows(y.value(), std::move(*rows))
                                                   : gather_rows(y, RowIds(std::move(*rows)));
    } else {
      extents[0] = parts[0].end - parts[0].begin;
      y = slice_rows(y, parts[0].begin, parts[0].end);
    }
    for (int d = 1; d < count; ++d) {
      const auto [begin, end, dropped] = parts[d];
      if (begin == 0 && end == shape[d]) continue;
      Index outer = 1, inner = 1;
      for (int i = 0; i < d; ++i) outer *= extents[i];
      for (int i = d + 1; i < shape.dims(); ++i) inner *= extents[i];
      y = slice_columns(reshape(std::move(y), {outer, extents[d] * inner}), begin * inner, end * inner);
      extents[d] = end - begin;
    }
    for (int d = 0; d < shape.dims(); ++d)
      if (d >= count || !parts[d].dropped) kept.push_back(extents[d]);
    if (kept.empty()) kept.push_back(1);
    const Shape wanted(kept);
    return y.shape() == wanted ? y : reshape(std::move(y), wanted);
  }));
}

/// Returns whether operations may read something else than value(): sparse rows, rows of a table, bfloat16.
bool is_deferred(const PyTensor& x) {
  return x.value.deferred() != nullptr;
}

/// The values on the memory of the tensor, for reading if it is deferred.
nb::object values_of(const PyTensor& x) {
  nb::object array = numpy_of(x.value.value());
  if (is_deferred(x)) array.attr("setflags")(nb::arg("write") = false);
  return array;
}

/// Before values are written: all operations read them then. Sparse rows stay as they are.
void prepare_write(PyTensor& x) {
  if (sparse_matrix(x.value) != nullptr) return;
  const Tensor& written = x.value.value();  // which is no longer deferred
  before_write(written);
  written.save();
}

/// The elements with these places in memory, as a tensor of this shape.
PyTensor elements_of(const PyTensor& self, nb::handle places, const std::vector<Index>& shape) {
  const Ids ids(places, "places of elements");
  const Shape wanted(shape);
  return compute([&] {
    return reshape(gather_rows(reshape(self.value, {self.value.shape().size(), 1}), ids.rows()), wanted);
  });
}

/// A sparse matrix of SciPy as a constant.
PyTensor sparse_of(nb::handle matrix, bool requires_grad) {
  require<InputError>(!requires_grad,
                      "a sparse matrix that requires a gradient, expected a constant: its toarray()");
  const nb::object csr = matrix.attr("tocsr")();
  const Ids offsets(csr.attr("indptr"), "row offsets"), columns(csr.attr("indices"), "columns");
  const Doubles values(csr.attr("data"), "values of a sparse matrix");
  const Index width = nb::cast<Index>(csr.attr("shape")[nb::int_(1)]);
  return PyTensor{sparse_variable(width, offsets.span(), columns.span(), values.span())};
}

/// The dimensions that `axis` or `dim` names, None for all.
std::vector<bool> reduced_dims(nb::handle axis, int dims) {
  std::vector<bool> reduced(static_cast<std::size_t>(dims), axis.is_none());
  const auto add = [&](nb::handle given) {
    const Py_ssize_t d = is_integer(given) ? PyNumber_AsSsize_t(given.ptr(), nullptr) : dims;
    require<InputError>(-dims <= d && d < dims, "the axis is ", text_of(given), ", expected ", -dims, " to ",
                        dims - 1);
    require<InputError>(!reduced[static_cast<std::size_t>(d < 0 ? d + dims : d)], "the axis ", text_of(given),
                        " is given twice");
    reduced[static_cast<std::size_t>(d < 0 ? d + dims : d)] = true;
  };
  if (axis.is_none()) return reduced;
  if (nb::isinstance<nb::tuple>(axis) || nb::isinstance<nb::list>(axis))
    for (const nb::handle each : axis) add(each);
  else
    add(axis);
  return reduced;
}

/// The sum, or the mean, over the dimensions `axis`, of which `dim` is another name.
PyTensor reduced(const PyTensor& self, nb::handle axis, nb::handle dim, bool keepdims, bool is_mean) {
  require<InputError>(axis.is_none() || dim.is_none(), "axis and dim are given, expected one of them");
  const Shape& shape = self.value.shape();
  const int dims = shape.dims();
  const std::vector<bool> over = reduced_dims(dim.is_none() ? axis : dim, dims);
  std::vector<Index> ones, kept;
  Index terms = 1;
  int leading = 0;  // reduced dimensions before the first that stays
  for (int d = 0; d < dims; ++d) {
    ones.push_back(over[d] ? 1 : shape[d]);
    if (over[d]) terms *= shape[d];
    if (!over[d]) kept.push_back(shape[d]);
    if (over[d] && kept.empty()) ++leading;
  }
  require<ShapeError>(!is_mean || terms > 0, "mean over no element of a tensor of shape ", shape);
  if (is_mean && dims == 3 && over[1] && kept.size() == 2 && !keepdims)
    return compute([&] { return head_mean(self.value); });
  const auto scale = static_cast<real>(is_mean ? 1.0 / static_cast<double>(terms) : 1.0);
  if (kept.empty()) kept.push_back(1);
  const bool direct =
      !keepdims && leading + std::ssize(kept) >= dims;  // broadcasting adds leading dimensions
  return compute([&] {
    const Variable y = sum_to_shape(self.value, Shape(direct ? kept : ones), scale);
    return direct || keepdims ? y : reshape(y, Shape(kept));
  });
}

/// x == y, x < y, ... with an array, tensor or number, as NumPy's array of bool. Others are not comparable.
nb::object compared(const PyTensor& self, nb::handle other, const char* name) {
  const nb::object array = array_of(other, "operand");
  if (!is_real(array)) return nb::borrow(Py_NotImplemented);
  return numpy_of(self.value.value()).attr(name)(array);
}

/// a b as numpy.matmul, of matrices and vectors; a may have more dimensions.
Variable product(Variable a, Variable b) {
  const Shape left = a.shape(), right = b.shape();
  if (left.dims() == 2 && right.dims() == 2) return matmul(std::move(a), std::move(b));
  require<ShapeError>(right.dims() <= 2, "x @ y of shapes ", left, " and ", right,
                      ", expected y with 1 or 2 dimensions");
  std::vector<Index> extents;
  for (int d = 0; d + 1 < left.dims(); ++d) extents.push_back(left[d]);
  if (right.dims() == 2) extents.push_back(right[1]);
  if (extents.empty()) extents.push_back(1);
  const Index inner = left[left.dims() - 1], rows = inner > 0 ? left.size() / inner : left.row_size();
  if (right.dims() == 1) b = reshape(std::move(b), {right[0], 1});
  return reshape(matmul(reshape(std::move(a), {rows, inner}), std::move(b)), Shape(extents));
}

/// x^y of tensors by logarithms.
Variable power_of(const Variable& x, const Variable& y) {
  for (const real base : x.value().values())
    require<InputError>(!(base <= 0), "x ** y of tensors with x = ", base,
                        ", expected positive x, or a number for y");
  return exp(log(x) * y);
}

/// x to the power of a number, or of a tensor, for which x must be positive.
Variable power(const Variable& x, const Operand& exponent) {
  if (!exponent.number) return power_of(x, exponent.tensor);
  if (*exponent.number == 2) return x * x;
  if (*exponent.number == 1) return x * real{1};
  if (*exponent.number == 0.5) return sqrt(x);
  if (*exponent.number == -1) return real{1} / x;
  return pow(x, static_cast<real>(*exponent.number));
}

Variable power(const Operand& base, const Variable& x) {
  if (!base.number) return power_of(base.tensor, x);
  require<InputError>(*base.number > 0, *base.number, " ** x of a tensor, expected a positive number");
  return exp(x * static_cast<real>(std::log(*base.number)));
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

/// Signature of a method that has one argument, an operand.
std::string operator_sig(const char* name, const char* result = "Tensor") {
  return concat("def ", name, "(self, other: ArrayLike, /) -> ", result);
}

template <class F>
void both_ways(nb::class_<PyTensor>& c, const char* name, const char* reversed, F f) {
  c.def(
      name,
      [f](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) {
          return other.number ? f(a.value, static_cast<real>(*other.number)) : f(a.value, other.tensor);
        });
      },
      nb::is_operator(), nb::sig(operator_sig(name).c_str()));
  c.def(
      reversed,
      [f](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) {
          return other.number ? f(static_cast<real>(*other.number), a.value) : f(other.tensor, a.value);
        });
      },
      nb::is_operator(), nb::sig(operator_sig(reversed).c_str()));
}

/// A method that sar/_tensor.py has.
void by_python(nb::class_<PyTensor>& c, const char* name, const char* function, const char* signature,
               const char* doc) {
  c.def(
      name,
      [function](nb::handle self, const nb::args& args, const nb::kwargs& options) {
        return nb::object(nb::module_::import_("sar._tensor").attr(function)(self, *args, **options));
      },
      nb::sig(signature), doc);
}

}  // namespace

void bind_tensor(Definitions& module) {
  using namespace nb::literals;
  nb::class_<PyTensor> tensor(
      module, "Tensor", nb::type_slots(slots),
      "Numbers in memory, [rows, ...], with 1 to 4 dimensions. numpy() and numpy.asarray() "
      "show the same memory; sar.tensor() makes one of an array.");
  tensor.def_prop_ro("shape", &shape_tuple, nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")))
      .def_prop_ro("ndim", [](const PyTensor& self) { return self.value.shape().dims(); })
      .def_prop_ro("size", [](const PyTensor& self) { return self.value.shape().size(); })
      .def_prop_ro(
          "dtype",
          [](nb::handle) {
            return nb::module_::import_("numpy").attr("dtype")(sizeof(real) == 4 ? "float32" : "float64");
          },
          nb::for_getter(nb::sig("def dtype(self) -> FloatType")))
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
            if (grad)  // a sum over all ranks stays one
              self.value.gradient()->replace(grad->value.value().clone());
            else
              self.value.zero_grad();
          },
          nb::for_setter(nb::arg("grad").none()),
          nb::for_setter(nb::sig("def grad(self, grad: Tensor | None, /) -> None")),
          nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
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
          "requires_grad"_a = true, nb::sig("def requires_grad_(self, requires_grad: bool = True) -> Tensor"),
          "Local. Makes a constant a leaf, whose gradient backward() computes.")
      .def(
          "backward",
          [](const PyTensor& self, nb::object gradient) {
            backward(self, gradient.is_none() ? Tensor() : tensor_of(gradient));
          },
          "gradient"_a = nb::none(), nb::sig("def backward(self, gradient: ArrayLike | None = None) -> None"),
          "Collective if recorded operations are. Adds the gradient of a number, or of sum(self * gradient), "
          "to the leaves "
          "it was computed from, and ends the recording: a second call from the same results raises "
          "sar.Error.")
      .def("numpy", &values_of, nb::sig("def numpy(self) -> Floats"),
           "Local. A NumPy array on the same memory, which it keeps alive. It is for reading if operations "
           "read the values from elsewhere: of sparse rows, rows of a batch, and results in mixed precision.")
      .def(
          "__array__",
          [](const PyTensor& self, nb::object dtype, nb::object copy) {
            const nb::object array = values_of(self);
            const bool copies = nb::isinstance<nb::bool_>(copy) && nb::cast<bool>(copy);
            if (dtype.is_none()) return copies ? nb::object(array.attr("copy")()) : array;
            return nb::object(array.attr("astype")(dtype, nb::arg("copy") = copies));
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "NDArray[typing.Any]"))
      .def(
          "__dlpack__",
          [](const PyTensor& self, nb::kwargs options) {
            const nb::object array = values_of(self);
            const bool copies = is_deferred(self);  // DLPack has no read-only memory
            return (copies ? nb::object(array.attr("copy")()) : array).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **options: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__", [](const PyTensor&) { return nb::make_tuple(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "item", [](const PyTensor& self) { return self.value.value().item(); },
          "Local. The number of a tensor of one element.")
      .def("__float__", [](const PyTensor& self) { return static_cast<double>(self.value.value().item()); })
      .def(
          "__int__",
          [](const PyTensor& self) {
            return nb::steal(PyLong_FromDouble(static_cast<double>(self.value.value().item())));
          },
          nb::sig("def __int__(self) -> int"))
      .def(
          "tolist",
          [](const PyTensor& self) { return nb::object(numpy_of(self.value.value()).attr("tolist")()); },
          nb::sig("def tolist(self) -> list[typing.Any]"), "Local. The numbers as nested lists.")
      .def(
          "cpu", [](const PyTensor& self) { return self; },
          "Local. The tensor itself: all memory is the processor's.")
      .def(
          "dim", [](const PyTensor& self) { return self.value.shape().dims(); },
          "Local. ndim under torch's name.")
      .def(
          "numel", [](const PyTensor& self) { return self.value.shape().size(); },
          "Local. size under torch's name.")
      .def("__bool__",
           [](const PyTensor& self) {
             if (self.value.shape().size() != 1)
               throw nb::value_error(concat("the truth value of a tensor of shape ", self.value.shape(),
                                            " is ambiguous, expected one number")
                                         .c_str());
             return self.value.value().item() != 0;
           })
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
            auto& self = nb::cast<PyTensor&>(handle);
            require<InputError>(self.recording == nullptr,
                                "copy_() to a result that was computed from other tensors, expected a "
                                "constant or a parameter");
            require<InputError>(sparse_matrix(self.value) == nullptr,
                                "copy_() to sparse rows, expected a tensor of dense rows: x.clone()");
            const Tensor given = tensor_of(values);
            const Call call;
            prepare_write(self);
            self.value.value().copy_from(given);
            return nb::borrow(handle);
          },
          "values"_a, nb::sig("def copy_(self, values: ArrayLike) -> Tensor"),
          "Local. Overwrites the values, in place.")
      .def(
          "zero_grad", [](PyTensor& self) { self.value.zero_grad(); }, "Local. Clears the gradient.")
      .def("__getitem__", &item_of, nb::arg("key").none(),
           nb::sig("def __getitem__(self, key: object, /) -> Tensor"),
           "Local. x[key] as in NumPy: integers, slices, masks of rows or elements, lists of integers, None, "
           ".... An "
           "integer leaves its dimension out; a single number is [1].")
      .def_prop_ro(
          "is_sparse", [](const PyTensor& self) { return sparse_matrix(self.value) != nullptr; },
          "Whether only the values that are not 0 are stored, row by row. Products, dropout and rows x[ids] "
          "read these; other "
          "operations and numpy() make the dense rows once and keep them, for reading.")
      .def("_elements", &elements_of, "places"_a, "shape"_a)
      .def("_before_write", &prepare_write)
      .def(
          "reshape",
          [](const PyTensor& self, nb::args extents) {
            const nb::object all = nb::len(extents) == 1 && !nb::isinstance<nb::int_>(extents[0])
                                       ? nb::object(extents[0])
                                       : nb::object(extents);
            const Shape shape = shape_of(nb::cast<std::vector<Index>>(all), self.value.shape().size());
            return compute([&] { return reshape(self.value, shape); });
          },
          nb::sig("def reshape(self, *shape: int | collections.abc.Sequence[int]) -> Tensor"),
          "Local. The same values in another shape; one extent may be -1.")
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
      .def("__neg__", [](const PyTensor& self) { return compute([&] { return -self.value; }); })
      .def("__pos__", [](const PyTensor& self) { return self; })
      .def("__abs__", [](const PyTensor& self) { return compute([&] { return abs(self.value); }); })
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
          "memo"_a, nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any]) -> Tensor"));
  tensor.attr("view") = tensor.attr("reshape");
  for (const char* const name : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
    tensor.def(
        name, [name](const PyTensor& self, nb::handle other) { return compared(self, other, name); },
        "other"_a.none(), nb::is_operator(),
        nb::sig(concat("def ", name, "(self, other: object, /) -> Bools").c_str()));
  tensor.attr("__hash__") = nb::module_::import_("builtins").attr("object").attr("__hash__");
  both_ways(tensor, "__add__", "__radd__", [](const auto& a, const auto& b) { return a + b; });
  both_ways(tensor, "__sub__", "__rsub__", [](const auto& a, const auto& b) { return a - b; });
  both_ways(tensor, "__mul__", "__rmul__", [](const auto& a, const auto& b) { return a * b; });
  both_ways(tensor, "__truediv__", "__rtruediv__", [](const auto& a, const auto& b) { return a / b; });

  tensor.def(
      "__matmul__",
      [](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) { return product(a.value, other.value()); });
      },
      nb::is_operator(), nb::sig(operator_sig("__matmul__").c_str()));
  tensor.def(
      "__rmatmul__",
      [](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) { return product(other.value(), a.value); });
      },
      nb::is_operator(), nb::sig(operator_sig("__rmatmul__").c_str()));
  tensor.def(
      "__pow__",
      [](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) { return power(a.value, other); });
      },
      nb::is_operator(), nb::sig(operator_sig("__pow__").c_str()));
  tensor.def(
      "__rpow__",
      [](const PyTensor& a, nb::handle b) {
        return with_operand(b, [&](const Operand& other) { return power(other, a.value); });
      },
      nb::is_operator(), nb::sig(operator_sig("__rpow__").c_str()));
  for (const bool is_mean : {false, true}) {
    const char* const name = is_mean ? "mean" : "sum";
    tensor.def(
        name,
        [is_mean](const PyTensor& self, nb::handle axis, nb::handle keepdims, nb::handle dim,
                  nb::handle keepdim, nb::handle dtype, nb::handle out) {
          require<InputError>(dtype.is_none() && out.is_none(),
                              "a sum or mean with dtype or out, expected none of them");
          const bool keeps = nb::cast<bool>(nb::bool_(keepdim.is_none() ? keepdims : keepdim));
          return reduced(self, axis, dim, keeps, is_mean);
        },
        "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "dim"_a = nb::none(),
        "keepdim"_a = nb::none(), "dtype"_a = nb::none(), "out"_a = nb::none(),
        nb::sig(
            concat("def ", name,
                   "(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, *, dim: int | "
                   "tuple[int, ...] | None = None, keepdim: bool | None = None, dtype: None = None, out: "
                   "None = None) "
                   "-> Tensor")
                .c_str()),
        is_mean ? "Local. The mean, as sum()."
                : "Local. The sum over the dimensions `axis` of this rank's rows, None for all. They are "
                  "left out, or 1 with "
                  "keepdims. dim and keepdim are torch's names of the two. sar.sum() is of all ranks.");
  }
  const auto of_axis = [&](const char* name, const char* result, const char* doc) {
    by_python(tensor, name, name,
              concat("def ", name,
                     "(self, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None, "
                     "keepdim: bool | None = None, out: None = None) -> ",
                     result)
                  .c_str(),
              doc);
  };
  of_axis(
      "max", "Tensor",
      "Local. The largest values over the dimension `axis`, None for all, as sum(). The gradient goes to the "
      "first of equal ones. torch's pair of values and indices is x.max(axis), x.argmax(axis).");
  of_axis("min", "Tensor", "Local. The smallest values, as max().");
  of_axis("argmax", "Integers", "Local. The places of the largest values, as an array of NumPy.");
  of_axis("argmin", "Integers", "Local. The places of the smallest values, as an array of NumPy.");
  by_python(tensor, "permute", "permute", "def permute(self, *dims: int) -> Tensor",
            "Local. The dimensions in the order of dims, as a copy.");
  by_python(tensor, "transpose", "transpose", "def transpose(self, *dims: int) -> Tensor",
            "Local. The dimensions in reverse order, or in the order of dims, as numpy.transpose(); a copy.");
  by_python(tensor, "squeeze", "squeeze",
            "def squeeze(self, axis: int | None = None, *, dim: int | None = None) -> Tensor",
            "Local. Leaves out a dimension of extent 1, or all of them.");
  by_python(tensor, "unsqueeze", "unsqueeze", "def unsqueeze(self, dim: int) -> Tensor",
            "Local. Adds a dimension of extent 1.");
  by_python(tensor, "__format__", "formatted", "def __format__(self, spec: str, /) -> str", "");
  by_python(tensor, "__iter__", "rows", "def __iter__(self) -> collections.abc.Iterator[Tensor]", "");
  by_python(tensor, "__contains__", "contains", "def __contains__(self, value: object, /) -> bool", "");
  by_python(tensor, "__setitem__", "assign",
            "def __setitem__(self, key: object, values: ArrayLike, /) -> None",
            "Local. Overwrites values of a constant, in place.");
  by_python(tensor, "__array_ufunc__", "ufunc",
            "def __array_ufunc__(self, ufunc: typing.Any, method: str, /, *inputs: typing.Any, **options: "
            "typing.Any) -> typing.Any",
            "");
  tensor.def_prop_ro(
      "T", [](nb::handle self) { return self.attr("transpose")(); },
      nb::for_getter(nb::sig("def T(self) -> Tensor")), "The dimensions in reverse order, as a copy.");

  module.def(
      "tensor",
      [](nb::handle data, bool requires_grad, bool copy) {
        if (nb::hasattr(data, "tocsr")) return sparse_of(data, requires_grad);
        return PyTensor{Variable(tensor_of(data, copy), requires_grad)};
      },
      "data"_a, "requires_grad"_a = false, "copy"_a = false,
      nb::sig("def tensor(data: ArrayLike, requires_grad: bool = False, copy: bool = False) -> Tensor"),
      "Local. Numbers as a tensor. A C-ordered array of the library's precision is used without a copy and "
      "kept alive: "
      "later changes of the array are changes of the tensor. Everything else is converted, which copies. "
      "With "
      "requires_grad, a leaf. A sparse matrix of SciPy becomes a constant with sparse rows.");
  const auto constant = [&](const char* name, real value) {
    module.def(
        name, [value](const Extents& shape) { return PyTensor{Tensor::full(shape_of(shape), value)}; },
        "shape"_a,
        value == 0 ? "Local. A tensor of this shape, a number or a sequence, full of zeros."
                   : "Local. The same of ones.");
  };
  constant("zeros", 0);
  constant("ones", 1);
  module.def(
      "full",
      [](const Extents& shape, double value) {
        return PyTensor{Tensor::full(shape_of(shape), static_cast<real>(value))};
      },
      "shape"_a, "value"_a, "Local. A tensor of this shape with one value everywhere.");
  module.def("_set_grad_enabled", &set_grad_enabled, "enabled"_a);
  module.def(
      "_enter_reproducible",
      [](const Communicator* comm) { enter_reproducible(comm != nullptr ? *comm : default_communicator()); },
      "comm"_a.none());
  module.def("_leave_reproducible", &leave_reproducible);
  module.def("_is_reproducible", [] { return rank_sums() != nullptr; });
  module.def("_enter_mixed_precision", &enter_mixed_precision, "enabled"_a);
  module.def("_leave_mixed_precision", &leave_mixed_precision);
  module.def("is_grad_enabled", &grad_enabled, "Local. Whether operations of this thread are recorded.");
}

}}}  // namespace sar
