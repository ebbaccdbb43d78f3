#include "train_predict.hpp"

#include <sar/core/file.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace sar::tools {

void prepare_predictions(const Communicator& comm, const TrainOptions& o) {
  comm.agree([&] {
    if (o.predict.empty() || comm.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(o.predict, error);
    require<InputError>(!error, o.predict, ": cannot make the directory (", error.message(), ")");
    check_writable(o.predict + "/logits.npy");
  });
}

namespace {

/// Rows that are in the order of the partition say so in their name.
std::string ending(const NodeData& data) {
  return data.ids_are_original ? ".npy" : ".partition_order.npy";
}

/// The column of the largest number of each row.
Array<std::int64_t> classes_of(const Tensor& logits) {
  Array<std::int64_t> labels(static_cast<std::size_t>(logits.num_rows()));
  for (Index i = 0; i < logits.num_rows(); ++i) {
    const real* row = logits.row(i);
    labels[i] = std::max_element(row, row + logits.row_size()) - row;
  }
  return labels;
}

}  // namespace

void predict_embeddings(const TrainOptions& o, const Tensor& h, const GraphShardManager& graph,
                        const NodeData& data) {
  write_npy_rows(graph.comm(), o.predict + "/embeddings" + ending(data), h, graph.dst_ids());
}

void require_edge_ids(const Communicator& comm, const NodeData& data, std::span<const Index> ids) {
  Index largest = -1;
  for (const Index id : ids) largest = std::max(largest, id);
  largest = comm.all_reduce(largest, ReduceOp::max);
  const Index edges = comm.all_reduce(std::ssize(ids));
  require<InputError>(largest + 1 == edges, data.name, ": there are ", edges, " edges with ids up to ",
                      largest,
                      ", expected ids without gaps for --predict with --task edge (not --drop-duplicates)");
}

void predict_edges(const Communicator& comm, const TrainOptions& o, const Tensor& numbers,
                   std::span<const Index> ids) {
  if (o.task.labels == EdgeLabels::values) {
    write_npy_rows(comm, o.predict + "/edge_values.npy", numbers.reshape({numbers.num_rows()}), ids);
    return;
  }
  write_npy_rows(comm, o.predict + "/edge_logits.npy", numbers, ids);
  write_npy_rows(comm, o.predict + "/edge_labels.npy", classes_of(numbers), ids);
}

void predict_nodes(const Communicator& comm, const TrainOptions& o, NodeClassifier& model,
                   const GraphShardManager& graph, const NodeData& data,
                   std::span<const Relations> relations) {
  if (o.predict.empty()) return;
  const bool was_training = model.is_training();
  model.eval();
  const auto& ids = graph.dst_ids();
  const std::string end = ending(data);
  if (o.predict_layer > 0)
    predict_embeddings(o, model.after_layer(o.predict_layer, graph, data.features, relations).value(), graph,
                       data);
  const Tensor logits = model(graph, data.features, relations).value();
  write_npy_rows(comm, o.predict + "/logits" + end, logits, ids);
  write_npy_rows(comm, o.predict + "/labels" + end, classes_of(logits), ids);
  // rows of an earlier run in the other order would be taken for those of this one
  const std::string other_end = data.ids_are_original ? ".partition_order.npy" : ".npy";
  std::error_code ignored;
  if (comm.rank() == 0 && std::filesystem::exists(o.predict + "/logits" + other_end, ignored) &&
      !std::filesystem::exists(o.predict + "/features.npy", ignored))
    for (const char* name : {"/embeddings", "/logits", "/labels"})
      std::filesystem::remove(o.predict + name + other_end, ignored);
  if (was_training) model.train();
}

}  // namespace sar::tools
