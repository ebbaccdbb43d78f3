// SPDX-License-Identifier: MIT

/// The parts of the module `_sar`, each in the source of its name.
#pragma once

#include <sar/bindings/python/call.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION { namespace python {

/// Returns a docstring with the example that examples.txt has of this name, if any.
const char* with_example(const char* name, const char* docstring);
/// Returns what else describes a function.
template <class Extra>
const Extra& with_example(const char*, const Extra& extra) {
  return extra;
}

/// The module `_sar`, whose functions get examples.
class Definitions : public nb::module_ {
 public:
  explicit Definitions(const nb::module_& module) : nb::module_(module) {}
  template <class F, class... Extra>
  void def(const char* name, F&& f, const Extra&... extra) {
    nb::module_::def(name, std::forward<F>(f), with_example(name, extra)...);
  }
};

void bind_atoms(Definitions& module);
void bind_attention(Definitions& module);
void bind_communicator(Definitions& module);
void bind_convs(Definitions& module);
void bind_datasets(Definitions& module);
void bind_functions(Definitions& module);
void bind_graphs(Definitions& module);
void bind_layers(Definitions& module);
void bind_links(Definitions& module);
void bind_losses(Definitions& module);
void bind_models(Definitions& module);
void bind_modules(Definitions& module);
void bind_optimizers(Definitions& module);
void bind_samples(Definitions& module);
void bind_sampling(Definitions& module);
void bind_tensor(Definitions& module);
/// Makes the TypeErrors of all functions of the module name the argument, what was given and what is
/// expected.
void name_wrong_arguments(nb::module_& module);
}}}  // namespace sar
