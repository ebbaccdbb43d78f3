#include "model_cost.hpp"

#include <algorithm>
#include <map>

namespace sar::tools {
namespace {

/// What the predictions depend on besides the widths.
struct Cost {
  Index weights;                               ///< matrices of a layer
  Index edge_bytes;                            ///< of the graph, for each in-edge
  Index (*kept)(const ModelSize&);             ///< numbers for each node in the backward pass, at its peak
  Index (*fetching)(const ModelSize&);         ///< the same while the last hidden layer fetches rows
  Index (*sent)(const ModelSize&, int layer);  ///< numbers for each halo node, both passes
};

/// Width of the gradient at the input of the last layer.
Index last_gradient(const ModelSize& m) {
  return m.layers > 1 ? m.hidden : 0;
}

/// Tensors between the convolutions: the input of a batch norm, or the input and the result of the ReLU.
Index kept_between(const ModelSize& m) {
  return m.batch_norm ? 1 : 2;
}

/// The features and, where the first layer aggregates them before it multiplies, their aggregate.
Index sage_features(const ModelSize& m) {
  return m.features + (m.features <= m.width(1) ? m.features : 0);
}

Index sage_kept(const ModelSize& m) {
  return sage_features(m) + kept_between(m) * m.hidden * (m.layers - 1) + last_gradient(m) + 2 * m.classes;
}

/// The projection and the result of the last hidden layer, and what the layers before keep.
Index linear_fetching(const ModelSize& m) {
  if (m.layers < 3) return 0;
  return sage_features(m) + (kept_between(m) * (m.layers - 2) + 2) * m.hidden;
}

Index gat_fetching(const ModelSize&) {
  return 0;  // never more than its backward pass
}

Index gcn_kept(const ModelSize& m) {
  return 2 * m.features + kept_between(m) * m.hidden * (m.layers - 1) +
         std::max(last_gradient(m) + m.classes, 2 * m.classes);
}

Index gat_kept(const ModelSize& m) {
  return 2 * m.features + ((m.batch_norm ? 2 : 4) * m.hidden + 3 * m.heads) * (m.layers - 1) +
         std::max(last_gradient(m) + m.classes, (m.layers > 1 ? 3 : 4) * m.classes);
}

Index linear_sent(const ModelSize& m, int layer) {
  const Index in = m.width(layer), out = m.width(layer + 1);
  return layer == 0 && in <= out ? in : 2 * std::min(in, out);
}

/// Features whose aggregate the first layer keeps do not travel again.
Index sage_sent(const ModelSize& m, int layer) {
  return layer == 0 && m.features <= m.width(1) ? 0 : linear_sent(m, layer);
}

Index gat_sent(const ModelSize& m, int layer) {
  return 3 * (m.width(layer + 1) + (layer + 1 < m.layers ? m.heads : 1));
}

const Cost& cost(const ModelSize& m) {
  static const std::map<std::string, Cost> costs{{"sage", {2, 8, sage_kept, linear_fetching, sage_sent}},
                                                 {"gcn", {1, 8, gcn_kept, linear_fetching, linear_sent}},
                                                 {"gat", {1, 12, gat_kept, gat_fetching, gat_sent}}};
  return costs.at(m.kind);
}

}  // namespace

double predicted_bytes(const ModelSize& m, const PartSize& part, int parts) {
  const Cost& of = cost(m);
  Index parameters = 0;
  for (int i = 0; i < m.layers; ++i) parameters += m.width(i) * m.width(i + 1) * of.weights;

  const auto nodes = static_cast<double>(part.nodes);
  const auto halo = static_cast<double>(part.halo_nodes);
  const auto real_bytes = static_cast<double>(sizeof(real));
  const double graph = static_cast<double>(of.edge_bytes) * static_cast<double>(part.in_edges) +
                       (36 + 8 * static_cast<double>(parts)) * nodes + 8 * halo;
  const double shard = parts > 1 ? real_bytes * static_cast<double>(m.hidden) * halo / (parts - 1) : 0;
  const double leaving = std::min(std::min(2, parts - 1) * shard, 4.0 * (1 << 20));
  const double backward = real_bytes * nodes * static_cast<double>(of.kept(m)) + shard / 4;
  const double forward = real_bytes * nodes * static_cast<double>(of.fetching(m)) + shard;
  return std::max(forward, backward) + real_bytes * 4 * static_cast<double>(parameters) + leaving +
         19 * nodes + graph;
}

double predicted_bytes(const ModelSize& m, const PartitionReport& report) {
  double largest = 0;
  for (const PartSize& part : report.parts)
    largest = std::max(largest, predicted_bytes(m, part, static_cast<int>(report.parts.size())));
  return largest;
}

double predicted_bytes_sent(const ModelSize& m, const PartitionReport& report) {
  Index numbers = 0;
  for (int i = 0; i < m.layers; ++i) numbers += cost(m).sent(m, i);
  return static_cast<double>(numbers) * static_cast<double>(sizeof(real)) *
         static_cast<double>(report.total().halo_nodes);
}

}  // namespace sar::tools
