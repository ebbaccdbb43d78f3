// SPDX-License-Identifier: MIT

/// Sums of the messages of PaiNNConv over the in-edges.
#pragma once

#include <sar/core/products/right_operand.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/nn/atoms/radial.hpp>
#include <sar/nn/atoms/vector_messages.hpp>

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

/// Local. Throws InputError if halo rows are rounded (GraphOptions::halo_format) and a position is not 0:
/// positions travel in these rows. Vectors of edges may be given as shifts, with positions of 0.
void require_exact_positions(const Graph& graph, const Variable& positions);

/// Collective. Returns [local destinations, 4 F]
///
///     out_v = sum_{u -> v} vector_messages(phi_u, W h(d_uv), d_uv / r_uv, vectors_u)
///
/// with d_uv = x_u + t_uv - x_v, r_uv its length, and h the first num_basis + 1 columns of radial_rows(). Has
/// a tangent in all operands but W. Halo rows have all source operands side by side. Keeps these rows.
Variable message_sums(const Graph& graph, const MessageSumOperands& operands);

/// For operations: adds the gradients of edge vectors to those of the destinations' positions and of the
/// shifts, if they are wanted. Sources have theirs from the kernel.
void give_edge_gradients(const ShardedGraph& graph, const Tensor& of_edges, const Variable& x,
                         const Variable& shift);

/// For kernels: three columns of source rows, the positions x or their tangents.
struct SourceVectors {
  Index column, source_columns;  ///< the first of them, and the columns of a source row

  /// Returns x_u + t - x_v of the edges of a block, computed in double precision: [edges, 3]. `own`: x of the
  /// destinations; `shifts`: t of all edges; undefined: 0.
  [[nodiscard]] Tensor differences(const Stage& stage, const EdgeBlock& edges, const Tensor& own,
                                   const Tensor& shifts) const;
  /// Writes the gradients of these differences to the rows of all edges, and adds them to the gradients of
  /// the source rows that the edges are grouped by. Nothing if they are undefined.
  void give(const Tensor& gradients, const EdgeBlock& edges, const BlockGroups& groups, Tensor of_all_edges,
            real* grad_src) const;
};

/// Sums of messages of PaiNNConv, a chunk of edges at a time.
///
/// For each edge u -> v, with its vector d = x_u + t - x_v and the filter w = W h for the radial functions h
/// = radial_rows(d) without d / r:
///
///     out_v += vector_messages(phi_u, w, d / r, v_u)
///
/// Forward, for each chunk of destinations: the radial rows and filters of its edges, and the sums, which
/// read source rows where they lie. Backward, for each chunk of sources, with g the gradient of the sums: the
/// radial rows and filters again; in one loop over the edges of a source, the gradients of its row and of the
/// filters; the gradients of W and of d. Memory: radial rows, filters and d of a chunk for each thread, and
/// the gradients of d of all edges, if they are wanted. With tangents, all of it is computed for these, too,
/// in the same loops.
///
/// Chunks consist of whole rows and are computed in parallel. Gradients of W are added in the order of the
/// chunks, those of x_v in the order of the edges: results do not depend on the number of threads.
class MessageSumKernel final : public ShardKernel {
 public:
  /// Source rows have phi [3 F], v [3, F] and, with tangents, those of phi and v, then x and, with tangents,
  /// that of x. Tensors of tangents are undefined without them.
  struct Operands {
    RadialFunctions radial;
    Index feats = 0;                ///< F
    bool vectors = false;           ///< whether there is v
    Index edge_chunk = 1;           ///< edges of a chunk, rounded up to whole rows
    Tensor filter;                  ///< W [3 F, num_basis + 1]
    Tensor own, own_tangent;        ///< x of the local nodes, the destinations first
    Tensor shifts, shifts_tangent;  ///< t [edges, 3]; undefined: 0
    Tensor out{};                   ///< forward: [destinations, 4 F], with tangents [destinations, 8 F]
    Tensor grad_out{};              ///< backward: as out
    Tensor grad_filter{};           ///< backward, added to; undefined: not wanted
    Tensor grad_edges{}, grad_tangents{};  ///< backward, [edges, 3], overwritten: of d and of its tangent

    [[nodiscard]] bool tangents() const { return own_tangent.defined(); }
    /// Without v, only the columns of a and b are computed.
    [[nodiscard]] Index filter_size() const { return (vectors ? 3 : 2) * feats; }
    /// Numbers of a source row before x.
    [[nodiscard]] Index message_columns() const { return (tangents() ? 2 : 1) * (vectors ? 6 : 3) * feats; }
    [[nodiscard]] Index source_columns() const { return message_columns() + (tangents() ? 6 : 3); }
    [[nodiscard]] SourceVectors positions() const { return {message_columns(), source_columns()}; }
    [[nodiscard]] SourceVectors position_tangents() const {
      return {message_columns() + 3, source_columns()};
    }
  };
  explicit MessageSumKernel(Operands operands);

  void begin() override { o_.out.fill(0); }
  void accumulate(const Stage& stage) override;
  [[nodiscard]] bool needs_source_in_backward() const override { return true; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;

 private:
  /// A chunk: its edges, grouped by rows, and what is computed of them.
  struct Chunk {
    EdgeBlock edges;
    BlockGroups groups;
    Tensor d, radial, filter;
    Tensor tangent, radial_tangent, filter_tangent;  // tangents
    Tensor grad_filter;                              // of W
  };
  void make_edge_rows(const Stage& stage, Chunk& chunk) const;
  [[nodiscard]] VectorMessageChunk operands_of(const Stage& stage, Chunk& chunk) const;
  void differentiate(const Stage& stage, Chunk& chunk, real* grad_src) const;

  Operands o_;
  RightOperand weight_, transposed_;
  EdgeBlocks blocks_;
  PassVector<Chunk> chunks_;
};
}}  // namespace sar
