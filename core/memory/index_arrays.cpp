// SPDX-License-Identifier: MIT

// A rank query on a bitmap: number() reads the count of members before the group of 512 bits and counts
// the set bits of at most 8 words. next() reads one word per 64 numbers that it skips.
#include <sar/core/memory/index_arrays.hpp>

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

// Lists of 2,048 ids or more are sorted by their digits. Because the list doubles, the sorts of all
// insertions together pass over O(insertions) ids per digit.
//
// make_numbers() divides the range of the ids into buckets of equal width, at least 8 members each on
// average. number() looks up the bucket and does a binary search without branches in it.

namespace {

constexpr Index members_of_range = 8;  // on average
constexpr Index ids_of_member = 64;    // threshold for an IndexSet, whose bits take 9 bytes per 64 ids

}  // namespace

void DistinctIds::sort() {
  constexpr Index few = 2048;
  if (std::ssize(ids_) < few)
    std::sort(ids_.begin(), ids_.end());
  else if (!std::is_sorted(ids_.begin(), ids_.end()))
    sort_by_digits(ids_, *std::max_element(ids_.begin(), ids_.end()), [](Index id) { return id; });
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
}

void DistinctIds::make_room() {
  sort();
  if (n_ / ids_of_member <= std::ssize(ids_)) {
    bits_.emplace(n_);
    for (const Index id : ids_) bits_->insert(id);
    ids_ = {};
  } else {
    limit_ = std::max(limit_, 2 * std::ssize(ids_));
    ids_.reserve(static_cast<std::size_t>(limit_));
  }
}

void DistinctIds::make_numbers() {
  if (bits_) return bits_->make_numbers();
  sort();
  ids_.shrink_to_fit();
  begin_.clear();
  if (ids_.empty()) return;
  const Index length = ids_.back() - ids_.front(), most = std::ssize(ids_) / members_of_range;
  for (shift_ = 0; (length >> shift_) > most;) ++shift_;
  begin_.reserve(static_cast<std::size_t>(length >> shift_) + 2);
  for (Index i = 0; i < std::ssize(ids_); ++i)
    while (std::ssize(begin_) <= range_of(ids_[i])) begin_.push_back(i);
  begin_.push_back(std::ssize(ids_));
}

Index DistinctIds::position(Index member) const noexcept {
  const Index range = range_of(member);
  Index first = begin_[range];
  for (Index count = begin_[range + 1] - first; count > 1;) {
    const Index half = count / 2;
    first += ids_[first + half] <= member ? half : 0;
    count -= half;
  }
  return first;
}
}}  // namespace sar
