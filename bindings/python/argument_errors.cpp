// SPDX-License-Identifier: MIT

// nanobind answers a call with wrong arguments by a list of all signatures. Its function objects have the
// pointer to the code that runs a call, `vectorcall`, as the first member behind the header of the object, as
// the offset in their type says. This file puts functions of its own there, which run the call and, only if
// it has failed with nanobind's text, replace that by one that names the argument, what was given and what is
// expected (sar/_arguments.py). If another version of nanobind keeps the pointer elsewhere, its texts stay as
// they are.
#include <sar/bindings/python/module.hpp>

#include <array>
#include <cstring>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// The functions of nanobind that run calls, one for each number of arguments and kind of signature.
std::array<vectorcallfunc, 24> run_call{};

/// Replaces the exception of a failed call of `function` if its text is nanobind's. Arguments are as
/// vectorcall has them.
void explain(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) noexcept {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  nb::python_error error;
  try {
    const std::string text = nb::cast<std::string>(nb::str(error.value()));
    if (text.find("(): incompatible function arguments.") != std::string_view::npos ||
        text.find(wrong_value_text) != std::string_view::npos) {
      nb::list positional;
      for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(arguments[i]));
      nb::dict named;
      if (names != nullptr) {
        std::size_t i = count;
        for (const nb::handle name : nb::handle(names)) named[name] = nb::handle(arguments[i++]);
      }
      const nb::handle self = count > 0 ? nb::handle(arguments[0]) : nb::handle();
      const bool ready = !self.is_valid() || !nb::type_check(self.type()) || nb::inst_ready(self);
      const nb::object better = nb::module_::import_("sar._arguments")
                                    .attr("error_text")(nb::handle(function), positional, named, ready);
      if (!better.is_none()) {
        PyErr_SetObject(PyExc_TypeError, better.ptr());
        return;
      }
    }
  } catch (...) {  // the first exception is the one that matters
    PyErr_Clear();
  }
  error.restore();
}

template <std::size_t k>
PyObject* call_with_text(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  PyObject* const result = run_call[k](function, arguments, count, names);
  if (result == nullptr) explain(function, arguments, count & 0xffffff, names);  // the upper bits are flags
  return result;
}

template <std::size_t... k>
constexpr auto table_of(std::index_sequence<k...>) {
  return std::array<vectorcallfunc, sizeof...(k)>{&call_with_text<k>...};
}
constexpr auto call_with_texts = table_of(std::make_index_sequence<run_call.size()>());

void replace_text_of(nb::handle function) {
  if (!function.is_valid() || !nb::hasattr(function, "__nb_signature__")) return;
  auto* const place = reinterpret_cast<char*>(function.ptr()) + sizeof(PyVarObject);
  vectorcallfunc there = nullptr;
  std::memcpy(&there, place, sizeof there);
  const auto known = nb::cast<std::intptr_t>(function.attr("__vectorcalloffset__"));
  if (reinterpret_cast<std::intptr_t>(there) != known) return;
  for (std::size_t k = 0; k < run_call.size(); ++k) {
    if (run_call[k] != nullptr && run_call[k] != there) continue;
    run_call[k] = there;
    std::memcpy(place, &call_with_texts[k], sizeof there);
    return;
  }
}

}  // namespace

void name_wrong_arguments(nb::module_& module) {
  const nb::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
  for (const auto& [name, value] : nb::cast<nb::dict>(module.attr("__dict__"))) {
    replace_text_of(value);
    if (!nb::isinstance<nb::type_object>(value) || !nb::type_check(value)) continue;
    for (const auto& item : nb::list(value.attr("__dict__").attr("items")())) {
      const nb::object member = nb::borrow(item[1]);
      if (nb::handle(member.type()).is(property)) {
        for (const char* const accessor : {"fget", "fset"})
          replace_text_of(nb::object(member.attr(accessor)));
      } else {
        replace_text_of(member);
      }
    }
  }
}

}}}  // namespace sar
