// SPDX-License-Identifier: MIT
#include "train/atoms/potential_steps.hpp"

#include "formats/atoms/extended_xyz.hpp"
#include "program.hpp"
#include "train/atoms/structure_errors.hpp"

#include <sar/nn/atoms/potentials/potential_learner.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

namespace sar::tools {
namespace {

const std::vector<DataPart> in_some_part{DataPart::train, DataPart::val, DataPart::test, DataPart::watch},
    all_parts{DataPart::train, DataPart::val, DataPart::test, DataPart::watch, DataPart::none};

/// The weights of the structures of this rank; empty: all weights of all ranks are 1. Collective.
std::vector<std::array<double, 3>> structure_weights(const Communicator& comm, const PotentialTask& task,
                                                     const PotentialOptions& o) {
  std::vector<std::array<double, 3>> weights;
  const bool some = comm.agree([&] {
    for (const formats::AtomDataset& file : task.files)
      for (std::size_t s = 0; s < file.structures.size(); ++s)
        weights.push_back(weights_of(file.structures[s], o,
                                     concat(file.path, ": structure ", file.first + static_cast<Index>(s))));
    const bool mine = std::ranges::any_of(weights, [](const auto& of) {
      return of != std::array{1., 1., 1.};
    });
    return comm.all_reduce(mine ? 1 : 0, ReduceOp::max) == 1;
  });
  if (!some) weights.clear();
  return weights;
}

class PotentialSteps : public Steps {
 public:
  PotentialSteps(TrainingGraph& loaded, const TrainOptions& o)
      : Steps(loaded, o),
        task_(*loaded.potential),
        potential_(start_potential(loaded.model = describe_potential(comm_, loaded, o),
                                   loaded.potential->initial.get(), loaded.gen)),
        kinds_(comm_, task_, o.task.potential),
        weights_(structure_weights(comm_, task_, o.task.potential)) {
    loaded.model = potential_.description();
    if (o.epochs > 0) train_on(make_sample_batches(loaded, o));
  }

  [[nodiscard]] Module& model() override { return potential_.network(); }
  [[nodiscard]] std::string description() const override {
    const ModelDescription& d = potential_.description();
    std::string shifts;
    for (std::size_t k = 0; k < d.species.size(); ++k)
      shifts += concat(k == 0 ? "" : ", ", d.species[k], " ", d.energy_shifts[k]);
    const bool is_mace = d.type == "mace";
    return concat(is_mace ? "MACE: " : "PaiNN: ", d.layers, is_mace ? " layers of " : " convolutions of ",
                  d.hidden, " channels, ", d.num_basis, " radial functions (",
                  is_mace ? "bessel" : d.radial_basis, "), ", is_mace ? "polynomial" : d.cutoff_function,
                  " cutoff ", d.cutoff,
                  d.zbl_outer > 0 ? concat(", ZBL from ", d.zbl_inner, " to ", d.zbl_outer) : "",
                  d.zbl_power > 0 ? ", ZBL between covalent radii" : "",
                  d.committee > 1 ? concat(", a committee of ", d.committee, " heads") : "",
                  "; energy shifts ", shifts, ", scale ", d.energy_scales[0]);
  }

  [[nodiscard]] std::map<std::string, double> lr_factors() const override {
    return potential_.network().lr_factors(o_.lr_factors);
  }

  /// Writes the learner of --save-learner, after all else. Tells errors by kind and the largest ones, unless
  /// nobody asks: there is one kind and no --predict. Writes the structures with predicted energies, forces
  /// and stresses to DIR/predictions.xyz, those of --valid-file, --test-file and --watch-file to
  /// DIR/valid.xyz, DIR/test.xyz and DIR/watch.xyz, and DIR/errors.csv.
  void predict() override {
    const bool writes = !o_.predict.empty();
    if (writes || kinds_.names.size() > 1) {
      model().eval();
      std::vector<formats::AtomStructure> found =
          predicted(writes ? all_parts : in_some_part, /*deviations=*/writes);
      const std::vector<StructureErrors> errors = errors_of(g_, kinds_, found);
      errors_ = report_errors(comm_, task_, kinds_, errors, writes ? o_.predict + "/errors.csv" : "");
      if (writes) write_structures(std::move(found));
    }
    if (!o_.task.potential.learner.empty()) save_learner();
  }

  [[nodiscard]] nlohmann::ordered_json report() const override { return errors_; }
  /// Scales the deviations of a committee by what it errs on validation structures, and says so.
  void finish() override {
    if (potential_.committee() > 1 && (o_.epochs > 0 || o_.resume)) scale_deviations();
  }

 protected:
  /// Errors of energies in meV per atom, of forces in meV/A, of stresses in meV/A^3.
  [[nodiscard]] std::vector<Scores> scores() override {
    const std::vector<formats::AtomStructure> found = predicted(in_some_part);
    std::array<std::array<std::vector<double>, 4>, 3>
        errors;  // of energies, forces and stresses in each part
    for (std::size_t g = 0; g < found.size(); ++g) {
      const auto part = static_cast<std::size_t>(part_of(g_, static_cast<Index>(g)));
      if (part >= errors[0].size()) continue;
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
      const auto kind =
          static_cast<std::size_t>(std::ranges::find(atom_metrics, metric) - atom_metrics.begin());
      const auto in_milli = [&](std::size_t part) {
        const std::vector<double>& of = errors[kind / 2][part];
        const Tensor rows = Tensor::from({std::ssize(of), 1}, std::span<const double>(of));
        const auto& mean = kind % 2 == 1 ? root_mean_squared_error : mean_absolute_error;
        return 1000 * mean(rows, Tensor::zeros(rows.shape()), Array<std::uint8_t>(of.size(), 1), comm_);
      };
      scores.push_back({.train = in_milli(0), .val = in_milli(1), .test = in_milli(2), .watch = in_milli(3)});
    }
    return scores;
  }

  [[nodiscard]] double add_gradients(const Batch& batch, EpochTimer& timer) override {
    const SpreadBatch atoms =
        comm_.agree([&] { return SpreadBatch(comm_, task_.select(batch.rows), o_.graph_options); });
    const LabelledAtoms labels = labels_of(batch.rows, atoms);
    timer.forward_done();
    return backward_potential_loss(potential_.network(), atoms.graph(), labels, weights()).loss;
  }

 private:
  /// Collective. The labels of the structures at these positions, which `batch` has; energies are without the
  /// shifts.
  [[nodiscard]] LabelledAtoms labels_of(const Array<Index>& positions, const SpreadBatch& batch) const {
    const PotentialOptions& p = o_.task.potential;
    const PotentialWeights terms = weights();
    const bool with_forces = p.has_forces && terms.forces > 0;
    const bool with_stresses = p.has_stresses && terms.stress > 0;
    const std::vector<double>& shifts = potential_.description().energy_shifts;
    struct Labelled {
      Index id;
      StructureLabels labels;
      std::array<double, 3> weights{1, 1, 1};
    };
    std::vector<Labelled> mine;
    for (const Index g : positions) {
      const auto structure = static_cast<std::size_t>(g);
      mine.push_back({task_.sizes->ids[g], task_.labels[structure]});
      if (!weights_.empty()) mine.back().weights = weights_[structure];
      for (const std::uint8_t element : task_.structure(g).elements)
        mine.back().labels.energy -= shifts[static_cast<std::size_t>(task_.species_of(element))];
    }
    // The structures of the batch are numbered in the order of their ids, on any number of ranks.
    const std::vector<Labelled> all = comm_.all_gather(std::span<const Labelled>(mine));
    std::vector<Index> order(all.size()), numbers(all.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::sort(order, {}, [&](Index s) { return all[static_cast<std::size_t>(s)].id; });
    std::vector<double> energies, volumes, stresses, weights_of_all;
    std::vector<Index> heads;
    for (const Index s : order) {
      const StructureLabels& each = all[static_cast<std::size_t>(s)].labels;
      numbers[static_cast<std::size_t>(s)] = std::ssize(energies);
      const std::array<double, 3>& of_terms = all[static_cast<std::size_t>(s)].weights;
      weights_of_all.insert(weights_of_all.end(), of_terms.begin(), of_terms.end());
      energies.push_back(each.energy);
      if (potential_.committee() > 1)
        heads.push_back(head_to_train(o_.seed, all[static_cast<std::size_t>(s)].id, current_epoch(),
                                      potential_.committee()));
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
    labels.heads = std::move(heads);
    if (!weights_.empty()) labels.weights = Tensor::from({count, 3}, std::span<const double>(weights_of_all));
    if (with_forces) labels.forces = batch.nodes().tensors.at("forces");
    if (!with_stresses) return labels;
    labels.stresses = Tensor::from({count, 3, 3}, std::span<const double>(stresses));
    labels.volumes = Tensor::from({count}, std::span<const double>(volumes));
    return labels;
  }

  /// The weights of the terms in this epoch.
  [[nodiscard]] PotentialWeights weights() const {
    const PotentialOptions& p = o_.task.potential;
    PotentialWeights result{.energy = p.energy_weight,
                            .forces = p.forces_weight,
                            .stress = p.stress_weight,
                            .energy_error = p.energy_error,
                            .huber_delta = p.huber_delta};
    for (const WeightStage& stage : p.stages) {
      if (stage.epoch > current_epoch()) break;
      result.energy = stage.energy;
      result.forces = stage.forces;
      result.stress = stage.stress;
    }
    return result;
  }

  /// Collective. Predictions, as of predict_structures(), of the structures in these parts.
  [[nodiscard]] std::vector<formats::AtomStructure> predicted(const std::vector<DataPart>& parts,
                                                              bool deviations = false) {
    Array<Index> wanted;
    for (Index g = 0; g < task_.sizes->num_graphs(); ++g)
      if (std::ranges::find(parts, part_of(g_, g)) != parts.end()) wanted.push_back(g);
    return predict_structures(g_, o_, potential_, wanted, deviations);
  }

  void scale_deviations() {
    model().eval();
    potential_.set_deviation_scales(1, 1);
    const std::vector<StructureErrors> errors =
        errors_of(g_, kinds_, predicted({DataPart::val}, /*deviations=*/true));
    const DeviationFit fit = fit_deviations(comm_, errors);
    potential_.set_deviation_scales(fit.energy, fit.forces);
    g_.model = potential_.description();
    say(comm_, "committee: errors of validation structures are ", fit.energy,
        " times its deviations of energies and ", fit.forces,
        " times those of forces, by which they are multiplied");
  }

  void save_learner() {
    const std::string& directory = o_.task.potential.learner;
    if (o_.resume && !Checkpointer(comm_, directory).latest().empty()) return;  // this run wrote it before
    struct Place {
      Index id;
      int rank;
      std::size_t number;  // among those of the rank
    };
    std::vector<LabelledStructure> mine;
    std::vector<Place> places;
    comm_.agree([&] {
      for (Index g = 0; g < task_.sizes->num_graphs(); ++g) {
        if (part_of(g_, g) != DataPart::train) continue;
        const formats::AtomStructure& each = task_.structure(g);
        if (!each.has_energy() && each.forces.empty() && !each.has_stress()) continue;
        places.push_back({task_.sizes->ids[g], comm_.rank(), mine.size()});
        LabelledStructure& s = mine.emplace_back();
        s = {.positions = each.positions, .cell = each.cell, .energy = each.energy, .forces = each.forces};
        for (const std::uint8_t element : each.elements) s.species.push_back(task_.species_of(element));
        if (each.has_stress()) s.stress = each.stress;
      }
    });
    PotentialLearner learner(comm_, potential_, {.directory = directory});
    places = comm_.all_gather(std::span<const Place>(places));
    std::ranges::sort(places, {}, &Place::id);
    for (const Place& each : places)
      learner.add(each.rank == comm_.rank() ? mine[each.number] : LabelledStructure{}, each.rank);
    learner.train(0);  // writes it
    say(comm_, directory, ": a learner with ", learner.num_structures(), " structures");
  }

  void write_structures(std::vector<formats::AtomStructure> found) const {
    const char* const names[] = {"predictions.xyz", "valid.xyz", "test.xyz", "watch.xyz"};
    auto next = found.begin();
    std::unique_ptr<formats::StructureWriter> writer;
    for (std::size_t f = 0; f < task_.files.size(); ++f) {
      const PotentialFile& file = task_.files[f];
      if (writer == nullptr)
        writer = std::make_unique<formats::StructureWriter>(
            comm_, o_.predict + "/" + names[static_cast<std::size_t>(file.part)]);
      formats::AtomDataset out;
      for (const formats::AtomStructure& each : file.structures) {
        formats::AtomStructure& atoms = *next++;
        atoms.elements = each.elements;
        atoms.positions = each.positions;
        atoms.cell = each.cell;
        atoms.numbers = each.numbers;
        atoms.keys = each.keys;
        out.structures.push_back(std::move(atoms));
      }
      writer->write(out, &file);
      if (f + 1 < task_.files.size() && task_.files[f + 1].part == file.part) continue;
      writer->commit();
      writer.reset();
    }
  }

  const PotentialTask& task_;
  Potential potential_;
  StructureKinds kinds_;
  std::vector<std::array<double, 3>> weights_;  // of each structure of this rank; empty: 1, on all ranks
  nlohmann::ordered_json errors_;
};

}  // namespace

std::unique_ptr<Steps> make_potential_steps(TrainingGraph& loaded, const TrainOptions& o) {
  return std::make_unique<PotentialSteps>(loaded, o);
}

}  // namespace sar::tools
