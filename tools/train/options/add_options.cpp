// SPDX-License-Identifier: MIT
#include "add_options.hpp"

#include "option_table.hpp"

#include <iterator>
#include <memory>
#include <string>
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
  const auto table = std::make_shared<const OptionTable>(app, o);
  std::vector<std::string> common;
  for (const OptionRow& row : table->rows())
    if (row.is_common()) common.push_back(row.name());
  set_common_options(app, common);
  app.callback([&o, &app, table] {
    if (!o.task.potential.files.empty()) o.dataset = o.task.potential.files.front();
    table->refuse_unread();
    for (const auto& [name, list] : o.sample.relation_lists)
      o.sample.of_relations[name] = read_fan_outs("--sample-relation", list);
    if (app.count("--layers") == 0 && !o.sample.fan_outs.empty())
      o.model.layers = std::ssize(o.sample.fan_outs);
    table->set_defaults();
    if (o.task.type == TaskType::graph && o.model.jk == "none") o.model.jk = "last";
    if (o.model.activation.empty()) o.model.activation = default_activation(o.model);
    o.found = find_dataset(o.dataset);
    o.source.fields = o.data.fields;
    o.data.split = split_number(o.dataset, o.source);
    read_what_the_task_needs(o);
    check_options(app, o, *table);
    o.sbm.seed = o.seed;
    o.data.partition_seed = o.seed;
    o.run.split = o.data.split;
    if (o.draw_split) o.draw_split->seed = o.split_seed.value_or(o.seed);
  });
}}  // namespace sar::tools
