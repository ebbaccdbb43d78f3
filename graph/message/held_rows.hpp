// SPDX-License-Identifier: MIT

/// HeldRows: source rows with the halo rows behind them, for several operations that read the same rows.
#pragma once

#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The source rows x [local sources, ...] followed by the halo rows, [local sources + halo rows, ...]: the
/// input of graphs made by ShardedGraph::holding_halo(). Rows and gradients are sent in the halo row format
/// of the graph's options.
class HeldRows {
 public:
  HeldRows(const Graph& graph, const Variable& x);

  /// Collective. The rows, by one fetch; the same ones in each call.
  [[nodiscard]] Tensor fetch() const;
  /// Collective. Adds the gradient of such rows to that of x: those of halo rows go to their owners by one
  /// push.
  void push(const Tensor& gradient) const;

 private:
  Driver driver_;
  Tensor x_;
  GradientPtr gradient_;
};

/// Local. Whether a gradient of the message depends on the values of its source rows, which a record then
/// keeps.
[[nodiscard]] bool keeps_source_rows(const Message& message);

}}  // namespace sar
