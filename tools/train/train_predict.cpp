// SPDX-License-Identifier: MIT
#include "train_predict.hpp"

#include "program.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <system_error>

namespace sar::tools {

void prepare_predictions(const Communicator& comm, const TrainOptions& o) {
  comm.agree([&] {
    if (o.predict.empty() || comm.rank() != 0) return;
    make_directories(o.predict);
    check_writable(o.predict + "/logits.npy");
  });
}

void write_predictions(const Communicator& comm, const std::string& path, const Tensor& rows,
                       std::span<const Index> ids) {
  comm.agree([&] {
    const auto bad = std::ranges::find_if_not(rows.values(), [](real x) { return std::isfinite(x); });
    if (bad == rows.values().end()) return;
    const auto row = static_cast<std::size_t>((bad - rows.values().begin()) / rows.row_size());
    throw InputError(concat(path, ": the prediction of row ", ids[row], " is ", *bad,
                            ", expected finite numbers: the weights or the features are too large"));
  });
  write_npy_rows(comm, path, rows, ids, npy_real);
}

namespace {

/// Rows that are in the order of the partition say so in their name.
std::string ending(bool ids_are_original) {
  return ids_are_original ? ".npy" : ".partition_order.npy";
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

/// 1 for a positive logit, otherwise 0.
Tensor positive_labels(const Tensor& logits) {
  Tensor labels(logits.shape());
  std::ranges::transform(logits.values(), labels.data(), [](real x) { return x > 0 ? real{1} : real{0}; });
  return labels;
}

}  // namespace

void predict_embeddings(const TrainOptions& o, const Tensor& h, const Graph& graph, const NodeData& data,
                        std::span<const TypeRows> types) {
  const auto write = [&](const std::string& name, const Tensor& rows, std::span<const Index> ids,
                         bool ids_are_original) {
    write_predictions(graph.comm(), o.predict + name + ending(ids_are_original), rows, ids);
  };
  for (const TypeRows& nodes : types)
    write("/embeddings." + escaped(nodes.name), h.slice_rows(nodes.first_row, nodes.end_row),
          nodes.original_ids, nodes.ids_are_original);
  if (types.empty()) write("/embeddings", h, graph.dst_ids(), data.ids_are_original);
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

namespace {

/// Writes values, or logits and the labels that they predict. Collective.
void predict_labels(const Communicator& comm, const std::string& prefix, const Tensor& scores,
                    std::span<const Index> ids, LabelType type, const std::string& end) {
  if (type == LabelType::values) {
    const Index n = scores.num_rows();
    write_predictions(comm, prefix + "values" + end, scores.row_size() == 1 ? scores.reshape({n}) : scores,
                      ids);
    return;
  }
  write_predictions(comm, prefix + "logits" + end, scores, ids);
  if (type == LabelType::binary)
    write_npy_rows(comm, prefix + "labels" + end, positive_labels(scores), ids);
  else
    write_npy_rows(comm, prefix + "labels" + end, classes_of(scores), ids);
}

/// Writes the split of the nodes with these ids, whose rows begin with `first_row`: 0 training, 1 validation,
/// 2 test, -1 none. Collective.
void write_split(const Communicator& comm, const std::string& path, const NodeData& data,
                 std::span<const Index> ids, Index first_row = 0) {
  Array<std::int64_t> split(ids.size(), -1);
  const Array<std::uint8_t>* const masks[] = {&data.train_mask, &data.val_mask, &data.test_mask};
  for (std::int64_t part = 0; part < 3; ++part)
    for (std::size_t i = 0; i < split.size(); ++i)
      if ((*masks[part])[static_cast<std::size_t>(first_row) + i] != 0) split[i] = part;
  write_npy_rows(comm, path, split, ids);
}

}  // namespace

void predict_edges(const Communicator& comm, const TrainOptions& o, const Tensor& numbers,
                   std::span<const Index> ids, bool ids_are_original) {
  predict_labels(comm, o.predict + "/edge_", numbers, ids, o.task.labels, ending(ids_are_original));
}

void predict_nodes(const TrainOptions& o, Tensor scores, const Graph& graph, const NodeData& data,
                   std::span<const TypeRows> types) {
  const Communicator& comm = graph.comm();
  const auto category = std::ranges::find_if(types, &TypeRows::is_category);
  const bool of_type = category != types.end();
  const Array<Index>& ids = of_type ? category->original_ids : graph.dst_ids();
  if (of_type) scores = scores.slice_rows(category->first_row, category->end_row);
  predict_labels(comm, o.predict + "/", scores, ids, data.label_type, ending(data.ids_are_original));
  if (o.draw_split)
    write_split(comm, o.predict + "/split" + ending(data.ids_are_original), data, ids,
                of_type ? category->first_row : 0);
}

void with_other_files_told(const Communicator& comm, const TrainOptions& o, FunctionRef<void()> write) {
  namespace fs = std::filesystem;
  const auto files = [&] {  // by name, with the time of their last change
    std::map<std::string, fs::file_time_type> found;
    std::error_code error;
    if (comm.rank() != 0 || fs::exists(o.predict + "/features.npy", error) ||
        fs::exists(o.predict + "/edge_index.npy", error))  // those of a dataset
      return found;
    const std::vector<std::string> ours{"embeddings",  "logits",      "labels",      "values",     "split",
                                        "edge_logits", "edge_labels", "edge_values", "pair_scores"};
    for (const std::string& name : names_in(o.predict, error))
      if (std::ranges::count(ours, name.substr(0, name.find('.'))) > 0)
        found[name] = fs::last_write_time(o.predict + "/" + name, error);
    return found;
  };
  const auto before = files();
  write();
  std::vector<std::string> others;
  for (const auto& [name, time] : files())
    if (const auto old = before.find(name); old != before.end() && old->second == time)
      others.push_back(name);
  if (!others.empty())
    say(comm, "WARNING: ", o.predict, " has files that this run has not written: ", joined(others));
}

}  // namespace sar::tools
