// SPDX-License-Identifier: MIT

/// Modules that Python code defines, and how it passes modules to layers.
#pragma once

#include <sar/bindings/python/convert.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION { namespace python {

/// The base of sar.nn.Module. Python keeps the parts alive, in its attributes; this object has their names.
class ModuleTree : public Module {
 public:
  void set(const std::string& name, const Variable& value);
  void set(const std::string& name, Module& part) { register_module(name, part); }
  void set_buffer(const std::string& name, const Tensor& value);
  void unset(const std::string& name);
  using Module::reorder;
  /// Calls the module as Python does.
  [[nodiscard]] Variable operator()(Variable x);

 private:
  std::map<std::string, std::unique_ptr<Variable>> parameters_of_name_;
  std::map<std::string, std::unique_ptr<Tensor>> buffers_of_name_;
};

/// The generator of new layers.
std::unique_ptr<Generator>& generator();

/// Of the constructors of layers: keeps the arguments, and where the generator was, as the attribute `_made`
/// of the object, so that Python can make the layer again, for a copy and of a pickle.
struct Remembered {
  static void precall(PyObject** arguments, std::size_t count, nb::detail::cleanup_list*);
  static void postcall(PyObject**, std::size_t, nb::handle) {}
};
inline constexpr nb::call_policy<Remembered> remembered{};
/// A constructor that is refused has drawn nothing.
inline constexpr nb::call_guard<Transaction> restoring{};

/// Returns a function of rows that calls `function` of Python. Its exception becomes an Error, so that all
/// ranks can throw it.
Activation activation_of(std::optional<nb::callable> function);
/// Returns a network of rows that Python gives: a Linear, an MLP or a module that is defined in Python. None:
/// no function. Throws InputError, naming the argument `what`, for others.
RowFunction row_function_of(nb::handle given, const char* what);

}}}  // namespace sar
