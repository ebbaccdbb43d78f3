/// DistinctIds: a set of ids whose memory follows how many it has, and not how large they are.
#pragma once

#include <sar/core/index_set.hpp>
#include <sar/core/memory.hpp>

#include <iterator>
#include <optional>

namespace sar::inline SAR_PRECISION {

/// A set of ids below n, which numbers its members 0, 1, ... in increasing order. Memory: at most about 32
/// bytes for each member, at most 9 after make_numbers(), and 1 MB.
///
/// Ids are collected until they are twice as many as the known members (at least 2^16), then sorted, and
/// those that occur again are dropped. Once there is a member for each 64 ids below n, the set is an
/// IndexSet.
class DistinctIds {
 public:
  explicit DistinctIds(Index n) : n_(n) {}

  void insert(Index id) {
    if (!bits_ && std::ssize(ids_) == limit_) make_room();
    if (bits_)
      bits_->insert(id);
    else
      ids_.push_back(id);
  }

  /// Numbers the members: necessary before the other functions, and again after insert().
  void make_numbers();
  [[nodiscard]] Index size() const noexcept { return bits_ ? bits_->size() : std::ssize(ids_); }
  [[nodiscard]] Array<Index> members() const { return bits_ ? bits_->members() : ids_; }  ///< increasing
  /// How many members are smaller than this one.
  [[nodiscard]] Index number(Index member) const noexcept {
    return bits_ ? bits_->number(member) : position(member);
  }

 private:
  void sort();
  void make_room();
  [[nodiscard]] Index range_of(Index id) const noexcept { return (id - ids_.front()) >> shift_; }
  [[nodiscard]] Index position(Index member) const noexcept;

  Index n_;
  std::optional<IndexSet> bits_;  // all members, or
  Array<Index> ids_;
  Index limit_ = Index{1} << 16;  // of ids_, where they are sorted
  int shift_ = 0;
  Array<Index> begin_;  // the members of range r are at begin_[r] ... begin_[r + 1]
};

}  // namespace sar
