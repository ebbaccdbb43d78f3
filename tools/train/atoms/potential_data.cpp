// SPDX-License-Identifier: MIT
#include "train/atoms/potential_steps.hpp"

#include "formats/atoms/raw_structures.hpp"
#include "program.hpp"
#include "train/atoms/structure_checks.hpp"
#include "train/atoms/structure_errors.hpp"
#include "train/train_checkpoint.hpp"
#include "train/train_data.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Reads a file and prints what it has. Collective.
formats::AtomDataset read_file(const Communicator& comm, const std::string& path,
                               const formats::AtomLabelKeys& keys, const std::string& kind_key) {
  formats::AtomDataset file = formats::read_structures(comm, path, keys);
  Index atoms = 0, weighted = 0;
  std::map<std::string, Index> kinds;
  for (const formats::AtomStructure& each : file.structures) {
    atoms += each.num_atoms();
    if (const auto kind = each.keys.find(kind_key); kind != each.keys.end()) ++kinds[kind->second];
    weighted += std::ranges::any_of(weight_keys(), [&](const auto& key) { return each.keys.contains(key); });
  }
  atoms = comm.all_reduce(atoms);
  weighted = comm.all_reduce(weighted);
  kinds = formats::count_names(comm, kinds);
  if (!kinds.empty())
    file.notes.push_back(concat("kinds: ", kind_key, ": ", joined(kinds, [](const auto& each) {
                                  return concat(each.first, " ", each.second);
                                })));
  if (weighted > 0) file.notes.push_back(concat("weights of ", weighted, " structures: config_weight, ..."));
  say(comm, path, ": ", file.format, ": ", file.count, " structures of ", atoms, " atoms of ",
      joined(file.species));
  for (const std::string& note : file.notes) say(comm, path, ": ", note);
  return file;
}

/// The potential of --init-weights, with --new-species. Collective.
std::shared_ptr<Potential> initial_potential(const Communicator& comm, const TrainOptions& o) {
  const std::string& path = o.init_weights;
  require<InputError>(path.ends_with(".json") || find_checkpoint(comm, path).empty(), path,
                      ": is a checkpoint, expected the file of --save-weights, or --resume");
  const bool trainable = o.epochs > 0 && !o.describe;
  std::shared_ptr<Potential> found = load_potential(comm, path, trainable);
  require<InputError>(!found->has_members() || (o.save_weights.empty() && o.checkpoint.empty()), path,
                      ": is a committee of files, expected no --save-weights and no --checkpoint");
  const ModelDescription& d = found->description();
  say(comm, path, ": ",
      found->has_members() ? concat("a committee of ", d.committee, " potentials")
                           : std::string("a potential"),
      " of ", joined(d.species), " with ", d.layers, d.type == "mace" ? " layers of " : " convolutions of ",
      d.hidden, " channels, cutoff ", d.cutoff);
  const std::vector<NewSpecies>& added = o.task.potential.new_species;
  if (added.empty()) return found;
  Generator gen(o.seed);
  std::shared_ptr<Potential> extended = comm.agree([&] { return with_species(*found, added, gen); });
  for (const NewSpecies& each : added)
    say(comm, path, ": new species ", each.name, ", which begins ",
        each.like.empty() ? "with drawn numbers" : "as " + each.like);
  return extended;
}

/// What messages call the files of --dataset: "a.xyz, b.xyz, ... (7 files)".
std::string name_of(const std::vector<std::string>& files) {
  if (files.size() == 1) return files[0];
  return concat(files[0], ", ", files[1], files.size() > 2 ? concat(", ... (", files.size(), " files)") : "");
}

/// A row for each structure; the masks of training, validation and test structures are those of the files.
NodeData structure_data(const std::string& name, const PotentialTask& task) {
  NodeData data;
  data.name = name;
  data.item = "structure";
  data.original_ids = task.sizes->ids;
  const Index count = task.sizes->num_graphs();
  data.features = Tensor({count, Index{0}});
  data.label_type = LabelType::values;
  data.labels.assign(static_cast<std::size_t>(count), 0);
  data.targets = Tensor({count, 1});
  Index row = 0;
  for (const PotentialFile& file : task.files)
    for (const formats::AtomStructure& each : file.structures) {
      const bool has_label = each.has_energy() || !each.forces.empty() || each.has_stress();
      data.targets.data()[row++] = has_label ? 0 : std::numeric_limits<real>::quiet_NaN();
      data.train_mask.push_back(file.part == DataPart::train ? 1 : 0);
      data.val_mask.push_back(file.part == DataPart::val ? 1 : 0);
      data.test_mask.push_back(file.part == DataPart::test ? 1 : 0);
    }
  return data;
}

}  // namespace

TrainingGraph load_training_potential(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat) {
  heartbeat.phase("reading the structures");
  PotentialOptions& p = o.task.potential;
  formats::AtomLabelKeys keys = p.keys;
  keys.others = weight_keys();
  keys.others.push_back(p.kind_key);
  PotentialTask task;
  std::set<std::string> names;
  auto part = DataPart::train;
  for (const auto* paths : {&p.files, &p.valid_files, &p.test_files, &p.watch_files}) {
    for (const std::string& path : *paths) {
      task.files.push_back({read_file(comm, path, keys, p.kind_key), part});
      names.insert(task.files.back().species.begin(), task.files.back().species.end());
    }
    part = static_cast<DataPart>(static_cast<int>(part) + 1);
  }
  o.dataset = name_of(p.files);
  const bool trains = o.epochs > 0 && !o.describe;
  require<InputError>(task.trains_on(&formats::AtomDataset::has_energies) || !trains, o.dataset,
                      ": there are no energies, expected some to train on (--energy-key)");
  p.has_forces = task.trains_on(&formats::AtomDataset::has_forces);
  p.has_stresses = task.trains_on(&formats::AtomDataset::has_stresses);
  require<InputError>(!trains || p.energy_weight > 0 || (p.has_forces && p.forces_weight > 0) ||
                          (p.has_stresses && p.stress_weight > 0),
                      o.dataset, ": the loss has no term: --energy-weight is 0",
                      p.has_forces ? ", --forces-weight is 0" : ", there are no forces",
                      p.has_stresses ? ", --stress-weight is 0" : ", there are no stresses",
                      ", expected a weight above 0");
  o.model.species.assign(names.begin(), names.end());
  if (o.model.reads_radii())
    for (const std::string& name : o.model.species) o.model.covalent_radii.push_back(covalent_radius(name));
  if (!o.init_weights.empty()) {
    task.initial = initial_potential(comm, o);
    o.model = task.initial->description();
  }

  heartbeat.phase("finding neighbors");
  std::vector<DifferenceFits> fits;
  if (trains || o.describe) fits = compare_differences(comm, task);
  std::vector<StructureFacts> facts;
  SampleTask graphs;
  comm.agree([&] {
    (void)o.model.checked("the potential");
    // A structure that is larger than the share of a rank is cut in this order.
    for (PotentialFile& each : task.files) std::ranges::for_each(each.structures, formats::sort_in_space);
    task.make_graphs(o.model, p.graph_memory, [&](Index structure, const GraphSamples& graph) {
      facts.push_back(facts_of(task, structure, graph));
      task.num_edges.push_back(graph.num_edges());
      graphs.num_nodes += graph.num_nodes();
      graphs.num_edges += graph.num_edges();
    });
  });
  check_structures(comm, task, std::move(facts), fits, o);
  NodeData data = structure_data(o.dataset, task);
  data.book = gather_book(comm, task.sizes->num_graphs());
  prepare_split(comm, o, data);
  graphs.num_nodes = comm.all_reduce(graphs.num_nodes);
  graphs.num_edges = comm.all_reduce(graphs.num_edges);
  graphs.samples = task.sizes;
  TrainingGraph loaded = train_on_samples(comm, o, std::move(data), std::move(graphs));
  loaded.potential = std::move(task);
  return loaded;
}

}  // namespace sar::tools
