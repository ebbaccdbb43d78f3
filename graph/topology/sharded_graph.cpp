// SPDX-License-Identifier: MIT

// with_read_halo() fetches the degrees of the halo once, 8 bytes per halo row, and keeps 4 bytes for each
// halo row that an edge reads. The whole array is made from these in each use: O(rows + remote edges).
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>
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

// In-degrees come from the offsets of the rows with edges, O(rows). Out-degrees count the sources of the
// local edges, one random increment per edge, and add the uses by other ranks, which the topology has.

namespace {

Array<Index> count_in(const GraphTopology& graph) {
  Array<Index> degrees(static_cast<std::size_t>(graph.local.num_dst), 0);
  for (const GraphShard* shard : {&graph.local, &graph.remote})
    for (Index i = 0; i < shard->num_rows(); ++i)
      degrees[shard->dst_row(i)] += shard->row_begin[i + 1] - shard->row_begin[i];
  return degrees;
}

Array<Index> count_out(const GraphTopology& graph) {
  Array<Index> degrees(static_cast<std::size_t>(graph.local.num_src_rows), 0);
  for (const local_index u : graph.local.src) ++degrees[u];
  graph.used_by_others.add_to(degrees);
  return degrees;
}

/// `known`, or numbers that are counted in the graph when somebody asks.
std::shared_ptr<const LazyArray> known_or_counted(std::shared_ptr<const LazyArray> known,
                                                  const std::shared_ptr<const GraphTopology>& graph,
                                                  Array<Index> (*count)(const GraphTopology&)) {
  if (known != nullptr) return known;
  return std::make_shared<LazyArray>([graph, count] { return count(*graph); });
}

}  // namespace

DegreeCache::DegreeCache(std::shared_ptr<const GraphTopology> topology, KnownDegrees known)
    : in(known_or_counted(std::move(known.in), topology, count_in)),
      out(known_or_counted(std::move(known.out), topology, count_out)),
      src_in(known.src_in == nullptr && topology->is_homogeneous() ? in : std::move(known.src_in)),
      topology_(std::move(topology)) {}

const LazyArray& DegreeCache::in_of_sources() const {
  require<InputError>(src_in != nullptr,
                      "the in-degrees of the sources are not known in a graph "
                      "of two node types");
  return *src_in;
}

std::size_t DegreeCache::bytes() const noexcept {
  std::size_t bytes = in->bytes() + out->bytes();
  if (src_in != nullptr && src_in != in) bytes += src_in->bytes();
  for (const auto& of_degree : row_factors)
    for (const RowFactors& factors : of_degree)
      for (const Tensor* x : {&factors.rows, &factors.halo})
        if (x->defined()) bytes += x->bytes();
  return bytes;
}
}}  // namespace sar
