// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/config.hpp>

#include <deque>
#include <string>
#include <string_view>

using namespace sar::python;

namespace {

/// Names of C++ classes, and their comments.
constexpr std::pair<const char*, const char*> comments[] = {
#include <docstrings.inc>
};

/// Names of classes and functions of the module, and their examples.
constexpr std::pair<const char*, const char*> examples[] = {
#include <examples.inc>
};

void append(const nb::object& type, const char* text) {
  const nb::object own = type.attr("__doc__");
  type.attr("__doc__") =
      own.is_none() ? nb::str(text) : nb::cast<nb::str>(own) + nb::str("\n\n") + nb::str(text);
}

/// Appends the comments of the C++ classes, and the examples, to the docstrings of the classes of these
/// names.
void add_comments(nb::module_& module) {
  for (const auto& [name, text] : comments) {
    const char* const name_here = std::string_view(name) == "DistributedBN1D" ? "BatchNorm1d" : name;
    if (!nb::hasattr(module, name_here)) continue;
    append(module.attr(name_here), text);
  }
  for (const auto& [name, text] : examples)
    if (nb::isinstance<nb::type_object>(module.attr(name))) append(module.attr(name), text);
}

}  // namespace

const char* sar::python::with_example(const char* name, const char* docstring) {
  for (const auto& [each, text] : examples)
    if (std::string_view(name) == each) {
      static std::deque<std::string> kept;
      return kept.emplace_back(std::string(docstring) + "\n\n" + text).c_str();
    }
  return docstring;
}

NB_MODULE(_sar, made) {
  Definitions module(made);
  nb::set_leak_warnings(false);  // globals of a program may live until the interpreter is gone
  module.attr("__version__") = SAR_VERSION;
  module.attr("mpi_library") = SAR_MPI;
  // classes first, which signatures of the others name
  bind_errors(module);
  bind_communicator(module);
  bind_tensor(module);
  bind_functions(module);
  bind_graphs(module);
  bind_modules(module);
  bind_samples(module);
  bind_layers(module);
  bind_convs(module);
  bind_attention(module);
  bind_losses(module);
  bind_optimizers(module);
  bind_sampling(module);
  bind_links(module);
  bind_datasets(module);
  bind_models(module);
  bind_atoms(module);
  add_comments(module);
  name_wrong_arguments(module);
}
