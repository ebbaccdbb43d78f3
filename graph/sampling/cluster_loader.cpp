// SPDX-License-Identifier: MIT

// The rows of each cluster are listed once, and the clusters of the halo rows are fetched once, 8 bytes each.
// A batch takes time for the in-edges of its nodes, and the exchanges of layer_graph.cpp.
#include <sar/comm/communicator_alone.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/candidate_edges.hpp>
#include <sar/graph/sampling/cluster_loader.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

void check_clusters(const Graph& graph, std::span<const std::int32_t> cluster_of,
                    const ClusterLoaderOptions& options) {
  require<InputError>(graph.topology().is_homogeneous(),
                      "clusters are of a graph of one node type, not of a bipartite graph or a block");
  require<ShapeError>(std::ssize(cluster_of) == graph.num_dst_nodes(), "there are ", cluster_of.size(),
                      " numbers of clusters for ", graph.num_dst_nodes(), " nodes of this rank");
  require<InputError>(options.clusters_per_batch >= 1, "there are ", options.clusters_per_batch,
                      " clusters in a batch, expected 1 or more");
  for (std::size_t v = 0; v < cluster_of.size(); ++v)
    require<InputError>(cluster_of[v] >= 0, "the cluster of node ", graph.dst_ids()[static_cast<Index>(v)],
                        " is ", cluster_of[v], ", expected 0 or more");
}

}  // namespace

ClusterLoader::ClusterLoader(const Graph& graph, std::span<const std::int32_t> cluster_of,
                             const ClusterLoaderOptions& options)
    : graph_(graph) {
  const Communicator& comm = graph_.comm();
  comm.agree([&] {
    check_clusters(graph_, cluster_of, options);
    comm.require_equal(CollectiveCall("ClusterLoader")
                           .equal("clusters per batch", options.clusters_per_batch)
                           .equal("shuffle", options.shuffle)
                           .equal("seed", options.seed));
    const Index largest = cluster_of.empty() ? -1 : Index{*std::ranges::max_element(cluster_of)};
    num_clusters_ = 1 + comm.all_reduce(largest, ReduceOp::max);
    batches_.emplace(
        communicator_alone(comm), consecutive(0, num_clusters_),
        DataLoaderOptions{
            .batch_size = options.clusters_per_batch, .shuffle = options.shuffle, .seed = options.seed});
    rows_ = grouped(std::views::iota(Index{0}, std::ssize(cluster_of)), num_clusters_,
                    [&](Index v) { return cluster_of[static_cast<std::size_t>(v)]; });
    const Array<Index> own(cluster_of.begin(), cluster_of.end());
    const Array<Index> all = graph_.topology().with_halo({own.data(), own.size()});
    cluster_of_.assign(all.begin(), all.end());
  });
}

std::optional<ClusterBatch> ClusterLoader::next() {
  const TraceScope scope("cluster batch", TraceKind::compute);
  const Communicator& comm = graph_.comm();
  return comm.agree([&]() -> std::optional<ClusterBatch> {
    const auto clusters = batches_->at_hand(comm, "ClusterLoader::next");
    if (!clusters) return std::nullopt;
    std::vector<std::uint8_t> is_in(static_cast<std::size_t>(num_clusters_), 0);
    Array<Index> rows;
    for (const Index c : *clusters) {
      is_in[static_cast<std::size_t>(c)] = 1;
      const auto of_cluster = rows_.of(c);
      rows.insert(rows.end(), of_cluster.begin(), of_cluster.end());
    }
    std::sort(rows.begin(), rows.end());

    const GraphTopology& whole = graph_.topology();
    KeptEdges kept = all_in_edges(*graph_.shards(), rows);
    kept.keep_if([&](local_index edge) {
      return is_in[static_cast<std::size_t>(cluster_of_[source_of(whole, edge)])] != 0;
    });

    LayerGraph layer = make_subgraph(*graph_.shards(), rows, kept);
    ClusterBatch batch{.number = batches_->number(),
                       .graph = MessageFlowGraph(std::move(layer), std::move(rows), graph_.options())};
    batches_->advance();
    return batch;
  });
}

}}  // namespace sar
