// SPDX-License-Identifier: MIT

// Each rank sorts the neighbors of its nodes and merges parallel edges: O(E / P log(degree)). PT-Scotch
// partitions the distributed graph with one thread per rank and its deterministic option. Since it
// balances one weight only, balance_by_ldg() then moves nodes of parts that exceed a limit.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/partition/ldg.hpp>
#include <sar/graph/partition/scotch.hpp>

#if SAR_HAVE_SCOTCH
#include <ptscotch.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>
#endif

namespace sar { inline namespace SAR_PRECISION {

bool has_scotch() noexcept {
  return SAR_HAVE_SCOTCH != 0;
}

#if SAR_HAVE_SCOTCH
namespace {

constexpr double imbalance = 0.03;  // imbalance tolerance passed to Scotch
constexpr Index most = std::numeric_limits<SCOTCH_Num>::max();

/// The slice of the graph that Scotch reads: node i of the slice has the arcs offsets[i] ... offsets[i + 1] -
/// 1, one per distinct neighbor. Each array has spare room, so that Scotch gets no null pointer on a rank
/// without nodes.
struct Slice {
  Array<SCOTCH_Num> offsets{0};
  Array<SCOTCH_Num> neighbors;       // original ids
  Array<SCOTCH_Num> multiplicities;  // number of parallel edges per arc
  Array<SCOTCH_Num> weights;
};

Slice make_slice(const NeighborLists& lists, Index first, Array<SCOTCH_Num> weights) {
  Slice slice;
  slice.weights = std::move(weights);
  std::vector<Index> ids;
  for (Index i = 0; i < lists.num_nodes(); ++i) {
    ids.clear();
    for (const std::uint32_t u : lists.of(i)) ids.push_back(lists.id_of(u, first));
    std::sort(ids.begin(), ids.end());
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (k == 0 || ids[k] != ids[k - 1]) {
        slice.neighbors.push_back(static_cast<SCOTCH_Num>(ids[k]));
        slice.multiplicities.push_back(0);
      }
      ++slice.multiplicities.back();
    }
    slice.offsets.push_back(static_cast<SCOTCH_Num>(slice.neighbors.size()));
  }
  slice.offsets.reserve(2);
  for (Array<SCOTCH_Num>* array : {&slice.neighbors, &slice.multiplicities, &slice.weights})
    array->reserve(1);
  return slice;
}

/// Returns, for each node of the slice, the sum of its shares of all totals to balance, in units that sum to
/// about 2^29 over all nodes.
Array<SCOTCH_Num> node_weights(const Communicator& comm, Index num_nodes, const NeighborLists& lists,
                               const AssignmentOptions& options) {
  std::int64_t totals[2] = {0, 0};  // in-edges, training nodes
  if (options.balance_edges)
    for (const std::uint32_t degree : lists.in_degrees) totals[0] += degree;
  for (const std::uint8_t training : options.train_mask) totals[1] += training != 0;
  comm.all_reduce(std::span<std::int64_t>(totals));
  const auto share = [](double number, std::int64_t total) {
    return total > 0 ? number / static_cast<double>(total) : 0;
  };
  constexpr double units = 1 << 29;
  const std::span<const Index> first_of_type = options.first_of_type;
  const double types = static_cast<double>(first_of_type.size()) - 1;
  const double balanced = types + (totals[0] > 0 ? 1 : 0) + (totals[1] > 0 ? 1 : 0);
  const Index first = PartitionBook::even(num_nodes, comm.size()).begin(comm.rank());
  std::size_t type = 0;
  Array<SCOTCH_Num> weights;
  for (std::size_t i = 0; i < lists.in_degrees.size(); ++i) {
    while (first + static_cast<Index>(i) >= first_of_type[type + 1]) ++type;
    const double sum = share(1, first_of_type[type + 1] - first_of_type[type]) +
                       share(lists.in_degrees[i], totals[0]) +
                       (options.train_mask.empty() ? 0 : share(options.train_mask[i] != 0, totals[1]));
    weights.push_back(std::max<SCOTCH_Num>(1, static_cast<SCOTCH_Num>(sum / balanced * units)));
  }
  return weights;
}

/// Scotch's objects of one partitioning, released in reverse order.
struct Scotch : NonCopyable {
  SCOTCH_Context context;
  SCOTCH_Dgraph graph;
  SCOTCH_Dgraph bound;  // the graph, bound to the context
  SCOTCH_Strat strategy;
  int made = 0;

  ~Scotch() {
    if (made > 3) SCOTCH_stratExit(&strategy);
    if (made > 2) SCOTCH_dgraphExit(&bound);
    if (made > 1) SCOTCH_dgraphExit(&graph);
    if (made > 0) SCOTCH_contextExit(&context);
  }
};

void check(int status, const char* call) {
  require(status == 0, call, " of PT-Scotch returned ", status);
}

Array<std::int32_t> partition(const Communicator& comm, Slice slice, const AssignmentOptions& options) {
  const Communicator own(comm.handle());  // a duplicate communicator for Scotch's messages
  const auto nodes = static_cast<SCOTCH_Num>(slice.weights.size());
  const auto arcs = static_cast<SCOTCH_Num>(slice.neighbors.size());
  Scotch scotch;
  check(SCOTCH_contextInit(&scotch.context), "SCOTCH_contextInit");
  ++scotch.made;
  check(SCOTCH_contextOptionSetNum(&scotch.context, SCOTCH_OPTIONNUMDETERMINISTIC, 1),
        "SCOTCH_contextOptionSetNum");
  check(SCOTCH_contextThreadSpawn(&scotch.context, 1, nullptr), "SCOTCH_contextThreadSpawn");
  check(SCOTCH_contextRandomClone(&scotch.context), "SCOTCH_contextRandomClone");
  SCOTCH_contextRandomSeed(&scotch.context, static_cast<SCOTCH_Num>(options.seed % 0x7fffffff));
  SCOTCH_contextRandomReset(&scotch.context);
  check(SCOTCH_dgraphInit(&scotch.graph, own.handle()), "SCOTCH_dgraphInit");
  ++scotch.made;
  check(SCOTCH_dgraphBuild(&scotch.graph, 0, nodes, nodes, slice.offsets.data(), slice.offsets.data() + 1,
                           slice.weights.data(), nullptr, arcs, arcs, slice.neighbors.data(), nullptr,
                           slice.multiplicities.data()),
        "SCOTCH_dgraphBuild");
  check(SCOTCH_contextBindDgraph(&scotch.context, &scotch.graph, &scotch.bound), "SCOTCH_contextBindDgraph");
  ++scotch.made;
  check(SCOTCH_stratInit(&scotch.strategy), "SCOTCH_stratInit");
  ++scotch.made;
  check(SCOTCH_stratDgraphMapBuild(&scotch.strategy, SCOTCH_STRATDEFAULT, comm.size(), options.parts,
                                   imbalance),
        "SCOTCH_stratDgraphMapBuild");
  Array<SCOTCH_Num> result(std::max<SCOTCH_Num>(nodes, 1));
  check(SCOTCH_dgraphPart(&scotch.bound, options.parts, &scotch.strategy, result.data()),
        "SCOTCH_dgraphPart");
  return {result.begin(), result.begin() + nodes};
}

}  // namespace

Array<std::int32_t> scotch_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                      const AssignmentOptions& options) {
  const char* expected = "; expected ldg, or a PT-Scotch with 64-bit integers";
  require<Error>(SCOTCH_numSizeof() == static_cast<int>(sizeof(SCOTCH_Num)),
                 "the PT-Scotch that was loaded has ", 8 * SCOTCH_numSizeof(),
                 "-bit integers, the library was compiled for ", 8 * sizeof(SCOTCH_Num), "-bit ones");
  require<InputError>(num_nodes <= most / 2, "the graph has ", num_nodes,
                      " nodes, this PT-Scotch can number ", most / 2, expected);
  NeighborLists lists = gather_neighbors(comm, num_nodes, edges);
  const Index arcs = comm.all_reduce(std::ssize(lists.neighbors));
  require<InputError>(arcs <= most, "the graph has ", arcs,
                      " edges in both directions, this PT-Scotch can number ", most, expected);
  if (options.parts == 1) return Array<std::int32_t>(lists.num_nodes(), 0);
  const Index first = PartitionBook::even(num_nodes, comm.size()).begin(comm.rank());
  Array<std::int32_t> part_of =
      partition(comm, make_slice(lists, first, node_weights(comm, num_nodes, lists, options)), options);
  return balance_by_ldg(comm, num_nodes, std::move(lists), options, part_of);
}

#else

Array<std::int32_t> scotch_assignment(const Communicator&, Index, const EdgeList&, const AssignmentOptions&) {
  throw InputError(std::string("partition method is 'scotch', but this copy of the library was built without "
                               "PT-Scotch; expected ") +
                   (has_metis() ? "metis, " : "") + "contiguous, random or ldg");
}

#endif

}}  // namespace sar
