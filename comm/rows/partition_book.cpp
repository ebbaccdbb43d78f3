// SPDX-License-Identifier: MIT
#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

PartitionBook::PartitionBook(std::vector<Index> offsets) : offsets_(std::move(offsets)) {
  require<InputError>(!offsets_.empty() && offsets_.front() == 0,
                      "a partition book's offsets must start at 0");
  require<InputError>(std::is_sorted(offsets_.begin(), offsets_.end()),
                      "a partition book's offsets must not decrease");
}

PartitionBook PartitionBook::even(Index num_nodes, int parts) {
  require<InputError>(num_nodes >= 0 && parts >= 1, "cannot divide ", num_nodes, " nodes into ", parts,
                      " parts");
  std::vector<Index> offsets;
  for (int p = 0; p <= parts; ++p)
    offsets.push_back(num_nodes / parts * p + std::min<Index>(num_nodes % parts, p));
  return PartitionBook(std::move(offsets));
}

PartitionBook PartitionBook::joined(const PartitionBook& parts_of) const {
  std::vector<Index> offsets{0};
  for (int q = 0; q < parts_of.num_parts(); ++q) offsets.push_back(offsets_[parts_of.end(q)]);
  return PartitionBook(std::move(offsets));
}

int PartitionBook::owner(Index node) const {
  return static_cast<int>(std::upper_bound(offsets_.begin(), offsets_.end(), node) - offsets_.begin()) - 1;
}

std::vector<std::int32_t> PartitionBook::owners(std::span<const Index> nodes) const {
  std::vector<std::int32_t> owners(nodes.size());
  std::ranges::transform(nodes, owners.begin(), [this](Index node) { return owner(node); });
  return owners;
}

PartitionBook gather_book(const Communicator& comm, Index size) {
  return PartitionBook(offsets_of_sizes(comm.all_gather(size)));
}

}}  // namespace sar
