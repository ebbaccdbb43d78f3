// SPDX-License-Identifier: MIT

// A rank query on a bitmap: number() reads the count of members before the group of 512 bits and counts
// the set bits of at most 8 words. next() reads one word per 64 numbers that it skips.
#include <sar/core/memory/index_set.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::size_t step = 8;  // words per entry of before_

}  // namespace

Index IndexSet::size() const noexcept {
  Index count = 0;
  for (const std::uint64_t word : bits_) count += std::popcount(word);
  return count;
}

Array<Index> IndexSet::members() const {
  Array<Index> found;
  found.reserve(size());
  for_each([&](Index i) { found.push_back(i); });
  return found;
}

Index IndexSet::next(Index i) const noexcept {
  const Index words = std::ssize(bits_);
  Index w = i / 64;
  if (w >= words) return std::max(i, words * 64);
  std::uint64_t rest = bits_[w] >> (i % 64) << (i % 64);
  while (rest == 0 && ++w < words) rest = bits_[w];
  return w < words ? w * 64 + std::countr_zero(rest) : words * 64;
}

std::size_t IndexSet::bytes() const noexcept {
  return bits_.capacity() * sizeof(std::uint64_t) + before_.capacity() * sizeof(Index);
}

void IndexSet::make_numbers() {
  before_.assign(bits_.size() / step + 1, 0);
  Index count = 0;
  for (std::size_t w = 0; w < bits_.size(); ++w) {
    if (w % step == 0) before_[w / step] = count;
    count += std::popcount(bits_[w]);
  }
}

Index IndexSet::number(Index i) const noexcept {
  const auto word = static_cast<std::size_t>(i / 64);
  Index count = before_[word / step];
  for (std::size_t w = word - word % step; w < word; ++w) count += std::popcount(bits_[w]);
  return count + std::popcount(bits_[word] & ((std::uint64_t{1} << (i % 64)) - 1));
}

}}  // namespace sar
