// SPDX-License-Identifier: MIT
#include "train_potential.hpp"

#include "formats/atoms/extended_xyz.hpp"
#include "program.hpp"
#include "train_checkpoint.hpp"
#include "train_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Reads a file and prints what it has. Collective.
formats::AtomDataset read_file(const Communicator& comm, const std::string& path,
                               const formats::AtomLabelKeys& keys) {
  formats::AtomDataset file = formats::read_extended_xyz(comm, path, keys);
  Index atoms = 0;
  for (const formats::AtomStructure& each : file.structures) atoms += each.num_atoms();
  atoms = comm.all_reduce(atoms);
  if (comm.rank() != 0) return file;
  std::cout << printable(concat(path, ": extended XYZ: ", file.count, " structures of ", atoms, " atoms of ",
                                joined(file.species)))
            << std::endl;
  for (const std::string& note : file.notes) std::cout << printable(concat(path, ": ", note)) << std::endl;
  return file;
}

/// The potential of --init-weights. Collective.
ModelDescription description_of_file(const Communicator& comm, const std::string& path) {
  require<InputError>(find_checkpoint(comm, path).empty(), path,
                      ": is a checkpoint, expected the file of --save-weights, or --resume");
  const ModelDescription found = load_potential(comm, path)->description();
  if (comm.rank() == 0)
    std::cout << printable(concat(path, ": a potential of ", joined(found.species), " with ", found.layers,
                                  " convolutions of ", found.hidden, " channels, cutoff ", found.cutoff))
              << std::endl;
  return found;
}

/// The graphs of the structures of all files, with the numbers of their atoms' species.
GraphSamples samples_of(const std::vector<formats::AtomDataset>& files,
                        const std::vector<std::string>& species, double cutoff) {
  std::vector<SampleStructure> structures;
  IntegerRows kinds;
  Index first = 0;
  for (const formats::AtomDataset& file : files) {
    for (const formats::AtomStructure& each : file.structures) {
      const Index number = file.first + (&each - file.structures.data());
      structures.push_back({.id = first + number,
                            .positions = each.positions,
                            .cell = each.cell,
                            .numbers = each.numbers,
                            .name = concat(file.path, ": structure ", number, " (counted from 0)")});
      for (const std::string& name : each.species) {
        const auto found = std::ranges::find(species, name);
        require<InputError>(found != species.end(), file.path, ": has an atom of ", name,
                            ", which the potential does not know, expected ", joined(species));
        kinds.values.push_back(found - species.begin());
      }
    }
    first += file.count;
  }
  GraphSamples samples = neighbor_samples(structures, cutoff);
  samples.nodes.integers["species"] = std::move(kinds);
  return samples;
}

/// Sets the labels of all structures, and the field "forces" of the nodes.
void set_labels(const ModelDescription& model, GraphSamples& samples, PotentialTask& task) {
  Tensor forces = Tensor::full({samples.num_nodes(), 3}, std::numeric_limits<real>::quiet_NaN());
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const formats::AtomStructure& atoms = task.structure(g);
    task.labels.push_back({atoms.energy, atoms.cell.volume(), atoms.stress});
    std::ranges::transform(atoms.forces, forces.data() + 3 * samples.node_begin[g],
                           [](double x) { return static_cast<real>(x); });
  }
  if (model.zbl_outer > 0)
    subtract_zbl(Zbl(model.species, model.zbl_inner, model.zbl_outer), samples, task.labels, forces);
  samples.nodes.tensors["forces"] = std::move(forces);
}

/// A row for each structure; the masks of training, validation and test structures are those of the files.
NodeData structure_data(const std::vector<formats::AtomDataset>& files, const GraphSamples& samples) {
  NodeData data;
  data.name = files[0].path;
  data.item = "structure";
  data.original_ids = samples.ids;
  const Index count = samples.num_graphs();
  data.features = Tensor({count, Index{0}});
  data.label_type = LabelType::values;
  data.labels.assign(static_cast<std::size_t>(count), 0);
  data.targets = Tensor({count, 1});
  Index row = 0;
  for (std::size_t f = 0; f < files.size(); ++f)
    for (const formats::AtomStructure& each : files[f].structures) {
      const bool has_label = each.has_energy() || !each.forces.empty() || each.has_stress();
      data.targets.data()[row++] = has_label ? 0 : std::numeric_limits<real>::quiet_NaN();
      data.train_mask.push_back(f == 0 ? 1 : 0);
      data.val_mask.push_back(f == 1 ? 1 : 0);
      data.test_mask.push_back(f == 2 ? 1 : 0);
    }
  return data;
}

/// Prints how many neighbors atoms have and how near they are, and warns of numbers that a file or a cutoff
/// in another unit has. Collective.
void tell_neighbors(const Communicator& comm, const std::string& path, double cutoff,
                    const GraphSamples& samples) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double few = 0.5, many = 500;  // a distance and a number of neighbors, in Angstrom
  Index molecules = 0, without_pair = 0, most = 0;
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    if (samples.num_nodes(g) > 1) ++molecules;
    if (samples.num_nodes(g) > 1 && samples.num_edges(g) == 0) ++without_pair;
    std::vector<Index> neighbors(static_cast<std::size_t>(samples.num_nodes(g)), 0);
    for (Index k = samples.edge_begin[g]; k < samples.edge_begin[g + 1]; ++k)
      most = std::max(most, ++neighbors[static_cast<std::size_t>(samples.dst[k])]);
  }
  double least = inf;
  const Tensor& vectors = samples.edges.tensors.at("vectors");
  for (Index k = 0; k < vectors.num_rows(); ++k) {
    const real* const d = vectors.row(k);
    least = std::min(
        least, std::hypot(static_cast<double>(d[0]), static_cast<double>(d[1]), static_cast<double>(d[2])));
  }
  least = comm.all_reduce(least, ReduceOp::min);
  most = comm.all_reduce(most, ReduceOp::max);
  molecules = comm.all_reduce(molecules);
  without_pair = comm.all_reduce(without_pair);
  const auto atoms = static_cast<double>(comm.all_reduce(samples.num_nodes()));
  const auto edges = static_cast<double>(comm.all_reduce(samples.num_edges()));
  if (comm.rank() != 0) return;
  const auto say = [&](const auto&... parts) { std::cout << printable(concat(parts...)) << std::endl; };
  const std::string found =
      concat(edges / atoms, " neighbors an atom within the cutoff ", cutoff, ", at most ", most);
  say(path, ": ", found, edges > 0 ? concat(", the least distance is ", least) : "",
      without_pair > 0 ? concat("; ", without_pair, " of ", molecules,
                                " structures of several atoms have no pair within the cutoff")
                       : "");
  const char* const units = ": are the positions or the cutoff in another unit than Angstrom?";
  if (edges == 0 || 2 * without_pair > molecules)
    say("WARNING: ", path, ": ", edges == 0 ? "no structure has" : "most structures do not have",
        " two atoms within the cutoff ", cutoff, units);
  if (edges > many * atoms) say("WARNING: ", path, ": ", found, units);
  if (least < few) say("WARNING: ", path, ": the least distance of two atoms is ", least, units);
}

/// Of each species, over all ranks.
struct SpeciesCounts {
  std::vector<Index> trained;              ///< training structures with a label that have the species
  std::vector<Index> atoms_with_energies;  ///< atoms of training structures with an energy
};

/// Collective.
SpeciesCounts count_species(const Communicator& comm, const TrainingGraph& loaded, Index kinds) {
  SpeciesCounts counts;
  for (std::vector<Index>* of : {&counts.trained, &counts.atoms_with_energies})
    of->assign(static_cast<std::size_t>(kinds), 0);
  const GraphSamples& samples = *loaded.samples->samples;
  const Index* const kind = samples.nodes.integers.at("species").values.data();
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    if (loaded.data.train_mask[g] == 0 || std::isnan(loaded.data.targets.data()[g])) continue;
    const std::span<const Index> of(kind + samples.node_begin[g], kind + samples.node_begin[g + 1]);
    for (const Index k : std::set<Index>(of.begin(), of.end())) ++counts.trained[static_cast<std::size_t>(k)];
    if (!loaded.potential->structure(g).has_energy()) continue;
    for (const Index k : of) ++counts.atoms_with_energies[static_cast<std::size_t>(k)];
  }
  for (std::vector<Index>* of : {&counts.trained, &counts.atoms_with_energies})
    comm.all_reduce(std::span<Index>(*of));
  return counts;
}

/// Refuses a species that only structures have which nobody trains on: its atoms would have any energy. All
/// ranks throw the same.
void require_trained(const TrainingGraph& loaded, const TrainOptions& o,
                     const std::vector<std::string>& species, const std::vector<Index>& trained) {
  for (std::size_t k = 0; k < species.size(); ++k) {
    if (trained[k] > 0) continue;
    const auto file = std::ranges::find_if(loaded.potential->files, [&](const formats::AtomDataset& each) {
      return std::ranges::find(each.species, species[k]) != each.species.end();
    });
    throw InputError(
        concat(file->path, ": has atoms of ", species[k],
               ", which no training structure with a label has, expected such structures among ",
               o.draw_split ? "them (another --split-seed, or more of them)" : concat("those of ", o.dataset),
               ", or a file without ", species[k]));
  }
}

/// Root of the mean square of the energies per atom of the training structures without the energies of their
/// atoms. Collective.
double energy_deviation(const Communicator& comm, const TrainingGraph& loaded,
                        const std::vector<double>& shifts) {
  const GraphSamples& samples = *loaded.samples->samples;
  const Array<Index>& kinds = samples.nodes.integers.at("species").values;
  double sums[] = {0, 0};
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    double energy = loaded.potential->labels[static_cast<std::size_t>(g)].energy;
    if (loaded.data.train_mask[g] == 0 || std::isnan(energy)) continue;
    for (Index i = samples.node_begin[g]; i < samples.node_begin[g + 1]; ++i)
      energy -= shifts[static_cast<std::size_t>(kinds[i])];
    sums[0] += std::pow(energy / static_cast<double>(samples.num_nodes(g)), 2);
    sums[1] += 1;
  }
  comm.all_reduce(std::span<double>(sums));
  return std::sqrt(sums[0] / sums[1]);
}

std::string text_of_shifts(const std::vector<std::string>& species, const std::vector<double>& shifts,
                           const std::vector<Index>& which) {
  std::vector<std::string> each;
  for (const Index k : which)
    each.push_back(concat(species[static_cast<std::size_t>(k)], " ", shifts[static_cast<std::size_t>(k)]));
  return joined(each);
}

/// Warns of energies of atoms that the training structures do not determine.
void warn_of_shifts(const TrainOptions& o, const ModelDescription& d, const EnergyShifts& fitted,
                    const std::vector<Index>& atoms) {
  std::vector<Index> missing, fixed;
  for (const Index k : fitted.undetermined)
    (atoms[static_cast<std::size_t>(k)] > 0 ? fixed : missing).push_back(k);
  const auto say = [&](const auto&... parts) {
    std::cout << printable(concat("WARNING: ", o.dataset, ": ", parts...)) << std::endl;
  };
  const auto names = [&](const std::vector<Index>& which) {
    return joined(which, [&](Index k) { return d.species[static_cast<std::size_t>(k)]; });
  };
  if (!fixed.empty())
    say("the energies of single atoms of ", names(fixed),
        " cannot be told apart, because the training structures have them in fixed proportions only: ",
        "energy shifts ", text_of_shifts(d.species, fitted.energies, fixed),
        " are the least squares of the least norm. Energies of other proportions mean nothing");
  if (!missing.empty())
    say("no training structure with an energy has atoms of ", names(missing),
        ": the energy shifts are 0, and energies with these atoms mean nothing");
}

/// Warns if the energies of the training structures are not those that the potential of --init-weights was
/// trained on. Collective.
void warn_of_other_energies(const Communicator& comm, const TrainOptions& o, const ModelDescription& d,
                            const TrainingGraph& loaded, const EnergyShifts& fitted) {
  constexpr double least = 1, factor = 3;  // in eV
  std::vector<double> shifts = d.energy_shifts;
  shifts.resize(d.species.size(), 0);
  const double with_shifts = energy_deviation(comm, loaded, shifts);
  const double with_own = energy_deviation(comm, loaded, fitted.energies);
  if (with_shifts < std::max(least, factor * with_own) || comm.rank() != 0) return;
  std::vector<Index> all;
  for (Index k = 0; k < std::ssize(d.species); ++k) all.push_back(k);
  std::cout << printable(concat(
                   "WARNING: ", o.dataset, ": energies differ by ", with_shifts,
                   " eV an atom from the energies of single atoms of ", o.init_weights, " (",
                   text_of_shifts(d.species, shifts, all), "), which stay as they are; those fitted to ",
                   o.dataset, " (", text_of_shifts(d.species, fitted.energies, all), ") leave ", with_own,
                   ". Expected energies with the same zero as those that the potential was trained on"))
            << std::endl;
}

}  // namespace

TrainingGraph load_training_potential(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat) {
  heartbeat.phase("reading the structures");
  PotentialOptions& p = o.task.potential;
  PotentialTask task;
  std::set<std::string> names;
  for (const std::string& path : {o.dataset, p.valid_file, p.test_file}) {
    task.files.push_back(path.empty() ? formats::AtomDataset{} : read_file(comm, path, p.keys));
    names.insert(task.files.back().species.begin(), task.files.back().species.end());
  }
  const formats::AtomDataset& file = task.files[0];
  require<InputError>(file.has_energies || o.epochs == 0, o.dataset,
                      ": there are no energies, expected some to train on (--energy-key)");
  p.has_forces = file.has_forces;
  p.has_stresses = file.has_stresses;
  require<InputError>(o.epochs == 0 || p.energy_weight > 0 || (p.has_forces && p.forces_weight > 0) ||
                          (p.has_stresses && p.stress_weight > 0),
                      o.dataset, ": the loss has no term: --energy-weight is 0",
                      p.has_forces ? ", --forces-weight is 0" : ", there are no forces",
                      p.has_stresses ? ", --stress-weight is 0" : ", there are no stresses",
                      ", expected a weight above 0");
  o.model.type = "painn";
  o.model.species.assign(names.begin(), names.end());
  o.model.cutoff = p.cutoff;
  o.model.num_basis = p.num_basis;
  o.model.radial_basis = p.radial_basis;
  o.model.cutoff_function = p.cutoff_function;
  o.model.zbl_inner = p.zbl_inner;
  o.model.zbl_outer = p.zbl_outer;
  if (!o.init_weights.empty()) o.model = description_of_file(comm, o.init_weights);

  heartbeat.phase("finding neighbors");
  GraphSamples samples = comm.agree([&] {
    (void)o.model.checked("the potential");
    // A structure that is larger than the share of a rank is cut in this order.
    for (formats::AtomDataset& each : task.files)
      std::ranges::for_each(each.structures, formats::sort_in_space);
    GraphSamples all = samples_of(task.files, o.model.species, o.model.cutoff);
    set_labels(o.model, all, task);
    return all;
  });
  tell_neighbors(comm, o.dataset, o.model.cutoff, samples);
  NodeData data = structure_data(task.files, samples);
  data.book = gather_book(comm, samples.num_graphs());
  prepare_split(comm, o, data);
  SampleTask graphs;
  graphs.num_nodes = comm.all_reduce(samples.num_nodes());
  graphs.num_edges = comm.all_reduce(samples.num_edges());
  graphs.samples = std::make_shared<const GraphSamples>(std::move(samples));
  TrainingGraph loaded = train_on_samples(comm, o, std::move(data), std::move(graphs));
  loaded.potential = std::move(task);
  return loaded;
}

ModelDescription describe_potential(const Communicator& comm, const TrainingGraph& loaded,
                                    const TrainOptions& o) {
  ModelDescription d = o.model;
  const bool is_given = !o.init_weights.empty();
  const auto kinds = static_cast<Index>(d.species.size());
  const SpeciesCounts counts = count_species(comm, loaded, kinds);
  if (!is_given && o.epochs > 0) require_trained(loaded, o, d.species, counts.trained);
  if (!loaded.potential->files[0].has_energies) return d;
  const GraphSamples& samples = *loaded.samples->samples;
  const auto [shifts, scale] =
      fit_potential(comm, samples, loaded.potential->labels, samples.nodes.tensors.at("forces"),
                    loaded.data.train_mask, kinds);
  const bool has_energies = !shifts.energies.empty();
  require<InputError>(has_energies || is_given, o.dataset,
                      ": no training structure has an energy, expected one at least");
  if (!has_energies) return d;
  if (is_given) {
    warn_of_other_energies(comm, o, d, loaded, shifts);
    return d;
  }
  if (comm.rank() == 0) warn_of_shifts(o, d, shifts, counts.atoms_with_energies);
  d.energy_shifts = shifts.energies;
  d.energy_scales.assign(d.species.size(), scale);
  return d;
}}  // namespace sar::tools
