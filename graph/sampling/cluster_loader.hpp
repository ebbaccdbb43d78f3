// SPDX-License-Identifier: MIT

/// ClusterLoader: mini-batches of whole clusters of nodes, as dgl.dataloading.ClusterGCNSampler.
#pragma once

#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/data_loader.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Options of a ClusterLoader; the same on every rank.
struct ClusterLoaderOptions {
  Index clusters_per_batch = 1;
  /// Shuffles the clusters in every epoch; otherwise batches follow their numbers.
  bool shuffle = true;
  std::uint64_t seed = 0;
};

/// The input of a training step.
struct ClusterBatch {
  Index number = 0;  ///< index in its epoch, from 0
  /// The nodes of the batch with the edges between them; the same graph for all layers. Node i of this rank
  /// is row graph.dst_rows()[i] of the whole graph.
  MessageFlowGraph graph;
};

/// Iterates over the nodes of a graph in batches of some clusters, once per epoch (Chiang, Liu, Si, Li,
/// Bengio, Hsieh, "Cluster-GCN", KDD 2019). A batch is the graph of all nodes of its clusters with the edges
/// between these, also those between two clusters; edges to other nodes are left out. Degrees are those in
/// the batch, so a GCN normalizes by them. Few edges are left out if the clusters are those of a partitioner,
/// as cluster_nodes() makes them.
///
/// Which clusters are together is a function of (seed, epoch), so batches are the same for every number of
/// ranks. Each rank computes its own nodes of the batch; some ranks may have none.
///
/// @code
/// Array<std::int32_t> clusters;  // of this rank's nodes
/// for (const Index id : graph.dst_ids()) clusters.push_back(static_cast<std::int32_t>(id % 8));
/// ClusterLoader loader(graph, clusters, {.clusters_per_batch = 2, .seed = 1});
/// loader.start_epoch(1);
/// while (const auto batch = loader.next()) {
///   const Variable x = gather_rows(features, batch->graph.dst_rows());
///   const Variable h = batch->graph.update_all(fn::copy_u(x), fn::mean);
/// }
/// @endcode
class ClusterLoader {
 public:
  /// Collective. `cluster_of`: the cluster of each node of this rank, from 0. There are as many clusters as
  /// the largest number says; some may be empty. Throws the same exception on every rank: ShapeError unless
  /// there is one number per node, InputError for a negative one, for fewer than one cluster per batch,
  /// options that differ between ranks, and a graph that is not homogeneous. Memory: 4 bytes per halo row, 12
  /// per node.
  ClusterLoader(const Graph& graph, std::span<const std::int32_t> cluster_of,
                const ClusterLoaderOptions& options = {});

  [[nodiscard]] Index num_clusters() const noexcept { return num_clusters_; }
  [[nodiscard]] Index num_batches() const noexcept { return batches_->num_batches(); }  ///< per epoch
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_->start_epoch(epoch, first_batch); }
  /// Collective. Returns the next batch, or nothing after the last one. Throws InputError on every rank if
  /// epochs or batches of the ranks differ.
  [[nodiscard]] std::optional<ClusterBatch> next();

 private:
  Graph graph_;
  Index num_clusters_ = 0;
  Array<std::int32_t> cluster_of_;  // of each source row, then of each halo row
  Grouped<Index> rows_;             // of this rank, by cluster
  std::optional<SeedBatches> batches_;  // of the numbers of all clusters, on each rank
};

}}  // namespace sar
