// SPDX-License-Identifier: MIT
#include "partition_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

#include <utility>
#include <vector>

namespace sar::tools {
namespace {

void add_graph_options(CLI::App& app, PartitionOptions& o) {
  begin_group(app, "Graph");
  add_path(app, "input", o.input, "INPUT", "dataset directory, OGB folder or graph file (.gz or not)");
  add_pairs(app, "--edges", o.source.relations, "SOURCE:RELATION:DESTINATION=FILE",
            "typed graph: an edge list for each edge type, instead of INPUT");
  add_pairs(app, "--fields", o.source.fields, "NAME=FIELD",
            "other names of features, labels, masks, weights: features=x labels=y");
  add_edge_options(app, o.graph.data);
  add_source_options(app, o.source);
}

void add_partition_options(CLI::App& app, PartitionOptions& o) {
  begin_group(app, "Partition");
  PartitionGraphOptions& g = o.graph;
  g.data.partition = PartitionMethod::automatic;
  add_number(app, "--parts", g.parts, "number of parts", 1)->required();
  add_choice(app, "--method", g.data.partition, partition_methods(), "assignment of nodes to parts");
  add_choice(app, "--order", g.order, named({NodeOrder::clusters, NodeOrder::original}),
             "order of the nodes in a part");
  add_number(app, "--seed", g.data.partition_seed, "random, metis, scotch: seed");
  app.add_flag_callback(
      "--no-balance-edges", [&g] { g.balance_edges = false; },
      "metis, scotch, ldg: does not balance in-edges");
  app.add_flag_callback(
      "--no-balance-training", [&g] { g.balance_training = false; },
      "metis, scotch, ldg: does not balance training nodes");
  g.data.sparse_features = SparseFeatures::automatic;
  add_sparse_features_option(app, g.data.sparse_features);
  add_threads_option(app, o.threads);
}

void add_model_options(CLI::App& app, PartitionOptions& o) {
  ModelDescription& m = o.train.model;
  begin_group(app, "Predicted memory and traffic");
  std::vector<std::pair<std::string, std::string>> types;
  for (const ModelType& type : model_types())
    if (type.is_stack() && !type.needs_types) types.emplace_back(type.name, type.name);
  add_choice(app, "--model", m.type, types, "model");
  add_number(app, "--layers", m.layers, "number of layers", 1, ModelDescription::max_layers);
  add_number(app, "--hidden", m.hidden, "width between layers, of all heads together", 1);
  add_number(app, "--heads", m.heads, "attention heads", 1);
  add_number(app, "--features", o.widths.features, "width of the features; 0: as in the graph");
  add_number(app, "--classes", o.widths.classes, "number of classes; 0: largest label + 1");
  app.add_flag_callback(
      "--batch-norm", [&m] { m.norm = "batch"; }, "batch norm between layers");
  app.add_flag("--pre-linear", m.pre_linear, "a linear layer before the convolutions");
  app.add_flag_callback(
      "--post-linear", [&m] { m.jk = "last"; }, "a linear layer after the convolutions");
}

}  // namespace

void add_options(CLI::App& app, PartitionOptions& o) {
  add_graph_options(app, o);
  add_partition_options(app, o);
  add_model_options(app, o);
  begin_group(app, "Output");
  add_path(app, "--out", o.out, "DIR", "partition directory to write")->required();
  add_path(app, "--report", o.report, "FILE", "the report as JSON");
  set_common_options(app, {"--add-reverse-edges", "--add-self-loops", "--parts", "--method", "--threads",
                           "--model", "--layers", "--hidden", "--out", "--report"});
  app.footer(
      "--method auto takes metis for up to 100 million edges, because it cuts the fewest, and scotch beyond, "
      "because\n"
      "it needs no rank that holds the whole graph.");
  app.callback([&o] {
    if (o.input.empty() && o.source.relations.empty()) throw CLI::RequiredError("INPUT");
    o.graph.data.split = split_number(o.input, o.source);
    o.graph.data.fields = o.source.fields;
    o.train.model.activation = default_activation(o.train.model);
    o.train.threads = o.threads;
  });
}

}  // namespace sar::tools
