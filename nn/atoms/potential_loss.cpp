// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/comm/exact_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/slope_loss.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The structures of the local nodes and edges, and their numbers of atoms over all ranks.
struct Structures {
  Index count = 0;
  std::vector<Index> of_nodes, of_edges;
  Tensor num_atoms;  ///< [count]
};

/// Collective.
Structures structures_of(const Graph& graph, const LabelledAtoms& atoms) {
  const Index n = graph.num_nodes();
  require<ShapeError>(atoms.energies.defined() && atoms.energies.shape().dims() == 1,
                      "potential loss: energies of shape ", atoms.energies.shape(),
                      ", expected [structures]");
  Structures result{.count = atoms.energies.size(), .of_nodes = {}, .of_edges = {}, .num_atoms = {}};
  const std::span<const Index> given = atoms.structures.span();
  require<ShapeError>(given.empty() || std::ssize(given) == n, "potential loss: ", given.size(),
                      " structures of nodes for ", n, " nodes");
  result.of_nodes.assign(static_cast<std::size_t>(n), 0);
  if (!given.empty()) result.of_nodes.assign(given.begin(), given.end());
  std::vector<double> counts(static_cast<std::size_t>(result.count));
  for (const Index s : result.of_nodes) {
    require<InputError>(s >= 0 && s < result.count, "potential loss: an atom of structure ", s,
                        ", energies are those of ", result.count, " structures");
    ++counts[static_cast<std::size_t>(s)];
  }
  graph.comm().all_reduce(std::span<double>(counts));
  for (std::size_t s = 0; s < counts.size(); ++s)
    require<InputError>(counts[s] > 0, "potential loss: structure ", s, " has no atoms");
  result.num_atoms = Tensor::from({result.count}, std::span<const double>(counts));
  return result;
}

/// Sets the structures of the edges, which are those of their destinations. Collective.
void set_edge_structures(const Graph& graph, Structures& structures) {
  Tensor of_nodes({graph.num_nodes(), 1});
  for (Index i = 0; i < of_nodes.size(); ++i)
    of_nodes.data()[i] = static_cast<real>(structures.of_nodes[static_cast<std::size_t>(i)]);
  const Variable column(of_nodes);
  const Variable of_edges = graph.apply_edges([column](const EdgeBatch& edges) { return edges.dst(column); });
  for (const real s : of_edges.value().values()) structures.of_edges.push_back(static_cast<Index>(s));
}

/// Labels with 0 in place of NaN, a mask that is 0 there and 1 elsewhere, and the number of ones.
struct KnownLabels {
  explicit KnownLabels(const Tensor& given) : labels(given.shape()), mask(given.shape()) {
    for (Index i = 0; i < given.size(); ++i) {
      const bool is_known = !std::isnan(given.data()[i]);
      labels.data()[i] = is_known ? given.data()[i] : 0;
      mask.data()[i] = is_known ? 1 : 0;
      count += is_known ? 1 : 0;
    }
  }
  /// predicted - labels, 0 without a label
  [[nodiscard]] Variable error(const Variable& predicted) const {
    return (predicted - Variable(labels)) * Variable(mask);
  }

  Tensor labels, mask;
  double count = 0;
};

ExactSum sum_of_absolute(const Tensor& x) {
  ExactSum sum;
  for (const real value : x.values()) sum.add(std::abs(static_cast<double>(value)));
  return sum;
}

/// Returns x / count, or 0 where there is nothing to count.
double per_label(double x, double count) {
  return count > 0 ? x / count : 0;
}

}  // namespace

PotentialErrors backward_potential_loss(const PaiNN& model, const Graph& graph, const LabelledAtoms& atoms,
                                        const PotentialWeights& weights) {
  return graph.comm().agree([&] {
    const Communicator& comm = graph.comm();
    Structures structures = structures_of(graph, atoms);
    const Index n = graph.num_nodes(), count = structures.count;
    const bool with_forces = atoms.forces.defined(), with_stress = atoms.stresses.defined();
    require<ShapeError>(!with_forces || atoms.forces.shape() == Shape{n, 3},
                        "potential loss: forces of shape ", atoms.forces.shape(), ", expected [", n, ", 3]");
    require<ShapeError>(
        !with_stress ||
            (atoms.stresses.shape() == Shape{count, 3, 3} && atoms.volumes.shape() == Shape{count}),
        "potential loss: stresses of shape ", atoms.stresses.shape(), " and volumes of shape ",
        atoms.volumes.shape(), ", expected [", count, ", 3, 3] and [", count, "]");
    const bool strains_shifts = with_stress && atoms.shifts.defined();
    if (strains_shifts) set_edge_structures(graph, structures);

    const auto energies = [&](const std::vector<Variable>& inputs) {
      Variable x = inputs.empty() ? Variable(atoms.positions) : inputs[0];
      Variable shifts = atoms.shifts.defined() ? Variable(atoms.shifts) : Variable();
      if (with_stress) {
        const Variable& strain = inputs[1];
        x = x + gather_mm(x, strain, structures.of_nodes);
        if (strains_shifts) shifts = shifts + gather_mm(shifts, strain, structures.of_edges);
      }
      return sum_of_groups(model.atomic_energies(graph, atoms.species, x, shifts), structures.of_nodes, count,
                           comm);
    };
    PotentialErrors errors;
    const auto loss = [&](const Variable& energy, const std::vector<Variable>& slopes) {
      const KnownLabels known(atoms.energies);
      const Variable energy_error = known.error(energy) / Variable(structures.num_atoms);
      errors.energy_per_atom = per_label(sum_of_absolute(energy_error.value()).value(), known.count);
      Variable total =
          sum(energy_error * energy_error) * static_cast<real>(per_label(weights.energy, known.count));
      if (with_forces) {
        const KnownLabels forces(atoms.forces);
        const Variable error = forces.error(-slopes[0]);
        const ExactSum mine[] = {sum_of_absolute(error.value()), {forces.count, 0}};
        const std::vector<ExactSum> sums = exact_sum_over_ranks(comm, mine);
        errors.force = per_label(sums[0].value(), sums[1].value());
        const double weight = per_label(weights.forces, sums[1].value());
        total = total + sum(error * error, comm) * static_cast<real>(weight);
      }
      if (with_stress) {
        const Variable virial = sum(reshape(slopes[1], {1, 9 * count}), comm, ReduceDim::rows);
        const Variable volumes = atoms.volumes.reshape({count, 1});
        const KnownLabels stresses(atoms.stresses.reshape({count, 9}));
        const Variable error = stresses.error(reshape(virial, {count, 9}) / volumes);
        errors.stress = per_label(sum_of_absolute(error.value()).value(), stresses.count);
        total = total + sum(error * error) * static_cast<real>(per_label(weights.stress, stresses.count));
      }
      return total;
    };
    std::vector<Tensor> inputs;
    if (with_forces || with_stress) inputs.push_back(atoms.positions);
    if (with_stress) inputs.push_back(Tensor::zeros({count, 3, 3}));
    errors.loss = backward_slope_loss(energies, inputs, loss);
    return errors;
  });
}
}}  // namespace sar
