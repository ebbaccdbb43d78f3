// SPDX-License-Identifier: MIT

// Sources and destinations are marked at their owners: each rank sorts its proposals and sends each
// distinct node once, 16 bytes: O(E log E). The two sides of a bipartite graph are found as connected
// components (sides_of): a round fetches the labels of both ends of the edges that still join two
// components, 16 bytes there and 16 back per edge, and follows roots until nothing changes.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/pairs/pair_candidates.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index none = std::numeric_limits<Index>::max();

/// A value that a rank proposes for a node of any rank.
struct Proposal {
  Index node, value;
  auto operator<=>(const Proposal&) const = default;
};

/// Returns the smallest value that any rank proposes for each node of this rank, or `none`. Collective.
Array<Index> smallest(const Communicator& comm, const PartitionBook& book, std::vector<Proposal> proposals) {
  std::ranges::sort(proposals);  // and so by owner
  const auto others = std::ranges::unique(proposals, {}, &Proposal::node);
  proposals.erase(others.begin(), others.end());
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 0);
  for (const Proposal& each : proposals) ++counts[static_cast<std::size_t>(book.owner(each.node))];
  Array<Index> values(static_cast<std::size_t>(book.num_nodes(comm.rank())), none);
  for (const auto& [node, value] : comm.all_to_all_v(std::span<const Proposal>(proposals), counts).values) {
    Index& mine = values[node - book.begin(comm.rank())];
    mine = std::min(mine, value);
  }
  return values;
}

/// Returns for each node of this rank whether it is in the list of any rank. Collective.
Array<std::uint8_t> mark(const Communicator& comm, const PartitionBook& book, std::span<const Index> nodes) {
  std::vector<Proposal> proposals;
  for (const Index node : nodes) proposals.push_back({node, 0});
  Array<std::uint8_t> marks;
  for (const Index value : smallest(comm, book, std::move(proposals))) marks.push_back(value == 0 ? 1 : 0);
  return marks;
}

/// The candidates of the edges that `goes` selects. Collective.
CandidateNodes candidates_of(const Communicator& comm, const PartitionBook& book, std::span<const Index> src,
                             std::span<const Index> dst, const auto& goes) {
  CandidateNodes nodes;
  std::vector<Index> from, to;
  for (std::size_t e = 0; e < src.size(); ++e) {
    if (src[e] == dst[e] || !goes(e)) continue;
    from.push_back(src[e]);
    to.push_back(dst[e]);
  }
  nodes.num_edges = comm.all_reduce(std::ssize(from));
  nodes.src = mark(comm, book, from);
  nodes.dst = mark(comm, book, to);
  nodes.num_src = comm.all_reduce(std::accumulate(nodes.src.begin(), nodes.src.end(), Index{0}));
  nodes.num_dst = comm.all_reduce(std::accumulate(nodes.dst.begin(), nodes.dst.end(), Index{0}));
  return nodes;
}

bool are_disjoint(const Communicator& comm, const CandidateNodes& nodes) {
  bool both = false;
  for (std::size_t v = 0; v < nodes.src.size(); ++v) both = both || (nodes.src[v] != 0 && nodes.dst[v] != 0);
  return comm.all_reduce(both ? 1 : 0, ReduceOp::max) == 0;
}

/// The labels of nodes while the sides are searched. Each node knows a node of its connected component, its
/// root, and whether it is on the other side than the root: the label is 2 root + 1 then, otherwise 2 root.
class Labels {
 public:
  Labels(const Communicator& comm, const PartitionBook& book) : comm_(comm), book_(book) {
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) mine_.push_back(2 * v);
  }

  [[nodiscard]] const Array<Index>& mine() const { return mine_; }
  /// Collective.
  [[nodiscard]] Array<Index> of(std::span<const Index> nodes) const {
    return fetch_values(comm_, book_, std::span<const Index>(mine_), nodes);
  }
  /// Gives roots the labels that are proposed for them, and then every node the root of its root, until that
  /// changes nothing. Collective.
  void join(std::vector<Proposal> proposals) {
    const Array<Index> found = smallest(comm_, book_, std::move(proposals));
    for (std::size_t v = 0; v < found.size(); ++v)
      if (found[v] != none) mine_[v] = found[v];
    bool changes = true;
    while (changes) {
      Array<Index> roots;
      for (const Index label : mine_) roots.push_back(label / 2);
      const Array<Index> of_roots = of(roots);
      bool mine_change = false;
      for (std::size_t v = 0; v < mine_.size(); ++v) {
        const Index next = of_roots[v] ^ (mine_[v] & 1);
        mine_change = mine_change || next != mine_[v];
        mine_[v] = next;
      }
      changes = comm_.all_reduce(mine_change ? 1 : 0, ReduceOp::max) == 1;
    }
  }

 private:
  const Communicator& comm_;
  const PartitionBook& book_;
  Array<Index> mine_;
};

/// Returns the side of each node of this rank, or nothing for a graph that is not bipartite, which has a
/// cycle of odd length. In each component, side 0 has the node of the smallest original id. Collective.
///
/// As connected components are found (Shiloach and Vishkin, 1982): in a round, each root that an edge joins
/// to smaller roots takes the smallest for its root. The number of rounds is about the logarithm of the
/// number of nodes. An edge between nodes of one side closes an odd cycle.
std::optional<Array<std::uint8_t>> sides_of(const Communicator& comm, const PartitionBook& book,
                                            const Array<Index>& original_ids, std::span<const Index> src,
                                            std::span<const Index> dst) {
  Labels labels(comm, book);
  std::vector<Index> from(src.begin(), src.end()), to(dst.begin(), dst.end());  // between two components
  for (;;) {
    const Array<Index> of_from = labels.of(from), of_to = labels.of(to);
    std::vector<Proposal> proposals;
    std::size_t left = 0;
    bool odd = false;
    for (std::size_t e = 0; e < from.size(); ++e) {
      if (from[e] == to[e]) continue;
      const auto [small, large] = std::minmax(of_from[e], of_to[e]);
      const bool same_side = ((small ^ large) & 1) == 0;  // as their roots, if these are two
      if (small / 2 == large / 2) {
        odd = odd || same_side;
        continue;
      }
      proposals.push_back({large / 2, 2 * (small / 2) + (same_side ? 1 : 0)});
      from[left] = from[e];
      to[left++] = to[e];
    }
    from.resize(left);
    to.resize(left);
    if (comm.all_reduce(odd ? 1 : 0, ReduceOp::max) == 1) return std::nullopt;
    if (comm.all_reduce(std::ssize(from)) == 0) break;
    labels.join(std::move(proposals));
  }
  std::vector<Proposal> proposals;  // for roots: the smallest original id, and its side
  Array<Index> roots;
  for (std::size_t v = 0; v < original_ids.size(); ++v) {
    const Index label = labels.mine()[v];
    roots.push_back(label / 2);
    proposals.push_back({label / 2, 2 * original_ids[v] + (label & 1)});
  }
  const Array<Index> first = smallest(comm, book, std::move(proposals));
  const Array<Index> of_roots = fetch_values(comm, book, std::span<const Index>(first), roots);
  Array<std::uint8_t> sides;
  for (std::size_t v = 0; v < roots.size(); ++v)
    sides.push_back(static_cast<std::uint8_t>((labels.mine()[v] ^ of_roots[v]) & 1));
  return sides;
}

}  // namespace

PairCandidates candidates_of_edges(const Communicator& comm, const PartitionBook& book,
                                   const Array<Index>& original_ids, std::span<const Index> src,
                                   std::span<const Index> dst) {
  return comm.agree([&] {
    require<ShapeError>(src.size() == dst.size(), "candidates_of_edges: ", src.size(), " sources for ",
                        dst.size(), " destinations");
    require<ShapeError>(std::ssize(original_ids) == book.num_nodes(comm.rank()),
                        "candidates_of_edges: ", original_ids.size(), " original ids for ",
                        book.num_nodes(comm.rank()), " nodes");
    for (const std::span<const Index> ends : {src, dst})
      for (const Index node : ends)
        require<InputError>(0 <= node && node < book.num_nodes(), "candidates_of_edges: there is no node ",
                            node, ", expected ", index_range(book.num_nodes()));
    PairCandidates found;
    found.ways.push_back(candidates_of(comm, book, src, dst, [](std::size_t) { return true; }));
    if (found.ways[0].num_edges == 0) return found;
    found.is_bipartite = are_disjoint(comm, found.ways[0]);
    if (found.is_bipartite) return found;
    const auto sides = sides_of(comm, book, original_ids, src, dst);
    if (!sides) return found;
    found.is_bipartite = true;
    const Array<std::uint8_t> from = fetch_values(comm, book, std::span<const std::uint8_t>(*sides), src);
    found.ways = {candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] == 0; }),
                  candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] == 1; })};
    return found;
  });
}

std::string PairCandidates::describe() const {
  std::string text = concat(ways[0].num_src, " sources and ", ways[0].num_dst, " destinations");
  if (ways.size() == 2)
    text +=
        concat(", and ", ways[1].num_src, " sources and ", ways[1].num_dst, " destinations the other way");
  return text + (is_bipartite ? ", a bipartite graph" : "");
}

}}  // namespace sar
