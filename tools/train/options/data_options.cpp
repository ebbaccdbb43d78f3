// SPDX-License-Identifier: MIT

// The rows of the group Data: which graph is read, and how.
#include "option_table.hpp"

#include <sar/core/error.hpp>

#include <optional>
#include <string>

namespace sar::tools {
namespace {

/// "0.6,0.2,0.2", "20/class,500,1000"
DrawSplitOptions parse_split(const std::string& text) {
  DrawSplitOptions split;
  const std::vector<std::string> words = split_text(text, ',');
  SplitPart* const parts[] = {&split.train, &split.valid, &split.test};
  for (std::size_t i = 0; i < 3; ++i) {
    *parts[i] = parse_split_part(words[i]);
    require<InputError>((i + 1 == words.size()) == (i == 2), "'", text, "', expected three parts, ",
                        "TRAINING,VALIDATION,TEST, such as 0.6,0.2,0.2 or 20/class,500,1000");
  }
  require_shares(split);
  require<InputError>(split.train.count > 0 || (split.train.count < 0 && split.train.share > 0), "'", text,
                      "' has no training nodes, expected some");
  return split;
}

DrawSplitOptions read_split(const std::string& option, const std::string& text) {
  try {
    return parse_split(text);
  } catch (const InputError& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

std::string describe(const std::optional<DrawSplitOptions>& split) {
  return split ? concat(split->train.text(), ',', split->valid.text(), ',', split->test.text()) : "";
}

void add_split_options(OptionTable& t, TrainOptions& o) {
  const auto add = [&](const std::string& name, const char* help) -> OptionRow& {
    return t
        .parsed(
            name, [&o, name](const std::string& text) { o.draw_split = read_split(name, text); }, "T,V,T",
            help)
        .as_text([&o] { return describe(o.draw_split); })
        .recorded();
  };
  add("--split-nodes", "draws the split, in shares or numbers: 0.6,0.2,0.2 or 20/class,500,rest")
      .for_tasks({TaskType::node})
      .common();
  add("--split-graphs",
      "--task graph, potential: draws the split of the graphs or structures, as --split-nodes")
      .for_tasks(sample_tasks);
  t.row(t.app().add_option_function<std::uint64_t>(
            "--split-seed", [&o](std::uint64_t seed) { o.split_seed = seed; },
            "--split-nodes, --split-graphs: seed of all runs; without it, the seed of each run"))
      .form("N")
      .for_tasks(all_tasks)
      .read_with("--split-nodes or --split-graphs", [&o] { return o.draw_split.has_value(); })
      .as_text([&o] { return o.draw_split ? concat(o.draw_split->seed) : ""; })
      .recorded();
}

}  // namespace

void add_data_options(OptionTable& t, TrainOptions& o) {
  t.group("Data", network_tasks, false);
  t.paths("--dataset", o.task.potential.files, "PATH",
          "dataset or partition directory, DGL partition, OGB folder or graph file; structures")
      .for_tasks(all_tasks)
      .common();
  t.path("--category", o.category, "TYPE", "typed graph: node type that has the labels and masks")
      .for_tasks(one_graph_tasks)
      .read_with("--task node; --task link has --relation", [&o] { return has_labelled_rows(o.task.type); })
      .common()
      .recorded();
  t.path("--relation", o.relation, "TYPE",
         "typed graph, link: edge type that is predicted, author:writes:paper")
      .for_tasks({TaskType::link})
      .recorded();
  t.texts("--reverse-relation", o.reverse_relations, "TYPE ...",
          "--relation: edge types with its reverse edges; found where they are copies")
      .needs("--relation")
      .recorded();
  t.flag("--describe", o.describe,
         "prints what was read, and what is suspicious in structures of atoms; no training")
      .for_tasks({TaskType::node, TaskType::link, TaskType::edge, TaskType::potential});
  t.pairs("--fields", o.data.fields, "NAME=FIELD",
          "other names of features, labels, masks, weights: features=x labels=y")
      .for_tasks(one_graph_tasks)
      .recorded();
  t.number("--num-classes", o.num_classes, "number of classes; 0: largest label + 1")
      .read_with("--task node or graph, or edge with classes", [&o] {
        return has_labelled_rows(o.task.type) ||
               (o.task.type == TaskType::edge && o.task.labels != LabelType::values);
      });
  for (CLI::Option* option : add_edge_options(t.app(), o.data)) t.row(option);
  const std::vector<TaskType> graphs{TaskType::graph};  // of others, the hash of the edges says it
  t.at("--add-reverse-edges").as_text([&o] { return concat(o.data.add_reverse_edges); }).recorded(graphs);
  t.at("--add-self-loops").as_text([&o] { return concat(o.data.add_self_loops); }).recorded(graphs);
  t.at("--drop-duplicates").for_tasks(one_graph_tasks);
  t.flag(
      "--ignore-edge-weights", [&o] { o.data.edge_weights = o.source.edge_weights = false; },
      "edges have no weights");
  t.flag("--normalize-features", o.data.normalize_features,
         "divides each feature row by the sum of its absolute values")
      .for_tasks(one_graph_tasks)
      .recorded();
  t.text("--edge-means", o.edge_means, "FIELD",
         "node features: means of this field over the in-edges of each node")
      .for_tasks({TaskType::node})
      .recorded();
  t.row(add_sparse_features_option(t.app(), o.data.sparse_features)).for_tasks(one_graph_tasks);
  for (CLI::Option* option : add_source_options(t.app(), o.source)) t.row(option).for_graph_files();
  t.at("--split").common().recorded().as_text([&o] { return concat(o.run.split, o.source.split); });
  add_split_options(t, o);
  t.choice("--graph", o.graph, {{"karate", BuiltInGraph::karate}, {"sbm", BuiltInGraph::sbm}},
           "generated graph, instead of --dataset")
      .for_tasks(one_graph_tasks)
      .excludes({"--dataset"});
  for (CLI::Option* option : add_sbm_options(t.app(), o.sbm, "sbm: "))
    t.row(option).read_with("--graph sbm and no --dataset",
                            [&o] { return o.dataset.empty() && o.graph == BuiltInGraph::sbm; });
}

}  // namespace sar::tools
