// SPDX-License-Identifier: MIT

// Edges get original ids: 8 bytes for each distinct end on another rank. METIS gathers them itself and sorts
// them; for ldg, rank 0 gathers and sorts the pairs, so that the stream is the same for every number of
// ranks.
#include <sar/comm/communicator_alone.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/partition/clusters.hpp>
#include <sar/graph/partition/partition.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Streams the whole graph on rank 0. Returns the clusters of this rank's slice. Collective.
Array<std::int32_t> stream_on_first(const Communicator& comm, Index num_nodes, EdgeList edges,
                                    const AssignmentOptions& options) {
  struct Pair {
    Index dst, src;
    auto operator<=>(const Pair&) const = default;
  };
  const Communicator self = communicator_alone(comm);
  std::vector<Pair> pairs;
  for (std::size_t e = 0; e < edges.src.size(); ++e) pairs.push_back({edges.dst[e], edges.src[e]});
  edges = {};
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 0);
  counts[0] = std::ssize(pairs);
  std::vector<Pair> all = comm.all_to_all_v(std::span<const Pair>(pairs), counts).values;
  pairs = {};
  const PartitionBook slices = PartitionBook::even(num_nodes, comm.size());
  Array<std::int32_t> part_of;
  comm.agree([&] {
    counts.assign(counts.size(), 0);
    if (comm.rank() != 0) return;
    std::sort(all.begin(), all.end());
    EdgeList sorted;
    for (const Pair& pair : all) {
      sorted.src.push_back(pair.src);
      sorted.dst.push_back(pair.dst);
    }
    all = {};
    part_of = assign_nodes(self, num_nodes, sorted, PartitionMethod::ldg, options);
    for (int p = 0; p < comm.size(); ++p) counts[static_cast<std::size_t>(p)] = slices.num_nodes(p);
  });
  const auto mine = comm.all_to_all_v(std::span<const std::int32_t>(part_of), counts).values;
  return {mine.begin(), mine.end()};
}

}  // namespace

Array<std::int32_t> cluster_nodes(const Communicator& comm, const PartitionBook& book,
                                  std::span<const Index> original_ids, const EdgeList& edges,
                                  const ClusterOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("cluster_nodes")
                                       .equal("number of clusters", options.clusters)
                                       .equal("method", to_string(options.method))
                                       .equal("seed", options.seed));
    const Index num_nodes = book.num_nodes();
    PartitionMethod method = options.method;
    if (method == PartitionMethod::automatic)
      method = has_metis() ? PartitionMethod::metis : PartitionMethod::ldg;
    comm.agree([&] {
      constexpr Index most = std::numeric_limits<std::int32_t>::max();
      require<InputError>(1 <= options.clusters && options.clusters <= std::min(num_nodes, most),
                          "there are ", options.clusters, " clusters, expected 1 to the number of nodes, ",
                          num_nodes);
      require<InputError>(method != PartitionMethod::scotch,
                          "the method is scotch, whose clusters depend on the number of ranks, expected "
                          "metis, ldg, contiguous or random");
      for (const Array<Index>* ends : {&edges.src, &edges.dst})
        for (const Index end : *ends)
          require<InputError>(0 <= end && end < num_nodes, "an edge has the end ", end, ", expected ",
                              index_range(num_nodes));
    });
    const Array<Index> numbers =
        numbers_of_ids(comm, original_ids);  // the ids themselves, if these are 0, 1, ...
    EdgeList by_original;
    const bool by_formula = method == PartitionMethod::contiguous || method == PartitionMethod::random;
    if (!by_formula) {
      by_original.src = edges.src;
      by_original.dst = edges.dst;
      for (Array<Index>* ends : {&by_original.src, &by_original.dst})
        replace_ids(comm, book, numbers, {ends->data(), ends->size()});
    }
    const AssignmentOptions how{
        .parts = static_cast<int>(options.clusters), .seed = options.seed, .balance_edges = false};
    const Array<std::int32_t> of_slice = method == PartitionMethod::ldg
                                             ? stream_on_first(comm, num_nodes, std::move(by_original), how)
                                             : assign_nodes(comm, num_nodes, by_original, method, how);
    const Array<Index> table(of_slice.begin(), of_slice.end());
    Array<Index> clusters = numbers;
    replace_ids(comm, PartitionBook::even(num_nodes, comm.size()), {table.data(), table.size()},
                {clusters.data(), clusters.size()});
    return Array<std::int32_t>(clusters.begin(), clusters.end());
  });
}

}}  // namespace sar
