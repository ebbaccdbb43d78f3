// SPDX-License-Identifier: MIT

/// Equivariant message passing with scalars and vectors.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/atoms/radial.hpp>
#include <sar/nn/modules/linear.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Rows of the atoms: scalars, which are invariant under rotation, and vectors, which rotate with the atoms.
struct PaiNNRows {
  Variable scalars;  ///< s [nodes, F]
  Variable vectors;  ///< v [nodes, 3, F]; undefined: all zero
};

/// Schuett, Unke, Gastegger, arXiv 2102.03150. For edges u -> v of length r = |x_u + t_uv - x_v| and
/// direction d = (x_u + t_uv - x_v) / r, first adds the messages of neighbors within the cutoff c:
///
///     (a, b, g) = phi(s_u) * (W_f basis(r) + b_f) * fc(r)
///
///     s_v += sum_{u -> v} a        v_v += sum_{u -> v} (b d + g v_u)
///
/// with the basis and the cutoff function fc of `radial` (RadialFunctions), by default sin(k pi r / c) / r
/// and (cos(pi r / c) + 1) / 2, and then updates each node, with |.| = sqrt(sum of squares + norm_epsilon)
/// over the 3 components:
///
///     (V, W) = U v        (a, b, g) = psi(s, |V|)
///
///     s += a + g <V, W>        v += b W
///
/// where * multiplies elementwise over the F channels. phi and psi are networks with one hidden layer of F
/// channels and SiLU. An edge of length 0, for example a self loop, has d = 0 and the limit of the basis.
/// Where the vectors of a node vanish, as at symmetric sites of a crystal, forces change linearly over
/// displacements for which V is small beside sqrt(norm_epsilon).
///
/// Parameters: interatomic_context_net (phi), as in MLP; filter_net.weight [3 F, num_basis] and .bias;
/// mu_channel_mix.weight (U) [2 F, F]; intraatomic_context_net (psi), as in MLP. Under a rotation of all
/// positions the vectors rotate and the scalars are invariant; both are invariant under translation.
/// Differentiable in the positions, including those of nodes on other ranks. The shifts t (default 0) select
/// the periodic image of u that an edge comes from, as in relative_positions(); x_u + t_uv - x_v is computed
/// in double precision. Radial functions and filters are computed for a chunk of edges at a time, at most
/// options().edge_chunk or those of one atom. Collective: halo rows of 6 F + 3 values (3 F + 3 without
/// vectors) are exchanged once.
///
/// With constant parameters, as in molecular dynamics, the backward pass computes the update of the nodes
/// again, in blocks of nodes, and the module must live until then. This keeps 4 F values of each node in
/// place of 11 F.
class PaiNNConv : public Module {
 public:
  /// Throws InputError unless the widths are positive, and cutoff and norm_epsilon positive and finite.
  PaiNNConv(Index feats, const RadialFunctions& radial, Generator& gen, double norm_epsilon = 0.01);

  /// Takes rows and positions [.., 3] of the local sources and optional shifts [local edges, 3] in the
  /// graph's edge order. Returns the rows of the local destinations, which must be the first of the sources.
  /// Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] PaiNNRows operator()(const Graph& graph, const PaiNNRows& rows, const Variable& positions,
                                     const Variable& shifts = {}) const;

 private:
  [[nodiscard]] PaiNNRows add_messages(const Graph& graph, const PaiNNRows& rows, const Variable& positions,
                                       const Variable& shifts) const;
  [[nodiscard]] PaiNNRows update(const PaiNNRows& rows) const;
  /// Returns update(). Its backward pass keeps `rows` alone and computes the rest again, in blocks of nodes.
  [[nodiscard]] PaiNNRows update_in_blocks(const PaiNNRows& rows) const;
  /// Returns whether update_in_blocks() is possible and pays.
  [[nodiscard]] bool has_blocks(const PaiNNRows& rows) const;

  Index feats_;
  RadialFunctions radial_;
  real norm_epsilon_;
  MLP interatomic_context_net_;
  Linear filter_net_;
  Linear mu_channel_mix_;
  MLP intraatomic_context_net_;
};

}}  // namespace sar
