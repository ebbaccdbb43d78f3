// SPDX-License-Identifier: MIT
#include "add_options.hpp"

#include "batch_options.hpp"
#include "check_options.hpp"
#include "data_options.hpp"
#include "model_options.hpp"
#include "options.hpp"
#include "output_options.hpp"
#include "saint_options.hpp"
#include "training_options.hpp"
#include "unread_options.hpp"

#include <CLI/CLI.hpp>

#include <iterator>
#include <vector>

namespace sar::tools {
namespace {

void read_what_the_task_needs(TrainOptions& o) {
  o.data.edge_data = !has_labelled_rows(o.task.type);
  o.data.edge_labels = o.source.edge_labels = o.task.type == TaskType::edge;
  o.data.edge_types = o.task.type == TaskType::link && has_relations(o.task.predictor);
  o.data.labels = !o.data.edge_data || o.dataset.empty();  // a built-in graph types edges by labels
  o.data.edge_type = o.relation;
  o.data.features = o.embedding == 0 && o.edge_means.empty();
  // a network that would make dense rows of them needs less memory with dense rows alone
  if (o.data.sparse_features == SparseFeatures::automatic &&
      (o.halo_cache_bytes > 0 || !model_type(o.model.type).reads_sparse(o.model.aggregator)))
    o.data.sparse_features = SparseFeatures::no;
  if (has_labelled_rows(o.task.type)) o.data.label_type = label_type(o.task.label_loss);
}

}  // namespace

void add_options(CLI::App& app, TrainOptions& o) {
  const std::vector<CLI::Option*> source = add_data_options(app, o);
  add_model_options(app, o);
  add_training_options(app, o);
  add_sample_options(app, o);
  begin_group(app, "Links");
  add_link_options(app, o.task);
  add_potential_options(app, o.task.potential);
  add_parallel_options(app, o);
  add_output_options(app, o);
  set_common_options(
      app, {"--dataset", "--split",     "--split-nodes", "--category",     "--model",   "--layers",
            "--hidden",  "--task",      "--epochs",      "--lr",           "--sample",  "--max-halo-bytes",
            "--threads", "--partition", "--log",         "--save-weights", "--predict", "--checkpoint",
            "--resume",  "--metric",    "--runs"});
  app.callback([&o, &app, source] {
    set_sampler(o.sample);
    refuse_unread(app, o);
    for (const auto& [name, list] : o.sample.relation_lists)
      o.sample.of_relations[name] = read_fan_outs("--sample-relation", list);
    if (app.count("--layers") == 0 && !o.sample.fan_outs.empty())
      o.model.layers = std::ssize(o.sample.fan_outs);
    if (o.task.type == TaskType::graph) {
      if (app.count("--batch-size") == 0) o.sample.batch_size = 32;
      if (o.model.readout == "none") o.model.readout = "sum";
      if (o.model.jk == "none") o.model.jk = "last";
    }
    if (o.task.type == TaskType::potential) {
      if (app.count("--batch-size") == 0) o.sample.batch_size = 4;
      if (app.count("--hidden") == 0) o.model.hidden = 64;
      if (app.count("--layers") == 0) o.model.layers = 3;
      if (app.count("--lr") == 0) o.lr = 5e-3;
      if (app.count("--clip-norm") == 0) o.clip_norm = 10;
    }
    if (o.model.activation.empty()) o.model.activation = default_activation(o.model);
    o.found = find_dataset(o.dataset);
    o.source.fields = o.data.fields;
    o.data.split = split_number(o.dataset, o.source);
    read_what_the_task_needs(o);
    check_options(app, o, source);
    o.sbm.seed = o.seed;
    o.data.partition_seed = o.seed;
    o.run.split = o.data.split;
    if (o.draw_split) o.draw_split->seed = o.split_seed.value_or(o.seed);
  });
}}  // namespace sar::tools
