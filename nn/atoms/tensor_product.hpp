// SPDX-License-Identifier: MIT

/// Tensor products of rows of sources with spherical harmonics of edges, weighted by radial functions.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/atoms/couplings.hpp>

#include <cstdint>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Sums of tensor products over the edges of a chunk, without a row for each edge. With F channels:
///
///     out_v [rows, F] += sum over e: u -> v of R_ep z_p(h_u, Y_e)        for each path p of the product
///
/// Single-threaded. For each edge, the harmonics and the couplings make a matrix of each path; then the
/// channels, vectorized, with the components of a path in registers.
struct TensorProductChunk {
  const TensorProduct* product = nullptr;
  Index feats = 0;                  ///< F
  const real* sources = nullptr;    ///< h [.., rows1, F]
  Index source_stride = 0;          ///< numbers from a row of h to the next one
  const real* harmonics = nullptr;  ///< Y [edges, rows2]
  Index harmonic_stride = 0;
  const real* weights = nullptr;  ///< R [edges, paths, F]
  /// The row of R, and of its gradient, of each edge; null: that with the number of the edge.
  const std::int32_t* weight_rows = nullptr;
  /// Tangents of Y and R, with their strides; null: there are none. With them, the tangent of h is behind h
  /// in a source row, and that of a row of sums `tangent` numbers behind it.
  const real *harmonics_tangent = nullptr, *weights_tangent = nullptr;
  Index tangent = 0;

  /// The edges groups[i] .. groups[i + 1] - 1 belong to the row rows[i]; others: the row at the other end.
  const std::int32_t *rows = nullptr, *groups = nullptr;
  Index num_groups = 0;
  const std::int32_t* others = nullptr;
};

/// Groups of destinations, which are rows of out, `stride` numbers apart; `others` are source rows. Adds the
/// sums. Bytes moved: a source row and a row of R for each edge; out stays in the first-level cache.
void add_tensor_product_sums(const TensorProductChunk& of, real* out, Index stride);

/// Gradients of h, Y, R and the tangent of R, with their strides; that of R may be null.
struct TensorProductGradients {
  real *sources = nullptr, *harmonics = nullptr, *weights = nullptr, *weights_tangent = nullptr;
};
/// Groups of sources; `others` are rows of grad, the gradient of the sums, `stride` numbers apart. Adds the
/// gradients of h and Y, and overwrites that of R; with tangents, those of h, R and both of their tangents,
/// and none of Y. Bytes moved: a row of grad, one of R and that of its gradient for each edge.
void add_tensor_product_gradients(const TensorProductChunk& of, const real* grad, Index stride,
                                  const TensorProductGradients& to);

/// Returns R_p z_p(h, Y) for each row and path: [n, rows F] for h [n, rows1 F], Y [n, rows2] and R [n, paths
/// F]. Has a tangent. Keeps its operands and the product.
Variable tensor_product_rows(const Variable& h, const Variable& harmonics, const Variable& weights,
                             const std::shared_ptr<const TensorProduct>& product);

}}  // namespace sar
