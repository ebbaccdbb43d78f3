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
      structures.push_back({.id = first + file.first + (&each - file.structures.data()),
                            .positions = each.positions,
                            .cell = each.cell});
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

/// Sets the targets of all structures, and the field "forces" of the nodes.
void set_targets(const ModelDescription& model, GraphSamples& samples, PotentialTask& task) {
  Tensor forces = Tensor::full({samples.num_nodes(), 3}, std::numeric_limits<real>::quiet_NaN());
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const formats::AtomStructure& atoms = task.structure(g);
    task.targets.push_back({samples.ids[g], atoms.energy, atoms.cell.volume(), atoms.stress});
    std::ranges::transform(atoms.forces, forces.data() + 3 * samples.node_begin[g],
                           [](double x) { return static_cast<real>(x); });
  }
  std::optional<Zbl> zbl;
  if (model.zbl_outer > 0) zbl.emplace(model.species, model.zbl_inner, model.zbl_outer);
  const Tensor& vectors = samples.edges.tensors.at("vectors");
  for (Index g = 0; zbl && g < samples.num_graphs(); ++g) {
    const Index begin = samples.edge_begin[g], end = samples.edge_begin[g + 1];
    const Index* const kinds = samples.nodes.integers.at("species").row(samples.node_begin[g]);
    std::vector<std::array<Index, 2>> of_edges;
    for (Index k = begin; k < end; ++k) of_edges.push_back({kinds[samples.src[k]], kinds[samples.dst[k]]});
    Tensor rows;
    try {
      rows = zbl->edge_rows(vectors.slice_rows(begin, end), of_edges);
    } catch (const InputError& error) {
      throw InputError(concat("structure ", samples.ids[g], ": ", error.what()));
    }
    PotentialTask::Target& target = task.targets[static_cast<std::size_t>(g)];
    for (Index k = begin; k < end; ++k) {
      const real *row = rows.row(k - begin), *d = vectors.row(k);
      target.energy -= row[0];
      for (std::size_t a = 0; a < 3; ++a) {
        forces.row(samples.node_begin[g] + samples.dst[k])[a] -= row[1 + a];
        for (std::size_t b = 0; target.volume > 0 && b < 3; ++b)
          target.stress[a][b] -= 0.5 * d[a] * row[1 + b] / target.volume;
      }
    }
  }
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
    set_targets(o.model, all, task);
    return all;
  });
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
  if (!o.init_weights.empty() || !loaded.potential->files[0].has_energies) return d;
  const Index kinds = std::ssize(d.species);
  std::vector<double> counts, energies;
  std::vector<double> components;  // of forces
  const GraphSamples& samples = *loaded.samples->samples;
  const Tensor& forces = samples.nodes.tensors.at("forces");
  const Index* kind = samples.nodes.integers.at("species").values.data();
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const formats::AtomStructure& atoms = loaded.potential->structure(g);
    if (loaded.data.train_mask[g] == 0) continue;
    for (Index i = samples.node_begin[g]; i < samples.node_begin[g + 1]; ++i)
      for (Index c = 0; !atoms.forces.empty() && c < 3; ++c)
        components.push_back(static_cast<double>(forces.row(i)[c]));
    if (!atoms.has_energy()) continue;
    energies.push_back(loaded.potential->targets[static_cast<std::size_t>(g)].energy);
    counts.resize(energies.size() * static_cast<std::size_t>(kinds), 0);
    double* const mine = &counts[counts.size() - static_cast<std::size_t>(kinds)];
    for (Index i = samples.node_begin[g]; i < samples.node_begin[g + 1]; ++i) mine[kind[i]] += 1;
  }
  require<InputError>(comm.all_reduce(std::ssize(energies)) > 0, o.dataset,
                      ": no training structure has an energy, expected one at least");
  // The first rank fits all structures, in the order of the file, so that the sums have the same order on any
  // number of ranks.
  counts = comm.all_gather(std::span<const double>(counts));
  energies = comm.all_gather(std::span<const double>(energies));
  if (comm.rank() != 0) counts = energies = {};
  d.energy_shifts = fit_energy_shifts(comm, counts, energies, kinds);
  const Tensor rows = Tensor::from({std::ssize(components), 1}, std::span<const double>(components));
  const double scale =
      std::sqrt(3.0) * root_mean_squared_error(rows, Tensor::zeros(rows.shape()),
                                               Array<std::uint8_t>(components.size(), 1), comm);
  d.energy_scales.assign(d.species.size(), scale > 0 ? scale : 1);  // without forces, it is NaN
  return d;
}}  // namespace sar::tools
