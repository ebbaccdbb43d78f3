#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/partition/neighbor_lists.hpp>

#include <algorithm>
#include <bit>
#include <vector>

namespace sar {
namespace {

constexpr Index block_size = Index{1} << 18;  // edges of one exchange

/// A node of the receiver's slice and the node at the other end of an edge.
struct Half {
  std::uint32_t node;
  std::uint32_t other;
};

/// PartitionBook::even without a search.
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
  std::uint32_t size_;  // of the shorter slices
  std::uint32_t longer_;
  std::uint32_t end_of_longer_;
};

/// Brings edges to the owners of one of their ends, block by block.
class HalfEdges {
 public:
  HalfEdges(const Communicator& comm, Index num_nodes, const EdgeList& edges)
      : comm_(comm),
        edges_(edges),
        slices_(num_nodes, comm.size()),
        blocks_(comm.all_reduce((edges.size() + block_size - 1) / block_size, ReduceOp::max)) {}

  /// take(half, is_in_edge) for each edge and each of its ends that is a node of this rank.
  template <class Take>
  void for_each(const Take& take) {
    for (Index b = 0; b < blocks_; ++b) {
      const Index begin = std::min(edges_.size(), b * block_size);
      const Index end = std::min(edges_.size(), begin + block_size);
      for (const Half& half : exchange(edges_.dst, edges_.src, begin, end)) take(half, true);
      for (const Half& half : exchange(edges_.src, edges_.dst, begin, end)) take(half, false);
    }
  }

 private:
  std::vector<Half> exchange(const Array<Index>& nodes, const Array<Index>& others, Index begin, Index end) {
    const auto ranks = static_cast<std::size_t>(comm_.size());
    std::vector<Index> counts(ranks, 0);
    owners_.resize(end - begin);
    for (Index e = begin; e < end; ++e) {
      const std::uint32_t owner = slices_.owner(static_cast<std::uint32_t>(nodes[e]));
      owners_[e - begin] = owner;
      ++counts[owner];
    }
    std::vector<Index> next(ranks, 0);
    for (std::size_t p = 1; p < ranks; ++p) next[p] = next[p - 1] + counts[p - 1];
    packed_.resize(owners_.size());
    for (Index e = begin; e < end; ++e) {
      const std::uint32_t owner = owners_[e - begin];
      packed_[next[owner]++] = {static_cast<std::uint32_t>(nodes[e]) - slices_.begin(owner),
                                static_cast<std::uint32_t>(others[e])};
    }
    return comm_.all_to_all_v(std::span<const Half>(packed_), counts).values;
  }

  const Communicator& comm_;
  const EdgeList& edges_;
  EvenSlices slices_;
  Index blocks_;
  Array<std::uint32_t> owners_;
  Array<Half> packed_;
};

/// A set of nodes that tells how many of its elements come before one.
class NodeSet {
 public:
  explicit NodeSet(Index num_nodes) : words_(static_cast<std::size_t>((num_nodes + 63) / 64), 0) {}

  void insert(std::uint32_t node) { words_[node / 64] |= std::uint64_t{1} << node % 64; }
  void count() {
    before_.resize(words_.size());
    std::uint32_t sum = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      before_[w] = sum;
      sum += static_cast<std::uint32_t>(std::popcount(words_[w]));
    }
  }
  [[nodiscard]] std::uint32_t before(std::uint32_t node) const {
    const std::uint64_t below = (std::uint64_t{1} << node % 64) - 1;
    return before_[node / 64] + static_cast<std::uint32_t>(std::popcount(words_[node / 64] & below));
  }
  /// visit(node), in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1)
        visit(static_cast<Index>(w * 64) + std::countr_zero(bits));
  }

 private:
  Array<std::uint64_t> words_;
  Array<std::uint32_t> before_;
};

/// Tells the owners of the remote nodes who needs them.
void find_copies(const Communicator& comm, const PartitionBook& slices, const NodeSet& remote,
                 NeighborLists& lists) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<Index> counts(ranks, 0);
  Array<std::uint32_t> wanted;
  remote.for_each([&, owner = 0](Index node) mutable {
    while (node >= slices.end(owner)) ++owner;
    ++counts[owner];
    wanted.push_back(static_cast<std::uint32_t>(node - slices.begin(owner)));
  });
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
  const auto is_mine = [&](std::uint32_t node) { return node - first < count; };  // below first: wraps around
  HalfEdges halves(comm, num_nodes, edges);

  NeighborLists lists;
  lists.in_degrees.assign(count, 0);
  lists.offsets.assign(count + 1, 0);
  NodeSet remote(num_nodes);
  halves.for_each([&](const Half& half, bool is_in_edge) {
    lists.in_degrees[half.node] += is_in_edge;
    if (half.other == first + half.node) return;
    ++lists.offsets[half.node + 1];
    if (!is_mine(half.other)) remote.insert(half.other);
  });
  for (std::size_t i = 1; i <= count; ++i) lists.offsets[i] += lists.offsets[i - 1];
  remote.count();
  find_copies(comm, slices, remote, lists);

  lists.neighbors.resize(lists.offsets.back());
  Array<Index> next(lists.offsets.begin(), lists.offsets.end() - 1);
  halves.for_each([&](const Half& half, bool) {
    if (half.other == first + half.node) return;
    lists.neighbors[next[half.node]++] = is_mine(half.other)
                                             ? half.other - first
                                             : static_cast<std::uint32_t>(count) + remote.before(half.other);
  });
  return lists;
}

}  // namespace sar
