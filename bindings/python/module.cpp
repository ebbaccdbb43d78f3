// SPDX-License-Identifier: MIT
#include <sar/bindings/python/module.hpp>
#include <sar/config.hpp>

#include <string_view>
#include <utility>

using namespace sar::python;

namespace {

/// Names of C++ classes, and their comments.
constexpr std::pair<const char*, const char*> comments[] = {
#include <docstrings.inc>
};

/// Appends the comments of the C++ classes to the docstrings of the classes of the same names.
void add_comments(nb::module_& module) {
  for (const auto& [name, text] : comments) {
    const char* const name_here = std::string_view(name) == "DistributedBN1D" ? "BatchNorm1d" : name;
    if (!nb::hasattr(module, name_here)) continue;
    const nb::object type = module.attr(name_here), own = type.attr("__doc__");
    type.attr("__doc__") =
        own.is_none() ? nb::str(text) : nb::cast<nb::str>(own) + nb::str("\n\n") + nb::str(text);
  }
}

}  // namespace

NB_MODULE(_sar, module) {
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
