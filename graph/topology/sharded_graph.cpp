// SPDX-License-Identifier: MIT

// with_read_halo() fetches the degrees of the halo once, 8 bytes per halo row, and keeps 4 bytes for each
// halo row that an edge reads. The whole array is made from these in each use: O(rows + remote edges).
#include <sar/comm/halo/fetch_halo.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_set.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <limits>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// `numbers` of the sources, and those of the halo rows that an edge reads. Collective.
std::shared_ptr<const LazyArray> with_read_halo(const std::shared_ptr<const GraphTopology>& graph,
                                                const std::shared_ptr<const LazyArray>& numbers) {
  const auto read_rows = [](const GraphTopology& of) {
    IndexSet read(of.remote.num_src_rows);
    for (const local_index u : of.remote.src) read.insert(u);
    return read;
  };
  const Array<Index> all = fetch_halo(graph->comm, numbers->make(), graph->rounds());
  const IndexSet read = read_rows(*graph);
  Array<local_index> of_halo;
  of_halo.reserve(static_cast<std::size_t>(read.size()));
  read.for_each([&](Index u) {
    const Index number = all[u];
    require<InputError>(number <= std::numeric_limits<local_index>::max(), "a node has degree ", number,
                        ", at most 2147483647 are possible where relations share a halo");
    of_halo.push_back(static_cast<local_index>(number));
  });
  return std::make_shared<LazyArray>([graph, numbers, read_rows, of_halo = std::move(of_halo)] {
    Array<Index> made = numbers->make();
    const Index rows = std::ssize(made);
    made.resize(static_cast<std::size_t>(rows + graph->remote.num_src_rows));
    std::fill(made.begin() + rows, made.end(), Index{0});
    auto next = of_halo.begin();
    read_rows(*graph).for_each([&](Index u) { made[rows + u] = *next++; });
    return made;
  });
}

}  // namespace

std::shared_ptr<const ShardedGraph> ShardedGraph::holding_halo(std::shared_ptr<const ShardedGraph> graph,
                                                               SharedIds ids) {
  const auto& topology = graph->topology;
  return topology->comm.agree([&] {
    const DegreeCache& of = graph->degrees;
    KnownDegrees known{.in = of.in, .out = with_read_halo(topology, of.out)};
    if (topology->is_block) known.src_in = with_read_halo(topology, of.src_in ? of.src_in : of.in);
    auto held = std::make_shared<ShardedGraph>(topology, std::move(known));
    held->travelling = graph;
    held->shared_src_ids = std::move(ids);
    return std::shared_ptr<const ShardedGraph>(std::move(held));
  });
}

}}  // namespace sar
