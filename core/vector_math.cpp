#include <sar/core/vector_math.hpp>

#include <Eigen/Core>

#include <algorithm>

namespace sar::inline SAR_PRECISION::vector_math {
namespace {

constexpr Index block_size = 64;
using Block = Eigen::Array<real, block_size, 1>;

/// In whole aligned blocks, the last one padded: Eigen's vector and scalar paths round differently, and the
/// path of an element would otherwise depend on addresses and lengths.
template <class Function>
void apply(const Function& function, const real* x, real* out, Index n) {
  Block block;
  for (Index first = 0; first < n; first += block_size) {
    const Index count = std::min(block_size, n - first);
    if (count < block_size) block.setOnes();
    std::copy_n(x + first, count, block.data());
    block = function(block);
    std::copy_n(block.data(), count, out + first);
  }
}

}  // namespace

void exp(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.exp(); }, x, out, n);
}
void expm1(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.expm1(); }, x, out, n);
}
void log(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.log(); }, x, out, n);
}
void tanh(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.tanh(); }, x, out, n);
}
void sigmoid(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.logistic(); }, x, out, n);
}
void softplus(const real* x, real* out, Index n) {
  apply([](const Block& b) -> Block { return b.max(real{0}) + (-b.abs()).exp().log1p(); }, x, out, n);
}

}  // namespace sar::vector_math
