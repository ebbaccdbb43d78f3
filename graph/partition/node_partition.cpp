#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/partition/node_partition.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr std::uint64_t partition_stream = 0x70617274;  // of random draws, for this purpose alone

}  // namespace

NodePartition NodePartition::contiguous(Index num_nodes, int parts) {
  return NodePartition(PartitionBook::even(num_nodes, parts));
}

NodePartition NodePartition::random(Index num_nodes, int parts, std::uint64_t seed) {
  NodePartition partition(PartitionBook::even(num_nodes, parts));
  partition.bijection_.emplace(num_nodes, RandomKey{seed, partition_stream});
  return partition;
}

NodePartition NodePartition::from_assignment(std::span<const std::int32_t> part_of, int parts) {
  std::vector<Index> offsets(parts + 1, 0);
  for (std::size_t v = 0; v < part_of.size(); ++v) {
    require<InputError>(0 <= part_of[v] && part_of[v] < parts, "node ", v, " is assigned to part ",
                        part_of[v], ", expected 0 to ", parts - 1);
    ++offsets[part_of[v] + 1];
  }
  for (std::size_t p = 1; p < offsets.size(); ++p) offsets[p] += offsets[p - 1];
  NodePartition partition{PartitionBook(offsets)};
  partition.table_.resize(part_of.size());
  for (std::size_t v = 0; v < part_of.size(); ++v) partition.table_[v] = offsets[part_of[v]]++;
  return partition;
}

Index NodePartition::to_partitioned(Index original) const noexcept {
  if (bijection_) return (*bijection_)(original);
  return table_.empty() ? original : table_[original];
}

Array<Index> NodePartition::original_ids(int part) const {
  const Index begin = book_.begin(part);
  Array<Index> ids(book_.num_nodes(part));
  if (!table_.empty()) {
    for (std::size_t v = 0; v < table_.size(); ++v)
      if (begin <= table_[v] && table_[v] < book_.end(part)) ids[table_[v] - begin] = static_cast<Index>(v);
    return ids;
  }
  parallel_for(static_cast<Index>(ids.size()), 1 << 14, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) ids[i] = bijection_ ? bijection_->inverse(begin + i) : begin + i;
  });
  return ids;
}

}  // namespace sar
