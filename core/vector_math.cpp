#include <sar/core/vector_math.hpp>

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>

namespace sar::inline SAR_PRECISION::vector_math {
namespace {

constexpr Index block_size = 64;
using Block = Eigen::Array<real, block_size, 1>;

/// In whole blocks, the last one padded: Eigen's vector and scalar paths round differently, and the path of
/// an element would otherwise depend on addresses and lengths.
template <class Function>
void apply(const Function& function, const real* x, real* out, Index n) {
  const Index whole = n - n % block_size;
  for (Index first = 0; first < whole; first += block_size)
    Eigen::Map<Block>(out + first) = function(Eigen::Map<const Block>(x + first));
  if (whole == n) return;
  Block block = Block::Ones();
  std::copy(x + whole, x + n, block.data());
  const Block result = function(block);
  std::copy_n(result.data(), n - whole, out + whole);
}

}  // namespace

void exp(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.exp(); }, x, out, n);
}
void expm1(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.expm1(); }, x, out, n);
}
void log(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.log(); }, x, out, n);
}
void tanh(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.tanh(); }, x, out, n);
}
void sigmoid(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.logistic(); }, x, out, n);
}
void erf(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.erf(); }, x, out, n);
}
void softplus(const real* x, real* out, Index n) {
  apply([](const auto& b) { return b.max(real{0}) + (-b.abs()).exp().log1p(); }, x, out, n);
}

}  // namespace sar::vector_math
