/// What training a model will need, predicted from the sizes of the parts before anything is trained.
#pragma once

#include <sar/graph/data/partition_graph.hpp>

#include <string>

namespace sar::tools {

/// A model of `train`, with dropout, in mode rematerialize.
struct ModelSize {
  std::string kind = "sage";  ///< sage, gcn or gat
  int layers = 3;
  Index hidden = 256, heads = 4;
  Index features = 0, classes = 0;  ///< widths of its input and output
  bool batch_norm = false;

  [[nodiscard]] Index width(int layer) const {
    return layer == 0 ? features : layer == layers ? classes : hidden;
  }
};

/// Bytes of tensors and graph on the worker that has this part, at the peak of a training step: what `train`
/// reports as peak_bytes, within about 15 %. They are the sum of
///   - rows of the part: the features and what is kept of them; for each hidden layer, what lies between its
///     forward and its backward pass (the sum before the ReLU and, without batch norm, the ReLU's result; the
///     attention also its projection and, without batch norm, the ELU's result; 3 numbers a head); the gradients that are alive together;
///   - four numbers for each parameter: itself, its gradient, two of Adam;
///   - labels, masks, ids and the graph's index arrays;
///   - a quarter of the halo rows of a shard, which arrive, and the rows of two shards, at most 4 MiB, which
///     leave.
/// Or, if that is more, what the forward pass of the last hidden layer needs: its projection and its result
/// instead of the gradients, and all halo rows of a shard.
double predicted_bytes(const ModelSize& model, const PartSize& part, int parts);

/// The largest of the parts'.
double predicted_bytes(const ModelSize& model, const PartitionReport& report);

/// Bytes that all workers together send in one training step without evaluation, but the first. A source row
/// travels once to each part that reads it, and its gradient travels back. Rows that have no gradient
/// (features that are aggregated before they are multiplied) travel once, and not at all where sage keeps
/// their aggregate; rows of attention travel twice before their gradient.
double predicted_bytes_sent(const ModelSize& model, const PartitionReport& report);

}  // namespace sar::tools
