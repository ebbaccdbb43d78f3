// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module_tree.hpp>

#include <nanobind/stl/shared_ptr.h>

namespace sar { inline namespace SAR_PRECISION { namespace python {

void ModuleTree::set(const std::string& name, const Variable& value) {
  auto own = std::make_unique<Variable>(value);
  register_parameter(name, *own);
  parameters_of_name_[name] = std::move(own);
}

void ModuleTree::set_buffer(const std::string& name, const Tensor& value) {
  auto own = std::make_unique<Tensor>(value);
  register_buffer(name, *own);
  buffers_of_name_[name] = std::move(own);
}

void ModuleTree::unset(const std::string& name) {
  unregister(name);
  parameters_of_name_.erase(name);
  buffers_of_name_.erase(name);
}

Variable ModuleTree::operator()(Variable x) {
  const nb::gil_scoped_acquire locked;
  try {
    return nb::cast<Variable>(nb::find(this)(Call::result(std::move(x))));
  } catch (const nb::python_error& error) {
    throw_as_error(error);
  } catch (const nb::cast_error&) {
    throw Error("the forward() of a module that a layer calls returned no sar.Tensor");
  }
}

Activation activation_of(std::optional<nb::callable> function) {
  if (!function) return {};
  const std::shared_ptr<void> owner = owner_of(*function);
  return [owner](Variable x) -> Variable {
    const nb::gil_scoped_acquire locked;
    try {
      const nb::handle callable(static_cast<PyObject*>(owner.get()));
      return nb::cast<Variable>(callable(Call::result(std::move(x))));
    } catch (const nb::python_error& error) {
      throw_as_error(error);
    } catch (const nb::cast_error&) {
      throw Error("a function of rows that is written in Python returned no sar.Tensor");
    }
  };
}

void Remembered::precall(PyObject** arguments, std::size_t count, nb::detail::cleanup_list*) {
  nb::list given;
  for (std::size_t i = 1; i < count; ++i) given.append(nb::handle(arguments[i]));
  const nb::object made = nb::make_tuple(nb::tuple(given), generator()->seed(), generator()->num_streams());
  if (PyObject_SetAttrString(arguments[0], "_made", made.ptr()) != 0) throw nb::python_error();
}

std::unique_ptr<Generator>& generator() {
  static auto* const the = new std::unique_ptr<Generator>(std::make_unique<Generator>(0));
  return *the;
}

RowFunction row_function_of(nb::handle given, const char* what) {
  if (given.is_none()) return {};
  if (nb::isinstance<Linear>(given)) return nb::cast<std::shared_ptr<Linear>>(given);
  if (nb::isinstance<MLP>(given)) return nb::cast<std::shared_ptr<MLP>>(given);
  if (nb::isinstance<ModuleTree>(given)) return nb::cast<std::shared_ptr<ModuleTree>>(given);
  throw InputError(concat(what, " is a ", nb::cast<std::string>(given.type().attr("__name__")),
                          ", expected a sar.nn.Module"));
}

}}}  // namespace sar
