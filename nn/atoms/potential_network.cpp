// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/potential_network.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/loss.hpp>

#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

void PotentialNetwork::require_atoms(const char* name, const Graph& graph, const RowIds& species,
                                     Index num_species) {
  const Index n = graph.num_src_nodes();
  require<InputError>(graph.is_block() && n == graph.num_dst_nodes(), name,
                      " on a graph whose sources are not its destinations");
  require<ShapeError>(species.size() == n, name, " got ", species.size(), " species for ", n, " atoms");
  for (const Index kind : species.span())
    require<InputError>(kind >= 0 && kind < num_species, name, " of ", num_species, " species got species ",
                        kind);
  for (Index i = 0; i < n; ++i) {
    const Index in = graph.in_degrees()[static_cast<std::size_t>(i)];
    const Index out = graph.out_degrees()[static_cast<std::size_t>(i)];
    require<InputError>(in == out, name, " got an atom with ", in, " edges to it and ", out,
                        " from it; expected all pairs in both directions (a full neighbor list)");
  }
}

std::map<std::string, double> PotentialNetwork::lr_factors(std::map<std::string, double> selected) const {
  std::map<std::string, double> own;
  for (const NamedParameter& each : named_parameters()) {
    const double factor = lr_factor(each.name);
    if (factor == 1) continue;
    std::string name = each.name;
    auto found = selected.find(name);
    for (auto dot = name.rfind('.'); found == selected.end() && dot != std::string::npos;
         dot = name.rfind('.')) {
      name.resize(dot);
      found = selected.find(name);
    }
    own[each.name] = factor * (found == selected.end() ? 1 : found->second);
  }
  for (const auto& [name, factor] : own) selected[name] = factor;
  return selected;
}

Variable PotentialNetwork::energies_of_heads(const Variable& head_energies, const RowIds& heads) {
  const Index n = head_energies.num_rows(), count = head_energies.shape().row_size();
  require<ShapeError>(heads.size() == 0 || heads.size() == n, "a potential got ", heads.size(), " heads for ",
                      n, " atoms");
  if (heads.size() == 0 && count == 1) return head_energies;
  Variable chosen = head_energies;
  if (heads.size() > 0) {
    Tensor weights = Tensor::zeros({n, count});  // head_mean divides by their number
    for (Index i = 0; i < n; ++i) {
      const Index head = heads.span()[static_cast<std::size_t>(i)];
      require<InputError>(head >= 0 && head < count, "a potential with a committee of ", count,
                          " heads got the head ", head);
      weights.row(i)[head] = static_cast<real>(count);
    }
    chosen = chosen * Variable(weights);
  }
  return head_mean(reshape(std::move(chosen), {n, count, 1}));
}

Variable PotentialNetwork::atomic_energies(const Graph& graph, const RowIds& species,
                                           const Variable& positions, const Variable& shifts) const {
  return energies_of_heads(head_energies(graph, species, positions, shifts));
}

Variable PotentialNetwork::energy(const Graph& graph, const RowIds& species, const Variable& positions,
                                  const Variable& shifts) const {
  return graph.comm().agree(
      [&] { return sum(atomic_energies(graph, species, positions, shifts), graph.comm()); });
}

EnergyAndForces PotentialNetwork::energy_and_forces(const Graph& graph, const RowIds& species,
                                                    const Tensor& positions, const Tensor& shifts) const {
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
