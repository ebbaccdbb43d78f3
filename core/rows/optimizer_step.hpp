// SPDX-License-Identifier: MIT

/// One optimizer step on one parameter, in place. All tensors have the same shape; each is read (and, where
/// it changes, written) once.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// SGD with g' = g + decay p:
///
///     b <- momentum b + g'        p <- p - rate b
///
/// With an undefined buffer b: p <- p - rate g'.
void sgd_step(Tensor& p, const Tensor& g, Tensor& b, real rate, real momentum, real decay);

struct AdamCoefficients {
  real beta1, rest1;  ///< rest1 = 1 - beta1, rest2 = 1 - beta2
  real beta2, rest2;
  real eps;
  real rate;                    ///< lr / (1 - beta1^t)
  real root_of_correction = 1;  ///< sqrt(1 - beta2^t)
  real decay = 0;               ///< L2 regularization: decay p is added to the gradient
  real keep = 1;                ///< decoupled weight decay: factor of p before the step
};

/// Adam with g' = g + decay p:
///
///     m <- beta1 m + rest1 g'        v <- beta2 v + rest2 g'^2
///     p <- keep p - rate m / (sqrt(v) / root_of_correction + eps)
void adam_step(Tensor& p, const Tensor& g, Tensor& m, Tensor& v, const AdamCoefficients& c);

/// Adagrad:
///
///     s <- s + g^2        p <- p - rate g / (sqrt(s) + eps)
void adagrad_step(Tensor& p, const Tensor& g, Tensor& s, real rate, real eps);

}}  // namespace sar
