/// One step of an optimizer on one parameter, in place. Each function reads and writes its tensors once, all
/// of the same shape.
#pragma once

#include <sar/core/tensor.hpp>

namespace sar::inline SAR_PRECISION {

/// With g' = g + decay p:
///
///     b <- momentum b + g'        p <- p - rate b
///
/// Without a buffer b (undefined), p <- p - rate g'.
void sgd_step(Tensor& p, const Tensor& g, Tensor& b, real rate, real momentum, real decay);

struct AdamCoefficients {
  real beta1, rest1;  ///< rest: 1 - beta
  real beta2, rest2;
  real eps;
  real rate;                ///< lr / (1 - beta1^t)
  real root_of_correction;  ///< sqrt(1 - beta2^t)
  real decay;               ///< of the parameter, added to the gradient
  real keep;                ///< of the parameter, before the step
};

/// With g' = g + decay p:
///
///     m <- beta1 m + rest1 g'        v <- beta2 v + rest2 g'^2
///     p <- keep p - rate m / (sqrt(v) / root_of_correction + eps)
void adam_step(Tensor& p, const Tensor& g, Tensor& m, Tensor& v, const AdamCoefficients& c);

///     s <- s + g^2        p <- p - rate g / (sqrt(s) + eps)
void adagrad_step(Tensor& p, const Tensor& g, Tensor& s, real rate, real eps);

}  // namespace sar
