// SPDX-License-Identifier: MIT
#include <sar/autograd/row_sums.hpp>
#include <sar/nn/atoms/painn.hpp>

#include <cmath>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

const PaiNNOptions& checked(const PaiNNOptions& options) {
  require<InputError>(options.num_species > 0 && options.convs > 0, "PaiNN of ", options.num_species,
                      " species with ", options.convs, " convolutions, expected 1 or more of both");
  require<InputError>(options.committee > 0, "PaiNN with a committee of ", options.committee,
                      " heads, expected 1 or more");
  require<InputError>(
      options.energy_scales.empty() || std::ssize(options.energy_scales) == options.num_species, "PaiNN of ",
      options.num_species, " species with ", options.energy_scales.size(),
      " energy_scales, expected one each");
  return options;
}

}  // namespace

PaiNN::PaiNN(const PaiNNOptions& options, Generator& gen)
    : options_(checked(options)),
      embedding_(init::uniform({options.num_species, options.feats}, std::sqrt(3.0), gen.next_stream()),
                 true),
      outnet_(options.feats, std::max<Index>(options.feats / 2, 1), options.committee, gen,
              {.activation = silu}) {
  register_parameter("embedding", embedding_);
  register_module("convs", convs_);
  const RadialFunctions radial{.cutoff = options.cutoff,
                               .num_basis = options.num_basis,
                               .basis = options.radial_basis,
                               .cutoff_function = options.cutoff_function};
  for (int i = 0; i < options.convs; ++i)
    convs_.emplace_back(options.feats, radial, gen, options.norm_epsilon);
  register_module("outnet", outnet_);
  if (!options.energy_scales.empty())
    energy_scales_ = Tensor::from({options.num_species, 1}, std::span<const double>(options.energy_scales));
}

Variable PaiNN::head_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                              const Variable& shifts) const {
  return graph.comm().agree([&] {
    require_atoms("PaiNN", graph, species, options_.num_species);
    PaiNNRows rows{.scalars = gather_shared_rows(embedding_, species), .vectors = {}};
    for (std::size_t i = 0; i < convs_.size(); ++i)
      rows = convs_[i](graph, std::exchange(rows, {}), positions, shifts);
    Variable energies = outnet_(rows.scalars);
    if (!energy_scales_.defined()) return energies;
    return std::exchange(energies, {}) * gather_shared_rows(energy_scales_, species);
  });
}

bool PaiNN::is_by_species(const std::string& parameter) const {
  return parameter == "embedding";
}

bool PaiNN::is_of_last_layer(const std::string& parameter) const {
  return parameter.starts_with("outnet.2.");
}
}}  // namespace sar
