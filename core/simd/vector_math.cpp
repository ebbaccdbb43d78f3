// SPDX-License-Identifier: MIT

// Eigen's functions of arrays on blocks of 64 values (16 for log_of_sums), whose length is known at
// compile time. x is read once and `out` written once; only the last block is copied.
#include <sar/core/isa/isa_eigen.hpp>
#include <sar/core/simd/vector_math.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <sar/core/isa/isa_begin.hpp>

namespace vector_math {
namespace {

constexpr Index block_size = 64;
template <class Number>
using Block = Eigen::Array<Number, block_size, 1>;

/// Applies `function` to whole blocks; the last one is padded with ones. Eigen's vector and scalar paths
/// round differently, and which one an element takes would otherwise depend on address and length.
template <class Function, class Number>
void apply(const Function& function, const Number* x, Number* out, Index n) {
  const Index whole = n - n % block_size;
  for (Index first = 0; first < whole; first += block_size)
    Eigen::Map<Block<Number>>(out + first) = function(Eigen::Map<const Block<Number>>(x + first));
  if (whole == n) return;
  Block<Number> block = Block<Number>::Ones();
  std::copy(x + whole, x + n, block.data());
  const Block<Number> result = function(block);
  std::copy_n(result.data(), n - whole, out + whole);
}

}  // namespace

void log(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.log(); }, x, out, n);
}
void log_of_sums(const double* x, double* out, Index n) {
  constexpr Index group_size = 16;
  using Group = Eigen::Array<double, group_size, 1>;
  for (Index first = 0; first < n; first += group_size) {
    const Index count = std::min(group_size, n - first);
    Group sums = Group::Ones();
    std::copy_n(x + first, count, sums.data());
    const Group logs = sums.log();
    std::copy_n(logs.data(), count, out + first);
  }
}
void tanh(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.tanh(); }, x, out, n);
#ifndef __x86_64__
  // Eigen 3.4 on NEON saturates a few roundings below 1, and gelu_tanh multiplies 1 - tanh^2 by large
  // numbers.
  constexpr real nearly_one = 1 - 2 * std::numeric_limits<real>::epsilon();
  for (Index i = 0; i < n; ++i)
    if (std::abs(out[i]) >= nearly_one) out[i] = std::copysign(real(1), out[i]);
#endif
}
void erf(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.erf(); }, x, out, n);
}

}  // namespace vector_math

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH_IN(vector_math, void, log, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, log_of_sums, (const double* x, double* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, tanh, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, erf, (const real* x, real* out, Index n), (x, out, n));
