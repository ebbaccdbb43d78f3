#include "partition_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

namespace sar::tools {
namespace {

void add_graph_options(CLI::App& app, PartitionGraphOptions& o) {
  app.add_option("--parts", o.parts, "how many")->required()->transform(number_from(1));
  add_choice(app, "--method", o.method, partition_methods(), "metis, scotch, ldg, random or contiguous")
      ->required();
  add_choice(app, "--order", o.order, {{"clusters", NodeOrder::clusters}, {"original", NodeOrder::original}},
             "of the nodes in a part: clusters (used together, lying together) or original");
  add_seed_option(app, o.seed, "of the random, metis and scotch methods");
  add_edge_options(app, o);
  app.add_flag("!--no-balance-edges", o.balance_edges,
               "metis, scotch, ldg: parts need not have as many in-edges");
  app.add_flag("!--no-balance-training", o.balance_training,
               "metis, scotch, ldg: parts need not have as many training nodes");
}

void add_model_options(CLI::App& app, ModelSize& m) {
  add_choice(app, "--model", m.kind, {{"sage", "sage"}, {"gcn", "gcn"}, {"gat", "gat"}},
             "predict memory and traffic of sage, gcn or gat");
  add_layers_option(app, m.layers, "of the model");
  app.add_option("--hidden", m.hidden, "its width, of all heads together")->transform(number_from<Index>(1));
  app.add_option("--heads", m.heads, "gat: attention heads")->transform(number_from<Index>(1));
  app.add_option("--features", m.features, "width of its input; 0: that of the graph's features")
      ->transform(number_from<Index>(0));
  app.add_option("--classes", m.classes, "width of its output; 0: largest label + 1")
      ->transform(number_from<Index>(0));
  app.add_flag("--batch-norm", m.batch_norm, "batch norm between its layers");
}

}  // namespace

void add_options(CLI::App& app, PartitionOptions& o) {
  app.get_formatter()->column_width(40);
  app.option_defaults()->always_capture_default();
  app.add_option("input", o.input,
                 "dataset directory or OGB folder, homogeneous or with types, edge list or Matrix Market "
                 "file (.gz or not)")
      ->check(not_empty())
      ->option_text("INPUT");
  add_pairs(
      app, "--edges", o.source.relations, "SOURCE:RELATION:DESTINATION=FILE",
      "edge lists with a type each, in the place of INPUT; nodes are numbered from 0 within their types, and "
      "--node-data has TYPE/NAME=FILE.npy");
  app.add_option("--out", o.out, "the partition directory to make")
      ->required()
      ->check(not_empty())
      ->option_text("DIR");
  add_graph_options(app, o.graph);
  add_source_options(app, o.source);
  add_model_options(app, o.model);
  app.add_option("--report", o.report, "what is printed, as JSON")->check(not_empty())->option_text("FILE");
  add_threads_option(app, o.threads);
  app.callback([&o] {
    if (o.input.empty() && o.source.relations.empty()) throw CLI::RequiredError("INPUT");
  });
}

}  // namespace sar::tools
