// SPDX-License-Identifier: MIT

// The rows of the groups Links and Potentials of atoms: options of single tasks.
#include "option_table.hpp"

#include <sar/nn/models/model_description.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

void read_shares(const std::string& text, TaskOptions& o) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto valid = to_number<double>(text.substr(0, comma));
  const auto test = to_number<double>(text.substr(std::min(comma + 1, text.size())));
  if (!valid || !test || !(*valid >= 0) || !(*test >= 0) || !(*valid + *test < 1))
    throw CLI::ValidationError("--split-edges",
                               "'" + text +
                                   "', expected two shares of 0 or more, together less than 1, such "
                                   "as 0.05,0.10");
  o.valid = *valid;
  o.test = *test;
  o.has_shares = true;
}

}  // namespace

void add_link_options(OptionTable& t, TrainOptions& options) {
  constexpr Index most_negatives = 1 << 20;
  TaskOptions& o = options.task;
  t.group("Links", {TaskType::link});
  t.parsed(
       "--split-edges", [&o](const std::string& text) { read_shares(text, o); }, "V,T",
       "link, edge: shares of validation and test edges, without a given split")
      .default_text(concat(o.valid, ',', o.test))
      .for_tasks(pair_tasks)
      .as_text([&o] { return concat(o.valid, ',', o.test); });
  t.choice("--exclude", o.exclude,
           {{"none", ExcludeEdges::none}, {"self", ExcludeEdges::self}, {"reverse", ExcludeEdges::reverse}},
           "link, edge: edges of a sampled batch without messages")
      .for_tasks(network_tasks)
      .read_with("--sample and --task link or edge", [&options] {
        return !has_labelled_rows(options.task.type) && !options.sample.fan_outs.empty();
      });
  t.choice("--predictor", o.predictor, predictor_types(), "link: score of a pair");
  t.choice("--link-loss", o.loss, link_losses(), "link: loss function");
  t.number("--negatives", o.negatives, "link: negative pairs for each edge", 1, most_negatives);
  t.choice("--negatives-from", o.negatives_from,
           {{"source", Negatives::per_source}, {"global", Negatives::global}},
           "link: negatives keep the source, or join any ends of edges");
  t.number("--eval-negatives", o.eval_negatives,
           "link: negative pairs for each edge in evaluations, without given ones", 1, most_negatives);
  t.number("--hits-k", o.hits_k, "link: K of Hits@K", 1);
  t.flag("--filtered-ranks", o.filtered_ranks,
         "link: ranks both ends of an edge among all nodes, without other true edges")
      .for_tasks(network_tasks)
      .read_with("--task link and --predictor distmult, complex, transe or rotate",
                 [&o] { return o.type == TaskType::link && has_relations(o.predictor); });
  t.choice("--edge-labels", o.labels, {{"classes", LabelType::classes}, {"values", LabelType::values}},
           "edge: what labels are")
      .for_tasks({TaskType::edge});
}

void add_potential_options(OptionTable& t, TrainOptions& options) {
  constexpr double most = 1e30;
  PotentialOptions& o = options.task.potential;
  t.group("Potentials of atoms", {TaskType::potential});
  t.path("--valid-file", o.valid_file, "FILE", "validation structures, in extended XYZ as --dataset");
  t.path("--test-file", o.test_file, "FILE", "test structures");
  const auto key = [&](const char* name, std::string& value, const char* help) {
    t.text(name, value, "KEY", help).as_text([&value] { return value.empty() ? "found" : value; });
  };
  key("--energy-key", o.keys.energy, "key of the energies, where a file has several; none: no energies");
  key("--forces-key", o.keys.forces, "column of the forces; none: no forces");
  key("--stress-key", o.keys.stress, "key of the stresses or virials; none: no stresses");
  t.number("--cutoff", o.cutoff, "distance up to which atoms interact, in the unit of the positions", 0, most)
      .recorded();
  t.number("--num-basis", o.num_basis, "radial basis functions", 1, 1 << 16).recorded();
  t.choice("--radial-basis", o.radial_basis, named(ModelDescription::radial_bases()),
           "radial basis functions")
      .recorded();
  t.choice("--cutoff-function", o.cutoff_function, named(ModelDescription::cutoff_functions()),
           "how messages vanish at the cutoff")
      .recorded();
  t.number("--zbl-inner", o.zbl_inner, "ZBL repulsion is switched off from this distance on", 0, most)
      .recorded();
  t.number("--zbl-outer", o.zbl_outer, "ZBL repulsion vanishes at this distance; 0: no ZBL", 0, most)
      .recorded();
  t.number("--energy-weight", o.energy_weight, "weight of energies per atom in the loss", 0, most);
  t.number("--forces-weight", o.forces_weight, "weight of forces in the loss", 0, most);
  t.number("--stress-weight", o.stress_weight, "weight of stresses in the loss", 0, most);
}

std::string describe_task(const OptionTable& t, TaskType task) {
  // exclude is written with and without --sample
  const auto split = [&] {
    return concat(t.words({"--split-edges"}), " --exclude ", t.at("--exclude").text());
  };
  switch (task) {
    case TaskType::node:
    case TaskType::graph:
      return name_of(task) + t.words({"--loss", "--class-weights", "--label-smoothing", "--metric"});
    case TaskType::edge:
      return name_of(task) + t.words({"--edge-labels"}) + split() + t.words({"--metric"});
    case TaskType::link:
      return name_of(task) +
             t.words({"--predictor", "--link-loss", "--negatives", "--negatives-from", "--eval-negatives",
                      "--metric", "--hits-k", "--filtered-ranks"}) +
             split();
    case TaskType::potential:
      break;
  }
  return name_of(task) + t.words({"--energy-key", "--forces-key", "--stress-key", "--energy-weight",
                                  "--forces-weight", "--stress-weight", "--metric"});
}

}  // namespace sar::tools
