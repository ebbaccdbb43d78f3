// SPDX-License-Identifier: MIT
#include "model_cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

namespace sar::tools {
namespace {

double as_double(Index x) {
  return static_cast<double>(x);
}

/// What the predictions depend on besides the widths.
struct Cost {
  Index weights;                        ///< matrices of a layer
  Index edge_bytes;                     ///< of the graph, for each in-edge
  double (*kept)(const ModelSize&);     ///< numbers for each node in the backward pass, at its peak
  double (*fetching)(const ModelSize&);  ///< the same while the last hidden layer fetches rows
  LayerTraffic (*traffic)(const ModelSize&, int layer);
};

/// Width of the gradient at the output of the last hidden layer.
Index last_gradient(const ModelSize& m) {
  return m.hidden_layers() > 0 ? m.hidden : 0;
}

/// Tensors between the convolutions: the input of a batch norm, or the input and the result of the ReLU.
Index kept_between(const ModelSize& m) {
  return m.batch_norm ? 1 : 2;
}

/// The output of a linear layer before the convolutions.
Index kept_before(const ModelSize& m) {
  return m.pre_linear ? m.hidden : 0;
}

/// The features of a node, in numbers. Sparse ones have a value and a column each, and an offset.
double features_of(const ModelSize& m) {
  if (m.stored == 0) return as_double(m.features);
  return (m.stored * (sizeof(real) + sizeof(std::int32_t)) + sizeof(Index)) / sizeof(real);
}

/// The features and, where the first layer aggregates them before it multiplies, their aggregate.
double sage_features(const ModelSize& m) {
  return features_of(m) + (m.aggregates_features() ? as_double(m.features) : 0);
}

/// The features and their dropped rows, which share the columns of sparse ones.
double dropped_features(const ModelSize& m) {
  return m.stored == 0 ? 2 * as_double(m.features) : features_of(m) + (m.drops_input ? m.stored : 0);
}

double sage_kept(const ModelSize& m) {
  return sage_features(m) + as_double(kept_before(m) + kept_between(m) * m.hidden * m.hidden_layers() +
                                      last_gradient(m) + 2 * m.classes);
}

/// The projection and the result of the last hidden layer, and what the layers before keep.
double linear_fetching(const ModelSize& m) {
  if (m.hidden_layers() < 2) return 0;
  return sage_features(m) +
         as_double(kept_before(m) + (kept_between(m) * (m.hidden_layers() - 1) + 2) * m.hidden);
}

double gat_fetching(const ModelSize&) {
  return 0;  // never more than its backward pass
}

double gcn_kept(const ModelSize& m) {
  return dropped_features(m) + as_double(kept_before(m) + kept_between(m) * m.hidden * m.hidden_layers() +
                                         std::max(last_gradient(m) + m.classes, 2 * m.classes));
}

double gat_kept(const ModelSize& m) {
  return dropped_features(m) +
         as_double(kept_before(m) + ((m.batch_norm ? 2 : 4) * m.hidden + 3 * m.heads) * m.hidden_layers() +
                   std::max(last_gradient(m) + m.classes, (m.layers > 1 ? 3 : 4) * m.classes));
}

LayerTraffic linear_traffic(const ModelSize& m, int layer) {
  const Index in = m.width(layer), out = m.width(layer + 1);
  if (layer == 0 && m.aggregates_features()) return {in, 1, 0};
  const bool is_sparse = layer == 0 && !m.pre_linear && m.stored > 0;
  return {is_sparse ? out : std::min(in, out), 1, 1};
}

/// Features whose aggregate the first layer keeps do not travel again.
LayerTraffic sage_traffic(const ModelSize& m, int layer) {
  return layer == 0 && m.aggregates_features() ? LayerTraffic{} : linear_traffic(m, layer);
}

/// As sage where nothing drops the features.
LayerTraffic gcn_traffic(const ModelSize& m, int layer) {
  return m.drops_input ? linear_traffic(m, layer) : sage_traffic(m, layer);
}

LayerTraffic gat_traffic(const ModelSize& m, int layer) {
  return {m.width(layer + 1), 2, 1};
}

const Cost& cost(const ModelSize& m) {
  static const std::map<std::string, Cost> costs{{"sage", {2, 8, sage_kept, linear_fetching, sage_traffic}},
                                                 {"gcn", {1, 8, gcn_kept, linear_fetching, gcn_traffic}},
                                                 {"gat", {1, 12, gat_kept, gat_fetching, gat_traffic}}};
  return costs.at(m.kind);
}

}  // namespace

LayerTraffic traffic(const ModelSize& m, int layer) {
  return cost(m).traffic(m, layer);
}

double listed_rows(double nodes, double cut_edges) {
  return nodes > 0 ? -nodes * std::expm1(-cut_edges / nodes) : 0;
}

StageRows stage_rows(double nodes_of_largest, double halo_nodes, double row_bytes, double max_bytes,
                     bool fetch_and_push) {
  constexpr double least_bytes = 1 << 20;
  double rows = nodes_of_largest / (fetch_and_push ? 8 : 4);
  rows = std::max({rows, least_bytes / row_bytes, 1.0});
  if (max_bytes > 0) rows = std::min(rows, std::max(max_bytes / row_bytes, 1.0));
  return {.fetch = rows, .push = rows / 8, .number = std::max(1.0, halo_nodes / rows)};
}

double predicted_bytes(const ModelSize& m, const PartSize& part, int parts) {
  constexpr double most_packed = 4 << 20;
  const Cost& of = cost(m);
  Index parameters = 0;
  for (int i = 0; i < m.layers; ++i) parameters += m.width(i) * m.width(i + 1) * of.weights;
  if (m.pre_linear) parameters += m.features * m.hidden;
  if (m.has_head) parameters += m.hidden * m.classes;

  const auto nodes = static_cast<double>(part.nodes);
  const auto halo = parts > 1 ? static_cast<double>(part.halo_nodes) : 0;
  const auto real_bytes = static_cast<double>(sizeof(real));
  const double row_bytes = real_bytes * static_cast<double>(m.hidden);
  const double graph = static_cast<double>(of.edge_bytes) * static_cast<double>(part.in_edges) + 44 * nodes +
                       8 * listed_rows(nodes, static_cast<double>(part.cut_edges)) + 8 * halo;
  const StageRows stages = stage_rows(nodes, halo, row_bytes, 0, false);
  const double backward =
      real_bytes * nodes * of.kept(m) + std::min(2 * halo, stages.fetch + stages.push) * row_bytes;
  const double forward = real_bytes * nodes * of.fetching(m) + std::min(halo, 2 * stages.fetch) * row_bytes +
                         std::min(most_packed, halo * row_bytes);
  return std::max(forward, backward) + real_bytes * 4 * static_cast<double>(parameters) + 19 * nodes + graph;
}

double predicted_bytes(const ModelSize& m, const PartitionReport& report) {
  double largest = 0;
  for (const PartSize& part : report.parts)
    largest = std::max(largest, predicted_bytes(m, part, static_cast<int>(report.parts.size())));
  return largest;
}

Index halo_row_bytes(const ModelSize& m) {
  return static_cast<Index>(sizeof(real)) * (m.stored > 0 ? m.width(1) : m.features);
}

double predicted_bytes_sent(const ModelSize& m, const PartitionReport& report) {
  Index numbers = 0;
  for (int i = 0; i < m.layers; ++i) numbers += traffic(m, i).numbers();
  return static_cast<double>(numbers) * static_cast<double>(sizeof(real)) *
         static_cast<double>(report.total().halo_nodes);
}

}  // namespace sar::tools
