// SPDX-License-Identifier: MIT

/// Calls from Python into the library: the lock of the interpreter, threads, the recording of operations.
///
/// Room bindings/python: The module for Python. It passes arguments on; what it needs and the library has
/// not, the library gets.
#pragma once

#include <sar/autograd/tape.hpp>
#include <sar/comm/communicator.hpp>

#include <nanobind/nanobind.h>

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace python {

namespace nb = nanobind;

/// A sar.Tensor: a variable, and a share of the recording that it is a result of. The rule for users: what a
/// thread computes is recorded as long as a result of it exists; backward() ends the recording.
struct PyTensor {
  Variable value;
  std::shared_ptr<void> recording = {};  ///< null for leaves and constants
};

/// Local. A call of the library; the lock of the interpreter is held when it begins and ends. Begins a
/// recording where gradients are enabled and there is none. Throws Error while a call of another thread runs:
/// one thread at a time computes.
class Call : NonCopyable {
 public:
  Call();
  ~Call();
  /// Returns a result of the running call. It shares the recording if it was recorded.
  static PyTensor result(Variable value);

 private:
  bool outermost_ = false;
  std::optional<NoTape> constants_;
};

/// While it lives, this thread runs a function of the user on a chunk of edges, whose tapes are the
/// library's.
class MessageScope : NonCopyable {
 public:
  MessageScope();
  ~MessageScope();
  /// Returns whether this thread is inside of one.
  [[nodiscard]] static bool is_active() noexcept;
};

/// Returns whether operations of this thread are recorded, and sets it.
bool set_grad_enabled(bool enabled);
bool grad_enabled();
/// Opens a ReproducibleScope of this thread, which lasts until the matching call of leave_reproducible().
void enter_reproducible(const Communicator& comm);
void leave_reproducible() noexcept;
/// The same for a MixedPrecisionScope. Throws InputError in a library of double precision.
void enter_mixed_precision(bool mixed);
void leave_mixed_precision() noexcept;
/// Computes gradients from `output` and ends the recording. Throws Error if `output` is not recorded.
void backward(const PyTensor& output, const Tensor& seed);
/// Drops the recording of this thread.
void end_recording() noexcept;

inline PyTensor to_python(Variable value) {
  return Call::result(std::move(value));
}
inline std::vector<PyTensor> to_python(std::vector<Variable> values) {
  std::vector<PyTensor> all;
  for (Variable& value : values) all.push_back(Call::result(std::move(value)));
  return all;
}
inline std::map<std::string, PyTensor> to_python(std::map<std::string, Variable> values) {
  std::map<std::string, PyTensor> all;
  for (auto& [name, value] : values) all.emplace(name, Call::result(std::move(value)));
  return all;
}
inline PyTensor to_python(Tensor value) {
  return {Variable(std::move(value))};
}
template <class T>
T to_python(T value) {
  return value;
}

/// Runs f() as a call, without the lock of the interpreter, and returns its result for Python.
template <class F>
auto compute(const F& f) {
  const Call call;
  if constexpr (std::is_void_v<std::invoke_result_t<const F&>>) {
    const nb::gil_scoped_release released;
    f();
  } else {
    return to_python([&] {
      const nb::gil_scoped_release released;
      return f();
    }());
  }
}

/// Returns a function of the library as one for Python that runs in compute().
template <class R, class... Args>
auto computing(R (*f)(Args...)) {
  return [f](std::decay_t<Args>... args) { return compute([&] { return f(std::move(args)...); }); };
}

inline Variable or_undefined(const std::optional<Variable>& value) {
  return value.value_or(Variable());
}

/// Throws the current exception of Python: one of sar as itself, others as Error with class and text. If it
/// is no Exception, as the KeyboardInterrupt of Ctrl-C and SystemExit, this rank raises it in place of the
/// Error, which the others raise.
[[noreturn]] void throw_as_error(const nb::python_error& error);

/// The text of a TypeError for a value that was cast in a function; argument_errors.cpp replaces it.
inline constexpr const char* wrong_value_text =
    "a value in an argument has a type that sar does not take there";

/// Makes the classes of exceptions and translates the library's.
void bind_errors(nb::module_& module);

}}}  // namespace sar
