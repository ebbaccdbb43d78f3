#include <sar/core/error.hpp>
#include <sar/graph/metis.hpp>
#include <sar/graph/partition.hpp>

#if SAR_HAVE_METIS
#include <metis.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>
#endif

namespace sar {

#if SAR_HAVE_METIS
namespace {

struct NodePair {
  idx_t u;
  idx_t v;
};

/// METIS's input: the neighbours of node v are neighbors[offsets[v]] ... neighbors[offsets[v+1] - 1].
struct Adjacency {
  Array<idx_t> offsets;
  Array<idx_t> neighbors;
};

/// Both directions of all pairs, without repetitions.
Adjacency build_adjacency(Index num_nodes, std::vector<NodePair> pairs) {
  Array<Index> ends(static_cast<std::size_t>(num_nodes) + 1, 0);
  for (const NodePair& pair : pairs) {
    ++ends[static_cast<std::size_t>(pair.u) + 1];
    ++ends[static_cast<std::size_t>(pair.v) + 1];
  }
  for (std::size_t v = 1; v < ends.size(); ++v) ends[v] += ends[v - 1];
  Adjacency graph;
  graph.neighbors.resize(static_cast<std::size_t>(ends.back()));
  for (const NodePair& pair : pairs) {  // ends[v] moves from the begin of v's range to its end
    graph.neighbors[static_cast<std::size_t>(ends[static_cast<std::size_t>(pair.u)]++)] = pair.v;
    graph.neighbors[static_cast<std::size_t>(ends[static_cast<std::size_t>(pair.v)]++)] = pair.u;
  }
  pairs = {};

  graph.offsets.push_back(0);
  auto out = graph.neighbors.begin();
  auto range_begin = graph.neighbors.begin();
  for (Index v = 0; v < num_nodes; ++v) {
    const auto range_end = graph.neighbors.begin() + ends[static_cast<std::size_t>(v)];
    std::sort(range_begin, range_end);
    out = std::unique_copy(range_begin, range_end, out);  // never ahead of the range it reads
    range_begin = range_end;
    const Index kept = out - graph.neighbors.begin();
    require<InputError>(kept <= std::numeric_limits<idx_t>::max(), "the graph has more than ",
                        std::numeric_limits<idx_t>::max(),
                        " edges in both directions, too many for this METIS");
    graph.offsets.push_back(static_cast<idx_t>(kept));
  }
  graph.neighbors.resize(static_cast<std::size_t>(out - graph.neighbors.begin()));
  return graph;
}

void partition(Adjacency graph, int parts, std::uint64_t seed, std::span<std::int32_t> part_of) {
  auto num_nodes = static_cast<idx_t>(part_of.size());
  idx_t num_constraints = 1;
  idx_t num_parts = parts;
  idx_t cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed % 0x7fffffff);
  Array<idx_t> result(part_of.size());
  const int status =
      METIS_PartGraphKway(&num_nodes, &num_constraints, graph.offsets.data(), graph.neighbors.data(), nullptr,
                          nullptr, nullptr, &num_parts, nullptr, nullptr, options, &cut, result.data());
  require<MemoryError>(status != METIS_ERROR_MEMORY, "METIS has no memory for ", num_nodes, " nodes and ",
                       graph.neighbors.size(), " edges");
  require(status == METIS_OK, "METIS_PartGraphKway returned ", status, " for ", num_nodes, " nodes, ",
          graph.neighbors.size(), " edges and ", parts, " parts");
  std::copy(result.begin(), result.end(), part_of.begin());
}

}  // namespace

bool has_metis() noexcept {
  return true;
}

Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     std::uint64_t seed) {
  const int parts = comm.size();
  require<InputError>(num_nodes <= std::numeric_limits<idx_t>::max(), "the graph has ", num_nodes,
                      " nodes, this METIS can number ", std::numeric_limits<idx_t>::max());
  Array<std::int32_t> part_of(static_cast<std::size_t>(num_nodes), 0);
  // METIS wants at least two parts, and at least one node in each
  if (parts == 1) return part_of;
  if (num_nodes <= parts) {
    for (Index v = 0; v < num_nodes; ++v) part_of[static_cast<std::size_t>(v)] = static_cast<std::int32_t>(v);
    return part_of;
  }

  std::vector<NodePair> pairs;
  for (std::size_t e = 0; e < edges.src.size(); ++e)
    if (edges.src[e] != edges.dst[e])
      pairs.push_back({static_cast<idx_t>(edges.src[e]), static_cast<idx_t>(edges.dst[e])});
  std::vector<Index> counts(static_cast<std::size_t>(parts), 0);
  counts[0] = static_cast<Index>(pairs.size());
  auto gathered = comm.all_to_all_v(std::span<const NodePair>(pairs), counts).values;
  pairs = {};
  comm.agree([&] {
    if (comm.rank() != 0) return;
    Adjacency graph = build_adjacency(num_nodes, std::move(gathered));
    if (!graph.neighbors.empty()) return partition(std::move(graph), parts, seed, part_of);
    const PartitionBook even = PartitionBook::even(num_nodes, parts);  // no edge to cut
    for (Index v = 0; v < num_nodes; ++v) part_of[static_cast<std::size_t>(v)] = even.owner(v);
  });
  comm.broadcast(std::span<std::int32_t>(part_of), 0);
  return part_of;
}

#else

bool has_metis() noexcept {
  return false;
}

Array<std::int32_t> metis_assignment(const Communicator&, Index, const EdgeList&, std::uint64_t) {
  throw InputError(
      "partition method is 'metis', but this copy of the library was built without METIS; expected "
      "contiguous or random");
}

#endif

}  // namespace sar
