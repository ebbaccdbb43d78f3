// SPDX-License-Identifier: MIT

/// Sums of rows scaled by functions of degrees, as in GraphConv. The factors are applied while rows are
/// gathered, without a separate pass over the rows.
#pragma once

#include <sar/graph/message/graph.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// A function of a degree d.
enum class DegreeFactor {
  inverse,            ///< 1 / max(d, 1)
  inverse_root,       ///< 1 / sqrt(max(d, 1))
  inverse_with_self,  ///< 1 / (d + 1)
  inverse_root_or_0,  ///< 1 / sqrt(d), 0 where d is 0
};

/// Returns the factor of a degree d.
[[nodiscard]] double value_of(DegreeFactor factor, double degree);

/// Returns the factor of the in-degree by which a reduction multiplies the sum of the messages; none: 1.
[[nodiscard]] std::optional<DegreeFactor> in_degree_factor(Reduce reduce);

/// Which number of edges of a node.
enum class NodeDegree {
  in,         ///< of destinations
  out,        ///< of sources
  source_in,  ///< in-edges of sources, in a homogeneous graph or a message flow graph
};

/// c_u and c_v of scaled_sum(); none: 1.
struct SumFactors {
  std::optional<DegreeFactor> src;
  NodeDegree src_degree = NodeDegree::out;  ///< out or source_in
  std::optional<DegreeFactor> dst;          ///< of in-degrees
};

/// Collective. out[v] = base[v] + c_v sum over the in-edges (u, v) of  w_uv c_u x_u: [local destinations,
/// ...]
///
/// for x [local sources, ...] and optional edge weights w [local edges]; the base is optional, too.
/// Differentiable in x, w and base. Communication and errors as Graph::update_all; the first
/// call with a factor of the sources fetches one number per halo row. If w requires a gradient or has more
/// than one number per edge, the factors are applied in separate passes.
[[nodiscard]] Variable scaled_sum(const Graph& graph, Variable x, const Variable& edge_weight,
                                  const SumFactors& factors, Variable base = {});
/// Collective. Starts the same; finish(base) computes.
[[nodiscard]] StartedSum start_scaled_sum(const Graph& graph, Variable x, const Variable& edge_weight,
                                          const SumFactors& factors);

/// Local. Returns the factor of each local row, [local sources] or [local destinations]. Cached by the
/// graph if it has at least as many edges as rows, and otherwise computed in each call to save memory.
[[nodiscard]] Tensor degree_factors(const Graph& graph, NodeDegree degree, DegreeFactor factor);

/// Collective. The same for the halo rows: [halo rows].
[[nodiscard]] Tensor halo_degree_factors(const Graph& graph, NodeDegree degree, DegreeFactor factor);
}}  // namespace sar
