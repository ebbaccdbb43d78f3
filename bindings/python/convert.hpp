// SPDX-License-Identifier: MIT

/// Arguments from Python as the library takes them: arrays, ids, widths, names of choices, and back.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/bindings/python/call.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

/// A sar.Tensor where the library takes a Variable.
template <>
struct nanobind::detail::type_caster<sar::Variable> {
  NB_TYPE_CASTER(sar::Variable, const_name("Tensor"))

  template <class Flags>
  bool from_python(handle from, Flags, cleanup_list*) noexcept {
    sar::python::PyTensor* found = nullptr;
    if (!nanobind::try_cast(from, found, false) || found == nullptr) return false;
    value = found->value;
    return true;
  }
  static handle from_cpp(const sar::Variable& variable, rv_policy, cleanup_list*) noexcept {
    return nanobind::cast(sar::python::PyTensor{variable}).release();
  }
};

namespace sar { inline namespace SAR_PRECISION { namespace python {

/// An argument that is converted in the function: whatever numpy.asarray() makes an array of. Signatures say
/// ArrayLike.
struct ArrayHandle : nb::handle {
  ArrayHandle() = default;
  ArrayHandle(nb::handle given) : nb::handle(given) {}  // NOLINT: a name for a handle
};

}}}  // namespace sar

template <>
struct nanobind::detail::type_caster<sar::python::ArrayHandle> {
  NB_TYPE_CASTER(sar::python::ArrayHandle, const_name("ArrayLike"))

  template <class Flags>
  bool from_python(handle from, Flags, cleanup_list*) noexcept {
    value = from;
    return true;
  }
};

namespace sar { inline namespace SAR_PRECISION { namespace python {

/// Rows for both ends of an edge, or a pair (sources, destinations).
using Features = std::variant<Variable, std::pair<Variable, Variable>>;
/// A width for both ends, or a pair.
using Widths = std::variant<Index, std::pair<Index, Index>>;
using Columns = std::span<const std::uint8_t>;

inline NodeFeatures features_of(const Features& given) {
  if (const auto* pair = std::get_if<1>(&given)) return NodeFeatures(*pair);
  return NodeFeatures(std::get<0>(given));
}
inline InFeatures widths_of(const Widths& given) {
  if (const auto* pair = std::get_if<1>(&given)) return InFeatures(*pair);
  return InFeatures(std::get<0>(given));
}

/// Returns str(object).
std::string text_of(nb::handle object);
/// Returns what an object is, in the words of texts of errors.
std::string in_words(nb::handle object);
/// Returns os.fspath(path).
std::string path_of(nb::handle path);
/// Returns the name of the dtype of a NumPy array.
std::string dtype_of(nb::handle array);

/// Returns whether numpy.asarray() makes numbers of the object: an array, also of other packages, or a list.
bool is_array(nb::handle object);
/// Returns what was given as a NumPy array. Throws InputError, with the name `what`, for what is none.
nb::object array_of(nb::handle given, const char* what);
/// Returns whether a NumPy array has real numbers or bools.
bool is_real(nb::handle array);

/// Returns an object that keeps `object` of Python alive. It may end on any thread.
std::shared_ptr<void> owner_of(nb::object object);
/// Returns an object that keeps the memory of an array where it is: its exporter neither frees nor moves it.
std::shared_ptr<void> memory_of(nb::ndarray<> array);

/// Returns numbers of Python as a tensor: without a copy of an array that is C-ordered and of the library's
/// precision, otherwise converted. Throws InputError for what is no array of numbers.
Tensor tensor_of(nb::handle array, bool copy = false);
/// Returns the memory of a tensor as a NumPy array, which keeps it alive.
nb::object numpy_of(const Tensor& tensor);

/// The operand of an operator: a tensor, array, list or number. Undefined for others, such as a text.
struct Operand {
  explicit Operand(nb::handle given);
  [[nodiscard]] bool defined() const { return number || tensor.defined(); }
  /// Returns the operand as a tensor.
  [[nodiscard]] Variable value() const {
    return number ? Variable(Tensor::full({1}, static_cast<real>(*number))) : tensor;
  }

  Variable tensor;
  std::optional<double> number;
};

/// Integers of Python as a list of the library, for the time of a call. It keeps an array of 64-bit integers,
/// and converts others.
class Ids {
 public:
  /// Throws InputError that names `what` for other numbers and for more than one dimension.
  Ids(nb::handle given, const char* what);
  [[nodiscard]] std::span<const std::int64_t> span() const noexcept {
    return {static_cast<const std::int64_t*>(array_.data()), array_.size()};
  }
  /// Returns a copy, for operations that read the ids after the call: Python may write to the array then, and
  /// the ids are checked in the call only.
  [[nodiscard]] RowIds rows() const { return {std::vector<std::int64_t>(span().begin(), span().end())}; }

 private:
  nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array_;
};

/// Returns a dict of ids by node type. Throws InputError for keys that are no names.
std::map<std::string, std::vector<Index>> nodes_by_type(nb::handle given);

/// Floating-point numbers of 64 bits. It keeps an array of them that is C-ordered, and converts others.
class Doubles {
 public:
  /// Throws InputError for what is no array of real numbers, and ShapeError unless it has rows of `columns`
  /// numbers, with 0 for any shape. Both name `what`.
  Doubles(nb::handle given, const char* what, std::size_t columns = 0);
  [[nodiscard]] std::span<const double> span() const noexcept { return {array_.data(), array_.size()}; }

 private:
  nb::ndarray<const double, nb::c_contig, nb::device::cpu> array_;
};

/// A mask of rows: bool, or None for all rows.
class Mask {
 public:
  Mask(nb::handle given, Index rows, const char* what);
  [[nodiscard]] Columns span() const noexcept { return span_; }

 private:
  std::vector<std::uint8_t> own_;
  nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu> bools_;  // or:
  nb::object array_;
  Columns span_;
};

/// Returns a list of the library as a NumPy array of its own.
nb::object numpy_of(std::span<const std::int64_t> numbers);
nb::object numpy_of(std::span<const double> numbers);
nb::object numpy_of(std::span<const std::uint8_t> mask);

/// Returns the enumerator called `name`. Throws InputError that lists the names.
template <class Row, std::size_t n>
auto choice(const Row (&names)[n], const std::string& name, const char* what) {
  for (const auto& each : names)
    if (name == each.name) return each.value;
  throw InputError(concat(what, " is '", name, "', expected ",
                          joined(names, [](const auto& each) { return concat("'", each.name, "'"); })));
}

/// Throws InputError unless zero_grad() of torch would clear the gradients.
inline void require_cleared(bool set_to_none) {
  require<InputError>(set_to_none, "set_to_none is False, expected True: a gradient that is cleared is None");
}

/// Collective at the first call. Returns the communicator of layers and losses that are given none: all
/// ranks, unless set_default_communicator() says another. Initializes MPI if nobody has.
const Communicator& default_communicator();
void set_default_communicator(const Communicator& comm);
inline const Communicator& or_default(const std::optional<Communicator>& comm) {
  return comm ? *comm : default_communicator();
}
/// Initializes MPI unless the program has.
void require_environment();

/// Returns a handle of the graph with which one thread at a time calls message functions, which may be
/// Python's.
[[nodiscard]] Graph one_at_a_time(Graph graph);
/// Local. Limits the threads of parallel loops; 0: no limit.
void set_num_threads(int threads);
/// Ends what belongs to MPI, when the interpreter exits.
void finalize() noexcept;

}}}  // namespace sar
