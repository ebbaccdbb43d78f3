// SPDX-License-Identifier: MIT

/// Products of sparse rows with a matrix that may require a gradient. For the operations of products.hpp.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns x W^T + b for weight [out, in] (`out_in`), or x W + b for weight [in, out]; the bias may
/// be undefined. Keeps the stored values of x. The caller has checked the shapes.
Variable sparse_linear(std::shared_ptr<const SparseMatrix> x, const Variable& weight, const Variable& bias,
                       bool out_in);

/// Local. Returns base + x W^T for weight [out, in]; in the memory of `base` if no other handle refers to
/// it. Keeps the stored values of x. The caller has checked the shapes.
Variable add_sparse_linear(Variable base, std::shared_ptr<const SparseMatrix> x, const Variable& weight);

}}  // namespace sar
