// SPDX-License-Identifier: MIT

// Rank 0 gathers the pairs of all edges, writes both directions of each edge into lists (counting sort)
// and removes duplicates from each sorted list: O(E log(degree)) time. METIS runs on rank 0 on one thread;
// then each rank receives the parts of its slice, 4 bytes per node.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/partition/metis.hpp>

#if SAR_HAVE_METIS
#include <metis.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#endif

namespace sar { inline namespace SAR_PRECISION {

#if SAR_HAVE_METIS
namespace {

struct NodePair {
  idx_t u;
  idx_t v;
};

/// The adjacency that METIS reads: the neighbors of node v start at neighbors[offsets[v]] and end before
/// neighbors[offsets[v + 1]].
struct Adjacency {
  Array<idx_t> offsets;
  Array<idx_t> neighbors;
};

/// Returns both directions of all pairs, without self loops and duplicates.
Adjacency build_adjacency(Index num_nodes, std::vector<NodePair> pairs) {
  Array<Index> ends(num_nodes + 1, 0);
  for (const NodePair& pair : pairs) {
    if (pair.u == pair.v) continue;
    ++ends[pair.u + 1];
    ++ends[pair.v + 1];
  }
  for (std::size_t v = 1; v < ends.size(); ++v) ends[v] += ends[v - 1];
  Adjacency graph;
  graph.neighbors.resize(ends.back());
  for (const NodePair& pair : pairs) {  // ends[v] moves from the start of v's range to its end
    if (pair.u == pair.v) continue;
    graph.neighbors[ends[pair.u]++] = pair.v;
    graph.neighbors[ends[pair.v]++] = pair.u;
  }
  pairs = {};

  graph.offsets.push_back(0);
  auto out = graph.neighbors.begin();
  auto range_begin = graph.neighbors.begin();
  for (Index v = 0; v < num_nodes; ++v) {
    const auto range_end = graph.neighbors.begin() + ends[v];
    std::sort(range_begin, range_end);
    out = std::unique_copy(range_begin, range_end, out);  // never overtakes its input range
    range_begin = range_end;
    const Index kept = out - graph.neighbors.begin();
    require<InputError>(kept <= std::numeric_limits<idx_t>::max(), "the graph has more than ",
                        std::numeric_limits<idx_t>::max(),
                        " edges in both directions, too many for this METIS; expected scotch or ldg");
    graph.offsets.push_back(static_cast<idx_t>(kept));
  }
  graph.neighbors.resize(out - graph.neighbors.begin());
  return graph;
}

/// METIS's node weights, adjacent per node: a 1 at the index of the node's type, in-edges and training nodes,
/// as far as the options balance them.
struct NodeWeights {
  idx_t constraints = 1;
  Array<idx_t> values;
};

NodeWeights node_weights(Index num_nodes, std::span<const NodePair> pairs, const AssignmentOptions& options,
                         std::span<const std::uint8_t> train_mask) {
  NodeWeights weights;
  const std::span<const Index> first = options.first_of_type;
  const std::size_t edges_at = first.size() - 1;
  const std::size_t train_at = edges_at + (options.balance_edges ? 1 : 0);
  const std::size_t stride = train_at + (train_mask.empty() ? 0 : 1);
  weights.constraints = static_cast<idx_t>(stride);
  weights.values.assign(static_cast<std::size_t>(num_nodes) * stride, 0);
  std::size_t type = 0;
  for (std::size_t v = 0; v < static_cast<std::size_t>(num_nodes); ++v) {
    while (static_cast<Index>(v) >= first[type + 1]) ++type;
    weights.values[v * stride + type] = 1;
  }
  if (options.balance_edges) {
    require<InputError>(pairs.size() <= static_cast<std::size_t>(std::numeric_limits<idx_t>::max()),
                        "the graph has ", pairs.size(), " edges, this METIS can balance ",
                        std::numeric_limits<idx_t>::max(), "; expected scotch or ldg");
    for (const NodePair& pair : pairs) ++weights.values[static_cast<std::size_t>(pair.v) * stride + edges_at];
  }
  for (std::size_t v = 0; v < train_mask.size(); ++v)
    weights.values[v * stride + train_at] = train_mask[v] != 0;
  return weights;
}

Array<std::int32_t> partition(Adjacency graph, NodeWeights weights, const AssignmentOptions& options) {
  auto num_nodes = static_cast<idx_t>(graph.offsets.size()) - 1;
  idx_t num_parts = options.parts;
  idx_t cut = 0;
  idx_t metis_options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(metis_options);
  metis_options[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed % 0x7fffffff);
  Array<idx_t> result(num_nodes);
  const int status = METIS_PartGraphKway(&num_nodes, &weights.constraints, graph.offsets.data(),
                                         graph.neighbors.data(), weights.values.data(), nullptr, nullptr,
                                         &num_parts, nullptr, nullptr, metis_options, &cut, result.data());
  require<MemoryError>(status != METIS_ERROR_MEMORY, "METIS has no memory for ", num_nodes, " nodes and ",
                       graph.neighbors.size(), " edges");
  require(status == METIS_OK, "METIS_PartGraphKway returned ", status, " for ", num_nodes, " nodes, ",
          graph.neighbors.size(), " edges and ", num_parts, " parts");
  return {result.begin(), result.end()};
}

/// Returns the values of all ranks, in the order of ranks, on rank 0.
template <class T>
std::vector<T> gather_on_first(const Communicator& comm, std::span<const T> values) {
  std::vector<Index> counts(comm.size(), 0);
  counts[0] = static_cast<Index>(values.size());
  return comm.all_to_all_v(values, counts).values;
}

}  // namespace

Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     const AssignmentOptions& options) {
  require<InputError>(num_nodes <= std::numeric_limits<idx_t>::max(), "the graph has ", num_nodes,
                      " nodes, this METIS can number ", std::numeric_limits<idx_t>::max(),
                      "; expected scotch or ldg");
  std::vector<NodePair> pairs(edges.src.size());
  for (std::size_t e = 0; e < pairs.size(); ++e)
    pairs[e] = {static_cast<idx_t>(edges.src[e]), static_cast<idx_t>(edges.dst[e])};
  auto gathered = gather_on_first(comm, std::span<const NodePair>(pairs));
  pairs = {};
  const auto train_mask = gather_on_first(comm, options.train_mask);

  const PartitionBook slices = PartitionBook::even(num_nodes, comm.size());
  std::vector<Index> counts(comm.size(), 0);
  Array<std::int32_t> part_of;  // on rank 0
  comm.agree([&] {
    if (comm.rank() != 0) return;
    for (int p = 0; p < comm.size(); ++p) counts[p] = slices.num_nodes(p);
    // METIS requires at least two parts, a node and an edge
    if (options.parts > 1 && num_nodes > 0) {
      NodeWeights weights = node_weights(num_nodes, gathered, options, train_mask);
      Adjacency graph = build_adjacency(num_nodes, std::move(gathered));
      if (!graph.neighbors.empty()) part_of = partition(std::move(graph), std::move(weights), options);
    }
    if (!part_of.empty()) return;
    const PartitionBook even = PartitionBook::even(num_nodes, options.parts);
    for (Index v = 0; v < num_nodes; ++v) part_of.push_back(even.owner(v));
  });
  const auto mine = comm.all_to_all_v(std::span<const std::int32_t>(part_of), counts).values;
  return {mine.begin(), mine.end()};
}

#else

Array<std::int32_t> metis_assignment(const Communicator&, Index, const EdgeList&, const AssignmentOptions&) {
  throw InputError(
      std::string(
          "partition method is 'metis', but this copy of the library was built without METIS; expected ") +
      (has_scotch() ? "scotch, " : "") + "contiguous, random or ldg");
}

#endif

}}  // namespace sar
