// SPDX-License-Identifier: MIT

// An assignment is numbered with prefix sums: each rank counts its nodes by part, the owner of a part adds
// the counts of the ranks before, and a node takes the next number of its part. O(N / P + parts) time; two
// exchanges of 8 bytes per part, and 16 bytes per node to the owner of its part. Contiguous and random
// partitions are formulas.

#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/partition/node_partition.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The ranges of ids of the parts, and the first id in each part for a node of this rank, computed from the
/// number of this rank's nodes in each part. The owner of a part sums these numbers over the ranks.
/// Collective.
struct PartIds {
  PartitionBook book;
  std::vector<Index> next;
};
PartIds number_parts(const Communicator& comm, const PartitionBook& parts, std::span<const Index> counts) {
  std::vector<Index> of_ranks;  // number of parts that each rank owns
  for (int q = 0; q < comm.size(); ++q) of_ranks.push_back(parts.num_nodes(q));
  const Index own = of_ranks[comm.rank()];
  const std::vector<Index> answers(of_ranks.size(), own);
  std::vector<Index> before = comm.all_to_all_v(counts, of_ranks, answers);  // [ranks][own parts]
  std::vector<Index> sizes(own, 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    Index& size = sizes[static_cast<Index>(i) % own];
    size += std::exchange(before[i], size);
  }
  PartIds ids{{}, comm.all_to_all_v(std::span<const Index>(before), answers, of_ranks)};
  std::vector<Index> offsets = offsets_of_sizes(comm.all_gather(std::span<const Index>(sizes)));
  for (std::size_t p = 0; p < ids.next.size(); ++p) ids.next[p] += offsets[p];
  ids.book = PartitionBook(std::move(offsets));
  return ids;
}

/// Returns the original ids of the nodes that `owners` assigns to this rank; of_slice has the global ids of
/// its slice. Collective.
Array<Index> send_original_ids(const Communicator& comm, const PartitionBook& owners, Index first,
                               std::span<const Index> of_slice) {
  struct Node {
    Index id, original;
  };
  std::vector<Node> nodes;
  Array<Index> original_ids(owners.num_nodes(comm.rank()));
  route_chunks(
      comm, std::ssize(of_slice), sizeof(Node), [&](Index i) { return owners.owner(of_slice[i]); },
      [&](const RowRoute& route, Index begin, Index end) {
        nodes.clear();
        for (Index i = begin; i < end; ++i) nodes.push_back({of_slice[i], first + i});
        for (const Node& node : route.forward(std::span<const Node>(nodes)))
          original_ids[node.id - owners.begin(comm.rank())] = node.original;
      });
  return original_ids;
}

}  // namespace

NodePartition NodePartition::contiguous(Index num_nodes, int parts) {
  return NodePartition(PartitionBook::even(num_nodes, parts));
}

NodePartition NodePartition::random(Index num_nodes, int parts, std::uint64_t seed) {
  NodePartition partition(PartitionBook::even(num_nodes, parts));
  partition.bijection_.emplace(num_nodes, RandomKey{seed, RandomStream::partition + 0});
  return partition;
}

NodePartition NodePartition::from_assignment(const Communicator& comm, std::span<const std::int32_t> part_of,
                                             int parts) {
  return comm.agree([&] {
    const CallScope compared(
        comm, CollectiveCall("NodePartition::from_assignment").equal("number of parts", parts));
    const PartitionBook slices = PartitionBook::even(comm.all_reduce(std::ssize(part_of)), comm.size());
    const Index first = slices.begin(comm.rank());
    require<InputError>(std::ssize(part_of) == slices.num_nodes(comm.rank()), "there are ", part_of.size(),
                        " parts of nodes, expected one for each of the ", slices.num_nodes(comm.rank()),
                        " nodes of this rank's slice");
    std::vector<Index> counts(parts, 0);
    for (std::size_t i = 0; i < part_of.size(); ++i) {
      require<InputError>(0 <= part_of[i] && part_of[i] < parts, "node ", first + static_cast<Index>(i),
                          " is assigned to part ", part_of[i], ", expected 0 to ", parts - 1);
      ++counts[part_of[i]];
    }
    const PartitionBook of_ranks = PartitionBook::even(parts, comm.size());
    PartIds ids = number_parts(comm, of_ranks, counts);
    Array<Index> of_slice;
    of_slice.reserve(part_of.size());
    for (const std::int32_t part : part_of) of_slice.push_back(ids.next[part]++);
    Array<Index> original_ids = send_original_ids(comm, ids.book.joined(of_ranks), first, of_slice);
    NodePartition partition(std::move(ids.book));
    partition.explicit_.emplace(
        Explicit{comm, slices, of_ranks, std::move(of_slice), std::move(original_ids)});
    return partition;
  });
}

Index NodePartition::to_partitioned(Index original) const {
  if (bijection_) return (*bijection_)(original);
  if (!explicit_) return original;
  const int rank = explicit_->comm.rank();
  const Index first = explicit_->slices.begin(rank), end = explicit_->slices.end(rank);
  require<InputError>(first <= original && original < end, "node ", original,
                      " is not in this rank's slice of the nodes, expected ", first, " to ", end - 1);
  return explicit_->of_slice[original - first];
}

void NodePartition::to_partitioned(std::span<Index> nodes) const {
  if (explicit_) {
    replace_ids(explicit_->comm, explicit_->slices, explicit_->of_slice, nodes);
  } else if (bijection_) {
    parallel_for(std::ssize(nodes), 1 << 14, [&](Index first, Index last) {
      for (Index& node : nodes.subspan(first, last - first)) node = (*bijection_)(node);
    });
  }
}

Array<Index> NodePartition::original_ids(int part) const {
  const Index begin = book_.begin(part);
  if (explicit_) {
    const int first = static_cast<int>(explicit_->parts.begin(explicit_->comm.rank()));
    const int end = static_cast<int>(explicit_->parts.end(explicit_->comm.rank()));
    require<InputError>(first <= part && part < end, "part ", part, " is not of this rank, expected ", first,
                        " to ", end - 1);
    const auto from = explicit_->original_ids.begin() + (begin - book_.begin(first));
    return {from, from + book_.num_nodes(part)};
  }
  Array<Index> ids(book_.num_nodes(part));
  parallel_for_each(static_cast<Index>(ids.size()), 1 << 14,
                    [&](Index i) { ids[i] = bijection_ ? bijection_->inverse(begin + i) : begin + i; });
  return ids;
}

}}  // namespace sar
