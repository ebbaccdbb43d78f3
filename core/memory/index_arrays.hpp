// SPDX-License-Identifier: MIT

/// Consecutive numbers, sets of numbers, sorts by digits and by keys, and index arrays that are computed at
/// their first use.
#pragma once

#include <sar/core/memory/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Returns begin, begin + 1, ..., begin + count - 1.
template <class T = Index>
Array<T> consecutive(std::type_identity_t<T> begin, Index count) {
  Array<T> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

/// Sorts items by key(item), from 0 to `largest`; equal keys keep their order. A radix sort with digits of 11
/// bits from the lowest one on: two reads and one write of the list per digit, and a second list.
template <class T, class Key>
void sort_by_digits(Array<T>& items, Index largest, const Key& key) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  Array<T> other(items.size());
  for (int shift = 0; shift < 64 && (largest >> shift) != 0; shift += digit_bits) {
    const auto digit = [&](T item) { return static_cast<std::size_t>(key(item) >> shift) & (digits - 1); };
    std::array<T, digits> first{};
    for (const T item : items) ++first[digit(item)];
    T sum = 0;
    for (T& count : first) sum += std::exchange(count, sum);
    for (const T item : items) other[first[digit(item)]++] = item;
    items.swap(other);
  }
}

/// Items by key: those of key k are items[begin[k]], ..., items[begin[k + 1] - 1].
template <class T>
struct Grouped {
  Array<Index> begin;
  Array<T> items;

  [[nodiscard]] std::span<const T> of(Index k) const {
    return std::span(items).subspan(begin[k], begin[k + 1] - begin[k]);
  }
};

/// Returns the items grouped by key(item), from 0 to keys - 1; equal keys keep their order. A counting sort.
template <class Items, class Key>
auto grouped(const Items& items, Index keys, const Key& key) {
  Grouped<std::decay_t<decltype(*items.begin())>> groups;
  groups.begin.assign(keys + 2, 0);
  for (const auto item : items) ++groups.begin[Index{key(item)} + 2];
  std::partial_sum(groups.begin.begin(), groups.begin.end(), groups.begin.begin());
  groups.items.resize(items.size());
  for (const auto item : items) groups.items[groups.begin[Index{key(item)} + 1]++] = item;
  groups.begin.pop_back();  // begin[k + 1] moved from the start of key k to its end
  return groups;
}

// Sets of numbers: IndexSet, a bitmap of [0, n), and DistinctIds, whose memory depends on its members.

/// A set of numbers in [0, n) that numbers its members 0, 1, ... in increasing order. Memory: n / 8 bytes,
/// plus n / 64 after make_numbers().
class IndexSet {
 public:
  explicit IndexSet(Index n) : bits_(static_cast<std::size_t>((n + 63) / 64), 0) {}

  void insert(Index i) noexcept { bits_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void erase(Index i) noexcept { bits_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  [[nodiscard]] bool contains(Index i) const noexcept { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  [[nodiscard]] Index size() const noexcept;
  [[nodiscard]] Array<Index> members() const;  ///< in increasing order
  /// Calls visit(member) for each member in increasing order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (Index w = 0; w < std::ssize(bits_); ++w)
      for (std::uint64_t rest = bits_[w]; rest != 0; rest &= rest - 1) visit(w * 64 + std::countr_zero(rest));
  }

  /// Returns the smallest member >= i, or a number >= n if there is none.
  [[nodiscard]] Index next(Index i) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Numbers the members. Call it after the last insert() or erase() and before number().
  void make_numbers();
  /// Returns the number of members smaller than i.
  [[nodiscard]] Index number(Index i) const noexcept;

 private:
  Array<std::uint64_t> bits_;
  Array<Index> before_;  // number of members before each group of 8 words
};

/// A set of ids in [0, n) that numbers its members 0, 1, ... in increasing order. Memory: at most about 32
/// bytes per member while inserting, at most 9 after make_numbers(), plus 1 MB.
///
/// Inserted ids are appended to a list. When the list is twice as long as the known members (at least 2^16),
/// it is sorted and duplicates are removed. Once there is at least one member per 64 ids, the set becomes an
/// IndexSet.
class DistinctIds {
 public:
  explicit DistinctIds(Index n) : n_(n) {}

  /// Inserts an id in [0, n); duplicates are allowed.
  void insert(Index id) {
    if (!bits_ && std::ssize(ids_) == limit_) make_room();
    if (bits_)
      bits_->insert(id);
    else
      ids_.push_back(id);
  }

  /// Numbers the members. Call it after the last insert() and before the functions below.
  void make_numbers();
  [[nodiscard]] Index size() const noexcept { return bits_ ? bits_->size() : std::ssize(ids_); }
  [[nodiscard]] Array<Index> members() const { return bits_ ? bits_->members() : ids_; }  ///< increasing
  /// Returns the number of members smaller than `member`, which must be a member.
  [[nodiscard]] Index number(Index member) const noexcept {
    return bits_ ? bits_->number(member) : position(member);
  }

 private:
  void sort();
  void make_room();
  [[nodiscard]] Index range_of(Index id) const noexcept { return (id - ids_.front()) >> shift_; }
  [[nodiscard]] Index position(Index member) const noexcept;

  Index n_;
  std::optional<IndexSet> bits_;  // all members if set, otherwise they are in ids_
  Array<Index> ids_;
  Index limit_ = Index{1} << 16;  // length of ids_ at which it is sorted
  int shift_ = 0;
  Array<Index> begin_;  // members of bucket r: ids_[begin_[r]] to ids_[begin_[r + 1]]
};

// LazyArray: an index array that is computed at its first use.

/// An index array that is computed by the first get() or select() and kept. Thread-safe.
class LazyArray {
 public:
  /// `make` must be local (no communication) and return the same values each time.
  explicit LazyArray(std::function<Array<Index>()> make) : make_(std::move(make)) {}

  /// An array whose values are known already.
  explicit LazyArray(Array<Index> known) : kept_(std::move(known)) {}

  /// Returns the values, computing them at the first call.
  [[nodiscard]] const Array<Index>& get() const {
    std::call_once(once_, [this] {
      if (make_) kept_ = make_();
    });
    return kept_;
  }
  /// Returns the elements `places`. The first call computes all and keeps those that are not 0, if they are
  /// few: the memory of sparse values follows their number, not the length of the array.
  [[nodiscard]] Array<Index> select(std::span<const Index> places) const {
    std::call_once(select_once_, [this] {
      Array<Index> all = make();
      const Index others = std::ssize(all) - std::count(all.begin(), all.end(), Index{0});
      is_sparse_ = 2 * others < std::ssize(all);
      if (!is_sparse_) return std::call_once(once_, [&] { kept_ = std::move(all); });
      sparse_.reserve(static_cast<std::size_t>(others));
      for (Index i = 0; i < std::ssize(all); ++i)
        if (all[i] != 0) sparse_.push_back({i, all[i]});
    });
    Array<Index> values(places.size());
    std::ranges::transform(places, values.begin(), [this](Index place) {
      if (!is_sparse_) return kept_[place];
      const auto found = std::ranges::lower_bound(sparse_, place, {}, &Element::place);
      return found != sparse_.end() && found->place == place ? found->value : Index{0};
    });
    return values;
  }
  /// Returns the values without keeping them.
  [[nodiscard]] Array<Index> make() const { return make_ ? make_() : kept_; }
  /// Returns the memory of the values kept.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return kept_.capacity() * sizeof(Index) + sparse_.capacity() * sizeof(Element);
  }

 private:
  struct Element {
    Index place, value;
  };
  std::function<Array<Index>()> make_;
  mutable std::once_flag once_, select_once_;
  mutable Array<Index> kept_;
  mutable Array<Element> sparse_;  // elements that are not 0, by place, if is_sparse_
  mutable bool is_sparse_ = false;
};
}}  // namespace sar
