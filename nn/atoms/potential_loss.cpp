// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/comm/exact_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/loss.hpp>

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

/// Sets the structures of the edges, which are those of their destinations.
void set_edge_structures(const Graph& graph, Structures& structures) {
  structures.of_edges.resize(static_cast<std::size_t>(graph.num_edges()));
  graph.topology().for_each_edge([&](Index, Index v, Index edge) {
    structures.of_edges[static_cast<std::size_t>(edge)] = structures.of_nodes[static_cast<std::size_t>(v)];
  });
}

/// Labels with 0 in place of NaN, a mask that is 0 there and 1 elsewhere, the number of ones, and the weights
/// of the labels.
struct KnownLabels {
  /// `weight_of(row)`: of the structure that a row of labels belongs to.
  template <class WeightOf>
  KnownLabels(const Tensor& given, const WeightOf& weight_of)
      : labels(given.shape()), mask(given.shape()), weights(given.shape()) {
    const Index width = given.shape().dims() == 1 ? 1 : given.row_size();
    for (Index i = 0; i < given.size(); ++i) {
      const bool is_known = !std::isnan(given.data()[i]);
      labels.data()[i] = is_known ? given.data()[i] : 0;
      mask.data()[i] = is_known ? 1 : 0;
      weights.data()[i] = weight_of(i / width);
      count += is_known ? 1 : 0;
    }
  }
  /// predicted - labels, 0 without a label
  [[nodiscard]] Variable error(const Variable& predicted) const {
    return (predicted - Variable(labels)) * Variable(mask);
  }
  /// u h(d) of each error d
  [[nodiscard]] Variable terms(const Variable& error, double delta) const {
    Variable squares = error * error;
    if (delta > 0) {
      const Variable above = relu(error - static_cast<real>(delta));
      const Variable below = relu(-error - static_cast<real>(delta));
      squares = squares - above * above - below * below;
    }
    return squares * Variable(weights);
  }

  Tensor labels, mask, weights;
  double count = 0;
};

/// What the energy error of each structure is divided by.
Tensor divisors(const Tensor& num_atoms, EnergyError error) {
  Tensor result = num_atoms.clone();
  for (real& x : result.values()) {
    switch (error) {
      case EnergyError::per_atom:
        break;
      case EnergyError::per_root:
        x = std::sqrt(x);
        break;
      case EnergyError::total:
        x = 1;
        break;
    }
  }
  return result;
}

/// Throws unless the weights of S structures are numbers of 0 or more, if there are some.
void require_weights(const Tensor& of_structures, Index count, double delta) {
  require<InputError>(delta >= 0 && std::isfinite(delta), "potential loss: huber_delta is ", delta,
                      ", expected a number of 0 or more");
  if (!of_structures.defined()) return;
  require<ShapeError>(of_structures.shape() == Shape{count, 3}, "potential loss: weights of shape ",
                      of_structures.shape(), ", expected [", count, ", 3]");
  for (const real u : of_structures.values())
    require<InputError>(u >= 0 && std::isfinite(u), "potential loss: the weight of a structure is ", u,
                        ", expected a number of 0 or more");
}

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

PotentialErrors backward_potential_loss(const PotentialNetwork& model, const Graph& graph,
                                        const LabelledAtoms& atoms, const PotentialWeights& weights) {
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
    require_weights(atoms.weights, count, weights.huber_delta);
    const auto weight_of = [&](Index structure, Index term) {
      return atoms.weights.defined() ? atoms.weights.row(structure)[term] : real{1};
    };
    require<ShapeError>(atoms.heads.size() == 0 || atoms.heads.size() == count,
                        "potential loss: ", atoms.heads.size(), " heads of ", count, " structures");
    std::vector<Index> heads;  // of the local nodes
    for (std::size_t i = 0; atoms.heads.size() > 0 && i < structures.of_nodes.size(); ++i)
      heads.push_back(atoms.heads.span()[static_cast<std::size_t>(structures.of_nodes[i])]);
    const RowIds head_of_nodes(std::move(heads));
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
      const Variable of_atoms = PotentialNetwork::energies_of_heads(
          model.head_energies(graph, atoms.species, x, shifts), head_of_nodes);
      return sum_of_groups(of_atoms, structures.of_nodes, count, comm);
    };
    PotentialErrors errors;
    const auto loss = [&](const Variable& energy, const std::vector<Variable>& slopes) {
      const double delta = weights.huber_delta;
      const KnownLabels known(atoms.energies, [&](Index structure) { return weight_of(structure, 0); });
      const Variable difference = known.error(energy);
      errors.energy_per_atom = per_label(
          sum_of_absolute((difference / Variable(structures.num_atoms)).value()).value(), known.count);
      const Variable energy_error = difference / divisors(structures.num_atoms, weights.energy_error);
      Variable total =
          sum(known.terms(energy_error, delta)) * static_cast<real>(per_label(weights.energy, known.count));
      if (with_forces) {
        const KnownLabels forces(atoms.forces, [&](Index atom) {
          return weight_of(structures.of_nodes[static_cast<std::size_t>(atom)], 1);
        });
        const Variable error = forces.error(-slopes[0]);
        const ExactSum mine[] = {sum_of_absolute(error.value()), {forces.count, 0}};
        const std::vector<ExactSum> sums = exact_sum_over_ranks(comm, mine);
        errors.force = per_label(sums[0].value(), sums[1].value());
        const double weight = per_label(weights.forces, sums[1].value());
        total = total + sum(forces.terms(error, delta), comm) * static_cast<real>(weight);
      }
      if (with_stress) {
        const Variable virial = sum(reshape(slopes[1], {1, 9 * count}), comm, ReduceDim::rows);
        const Variable volumes = atoms.volumes.reshape({count, 1});
        const KnownLabels stresses(atoms.stresses.reshape({count, 9}),
                                   [&](Index structure) { return weight_of(structure, 2); });
        const Variable error = stresses.error(reshape(virial, {count, 9}) / volumes);
        errors.stress = per_label(sum_of_absolute(error.value()).value(), stresses.count);
        total = total + sum(stresses.terms(error, delta)) *
                            static_cast<real>(per_label(weights.stress, stresses.count));
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
