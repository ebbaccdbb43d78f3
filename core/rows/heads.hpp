// SPDX-License-Identifier: MIT

/// Kernels for rows with H heads: x [N, H, D].
#pragma once

#include <sar/core/tensor/typed_rows.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// out[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D] and out [N, H]. Reads x once. All functions of
/// this header throw ShapeError if shapes do not match.
void head_dots(const TypedRows& x, const Tensor& a, Tensor& out);

/// The gradient of x: out[i, h, d] (+)= grad[i, h] a[0, h, d]. Writes out once (and reads it, to accumulate).
void head_dots_backward_x(const Tensor& grad, const Tensor& a, Tensor& out, bool accumulate = false);

/// The gradient of a: out[h D + d] = sum_i grad[i, h] x[i, h, d], summed in double precision in a fixed
/// order. Reads x once.
void head_dots_backward_a(const Tensor& grad, const TypedRows& x, std::span<double> out);
}}  // namespace sar
