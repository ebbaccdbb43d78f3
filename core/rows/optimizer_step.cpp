// SPDX-License-Identifier: MIT

// Each step is one vectorized loop over the elements, in parallel blocks of 2^14, bound by memory bandwidth.
// Bytes moved per element (float): SGD reads 8 and writes 4 (12 and 8 with momentum), Adam reads 16 and
// writes 12, Adagrad reads 12 and writes 8.
#include <sar/core/rows/optimizer_step.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cmath>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index grain = 1 << 14;

/// A step of n elements. Coefficients are copied, so that they stay in registers.
void adam_block(Index n, const real* gradient, const AdamCoefficients c, real* p, real* m, real* v) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index i = 0; i < n; ++i) {
    const real g = gradient[i] + c.decay * p[i];
    m[i] = c.beta1 * m[i] + c.rest1 * g;
    v[i] = c.beta2 * v[i] + c.rest2 * g * g;
    p[i] = c.keep * p[i] - c.rate * m[i] / (std::sqrt(v[i]) / c.root_of_correction + c.eps);
  }
}

}  // namespace

void sgd_step(Tensor& parameter, const Tensor& gradient, Tensor& buffer, real rate, real momentum,
              real decay) {
  real* p = parameter.data();
  const real* g = gradient.data();
  real* b = buffer.data();
  parallel_for(gradient.size(), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      real step = g[i] + decay * p[i];
      if (b != nullptr) step = b[i] = momentum * b[i] + step;
      p[i] -= rate * step;
    }
  });
}

void adam_step(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second,
               const AdamCoefficients& c) {
  parallel_for(gradient.size(), grain, [&](Index begin, Index end) {
    adam_block(end - begin, gradient.data() + begin, c, parameter.data() + begin, first.data() + begin,
               second.data() + begin);
  });
}

void adagrad_step(Tensor& parameter, const Tensor& gradient, Tensor& sum, real rate, real eps) {
  real* p = parameter.data();
  real* s = sum.data();
  parallel_for(gradient.size(), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const real g = gradient.data()[i];
      s[i] += g * g;
      p[i] -= rate * g / (std::sqrt(s[i]) + eps);
    }
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, sgd_step,
             (Tensor & parameter, const Tensor& gradient, Tensor& buffer, real rate, real momentum,
              real decay),
             (parameter, gradient, buffer, rate, momentum, decay));
SAR_DISPATCH(void, adam_step,
             (Tensor & parameter, const Tensor& gradient, Tensor& first, Tensor& second,
              const AdamCoefficients& c),
             (parameter, gradient, first, second, c));
SAR_DISPATCH(void, adagrad_step,
             (Tensor & parameter, const Tensor& gradient, Tensor& sum, real rate, real eps),
             (parameter, gradient, sum, rate, eps));
