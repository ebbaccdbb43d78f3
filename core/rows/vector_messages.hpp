/// Kernels of messages of scalars and vectors.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of messages with F channels.
struct VectorMessageRows {
  const Tensor& phi;        ///< [n, 3 F]
  const Tensor& filter;     ///< [n, 3 F]
  const Tensor& direction;  ///< d [n, 3]
  const Tensor& vectors;    ///< v [n, 3, F], or undefined: 0
  bool scalars = true;      ///< false: 0 in place of a
};

/// With (a, b, g) = phi * filter: out [n, 4 F] has a, then b d_k + g v_k for the three components k. Reads
/// the operands and writes out once, row by row.
void vector_messages(const VectorMessageRows& of, Tensor& out);

/// The gradients, each overwritten if it is defined. Reads the operands and `grad` once for each call.
struct VectorMessageGradients {
  Tensor phi, filter, direction, vectors;
};
void vector_messages_backward(const VectorMessageRows& of, const Tensor& grad, VectorMessageGradients& to);

}}  // namespace sar
