// SPDX-License-Identifier: MIT

/// The parts of the module `_sar`, each in the source of its name.
#pragma once

#include <sar/bindings/python/call.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {

void bind_atoms(nb::module_& module);
void bind_attention(nb::module_& module);
void bind_communicator(nb::module_& module);
void bind_convs(nb::module_& module);
void bind_datasets(nb::module_& module);
void bind_functions(nb::module_& module);
void bind_graphs(nb::module_& module);
void bind_layers(nb::module_& module);
void bind_links(nb::module_& module);
void bind_losses(nb::module_& module);
void bind_models(nb::module_& module);
void bind_modules(nb::module_& module);
void bind_optimizers(nb::module_& module);
void bind_samples(nb::module_& module);
void bind_sampling(nb::module_& module);
void bind_tensor(nb::module_& module);
/// Makes the TypeErrors of all functions of the module name the argument, what was given and what is
/// expected.
void name_wrong_arguments(nb::module_& module);
}}}  // namespace sar
