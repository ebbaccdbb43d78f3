#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/pair_candidates.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// For each node of this rank, whether it is in the list of any rank. Collective.
Array<std::uint8_t> mark(const Communicator& comm, const PartitionBook& book, std::vector<Index> nodes) {
  std::ranges::sort(nodes);  // and so by owner
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 0);
  for (const Index node : nodes) ++counts[static_cast<std::size_t>(book.owner(node))];
  Array<std::uint8_t> marks(static_cast<std::size_t>(book.num_nodes(comm.rank())), std::uint8_t{0});
  for (const Index node : comm.all_to_all_v(std::span<const Index>(nodes), counts).values)
    marks[node - book.begin(comm.rank())] = 1;
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
  nodes.src = mark(comm, book, std::move(from));
  nodes.dst = mark(comm, book, std::move(to));
  nodes.num_src = comm.all_reduce(std::accumulate(nodes.src.begin(), nodes.src.end(), Index{0}));
  nodes.num_dst = comm.all_reduce(std::accumulate(nodes.dst.begin(), nodes.dst.end(), Index{0}));
  return nodes;
}

bool are_disjoint(const Communicator& comm, const CandidateNodes& nodes) {
  bool both = false;
  for (std::size_t v = 0; v < nodes.src.size(); ++v) both = both || (nodes.src[v] != 0 && nodes.dst[v] != 0);
  return comm.all_reduce(both ? 1 : 0, ReduceOp::max) == 0;
}

}  // namespace

PairCandidates candidates_of_edges(const Communicator& comm, const PartitionBook& book,
                                   const Array<Index>& original_ids, std::span<const Index> src,
                                   std::span<const Index> dst) {
  return comm.agree([&] {
    require<ShapeError>(src.size() == dst.size(), "candidates_of_edges: ", src.size(), " sources for ",
                        dst.size(), " destinations");
    for (const std::span<const Index> ends : {src, dst})
      for (const Index node : ends)
        require<InputError>(0 <= node && node < book.num_nodes(), "candidates_of_edges: there is no node ",
                            node, ", expected ", index_range(book.num_nodes()));
    PairCandidates found;
    found.ways.push_back(candidates_of(comm, book, src, dst, [](std::size_t) { return true; }));
    if (found.ways[0].num_edges == 0) return found;
    found.is_bipartite = are_disjoint(comm, found.ways[0]);
    if (found.is_bipartite) return found;
    const auto original = [&](std::span<const Index> of) {
      return fetch_values(comm, book, std::span<const Index>(original_ids), of);
    };
    const Array<Index> from = original(src), to = original(dst);
    Index largest_of_small = -1, smallest_of_large = std::numeric_limits<Index>::max();
    for (std::size_t e = 0; e < src.size(); ++e) {
      if (src[e] == dst[e]) continue;
      largest_of_small = std::max(largest_of_small, std::min(from[e], to[e]));
      smallest_of_large = std::min(smallest_of_large, std::max(from[e], to[e]));
    }
    largest_of_small = comm.all_reduce(largest_of_small, ReduceOp::max);
    smallest_of_large = comm.all_reduce(smallest_of_large, ReduceOp::min);
    if (largest_of_small >= smallest_of_large) return found;
    found.is_bipartite = true;
    found.ways = {candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] < to[e]; }),
                  candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] > to[e]; })};
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
