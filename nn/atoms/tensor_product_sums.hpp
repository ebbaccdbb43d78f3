// SPDX-License-Identifier: MIT

/// Sums of the messages of MACE over the in-edges.
#pragma once

#include <sar/core/products/right_operand.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>
#include <sar/nn/atoms/radial_table.hpp>
#include <sar/nn/atoms/tensor_product.hpp>

#include <deque>
#include <initializer_list>
#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of tensor_product_sums() for F channels.
struct TensorProductSumOperands {
  Variable rows;                ///< h [local sources, rows1 F]
  Variable positions;           ///< x [local sources, 3]; the destinations are the first
  Variable shifts;              ///< t [local edges, 3]; undefined: 0
  Variable radii;               ///< covalent radii [local sources, 1]; undefined without a transform
  std::vector<Variable> network;  ///< W_k [out, in] of the radial network, with SiLU between them
  Variable density;               ///< w [1, num_basis]; undefined: there is no density
  HarmonicFunctions functions{};
  std::shared_ptr<const TensorProduct> product;
  /// Of the network and w, if they are constants and there are no tangents; null: none.
  std::shared_ptr<const RadialTable> table = nullptr;
};

/// Collective. Returns [local destinations, rows F], with a density [local destinations, rows F + 1]:
///
///     out_v = sum over u -> v of R(b_uv) z(h_u, Y_uv)
///
///     density_v = sum over u -> v of tanh((w . b_uv)^2)
///
/// for the radial functions b and the harmonics Y of harmonic_rows(), the radial network R and the products z
/// of tensor_product_rows(). Has a tangent in h, x and t; then the gradients of x and t, and of their
/// tangents, are not computed: throws InputError if they are wanted. Halo rows have all source operands side
/// by side. Keeps these rows.
Variable tensor_product_sums(const Graph& graph, const TensorProductSumOperands& operands);

/// Local. Returns whether an operation that is recorded now would compute gradients of one of these
/// variables, which may be undefined, or of its tangent.
[[nodiscard]] bool wants_edges(std::initializer_list<const Variable*> edges);

/// Computes the sums, a chunk of edges at a time, as MessageSumKernel does.
///
/// Forward, for each chunk of destinations: the rows b and Y of its edges, the radial network, and the sums,
/// which read source rows where they lie. Backward, for each chunk of sources: the same rows again; in one
/// loop over the edges of a source, the gradients of its row, of Y and of R; then those of the network and of
/// the edge vectors. Memory: R of a chunk for each thread, and the gradients of the vectors of all edges.
/// With tangents, all of it is computed for these, too, in the same loops, except for the gradients of Y.
///
/// Chunks consist of whole rows and are computed in parallel. Gradients of the network are added in the order
/// of the chunks. Results do not depend on the number of threads.
class TensorProductSumKernel final : public ShardKernel {
 public:
  /// Source rows have h [rows1 F] and, with tangents, that of h, then x [3] and, with tangents, that of x,
  /// and with a transform the radius. Sums have their tangents behind them.
  struct Operands {
    TensorProductSumOperands call;
    Index feats = 0;
    Index edge_chunk = 1;
    Tensor own_tangent{}, shifts_tangent{};  ///< of x and t; undefined without tangents
    Tensor out{};                            ///< forward
    Tensor grad_out{};                       ///< backward
    Tensor grad_edges{};                     ///< backward, [edges, 3], overwritten; undefined: not wanted
    std::vector<Tensor> grad_network{};      ///< backward, added to; each undefined: not wanted
    Tensor grad_density{};

    [[nodiscard]] bool tangents() const { return own_tangent.defined(); }
    [[nodiscard]] Index copies() const { return tangents() ? 2 : 1; }
    [[nodiscard]] Index message_columns() const { return copies() * call.product->rows1 * feats; }
    [[nodiscard]] Index source_columns() const {
      return message_columns() + copies() * 3 + (call.radii.defined() ? 1 : 0);
    }
    /// Numbers of a row of sums without tangents.
    [[nodiscard]] Index sum_columns() const {
      return call.product->rows * feats + (call.density.defined() ? 1 : 0);
    }
    [[nodiscard]] Index width() const { return copies() * sum_columns(); }
  };
  explicit TensorProductSumKernel(Operands operands);

  void begin() override { o_.out.fill(0); }
  void accumulate(const Stage& stage) override;
  [[nodiscard]] bool needs_source_in_backward() const override { return true; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;

 private:
  struct Chunk {
    EdgeBlock edges;
    BlockGroups groups;
    Tensor d, radii, rows;             // rows: b and Y, with a table Y alone
    // With a table, the rows of the edges of a section are side by side in phi, its derivatives and the sums.
    Tensor phi, slopes;
    Array<std::int32_t> places;        // the row of each edge
    std::vector<Index> sections;       // [sections + 1]: where the rows of each begin
    std::vector<Tensor> sums, hidden;  // of the network: z_k = W_k a_k, and a_k+1 = silu(z_k)
    std::vector<Tensor> sigmoids;      // of z_k
    Tensor root;                       // w . b
    Tensor d_tangent, rows_tangent, root_tangent;
    std::vector<Tensor> sums_tangent, hidden_tangent;
    std::vector<Tensor> grad_network;
    Tensor grad_density;
  };
  [[nodiscard]] Index drop_far_edges(Chunk& chunk);
  void make_edge_rows(const Stage& stage, Chunk& chunk);
  void make_network_rows(Chunk& chunk) const;
  void make_table_rows(Chunk& chunk) const;
  [[nodiscard]] TensorProductChunk operands_of(const Stage& stage, const Chunk& chunk) const;
  void differentiate(const Stage& stage, Chunk& chunk, real* grad_src);
  [[nodiscard]] Tensor differentiate_network(Chunk& chunk, Tensor of_sums, Tensor of_tangents) const;
  [[nodiscard]] Tensor differentiate_table(const Chunk& chunk, const Tensor& of_sums) const;
  [[nodiscard]] Tensor differentiate_density(Chunk& chunk) const;

  Operands o_;
  HarmonicFunctions functions_;                  // of rows
  std::deque<RightOperand> forward_, backward_;  // W_k^T, W_k; with a table of last(s) for each section s
  EdgeBlocks blocks_;
  PassVector<Chunk> chunks_;
};
}}  // namespace sar
