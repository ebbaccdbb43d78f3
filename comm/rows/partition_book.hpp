/// PartitionBook: which worker owns which node, when every worker owns a contiguous range of node ids.
#pragma once

#include <sar/config.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {

class PartitionBook {
 public:
  PartitionBook() = default;
  /// Worker p owns [offsets[p], offsets[p+1]); offsets start at 0 and do not decrease (a worker may own
  /// nothing). Throws InputError otherwise.
  explicit PartitionBook(std::vector<Index> offsets);
  /// num_nodes over `parts` ranges whose sizes differ by one at most.
  static PartitionBook even(Index num_nodes, int parts);
  /// The book of workers that have several consecutive parts each: worker q has the parts from
  /// parts_of.begin(q) to parts_of.end(q).
  [[nodiscard]] PartitionBook joined(const PartitionBook& parts_of) const;

  [[nodiscard]] int num_parts() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
  [[nodiscard]] Index num_nodes() const noexcept { return offsets_.back(); }
  [[nodiscard]] Index begin(int part) const { return offsets_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Index end(int part) const { return offsets_[static_cast<std::size_t>(part) + 1]; }
  [[nodiscard]] Index num_nodes(int part) const { return end(part) - begin(part); }
  /// The worker that owns `node`; 0 <= node < num_nodes().
  [[nodiscard]] int owner(Index node) const;
  bool operator==(const PartitionBook&) const = default;

 private:
  std::vector<Index> offsets_{0};
};

}  // namespace sar
