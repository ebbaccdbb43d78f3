#include <sar/core/vector_exp.hpp>
#include <sar/core/vector_math.hpp>

#include <algorithm>
#include <cstring>

#include <sar/core/isa_begin.hpp>

namespace {

/// In whole vectors, the last one padded.
template <class Function>
void apply(const Function& function, const real* x, real* out, Index n) {
  using namespace row_lanes;
  const Index whole = n - n % lanes;
  for (Index first = 0; first < whole; first += lanes) {
    const Vector v = function(AtVector{first}(x));
    std::memcpy(out + first, &v, sizeof v);
  }
  if (whole == n) return;
  real last[lanes] = {};
  std::copy(x + whole, x + n, last);
  const Vector v = function(AtVector{0}(last));
  std::memcpy(last, &v, sizeof v);
  std::copy_n(last, n - whole, out + whole);
}

}  // namespace

namespace vector_math {

void exp(const real* x, real* out, Index n) {
  apply([](const auto& v) { return row_lanes::exp(v); }, x, out, n);
}

void sigmoid(const real* x, real* out, Index n) {
  apply([](const auto& v) { return 1 / (1 + row_lanes::exp(-v)); }, x, out, n);
}

void softplus(const real* x, real* out, Index n) {
  apply(
      [](const row_lanes::Vector& v) {
        const row_lanes::Vector zero{}, size = v < 0 ? -v : v;
        return (v > 0 ? v : zero) + row_lanes::log1p_exp_minus(size);
      },
      x, out, n);
}

}  // namespace vector_math

#include <sar/core/isa_end.hpp>

SAR_DISPATCH_IN(vector_math, void, exp, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, sigmoid, (const real* x, real* out, Index n), (x, out, n));
SAR_DISPATCH_IN(vector_math, void, softplus, (const real* x, real* out, Index n), (x, out, n));
