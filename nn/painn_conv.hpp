/// Equivariant message passing with scalars and vectors.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/mlp.hpp>

namespace sar::inline SAR_PRECISION {

/// Rows of the atoms: scalars, which a rotation leaves as they are, and vectors, which it turns.
struct PaiNNRows {
  Variable scalars;  ///< s [nodes, F]
  Variable vectors;  ///< v [nodes, 3, F]; undefined: all are 0
};

/// Schuett, Unke, Gastegger, arXiv 2102.03150: for edges u -> v of length r = |x_u + t_uv - x_v| and
/// direction d = (x_u + t_uv - x_v) / r, first the messages of neighbours within the cutoff c,
///
///     (a, b, g) = phi(s_u) * (W_f basis(r) + b_f) * cutoff(r)
///     s_v += sum_{u -> v} a        v_v += sum_{u -> v} (b d + g v_u)
///
///     basis_k(r) = sin(k pi r / c) / r, k = 1 .. num_basis
///     cutoff(r) = (cos(pi r / c) + 1) / 2 for r < c, otherwise 0
///
/// and then the update of each node, with |.| = sqrt(sum of squares + 1e-8) over the 3 components,
///
///     (V, W) = U v        (a, b, g) = psi(s, |V|)        s += a + g <V, W>        v += b W
///
/// * is the product of each of the F channels. phi and psi are networks with one hidden layer of F channels
/// and SiLU. An edge of length 0, a self loop for example, has d = 0 and the basis' limit k pi / c.
///
/// Parameters: interatomic_context_net (phi), as in MLP; filter_net.weight [3 F, num_basis] and .bias;
/// mu_channel_mix.weight (U) [2 F, F]; intraatomic_context_net (psi), as in MLP. Turning all positions turns
/// the vectors and leaves the scalars; moving all positions changes nothing. Differentiable in the positions,
/// also in those of other ranks' nodes. The shifts t (0 without them) say which periodic image of u
/// an edge comes from, as those of relative_positions(). Basis and filters exist for options().edge_block
/// edges at a time. Collective: one update_all, for which 6 F + 3 numbers a row travel (3 F + 3 without
/// vectors).
class PaiNNConv : public Module {
 public:
  /// Throws InputError unless widths are positive and the cutoff is positive and finite.
  PaiNNConv(Index feats, double cutoff, Generator& gen, Index num_basis = 20);

  /// rows and positions [.., 3] of the local sources, shifts [local edges, 3] in the graph's edge order or
  /// none -> rows of the local destinations, which are the first of the sources. Throws, the same on every
  /// rank, ShapeError when shapes do not fit.
  [[nodiscard]] PaiNNRows operator()(const GraphShardManager& graph, const PaiNNRows& rows,
                                     const Variable& positions, const Variable& shifts = {}) const;

 private:
  [[nodiscard]] PaiNNRows add_messages(const GraphShardManager& graph, const PaiNNRows& rows,
                                       const Variable& positions, const Variable& shifts) const;
  [[nodiscard]] PaiNNRows update(const PaiNNRows& rows) const;

  Index feats_;
  double cutoff_;
  MLP interatomic_context_net_;
  Linear filter_net_;
  Linear mu_channel_mix_;
  MLP intraatomic_context_net_;
};

}  // namespace sar
