/// Transcendental functions of n contiguous values, vectorised by Eigen or by vector_exp.hpp, on the calling
/// thread.
///
/// `out` may be `x`. Errors are a few units in the last place. A result depends on its argument alone: it has
/// the same bits at every position, alignment and length.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION::vector_math {

void exp(const real* x, real* out, Index n);
/// exp(x) - 1, exact near 0
void expm1(const real* x, real* out, Index n);
void log(const real* x, real* out, Index n);
/// In double precision in either library.
void log_of_sums(const double* x, double* out, Index n);
void tanh(const real* x, real* out, Index n);
/// 1 / (1 + exp(-x))
void sigmoid(const real* x, real* out, Index n);
/// 2 / sqrt(pi) times the integral of exp(-t^2) over [0, x]; of NaN, any number
void erf(const real* x, real* out, Index n);
/// log(1 + exp(x)), without overflow
void softplus(const real* x, real* out, Index n);

}  // namespace sar::vector_math
