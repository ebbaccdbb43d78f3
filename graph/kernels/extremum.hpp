/// Maximum and minimum of copy_u and of u * e with one scalar per edge.
///
///     forward     out[v][j] = max (min) over in-edges (u, v) of  w_e x_u[j]      0 without in-edges, as DGL
///     backward    dx[u][j]  = sum of w_e g[v][j] over the edges e = (u, v) that won element (v, j)
///                 dw_e      = sum of x_u[j] g[v][j] over the elements (v, j) that e won
///
/// The winner's edge number is kept per output element (4 bytes), so that going back needs no source values,
/// but for dw. Of equal messages the one with the smallest edge id wins, so that the result does not depend
/// on P. Traffic: forward a row of x and of the running extremum (in cache) per edge; backward a row of g and
/// of winners per edge.
#pragma once

#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/sequential.hpp>

namespace sar {

class ExtremumKernel : public ShardKernel {
 public:
  struct Operands {
    Index width = 0;
    bool minimum = false;
    const real* edge_weight = nullptr;  ///< per local edge; null: 1
    const Index* edge_ids = nullptr;    ///< per local edge
    local_index* winners = nullptr;     ///< [destinations, width], -1 at first: local edge numbers
    real* out = nullptr;                ///< forward: [destinations, width], 0 at first
    const real* grad_out = nullptr;     ///< backward: [destinations, width]
    real* grad_edge_weight = nullptr;   ///< backward: per local edge, overwritten; null: not wanted
  };
  explicit ExtremumKernel(const Operands& operands) : o_(operands) {}

  void accumulate(const SourcePiece& piece) override;
  [[nodiscard]] bool needs_source_in_backward() const override { return o_.grad_edge_weight != nullptr; }
  void backward(const SourcePiece& piece, real* grad_src, bool accumulate) override;

 private:
  Operands o_;
  EdgeCursor cursor_;
};

}  // namespace sar
