// SPDX-License-Identifier: MIT
#include "data_options.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace sar::tools {
namespace {

/// "0.6,0.2,0.2", "20/class,500,1000"
DrawSplitOptions parse_split(const std::string& text) {
  DrawSplitOptions split;
  std::string_view rest = text;
  SplitPart* const parts[] = {&split.train, &split.valid, &split.test};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    *parts[i] = parse_split_part(std::string(rest.substr(0, comma)));
    require<InputError>((comma == rest.size()) == (i == 2), "'", text, "', expected three parts, ",
                        "TRAINING,VALIDATION,TEST, such as 0.6,0.2,0.2 or 20/class,500,1000");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
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

void add_split_options(CLI::App& app, TrainOptions& o) {
  for (const auto& [name, help] :
       {std::pair<std::string, const char*>{
            "--split-nodes", "draws the split, in shares or numbers: 0.6,0.2,0.2 or 20/class,500,rest"},
        {"--split-graphs",
         "--task graph, potential: draws the split of the graphs or structures, as --split-nodes"}})
    app.add_option_function<std::string>(
           name, [&o, name](const std::string& text) { o.draw_split = read_split(name, text); }, help)
        ->option_text("T,V,T");
  app.add_option_function<std::uint64_t>(
         "--split-seed", [&o](std::uint64_t seed) { o.split_seed = seed; },
         "--split-nodes, --split-graphs: seed of all runs; without it, the seed of each run")
      ->option_text("N");
}

}  // namespace

std::vector<CLI::Option*> add_data_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Data");
  auto* dataset = add_path(app, "--dataset", o.dataset, "PATH",
                           "dataset or partition directory, DGL partition, OGB folder or graph file");
  add_path(app, "--category", o.category, "TYPE", "typed graph: node type that has the labels and masks");
  auto* relation = add_path(app, "--relation", o.relation, "TYPE",
                            "typed graph, link: edge type that is predicted, author:writes:paper");
  app.add_option("--reverse-relation", o.reverse_relations,
                 "--relation: edge types with its reverse edges; found where they are copies")
      ->option_text("TYPE ...")
      ->needs(relation);
  app.add_flag("--describe", o.describe,
               "prints what was read: nodes, edges, ranges of their data; no training");
  add_pairs(app, "--fields", o.data.fields, "NAME=FIELD",
            "other names of features, labels, masks, weights: features=x labels=y");
  add_number(app, "--num-classes", o.num_classes, "number of classes; 0: largest label + 1");
  add_edge_options(app, o.data);
  app.add_flag_callback(
      "--ignore-edge-weights", [&o] { o.data.edge_weights = false; }, "edges have no weights");
  app.add_flag("--normalize-features", o.data.normalize_features,
               "divides each feature row by the sum of its absolute values");
  app.add_option("--edge-means", o.edge_means,
                 "node features: means of this field over the in-edges of each node")
      ->option_text("FIELD");
  o.data.sparse_features = SparseFeatures::automatic;
  add_sparse_features_option(app, o.data.sparse_features);
  const std::vector<CLI::Option*> source = add_source_options(app, o.source);
  add_split_options(app, o);
  add_choice(app, "--graph", o.graph, {{"karate", BuiltInGraph::karate}, {"sbm", BuiltInGraph::sbm}},
             "generated graph, instead of --dataset")
      ->excludes(dataset);
  add_sbm_options(app, o.sbm, "sbm: ");
  return source;
}

}  // namespace sar::tools
