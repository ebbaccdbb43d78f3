/// Kernels on rows of H heads side by side: x [N, H, D].
#pragma once

#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// out[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D], out [N, H]. Reads x once. All functions here
/// throw ShapeError when shapes do not fit.
void head_dots(const Tensor& x, const Tensor& a, Tensor& out);

/// The gradient of x: out[i, h, d] (+)= grad[i, h] a[0, h, d]. Writes (and, to accumulate, reads) out once.
void head_dots_backward_x(const Tensor& grad, const Tensor& a, Tensor& out, bool accumulate = false);

/// The gradient of a: out[h D + d] = sum_i grad[i, h] x[i, h, d], in double precision and in a fixed order.
/// Reads x once.
void head_dots_backward_a(const Tensor& grad, const Tensor& x, std::span<double> out);

}  // namespace sar
