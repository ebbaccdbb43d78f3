/// What training a model will need, told from the sizes of the parts before anything is trained.
#pragma once

#include <sar/graph/data/partition_graph.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar::examples {

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
/// reports as peak_bytes, within about 15 %.
///
/// In rows of the part: features and what is kept of them; for each hidden layer, what lies between its
/// forward and its backward pass (its input and the sum before the ReLU; the attention also its projection
/// and, without batch norm, the ELU's result; 3 numbers a head); gradients in flight. Then four numbers for
/// each parameter (itself, its gradient, two of Adam), labels, masks and ids, the graph's index arrays, a
/// quarter of a shard's halo rows that arrive, and the rows of two shards that leave, up to 4 MiB.
inline double predicted_bytes(const ModelSize& m, const PartSize& part, int parts) {
  const bool attends = m.kind == "gat";
  const Index first = m.width(1);
  const Index kept = m.layers > 1 ? m.hidden : 0;  // gradient at the input of the last layer
  Index columns = 0;
  if (m.kind == "sage")
    columns = m.features + (m.features <= first ? m.features : 0) + 2 * m.hidden * (m.layers - 1) + kept +
              2 * m.classes;
  else if (m.kind == "gcn")
    columns = 2 * m.features + 2 * m.hidden * (m.layers - 1) + std::max(kept + m.classes, 2 * m.classes);
  else
    columns = 2 * m.features + ((m.batch_norm ? 3 : 4) * m.hidden + 3 * m.heads) * (m.layers - 1) +
              std::max(kept + m.classes, (m.layers > 1 ? 3 : 4) * m.classes);
  Index parameters = 0;
  for (int i = 0; i < m.layers; ++i) parameters += m.width(i) * m.width(i + 1) * (m.kind == "sage" ? 2 : 1);

  const auto nodes = static_cast<double>(part.nodes);
  const auto halo = static_cast<double>(part.halo_nodes);
  const auto real_bytes = static_cast<double>(sizeof(real));
  const double graph = (attends ? 20 : 16) * static_cast<double>(part.in_edges) +
                       (36 + 8 * static_cast<double>(parts)) * nodes + 8 * halo;
  const double shard = parts > 1 ? real_bytes * static_cast<double>(m.hidden) * halo / (parts - 1) : 0;
  const double leaving = std::min(std::min(2, parts - 1) * shard, 4.0 * (1 << 20));
  return real_bytes * (nodes * static_cast<double>(columns) + 4 * static_cast<double>(parameters)) +
         shard / 4 + leaving + 19 * nodes + graph;
}

/// Bytes that all workers together send in one training step, evaluation not counted: a source row travels
/// once to each part that reads it, and its gradient back. Rows that no gradient belongs to (features that
/// are aggregated before they are multiplied) only go; those of attention go twice.
inline double predicted_bytes_sent(const ModelSize& m, const PartitionReport& report) {
  Index columns = 0;
  for (int i = 0; i < m.layers; ++i) {
    const Index in = m.width(i), out = m.width(i + 1);
    if (m.kind == "gat")
      columns += 3 * (out + (i + 1 < m.layers ? m.heads : 1));
    else
      columns += i == 0 && in <= out ? in : 2 * std::min(in, out);
  }
  return static_cast<double>(columns) * static_cast<double>(sizeof(real)) *
         static_cast<double>(report.total().halo_nodes);
}

}  // namespace sar::examples
