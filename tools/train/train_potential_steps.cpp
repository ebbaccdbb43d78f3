// SPDX-License-Identifier: MIT
#include "train_potential_steps.hpp"

#include "formats/atoms/extended_xyz.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

namespace sar::tools {
namespace {

RowIds species_of(const SpreadBatch& batch) {
  const Array<Index>& kinds = batch.nodes().integers.at("species").values;
  return {std::vector<Index>(kinds.begin(), kinds.end())};
}

}  // namespace

PotentialSteps::PotentialSteps(TrainingGraph& loaded, const TrainOptions& o)
    : Steps(loaded, o),
      task_(*loaded.potential),
      samples_(*loaded.samples->samples),
      potential_(loaded.model = describe_potential(comm_, loaded, o), loaded.gen) {
  loaded.model = potential_.description();
  if (o.epochs > 0) train_on(make_sample_batches(loaded, o));
}

std::string PotentialSteps::description() const {
  const ModelDescription& d = potential_.description();
  std::string shifts;
  for (std::size_t k = 0; k < d.species.size(); ++k)
    shifts += concat(k == 0 ? "" : ", ", d.species[k], " ", d.energy_shifts[k]);
  return concat("PaiNN: ", d.layers, " convolutions of ", d.hidden, " channels, ", d.num_basis,
                " radial functions (", d.radial_basis, "), ", d.cutoff_function, " cutoff ", d.cutoff,
                d.zbl_outer > 0 ? concat(", ZBL from ", d.zbl_inner, " to ", d.zbl_outer) : "",
                "; energy shifts ", shifts, ", scale ", d.energy_scales[0]);
}

LabelledAtoms PotentialSteps::labels_of(const Array<Index>& positions, const SpreadBatch& batch) const {
  const PotentialOptions& p = o_.task.potential;
  const bool with_forces = p.has_forces && p.forces_weight > 0;
  const bool with_stresses = p.has_stresses && p.stress_weight > 0;
  const std::vector<double>& shifts = potential_.description().energy_shifts;
  struct Labelled {
    Index id;
    StructureLabels labels;
  };
  std::vector<Labelled> mine;
  const Array<Index>& kinds = samples_.nodes.integers.at("species").values;
  for (const Index g : positions) {
    mine.push_back({samples_.ids[g], task_.labels[static_cast<std::size_t>(g)]});
    for (Index i = samples_.node_begin[g]; i < samples_.node_begin[g + 1]; ++i)
      mine.back().labels.energy -= shifts[static_cast<std::size_t>(kinds[i])];
  }
  // The structures of the batch are numbered in the order of their ids, on any number of ranks.
  const std::vector<Labelled> all = comm_.all_gather(std::span<const Labelled>(mine));
  std::vector<Index> order(all.size()), numbers(all.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::sort(order, {}, [&](Index s) { return all[static_cast<std::size_t>(s)].id; });
  std::vector<double> energies, volumes, stresses;
  for (const Index s : order) {
    const StructureLabels& each = all[static_cast<std::size_t>(s)].labels;
    numbers[static_cast<std::size_t>(s)] = std::ssize(energies);
    energies.push_back(each.energy);
    volumes.push_back(each.volume > 0 ? each.volume : 1);  // without a volume, there is no stress
    for (const Vector3& row : each.stress) stresses.insert(stresses.end(), row.begin(), row.end());
  }
  const Index count = std::ssize(all);
  std::vector<Index> structures;
  for (const Index s : batch.graph_of_nodes()) structures.push_back(numbers[static_cast<std::size_t>(s)]);
  LabelledAtoms labels{.species = species_of(batch),
                       .positions = Tensor::zeros({batch.graph().num_nodes(), 3}),
                       .shifts = batch.edges().tensors.at("vectors"),
                       .structures = std::move(structures),
                       .energies = Tensor::from({count}, std::span<const double>(energies))};
  if (with_forces) labels.forces = batch.nodes().tensors.at("forces");
  if (!with_stresses) return labels;
  labels.stresses = Tensor::from({count, 3, 3}, std::span<const double>(stresses));
  labels.volumes = Tensor::from({count}, std::span<const double>(volumes));
  return labels;
}

double PotentialSteps::add_gradients(const Batch& batch, EpochTimer& timer) {
  const PotentialOptions& p = o_.task.potential;
  const SpreadBatch atoms(comm_, samples_.select(batch.rows), o_.graph_options);
  const LabelledAtoms labels = labels_of(batch.rows, atoms);
  timer.forward_done();
  return backward_potential_loss(
             potential_.network(), atoms.graph(), labels,
             {.energy = p.energy_weight, .forces = p.forces_weight, .stress = p.stress_weight})
      .loss;
}

std::vector<formats::AtomStructure> PotentialSteps::predicted(Which which) {
  std::vector<formats::AtomStructure> result;
  for (Index g = 0; g < samples_.num_graphs(); ++g) result.push_back(task_.structure(g));
  const std::unique_ptr<BatchSource> batches = make_ordered_sample_batches(g_, o_, which);
  while (const BatchPtr next = batches->next()) {
    const SpreadBatch batch(comm_, samples_.select(next->rows), o_.graph_options);
    const PotentialValues values = potential_(batch.graph(),
                                              {.species = species_of(batch),
                                               .positions = Tensor::zeros({batch.graph().num_nodes(), 3}),
                                               .shifts = batch.edges().tensors.at("vectors")},
                                              /*per_atom_virials=*/true);
    const Array<double> energies = batch.route().back(std::span<const double>(values.energies));
    const Tensor forces = batch.to_samples(values.forces), virials = batch.to_samples(values.virials);
    Index i = 0;
    for (const Index g : next->rows) {
      formats::AtomStructure& atoms = result[static_cast<std::size_t>(g)];
      atoms.energy = 0;
      atoms.forces.clear();
      const double volume = atoms.cell.volume();
      atoms.stress = volume > 0 ? Matrix3{} : formats::AtomStructure{}.stress;
      for (const Index end = i + atoms.num_atoms(); i < end; ++i) {
        atoms.energy += energies[i];
        atoms.forces.insert(atoms.forces.end(), forces.row(i), forces.row(i) + 3);
        for (std::size_t c = 0; volume > 0 && c < 9; ++c)
          atoms.stress[c / 3][c % 3] -= static_cast<double>(virials.row(i)[c]) / volume;
      }
    }
  }
  return result;
}

std::vector<Scores> PotentialSteps::scores() {
  const std::vector<formats::AtomStructure> found = predicted(Which::in_splits);
  std::array<std::array<std::vector<double>, 3>, 3> errors;  // of energies, forces and stresses in each part
  const std::array<const Array<std::uint8_t>*, 3> masks{&data_.train_mask, &data_.val_mask, &data_.test_mask};
  for (std::size_t g = 0; g < found.size(); ++g)
    for (std::size_t part = 0; part < 3; ++part) {
      if ((*masks[part])[g] == 0) continue;
      const formats::AtomStructure& label = task_.structure(static_cast<Index>(g));
      const auto atoms = static_cast<double>(label.num_atoms());
      if (label.has_energy()) errors[0][part].push_back((found[g].energy - label.energy) / atoms);
      for (std::size_t i = 0; i < label.forces.size(); ++i)
        errors[1][part].push_back(found[g].forces[i] - label.forces[i]);
      for (std::size_t c = 0; label.has_stress() && c < 9; ++c)
        errors[2][part].push_back(found[g].stress[c / 3][c % 3] - label.stress[c / 3][c % 3]);
    }
  std::vector<Scores> scores;
  for (const Metric metric : metrics_of(o_.task)) {
    const AtomMetric kind = atom_metric(metric);
    const auto in_milli = [&](std::size_t part) {
      const std::vector<double>& of = errors[kind.label][part];
      const Tensor rows = Tensor::from({std::ssize(of), 1}, std::span<const double>(of));
      const auto& mean = kind.is_rmse ? root_mean_squared_error : mean_absolute_error;
      return 1000 * mean(rows, Tensor::zeros(rows.shape()), Array<std::uint8_t>(of.size(), 1), comm_);
    };
    scores.push_back({.train = in_milli(0), .val = in_milli(1), .test = in_milli(2)});
  }
  return scores;
}

void PotentialSteps::write_predictions() {
  std::vector<formats::AtomStructure> found = predicted(Which::all);
  const char* const names[] = {"predictions.xyz", "valid.xyz", "test.xyz"};
  auto next = found.begin();
  for (std::size_t f = 0; f < task_.files.size(); ++f) {
    const formats::AtomDataset& file = task_.files[f];
    if (file.path.empty()) continue;
    formats::AtomDataset out;
    const auto end = next + std::ssize(file.structures);
    out.structures.assign(std::make_move_iterator(next), std::make_move_iterator(end));
    next = end;
    formats::write_extended_xyz(comm_, o_.predict + "/" + names[f], out);
  }
}
}  // namespace sar::tools
