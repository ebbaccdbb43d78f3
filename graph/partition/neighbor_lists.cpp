// SPDX-License-Identifier: MIT

/// Builds the lists in two passes over the edges. Both send each edge to the owners of its two ends. The
/// first pass counts neighbors and collects the ids of remote nodes; the second one writes the neighbors at
/// the offsets that follow from the counts. Received edges are never stored.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/partition/neighbor_lists.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index chunk_size = Index{1} << 18;  // edges per exchange

/// A node of the receiver's slice and the other end of one of its edges.
struct Half {
  std::uint32_t node;
  std::uint32_t other;
};

/// The owner in PartitionBook::even, computed without a search.
class EvenSlices {
 public:
  EvenSlices(Index num_nodes, int ranks)
      : size_(static_cast<std::uint32_t>(num_nodes / ranks)),
        longer_(static_cast<std::uint32_t>(num_nodes % ranks)),
        end_of_longer_(longer_ * (size_ + 1)) {}

  [[nodiscard]] std::uint32_t owner(std::uint32_t node) const noexcept {
    return node < end_of_longer_ ? node / (size_ + 1) : longer_ + (node - end_of_longer_) / size_;
  }
  [[nodiscard]] std::uint32_t begin(std::uint32_t rank) const noexcept {
    return rank * size_ + std::min(rank, longer_);
  }

 private:
  std::uint32_t size_;  // size of the shorter slices
  std::uint32_t longer_;
  std::uint32_t end_of_longer_;
};

/// Sends edges to the owner of one of their ends, in chunks.
class HalfEdges {
 public:
  HalfEdges(const Communicator& comm, Index num_nodes, const EdgeList& edges)
      : comm_(comm),
        edges_(edges),
        slices_(num_nodes, comm.size()),
        chunks_(comm.all_reduce((edges.size() + chunk_size - 1) / chunk_size, ReduceOp::max)) {}

  /// Calls take(half, is_in_edge) for each edge and each of its ends that belongs to this rank.
  template <class Take>
  void for_each(const Take& take) {
    for (Index c = 0; c < chunks_; ++c) {
      const Index begin = std::min(edges_.size(), c * chunk_size);
      const Index end = std::min(edges_.size(), begin + chunk_size);
      for (const Half& half : exchange(edges_.dst, edges_.src, begin, end)) take(half, true);
      for (const Half& half : exchange(edges_.src, edges_.dst, begin, end)) take(half, false);
    }
  }

 private:
  Array<Half> exchange(const Array<Index>& nodes, const Array<Index>& others, Index begin, Index end) {
    owners_.resize(end - begin);
    halves_.resize(end - begin);
    for (Index e = begin; e < end; ++e) {
      const auto node = static_cast<std::uint32_t>(nodes[e]);
      const std::uint32_t owner = slices_.owner(node);
      owners_[e - begin] = static_cast<std::int32_t>(owner);
      halves_[e - begin] = {node - slices_.begin(owner), static_cast<std::uint32_t>(others[e])};
    }
    return RowRoute(comm_, owners_).forward(std::span<const Half>(halves_));
  }

  const Communicator& comm_;
  const EdgeList& edges_;
  EvenSlices slices_;
  Index chunks_;
  std::vector<std::int32_t> owners_;
  std::vector<Half> halves_;
};

/// Tells the owners of remote nodes which ranks read them. Collective.
void find_copies(const Communicator& comm, const PartitionBook& slices, const Array<Index>& remote,
                 NeighborLists& lists) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<Index> counts(ranks, 0);
  Array<std::uint32_t> wanted;
  wanted.reserve(remote.size());
  lists.remote_ids.reserve(remote.size());
  for (const Index node : remote) {
    const int owner = slices.owner(node);
    ++counts[owner];
    lists.remote_ids.push_back(static_cast<std::uint32_t>(node));
    wanted.push_back(static_cast<std::uint32_t>(node - slices.begin(owner)));
  }
  const Index num_nodes = lists.num_nodes();
  lists.num_values = num_nodes + static_cast<Index>(wanted.size());
  lists.first_of_sender.assign(ranks, num_nodes);
  for (std::size_t p = 1; p < ranks; ++p)
    lists.first_of_sender[p] = lists.first_of_sender[p - 1] + counts[p - 1];

  const auto asked = comm.all_to_all_v(std::span<const std::uint32_t>(wanted), counts);
  wanted = {};
  Array<Index>& ends = lists.copy_offsets;
  ends.assign(num_nodes + 1, 0);
  for (const std::uint32_t node : asked.values) ++ends[node + 1];
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  lists.copies.resize(asked.values.size());
  Array<Index> next(ends);
  std::size_t at = 0;
  for (std::size_t p = 0; p < ranks; ++p)
    for (Index k = 0; k < asked.counts[p]; ++k)
      lists.copies[next[asked.values[at++]]++] = {static_cast<std::int32_t>(p),
                                                  static_cast<std::uint32_t>(k)};
}

}  // namespace

NeighborLists gather_neighbors(const Communicator& comm, Index num_nodes, const EdgeList& edges) {
  require<InputError>(num_nodes < Index{1} << 32, "the graph has ", num_nodes,
                      " nodes, expected fewer than 2^32");
  const PartitionBook slices = PartitionBook::even(num_nodes, comm.size());
  const auto first = static_cast<std::uint32_t>(slices.begin(comm.rank()));
  const auto count = static_cast<std::size_t>(slices.num_nodes(comm.rank()));
  const auto is_mine = [&](std::uint32_t node) { return node - first < count; };  // node < first wraps around
  HalfEdges halves(comm, num_nodes, edges);

  NeighborLists lists;
  lists.in_degrees.assign(count, 0);
  lists.offsets.assign(count + 1, 0);
  DistinctIds remote(num_nodes);
  halves.for_each([&](const Half& half, bool is_in_edge) {
    lists.in_degrees[half.node] += is_in_edge;
    if (half.other == first + half.node) return;
    ++lists.offsets[half.node + 1];
    if (!is_mine(half.other)) remote.insert(half.other);
  });
  for (std::size_t i = 1; i <= count; ++i) lists.offsets[i] += lists.offsets[i - 1];
  remote.make_numbers();
  find_copies(comm, slices, remote.members(), lists);

  lists.neighbors.resize(lists.offsets.back());
  Array<Index> next(lists.offsets.begin(), lists.offsets.end() - 1);
  halves.for_each([&](const Half& half, bool) {
    if (half.other == first + half.node) return;
    lists.neighbors[next[half.node]++] =
        is_mine(half.other)
            ? half.other - first
            : static_cast<std::uint32_t>(count) + static_cast<std::uint32_t>(remote.number(half.other));
  });
  return lists;
}

}}  // namespace sar
