// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/threads/parallel.hpp>

#include <string_view>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

struct Process {
  std::unique_ptr<Environment> environment;
  std::optional<Communicator> comm;
  std::unique_ptr<ThreadLimit> threads;
  bool threads_are_set = false;
};
Process& process() {
  static auto* const the = new Process;  // ended by finalize()
  return *the;
}

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

std::string kind_of(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  const nb::object kind = dtype.attr("kind");
  return text_of(kind);
}

void require_real(nb::handle array, const char* what) {
  require<InputError>(is_real(array), what, " of dtype ", dtype_of(array), ", expected real numbers");
}

template <class Array>
Shape shape_of(const Array& array) {
  if (array.ndim() == 0) return {1};
  std::vector<Index> extents;
  for (std::size_t d = 0; d < array.ndim(); ++d) extents.push_back(static_cast<Index>(array.shape(d)));
  return Shape(extents);
}

template <class T>
nb::object copied(std::span<const T> numbers) {
  auto* const own = new std::vector<T>(numbers.begin(), numbers.end());
  const nb::capsule owner(own, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(own->data(), {own->size()}, owner));
}

}  // namespace

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  const char* const characters = text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), nullptr) : nullptr;
  if (characters == nullptr) throw nb::python_error();
  return characters;
}

std::string in_words(nb::handle object) {
  return text_of(nb::module_::import_("sar._arguments").attr("given")(object));
}

std::string path_of(nb::handle path) {
  const nb::object text = nb::module_::import_("os").attr("fspath")(path);
  return text_of(text);
}

std::string dtype_of(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  return text_of(dtype);
}

bool is_array(nb::handle object) {
  return nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__") ||
         nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
         (PyObject_CheckBuffer(object.ptr()) != 0 && !nb::isinstance<nb::bytes>(object));
}

nb::object array_of(nb::handle given, const char* what) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  try {
    const bool exports = !nb::hasattr(given, "__array__") && nb::hasattr(given, "__dlpack__");
    return numpy.attr(exports ? "from_dlpack" : "asarray")(given);
  } catch (const nb::python_error& error) {
    if (nb::hasattr(given, "dtype") && dtype_of(given) == "torch.bfloat16")  // NumPy has no such type
      return array_of(given.attr("float")(), what);
    throw InputError(
        concat("the ", what, " given as ", class_name(given), " are no array: ", text_of(error.value())));
  }
}

bool is_real(nb::handle array) {
  return std::string_view("fiub").find(kind_of(array)) != std::string_view::npos;
}

std::shared_ptr<void> owner_of(nb::object object) {
  return {object.release().ptr(), [](void* kept) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire locked;
            if (locked) Py_DECREF(static_cast<PyObject*>(kept));
          }};
}

std::shared_ptr<void> memory_of(nb::ndarray<> array) {
  return {new nb::ndarray<>(std::move(array)), [](nb::ndarray<>* kept) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire locked;
            if (locked) delete kept;
          }};
}

Tensor tensor_of(nb::handle given, bool copy) {
  if (PyTensor* known = nullptr; nb::try_cast(given, known, false) && known != nullptr)
    return copy ? known->value.value().clone() : known->value.value();
  using Writable = nb::ndarray<real, nb::c_contig, nb::device::cpu>;
  using Readable = nb::ndarray<const real, nb::c_contig, nb::device::cpu>;
  Writable writable;
  Readable readable;
  if (nb::try_cast(given, writable, false)) {
    const Shape shape = shape_of(writable);
    const Tensor there = Tensor::borrow(writable.data(), shape, memory_of(nb::ndarray<>(writable)));
    return copy ? there.clone() : there;
  }
  if (nb::try_cast(given, readable, false)) {
    const Shape shape = shape_of(readable);
    const Tensor there =
        Tensor::borrow(static_cast<const real*>(readable.data()), shape, memory_of(nb::ndarray<>(readable)));
    return copy ? there.clone() : there;
  }
  nb::object array = array_of(given, "values");
  require_real(array, "an array");
  const nb::object numpy = nb::module_::import_("numpy");
  array =
      numpy.attr("ascontiguousarray")(array, nb::arg("dtype") = sizeof(real) == 4 ? "float32" : "float64");
  require<InputError>(nb::try_cast(array, readable, true), "an array of dtype ", dtype_of(array),
                      " cannot be read");
  return Tensor::borrow(static_cast<const real*>(readable.data()), shape_of(readable)).clone();
}

Operand::Operand(nb::handle given) {
  const auto number_of = [](nb::handle one) {
    const double value = PyFloat_AsDouble(one.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return value;
  };
  if (PyFloat_Check(given.ptr()) || PyLong_Check(given.ptr())) {
    number = number_of(given);
  } else if (PyTensor* known = nullptr; nb::try_cast(given, known, false) && known != nullptr) {
    tensor = known->value;
  } else if (is_array(given)) {
    const nb::object array = array_of(given, "operand");
    if (!is_real(array)) return;
    if (nb::cast<int>(array.attr("ndim")) == 0)
      number = number_of(array);
    else
      tensor = Variable(tensor_of(array));
  }
}

nb::object numpy_of(const Tensor& tensor) {
  std::array<std::size_t, 4> extents{};
  const auto dims = static_cast<std::size_t>(tensor.shape().dims());
  for (std::size_t d = 0; d < dims; ++d)
    extents[d] = static_cast<std::size_t>(tensor.shape()[static_cast<int>(d)]);
  auto* const kept = new Tensor(tensor);
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  if (tensor.read_only())
    return nb::cast(
        nb::ndarray<nb::numpy, const real>(std::as_const(*kept).data(), dims, extents.data(), owner));
  return nb::cast(nb::ndarray<nb::numpy, real>(kept->data(), dims, extents.data(), owner));
}

std::map<std::string, std::vector<Index>> nodes_by_type(nb::handle given) {
  std::map<std::string, std::vector<Index>> nodes;
  for (const auto& [type, ids] : nb::cast<nb::dict>(given)) {
    if (!nb::isinstance<nb::str>(type))
      throw InputError(concat("a node type is given as ", class_name(type), ", expected its name"));
    const Ids of_type(ids, "nodes");
    nodes[nb::cast<std::string>(type)].assign(of_type.span().begin(), of_type.span().end());
  }
  return nodes;
}

Ids::Ids(nb::handle given, const char* what) {
  nb::object array = nb::borrow(given);
  if (!nb::try_cast(array, array_, false)) {
    array = array_of(given, what);
    const std::string kind = kind_of(array);
    require<InputError>(kind == "i" || kind == "u" || nb::cast<std::size_t>(array.attr("size")) == 0, "the ",
                        what, " have dtype ", dtype_of(array), ", expected integers");
    require<ShapeError>(nb::cast<int>(array.attr("ndim")) == 1, "the ", what, " have ",
                        nb::cast<int>(array.attr("ndim")), " dimensions, expected 1");
    array = nb::module_::import_("numpy").attr("ascontiguousarray")(array, nb::arg("dtype") = "int64");
    require<InputError>(nb::try_cast(array, array_, false), "the ", what, " cannot be read as integers");
  }
}

Doubles::Doubles(nb::handle given, const char* what, std::size_t columns) {
  if (!nb::try_cast(given, array_, false)) {
    nb::object array = array_of(given, what);
    require_real(array, what);
    array = nb::module_::import_("numpy").attr("ascontiguousarray")(array, nb::arg("dtype") = "float64");
    require<InputError>(nb::try_cast(array, array_, false), what, " cannot be read as numbers");
  }
  require<ShapeError>(columns == 0 || (array_.ndim() == 2 && array_.shape(1) == columns), what, " of shape ",
                      shape_of(array_), ", expected rows of ", columns, " numbers");
}

Mask::Mask(nb::handle given, Index rows, const char* what) {
  if (given.is_none()) {
    own_.assign(static_cast<std::size_t>(rows), 1);
    span_ = own_;
    return;
  }
  if (nb::try_cast(given, bools_, false)) {
    span_ = {reinterpret_cast<const std::uint8_t*>(bools_.data()), bools_.size()};
    return;
  }
  array_ = array_of(given, what);
  const std::string dtype = dtype_of(array_);
  require<InputError>(dtype == "bool", "the ", what, " has dtype ", dtype,
                      ", expected bool, one for each row; row numbers are no mask");
  array_ = nb::module_::import_("numpy").attr("ascontiguousarray")(array_).attr("view")("uint8");
  nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> bytes;
  require<ShapeError>(nb::try_cast(array_, bytes, false), "the ", what, " has ",
                      nb::cast<int>(array_.attr("ndim")), " dimensions, expected 1");
  span_ = {bytes.data(), bytes.size()};
}

nb::object numpy_of(std::span<const std::int64_t> numbers) {
  return copied(numbers);
}

nb::object numpy_of(std::span<const double> numbers) {
  return copied(numbers);
}

nb::object numpy_of(std::span<const std::uint8_t> mask) {
  return copied(mask).attr("astype")("bool");
}

Graph one_at_a_time(Graph graph) {
  GraphOptions options = graph.options();
  options.serial_messages = true;
  graph.set_options(options);
  return graph;
}

void require_environment() {
  if (process().environment == nullptr)
    process().environment = std::make_unique<Environment>(CallingThreads::one_at_a_time);
}

const Communicator& default_communicator() {
  if (!process().comm) set_default_communicator((require_environment(), Communicator::world()));
  return *process().comm;
}

void set_default_communicator(const Communicator& comm) {
  if (!process().threads_are_set) {
    int threads = 0;
    compute([&] { threads = default_num_threads(comm); });
    set_num_threads(threads);
  }
  process().comm = comm;
}

void set_num_threads(int threads) {
  require<InputError>(threads >= 0, "the number of threads is ", threads, ", expected 0 or more");
  process().threads_are_set = true;
  process().threads.reset();
  if (threads > 0) process().threads = std::make_unique<ThreadLimit>(threads);
}

void finalize() noexcept {
  end_recording();
  process().threads.reset();
  process().comm.reset();
  process().environment.reset();
}

}}}  // namespace sar
