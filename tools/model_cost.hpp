/// What training a model will need, predicted from the sizes of the parts before anything is trained.
#pragma once

#include <sar/graph/data/parts/partition_graph.hpp>

#include <string>

namespace sar::tools {

/// A model of `train`, with dropout, in mode rematerialize.
struct ModelSize {
  std::string kind = "sage";  ///< sage, gcn or gat
  int layers = 3;
  Index hidden = 256, heads = 4;
  Index features = 0, classes = 0;  ///< widths of its input and output
  bool batch_norm = false;
  double dropout = 0.5;

  [[nodiscard]] Index width(int layer) const {
    return layer == 0 ? features : layer == layers ? classes : hidden;
  }
};

/// How often rows of one width travel in a training step, for each halo node of a layer.
struct LayerTraffic {
  Index width = 0;              ///< numbers
  int fetches = 0, pushes = 0;  ///< of rows to their readers; of gradients to the owners

  [[nodiscard]] Index numbers() const { return width * (fetches + pushes); }
};

/// In mode rematerialize, in all steps but the first. Layers count from 0. A source row travels once to each
/// part that reads it, and its gradient travels back. Rows that have no gradient (features that are
/// aggregated before they are multiplied) travel once, and not at all where the layer keeps their aggregate;
/// rows of attention travel twice before their gradient.
LayerTraffic traffic(const ModelSize& model, int layer);

/// How many of `nodes` nodes are an end of one of `cut_edges` edges, if these go to any of them alike: of a
/// part's nodes, those that the remote shard lists (8 bytes each); of all others, the halo of random parts.
double listed_rows(double nodes, double cut_edges);

/// Halo rows that are held at a time.
struct StageRows {
  double fetch = 0, push = 0;  ///< of a stage of rows, and of one of gradients
  double number = 1;           ///< of stages of rows in a pass
};

/// As graph/message/graph_plan.cpp divides the halo: a quarter of the rows of the largest part, half of that
/// where gradients leave while rows arrive, but 1 MiB at least and `max_bytes` at most (0: any).
StageRows stage_rows(double nodes_of_largest, double halo_nodes, double row_bytes, double max_bytes,
                     bool fetch_and_push);

/// Bytes of tensors and graph on the worker that has this part, at the peak of a training step: what `train`
/// reports as peak_bytes, within about 15 %. They are the sum of
///   - rows of the part: the features and what is kept of them; for each hidden layer, what lies between its
///     forward and its backward pass (the sum before the ReLU and, without batch norm, the ReLU's result; the
///     attention also its projection and, without batch norm, the ELU's result; 3 numbers a head); the gradients that are alive together;
///   - four numbers for each parameter: itself, its gradient, two of Adam;
///   - labels, masks, ids and the graph's index arrays;
///   - gradients of halo rows: two halves of a stage, which arrive and leave, and an eighth, which is
///   computed.
/// Or, if that is more, what the forward pass of the last hidden layer needs: its projection and its result
/// instead of the gradients, two stages of halo rows, and at most 4 MiB of packed rows.
double predicted_bytes(const ModelSize& model, const PartSize& part, int parts);

/// The largest of the parts'.
double predicted_bytes(const ModelSize& model, const PartitionReport& report);

/// Bytes that all workers together send in one training step without evaluation, but the first: traffic() of
/// the halo.
double predicted_bytes_sent(const ModelSize& model, const PartitionReport& report);

}  // namespace sar::tools
