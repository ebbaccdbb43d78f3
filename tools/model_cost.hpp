// SPDX-License-Identifier: MIT

/// Memory and traffic of a training, predicted from the sizes of the parts by formulas (no measurement).
#pragma once

#include <sar/graph/data/parts/partition_graph.hpp>

#include <string>

namespace sar::tools {

/// A model of `train`, with dropout, in mode rematerialize. A residual connection changes none of these
/// numbers: it reads rows that the convolution reads, too.
struct ModelSize {
  std::string kind = "sage";  ///< sage, gcn or gat
  Index layers = 3;
  Index hidden = 256, heads = 4;
  Index features = 0, classes = 0;  ///< columns of the input and of the output
  double stored = 0;                ///< stored features of a node, if they are sparse rows; 0: they are dense
  bool batch_norm = false;
  bool drops_input = true;  ///< not sage
  bool pre_linear = false;  ///< a linear layer before the convolutions
  bool has_head = false;    ///< a linear layer after them

  /// Returns the number of hidden layers with norm, activation and dropout.
  [[nodiscard]] Index hidden_layers() const { return layers - (has_head ? 0 : 1); }
  /// Returns the width of the rows that convolution `layer`, counted from 0, reads.
  [[nodiscard]] Index width(int layer) const {
    return layer == 0 && !pre_linear ? features : layer == layers && !has_head ? classes : hidden;
  }
  /// Returns whether the first convolution aggregates the features before it multiplies them.
  [[nodiscard]] bool aggregates_features() const {
    return !pre_linear && stored == 0 && features <= width(1);
  }
};

/// How often rows of one width are sent in a training step, per halo node of a layer.
struct LayerTraffic {
  Index width = 0;              ///< numbers per row
  int fetches = 0, pushes = 0;  ///< fetches: rows to their readers; pushes: gradients to the owners

  [[nodiscard]] Index numbers() const { return width * (fetches + pushes); }
};

/// Returns the traffic of layer `layer` (from 0), in mode rematerialize, in every step after the first. A
/// source row is sent once to each part that reads it, and its gradient is sent back. Rows without gradients
/// (features that are aggregated before the product) are sent once, or never if the layer caches their
/// aggregate. Rows of attention are sent twice before their gradient.
LayerTraffic traffic(const ModelSize& model, int layer);

/// Returns the expected number of distinct end nodes among `nodes` nodes when `cut_edges` edges end at random
/// ones:
///     nodes * (1 - exp(-cut_edges / nodes)).
/// For the nodes of a part it is the number of rows that the remote shard lists (8 bytes each); for all other
/// nodes it is the halo of a random partition.
double listed_rows(double nodes, double cut_edges);

/// Halo rows held at one time.
struct StageRows {
  double fetch = 0, push = 0;  ///< rows of a fetch stage, and of a stage that pushes gradients
  double number = 1;           ///< stages in a pass
};

/// Returns the stages that graph/message/graph_plan.cpp makes: a quarter of the rows of the largest part, or
/// an eighth if gradients are sent while rows are received; at least 1 MiB and at most `max_bytes` (0: no
/// limit).
StageRows stage_rows(double nodes_of_largest, double halo_nodes, double row_bytes, double max_bytes,
                     bool fetch_and_push);

/// Returns the bytes of tensors and graph on the rank of this part at the peak of a training step: the
/// peak_bytes of `train`, within about 15 %. It is the sum of
///   - rows of the part: the features, dense or sparse, and their cached aggregate; for each hidden layer,
///     what is saved for the backward pass (the input of the ReLU and, without batch norm, its output;
///     attention: also the projection, 3 numbers per head and, without batch norm, the output of the ELU);
///     the gradients that are alive at the same time;
///   - four numbers per parameter: its value, its gradient, two moments of Adam;
///   - labels, masks, ids and the graph's index arrays;
///   - gradients of halo rows: half a stage being received, half a stage being sent, an eighth being
///   computed.
/// If the forward pass of the last hidden layer needs more, it is that: the projection and the result instead
/// of the gradients, two stages of halo rows, and at most 4 MiB of packed rows.
double predicted_bytes(const ModelSize& model, const PartSize& part, int parts);

/// Returns the maximum over the parts.
double predicted_bytes(const ModelSize& model, const PartitionReport& report);

/// Returns the bytes of a halo row of the first convolution: a row of the features, or of their product with
/// the weights if they are sparse.
Index halo_row_bytes(const ModelSize& model);

/// Returns the bytes that all ranks together send in a training step after the first, without evaluation:
/// traffic() times the halo.
double predicted_bytes_sent(const ModelSize& model, const PartitionReport& report);

}  // namespace sar::tools
