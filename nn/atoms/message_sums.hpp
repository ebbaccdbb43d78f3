// SPDX-License-Identifier: MIT

/// Sums of the messages of PaiNNConv over the in-edges.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/atoms/radial.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of message_sums() for F channels.
struct MessageSumOperands {
  Variable phi;                 ///< [local sources, 3 F]
  Variable vectors;             ///< [local sources, 3, F]; undefined: 0
  Variable positions;           ///< x [local sources, 3]; the destinations are the first
  Variable shifts;              ///< t [local edges, 3]; undefined: 0
  Variable filter;              ///< W [3 F, num_basis + 1]
  RadialFunctions functions{};  ///< of x_u + t_uv - x_v
};

/// Collective. Returns [local destinations, 4 F]
///
///     out_v = sum_{u -> v} vector_messages(phi_u, W h(d_uv), d_uv / r_uv, vectors_u)
///
/// with d_uv = x_u + t_uv - x_v, r_uv its length, and h the first num_basis + 1 columns of radial_rows(). Has
/// a tangent in all operands but W. Halo rows have all source operands side by side. Keeps these rows.
Variable message_sums(const GraphShardManager& graph, const MessageSumOperands& operands);

}}  // namespace sar
