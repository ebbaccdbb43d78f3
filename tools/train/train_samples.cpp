// SPDX-License-Identifier: MIT
#include "train_samples.hpp"

#include "formats/samples/sample_tables.hpp"
#include "program.hpp"
#include "train_data.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace sar::tools {
namespace {

constexpr const char* features_field = "features";
constexpr Index most_categories = Index{1} << 20;

const Tensor* features_of(const SampleFields& fields) {
  const auto found = fields.tensors.find(features_field);
  return found == fields.tensors.end() ? nullptr : &found->second;
}
const IntegerRows* categories_of(const SampleFields& fields) {
  const auto found = fields.integers.find(features_field);
  return found == fields.integers.end() ? nullptr : &found->second;
}

/// The features and the embedded categories of nodes or edges, side by side.
Variable rows_of(const SampleFields& fields, const std::optional<CategoryEmbedding>& embedding,
                 const char* place) {
  const Tensor* const features = features_of(fields);
  if (!embedding) return *features;
  const Variable embedded = (*embedding)(*categories_of(fields), place);
  return features == nullptr ? embedded : concat_columns({Variable(*features), embedded});
}

/// How many categories each column of integers has: one more than the largest. Collective.
std::vector<Index> count_categories(const Communicator& comm, const SampleFields& fields, const char* of,
                                    const std::string& name) {
  const IntegerRows* const rows = categories_of(fields);
  if (rows == nullptr) return {};
  std::vector<Index> sizes(static_cast<std::size_t>(rows->columns), 1);
  for (Index i = 0; i < rows->num_rows(); ++i)
    for (Index c = 0; c < rows->columns; ++c) sizes[c] = std::max(sizes[c], rows->row(i)[c] + 1);
  comm.all_reduce(std::span<Index>(sizes), ReduceOp::max);
  for (std::size_t c = 0; c < sizes.size(); ++c)
    require<InputError>(sizes[c] <= most_categories, name, ": column ", c, " of the ", of,
                        " features has integers up to ", sizes[c] - 1, ", expected categories below ",
                        most_categories);
  return sizes;
}

/// Labels and masks with a row for each graph. Collective.
NodeData graph_data(const Communicator& comm, const TrainOptions& o, formats::SampleDataset& found) {
  NodeData data;
  data.name = found.name;
  data.item = "graph";
  data.book = found.book;
  data.original_ids = found.samples.ids;
  data.features = Tensor({found.samples.num_graphs(), Index{0}});
  comm.agree([&] { take_labels(comm, std::move(found.labels), found.label_file, o.data.label_type, data); });
  if (!found.has_split)
    for (DataArray& mask : found.masks) {
      mask = DataArray(NpyType::boolean, {}, found.samples.num_graphs());
      std::ranges::fill(mask.bytes, std::byte{0});
    }
  comm.agree([&] { set_splits(data, found.masks, 0, {found.name, found.name, found.name}); });
  return data;
}

}  // namespace

SampleInput::SampleInput(const SampleTask& task, const TrainOptions& o, Generator& gen) {
  const auto add = [&](const SampleFields& fields, const std::vector<Index>& categories, const char* name,
                       std::optional<CategoryEmbedding>& embedding) {
    const Tensor* const features = features_of(fields);
    if (!categories.empty()) {
      embedding.emplace(categories, o.model.hidden, gen);
      register_module(name, *embedding);
    }
    return (features == nullptr ? 0 : features->row_size()) + (categories.empty() ? 0 : o.model.hidden);
  };
  width_ = add(task.samples->nodes, task.categories, "embedding", embedding_);
  if (o.edge_features)
    edge_width_ = add(task.samples->edges, task.edge_categories, "edge_embedding", edge_embedding_);
}

Variable SampleInput::operator()(const SampleBatch& batch) const {
  return rows_of(batch.samples().nodes, embedding_, "node features");
}

std::vector<GraphRelations> SampleInput::edges(const SampleBatch& batch) const {
  if (edge_width_ == 0) return {};
  std::vector<GraphRelations> relations(1);
  relations[0].edge_feats = rows_of(batch.samples().edges, edge_embedding_, "edge features");
  return relations;
}

TrainingGraph load_training_samples(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat) {
  heartbeat.phase("reading the graphs");
  formats::SampleDataset found = formats::read_samples(comm, o.dataset, o.source, o.data.label_type);
  comm.agree([&] {
    if (o.data.add_reverse_edges) add_reverse_edges(found.samples);
    if (o.data.add_self_loops) add_self_loops(found.samples);
  });
  const std::array<Index, 2> sizes{comm.all_reduce(found.samples.num_nodes()),
                                   comm.all_reduce(found.samples.num_edges())};
  say(comm, o.dataset, ": ", found.format, " ", found.name, ": ", found.book.num_nodes(), " graphs with ",
      sizes[0], " nodes and ", sizes[1], " edges");
  for (const std::string& note : found.notes) say(comm, found.name, ": ", note);
  if (!found.samples.edges.empty() && !o.edge_features)
    say(comm, found.name, ": features of the edges are not used (--model gin --edge-features takes them)");
  NodeData data = graph_data(comm, o, found);
  prepare_split(comm, o, data);
  set_outputs(comm, o, data);
  SampleTask task;
  task.categories = count_categories(comm, found.samples.nodes, "node", found.name);
  task.num_nodes = sizes[0];
  task.num_edges = sizes[1];
  require<InputError>(!o.edge_features || !found.samples.edges.empty(), found.name,
                      ": the edges have no features, expected some for --edge-features");
  if (o.edge_features)
    task.edge_categories = count_categories(comm, found.samples.edges, "edge", found.name);
  else
    found.samples.edges = {};
  task.samples = std::make_shared<const GraphSamples>(std::move(found.samples));
  const std::array<Index, 3> unlabelled = warn_of_unlabelled(comm, data);
  TrainingGraph loaded = train_on_samples(comm, o, std::move(data), std::move(task));
  loaded.unlabelled = unlabelled;
  return loaded;
}

}  // namespace sar::tools
