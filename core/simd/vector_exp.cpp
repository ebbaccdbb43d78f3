// SPDX-License-Identifier: MIT

// One loop over vectors of 64 bytes; the last one is padded, so that every element takes the same
// instructions. x is read once and `out` written once.
//
//
//     softplus(x) = max(x, 0) + log(1 + exp(-|x|))
#include <sar/core/simd/vector_exp.hpp>
#include <sar/core/simd/vector_math.hpp>

#include <algorithm>

#include <sar/core/isa/isa_begin.hpp>

namespace {

/// Applies `function` to whole vectors; the last one is padded with zeros.
template <class Function>
void apply(const Function& function, const real* x, real* out, Index n) {
  using namespace lanes;
  const Index whole = n - n % line_lanes;
  for (Index first = 0; first < whole; first += line_lanes) {
    const Line v = function(AtVector{first}(x));
    store<line_lanes>(out + first, v);
  }
  if (whole == n) return;
  real last[line_lanes] = {};
  std::copy(x + whole, x + n, last);
  const Line v = function(AtVector{0}(last));
  store<line_lanes>(last, v);
  std::copy_n(last, n - whole, out + whole);
}

}  // namespace

namespace vector_math {

void exp(const real* x, real* out, Index n) {
  apply([](const auto& v) { return lanes::exp(v); }, x, out, n);
}

void expm1(const real* x, real* out, Index n) {
  apply([](const auto& v) { return lanes::expm1(v); }, x, out, n);
}

void sigmoid(const real* x, real* out, Index n) {
  apply([](const auto& v) { return 1 / (1 + lanes::exp(-v)); }, x, out, n);
}

void softplus(const real* x, real* out, Index n) {
  apply(
      [](const lanes::Line& v) {
        const lanes::Line zero{}, size = v < 0 ? -v : v;
        return (v > 0 ? v : zero) + lanes::log1p_exp_minus(size);
      },
      x, out, n);
}

}  // namespace vector_math

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH_IN(vector_math, void, exp, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, expm1, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, sigmoid, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, softplus, (const real* x, real* out, Index n), (x, out, n));
