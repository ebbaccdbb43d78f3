// SPDX-License-Identifier: MIT

/// Products of the components of an atom's row, symmetric and equivariant, with weights by species.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/nn/atoms/couplings.hpp>

#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns for x [n, components, F], given as [n, components F], weights W [species, paths, F] and the
/// species s_i of each row
///
///     y_i,o = sum over the paths p of the basis of W_s_i,p B_p(x_i)_o        [n, outs F]
///
/// channel by channel. Batatia et al., arXiv 2206.07697, equations (10) and (11). Has a tangent in x. Keeps
/// x, W and the basis. Memory: the coefficients of all products for each species that there is.
Variable symmetric_contraction(const Variable& x, const Variable& weights, const RowIds& species,
                               const std::shared_ptr<const SymmetricBasis>& basis);

/// For kernels: rows of one species, and some of their F channels.
struct ContractionChunk {
  const SymmetricBasis* basis = nullptr;
  Index feats = 0, first = 0, last = 0;  ///< F; channels first .. last - 1
  std::span<const Index> rows{};
  const real *x = nullptr, *tangent = nullptr;  ///< [.., components, F]; the tangent may be null
  const real* coefficients = nullptr;           ///< [terms, F]: the sums of W_p times the values of a term
};
/// Writes these channels of y and, with a tangent, of its tangent. Channels, vectorized, then rows, then
/// products; x and y of a row stay in registers and the first-level cache, the coefficients of the channels
/// in the second-level cache.
void contract(const ContractionChunk& of, real* y, real* y_tangent);
/// Writes these channels of the gradients of x and, with a tangent, of its tangent, and adds that of the
/// coefficients unless it is null. `grad_tangent`: with a tangent.
void contract_backward(const ContractionChunk& of, const real* grad, const real* grad_tangent, real* of_x,
                       real* of_tangent, real* of_coefficients);

}}  // namespace sar
