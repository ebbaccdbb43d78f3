// SPDX-License-Identifier: MIT
#include <sar/autograd/row_sums.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/slope_loss.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

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
    const Index n = graph.num_src_nodes();
    require<InputError>(graph.is_block() && n == graph.num_dst_nodes(),
                        "PaiNN on a graph whose sources are not its destinations");
    require<ShapeError>(species.size() == n, "PaiNN got ", species.size(), " species for ", n, " atoms");
    for (const Index kind : species.span())
      require<InputError>(kind >= 0 && kind < options_.num_species, "PaiNN of ", options_.num_species,
                          " species got species ", kind);
    for (Index i = 0; i < n; ++i) {
      const Index in = graph.in_degrees()[static_cast<std::size_t>(i)];
      const Index out = graph.out_degrees()[static_cast<std::size_t>(i)];
      require<InputError>(in == out, "PaiNN got an atom with ", in, " edges to it and ", out,
                          " from it; expected all pairs in both directions (a full neighbor list)");
    }
    PaiNNRows rows{.scalars = gather_shared_rows(embedding_, species), .vectors = {}};
    for (std::size_t i = 0; i < convs_.size(); ++i)
      rows = convs_[i](graph, std::exchange(rows, {}), positions, shifts);
    Variable energies = outnet_(rows.scalars);
    if (!energy_scales_.defined()) return energies;
    return std::exchange(energies, {}) * gather_shared_rows(energy_scales_, species);
  });
}

Variable PaiNN::energies_of_heads(const Variable& head_energies, const RowIds& heads) {
  const Index n = head_energies.num_rows(), count = head_energies.shape().row_size();
  require<ShapeError>(heads.size() == 0 || heads.size() == n, "PaiNN got ", heads.size(), " heads for ", n,
                      " atoms");
  if (heads.size() == 0 && count == 1) return head_energies;
  Variable chosen = head_energies;
  if (heads.size() > 0) {
    Tensor weights = Tensor::zeros({n, count});  // head_mean divides by their number
    for (Index i = 0; i < n; ++i) {
      const Index head = heads.span()[static_cast<std::size_t>(i)];
      require<InputError>(head >= 0 && head < count, "PaiNN with a committee of ", count,
                          " heads got the head ", head);
      weights.row(i)[head] = static_cast<real>(count);
    }
    chosen = chosen * Variable(weights);
  }
  return head_mean(reshape(std::move(chosen), {n, count, 1}));
}

Variable PaiNN::atomic_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                                const Variable& shifts) const {
  return energies_of_heads(head_energies(graph, species, positions, shifts));
}

Variable PaiNN::energy(const Graph& graph, const RowIds& species, const Variable& positions,
                       const Variable& shifts) const {
  return graph.comm().agree(
      [&] { return sum(atomic_energies(graph, species, positions, shifts), graph.comm()); });
}

EnergyAndForces PaiNN::energy_and_forces(const Graph& graph, const RowIds& species, const Tensor& positions,
                                         const Tensor& shifts) const {
  return graph.comm().agree([&] {
    const auto f = [&](const std::vector<Variable>& x) {
      return energy(graph, species, x[0], shifts.defined() ? Variable(shifts) : Variable());
    };
    const ValueAndSlopes found = value_and_slopes(f, {positions});
    return EnergyAndForces{.energy = static_cast<double>(found.value.item()),
                           .forces = (-Variable(found.slopes[0])).value()};
  });
}
}}  // namespace sar
