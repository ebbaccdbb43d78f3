// SPDX-License-Identifier: MIT

/// Transcendental functions of n contiguous values, vectorized with Eigen or vector_exp.hpp, single-threaded.
///
/// `out` may be `x`. Errors are a few units in the last place; log() of a positive subnormal number is that
/// of the smallest normal one. Each result depends on its argument only: it has the same bits at every
/// position, alignment and length.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace vector_math {

/// exp(x)
void exp(const real* x, real* out, Index n);
/// exp(x) - 1, accurate near 0
void expm1(const real* x, real* out, Index n);
/// log(x)
void log(const real* x, real* out, Index n);
/// log(x), computed in double precision whatever `real` is
void log_of_sums(const double* x, double* out, Index n);
/// tanh(x)
void tanh(const real* x, real* out, Index n);
/// 1 / (1 + exp(-x))
void sigmoid(const real* x, real* out, Index n);
/// The error function, 2 / sqrt(pi) times the integral of exp(-t^2) over [0, x]; undefined for NaN
void erf(const real* x, real* out, Index n);
/// log(1 + exp(x)) without overflow
void softplus(const real* x, real* out, Index n);

}}}  // namespace sar
