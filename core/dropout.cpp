#include <sar/core/dropout.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr int lanes = 32;          // Philox blocks drawn together
constexpr Index tile = 4 * lanes;  // elements
constexpr Index grain = 1 << 15;   // elements per block of the parallel loop

/// Counters of `lanes` blocks, one array per word.
using Counters = std::array<std::array<std::uint64_t, lanes>, 4>;

/// As philox() of random.hpp, in every lane. Words are kept in 64-bit elements of local arrays: compilers
/// then turn the 32 x 32 -> 64 bit products of a round into vector instructions.
void draw(const Counters& counters, std::array<std::uint32_t, 2> key, std::uint32_t* words) noexcept {
  std::uint64_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    c0[l] = counters[0][l];
    c1[l] = counters[1][l];
    c2[l] = counters[2][l];
    c3[l] = counters[3][l];
  }
  for (int round = 0; round < 10; ++round) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * static_cast<std::uint32_t>(c0[l]);
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * static_cast<std::uint32_t>(c2[l]);
      c0[l] = (p1 >> 32) ^ c1[l] ^ key[0];
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = (p0 >> 32) ^ c3[l] ^ key[1];
      c3[l] = static_cast<std::uint32_t>(p0);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (std::size_t l = 0; l < lanes; ++l) {
    words[4 * l] = static_cast<std::uint32_t>(c0[l]);
    words[4 * l + 1] = static_cast<std::uint32_t>(c1[l]);
    words[4 * l + 2] = static_cast<std::uint32_t>(c2[l]);
    words[4 * l + 3] = static_cast<std::uint32_t>(c3[l]);
  }
}

}  // namespace

DropoutMask::DropoutMask(const RandomKey& key, double p) : key_(Random(key).key()) {
  require(p >= 0 && p < 1, "the probability of dropout must be at least 0 and below 1, not ", p);
  threshold_ = static_cast<std::uint32_t>(std::min(std::round(p * 0x1p32), 0x1p32 - 1));
  scale_ = static_cast<real>(1 / (1 - p));
}

void DropoutMask::factors(std::span<const Index> row_ids, Index row_size, real* factors) const noexcept {
  const std::uint32_t threshold = threshold_;
  const real scale = scale_;
  const Index blocks = (row_size + 3) / 4;  // per row
  const Index all_blocks = blocks * static_cast<Index>(row_ids.size());
  std::array<std::uint32_t, tile> words;
  Counters counters;
  Index row = 0;
  Index block = 0;
  for (Index first = 0; first < all_blocks; first += lanes) {
    const Index first_row = row;
    const Index first_block = block;
    const std::size_t used = std::min<Index>(lanes, all_blocks - first);
    for (std::size_t l = 0; l < lanes; ++l) {
      const auto id = static_cast<std::uint64_t>(row_ids[row]);
      counters[0][l] = id & 0xffffffffu;
      counters[1][l] = id >> 32;
      counters[2][l] = static_cast<std::uint64_t>(block) & 0xffffffffu;
      counters[3][l] = static_cast<std::uint64_t>(block) >> 32;
      if (l + 1 < used && ++block == blocks) {  // lanes behind the end repeat the last block
        block = 0;
        ++row;
      }
    }
    if (++block == blocks) {
      block = 0;
      ++row;
    }
    draw(counters, key_, words.data());
    if (row_size % 4 == 0) {
      real* to = factors + 4 * first;
      for (std::size_t i = 0; i < 4 * used; ++i) to[i] = words[i] < threshold ? real{0} : scale;
      continue;
    }
    std::array<real, tile> drawn;
    for (std::size_t i = 0; i < tile; ++i) drawn[i] = words[i] < threshold ? real{0} : scale;
    Index r = first_row;
    Index b = first_block;
    for (std::size_t l = 0; l < used; ++l) {
      std::copy_n(&drawn[4 * l], std::min<Index>(4, row_size - 4 * b), factors + r * row_size + 4 * b);
      if (++b == blocks) {
        b = 0;
        ++r;
      }
    }
  }
}

void DropoutMask::apply(const Tensor& x, std::span<const Index> row_ids, Tensor& out, bool accumulate) const {
  require<ShapeError>(x.shape() == out.shape() && static_cast<Index>(row_ids.size()) == x.num_rows(),
                      "dropout of a tensor of shape ", x.shape(), " with ", row_ids.size(),
                      " row ids into one of shape ", out.shape());
  const Index width = x.row_size();
  if (width == 0) return;
  // Factors are drawn into a buffer that stays in the first-level cache, a few rows or the whole of a long
  // one.
  constexpr Index buffer_size = 16 * tile;
  const Index rows_at_once = std::max<Index>(1, buffer_size / width);
  parallel_for(x.num_rows(), std::max(rows_at_once, grain / width), [&](Index begin, Index end) {
    std::vector<real> buffer(rows_at_once * width);
    for (Index first = begin; first < end; first += rows_at_once) {
      const Index rows = std::min(rows_at_once, end - first);
      factors(row_ids.subspan(first, rows), width, buffer.data());
      const real* from = x.row(first);
      real* to = out.row(first);
      const real* factor = buffer.data();
      if (accumulate) {
        for (Index i = 0; i < rows * width; ++i) to[i] += from[i] * factor[i];
      } else {
        for (Index i = 0; i < rows * width; ++i) to[i] = from[i] * factor[i];
      }
    }
  });
}

}  // namespace sar
