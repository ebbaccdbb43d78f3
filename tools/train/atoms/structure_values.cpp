// SPDX-License-Identifier: MIT
#include "train/atoms/potential_steps.hpp"

#include "train/train_batches.hpp"

#include <cstddef>
#include <memory>

namespace sar::tools {

RowIds species_of(const SpreadBatch& batch) {
  const Array<Index>& kinds = batch.nodes().integers.at("species").values;
  return {std::vector<Index>(kinds.begin(), kinds.end())};
}

std::vector<formats::AtomStructure> predict_structures(const TrainingGraph& g, const TrainOptions& o,
                                                       Potential& potential, std::span<const Index> wanted,
                                                       bool deviations) {
  const PotentialTask& task = *g.potential;
  const Communicator& comm = g.graph.comm();
  const auto heads = static_cast<std::size_t>(potential.committee());
  deviations = deviations && heads > 1;
  std::vector<formats::AtomStructure> result(static_cast<std::size_t>(task.sizes->num_graphs()));
  const std::unique_ptr<BatchSource> batches = make_ordered_sample_batches(g, o, wanted);
  while (const BatchPtr next = batches->next()) {
    const SpreadBatch batch =
        comm.agree([&] { return SpreadBatch(comm, task.select(next->rows), o.graph_options); });
    const PotentialValues values = potential(batch.graph(),
                                             {.species = species_of(batch),
                                              .positions = Tensor::zeros({batch.graph().num_nodes(), 3}),
                                              .shifts = batch.edges().tensors.at("vectors")},
                                             /*per_atom_virials=*/true, deviations);
    const Array<double> energies = batch.route().back(std::span<const double>(values.energies));
    const Tensor forces = batch.to_samples(values.forces), virials = batch.to_samples(values.virials);
    Tensor of_heads;
    Array<double> of_forces;
    if (deviations) {
      of_heads = batch.to_samples(values.head_energies);
      of_forces = batch.route().back(std::span<const double>(values.force_deviations));
    }
    Index i = 0;
    for (const Index k : next->rows) {
      formats::AtomStructure& atoms = result[static_cast<std::size_t>(k)];
      atoms.energy = 0;
      const double volume = task.labels[static_cast<std::size_t>(k)].volume;
      if (volume > 0) atoms.stress = {};
      std::vector<double> sums(heads, 0);
      for (const Index end = i + task.sizes->num_nodes(k); i < end; ++i) {
        atoms.energy += energies[i];
        atoms.forces.insert(atoms.forces.end(), forces.row(i), forces.row(i) + 3);
        for (std::size_t c = 0; volume > 0 && c < 9; ++c)
          atoms.stress[c / 3][c % 3] -= static_cast<double>(virials.row(i)[c]) / volume;
        if (!deviations) continue;
        for (std::size_t h = 0; h < heads; ++h) sums[h] += static_cast<double>(of_heads.row(i)[h]);
        atoms.force_deviations.push_back(of_forces[i]);
      }
      if (deviations) atoms.energy_deviation = potential.energy_deviation(sums);
    }
  }
  return result;
}

}  // namespace sar::tools
