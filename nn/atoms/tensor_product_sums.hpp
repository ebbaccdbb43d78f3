// SPDX-License-Identifier: MIT

/// Sums of the messages of MACE over the in-edges, for constant weights.
#pragma once

#include <sar/core/products/right_operand.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/shard_kernel.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>
#include <sar/nn/atoms/radial_table.hpp>
#include <sar/nn/atoms/tensor_product.hpp>

#include <deque>
#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of tensor_product_sums() for F channels.
struct TensorProductSumOperands {
  Variable rows;                ///< h [local sources, rows1 F]
  Variable positions;           ///< x [local sources, 3]; the destinations are the first
  Variable shifts;              ///< t [local edges, 3]; undefined: 0
  Variable radii;               ///< covalent radii [local sources, 1]; undefined without a transform
  std::vector<Tensor> network;  ///< W_k [out, in] of the radial network, with SiLU between them
  Tensor density;               ///< w [1, num_basis]; undefined: there is no density
  HarmonicFunctions functions{};
  std::shared_ptr<const TensorProduct> product;
  std::shared_ptr<const RadialTable> table = nullptr;  ///< of the network and w, if there is one
};

/// Collective. Returns [local destinations, rows F], with a density [local destinations, rows F + 1]:
///
///     out_v = sum over u -> v of R(b_uv) z(h_u, Y_uv)
///
///     density_v = sum over u -> v of tanh((w . b_uv)^2)
///
/// for the radial functions b and the harmonics Y of harmonic_rows(), the radial network R and the products z
/// of tensor_product_rows(). Has no tangent and no gradients of the network. Halo rows have all source
/// operands side by side. Keeps these rows.
Variable tensor_product_sums(const Graph& graph, const TensorProductSumOperands& operands);

/// Computes the sums, a chunk of edges at a time, as MessageSumKernel does.
///
/// Forward, for each chunk of destinations: the rows b and Y of its edges, the radial network, and the sums,
/// which read source rows where they lie. Backward, for each chunk of sources: the same rows again; in one
/// loop over the edges of a source, the gradients of its row, of Y and of R; then those of the network and of
/// the edge vectors. Memory: R of a chunk for each thread, and the gradients of the vectors of all edges.
///
/// Chunks consist of whole rows and are computed in parallel. Results do not depend on the number of threads.
class TensorProductSumKernel final : public ShardKernel {
 public:
  /// Source rows have h [rows1 F], x [3] and, with a transform, the radius.
  struct Operands {
    TensorProductSumOperands call;
    Index feats = 0;
    Index edge_chunk = 1;
    Tensor out{};         ///< forward
    Tensor grad_out{};    ///< backward
    Tensor grad_edges{};  ///< backward, [edges, 3], overwritten; undefined: not wanted

    [[nodiscard]] Index message_columns() const { return call.product->rows1 * feats; }
    [[nodiscard]] Index source_columns() const { return message_columns() + (call.radii.defined() ? 4 : 3); }
    [[nodiscard]] Index width() const {
      return call.product->rows * feats + (call.density.defined() ? 1 : 0);
    }
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
  };
  [[nodiscard]] Index drop_far_edges(Chunk& chunk);
  void make_edge_rows(const Stage& stage, Chunk& chunk);
  void make_network_rows(Chunk& chunk) const;
  void make_table_rows(Chunk& chunk) const;
  [[nodiscard]] TensorProductChunk operands_of(const Stage& stage, const Chunk& chunk) const;
  void differentiate(const Stage& stage, Chunk& chunk, real* grad_src);
  template <class Compute>
  void for_chunks(const Compute& compute);

  Operands o_;
  HarmonicFunctions functions_;                  // of rows
  std::deque<RightOperand> forward_, backward_;  // W_k^T, W_k; with a table of last(s) for each section s
  EdgeBlocks blocks_;
  PassVector<Chunk> chunks_;
};
}}  // namespace sar
