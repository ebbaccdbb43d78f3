// SPDX-License-Identifier: MIT

/// EdgeDataLoader: iterates over edges in mini-batches, with negative pairs, for link prediction and edge
/// classification. The semantics are those of DGL's DataLoader with as_edge_prediction_sampler.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/sampling/node_pairs.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Edges that are removed from the blocks of a batch, because messages along them would reveal the labels.
enum class ExcludeEdges {
  none,
  self,     ///< all edges u -> v, for the batch's edges u -> v
  reverse,  ///< these, and all edges v -> u
};

/// The negative pairs of a batch.
enum class Negatives {
  none,        ///< no negatives, for edge classification
  per_source,  ///< the edge's source with NegativeOptions::k other destinations
  global       ///< k pairs of any nodes per edge
};

/// Options of an EdgeDataLoader; the same on every rank.
struct EdgeDataLoaderOptions {
  DataLoaderOptions batches = {};  ///< batch_size counts edges
  ExcludeEdges exclude = ExcludeEdges::none;
  /// Where edges have types, [local edges of the graph]: only edges of `excluded_types` are excluded, for
  /// example those of the batch's relation and of its reverse. Without types, any edge.
  EdgeTypes types = {};
  std::vector<Index> excluded_types = {};
  Negatives negatives = Negatives::none;
  NegativeOptions negative = {};
  /// Draws the negative pairs of the edges at these positions, in any order and number, if `negatives` is
  /// none: for edges of several types, which have nodes of their own. All ranks call it for each batch.
  std::function<NodePairList(std::span<const Index> positions, std::uint64_t epoch)> draw = nullptr;
};

/// Edges to predict, as columns: any pairs of nodes, on any rank.
struct SeedEdges {
  Array<Index> src, dst;  ///< global ids
  Array<Index> id;        ///< unique over all ranks and for any partition: keys of random draws

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(id.size()); }
};

/// The input of a training step. The last block computes the representations of all nodes that occur in the
/// pairs, at their owners; `positive` and `negative` gather them:
///
///     const Variable h = model(batch->blocks, x);
///     const Variable p = predictor(batch->positive->src(h), batch->positive->dst(h));
struct EdgeMiniBatch {
  Index number = 0;              ///< index in its epoch, from 0
  std::vector<Index> positions;  ///< positions among the seed edges of this rank's edges in the batch
  std::vector<MessageFlowGraph> blocks;
  std::optional<NodePairs> positive;  ///< the edges, in the order of `positions`
  std::optional<NodePairs> negative;  ///< k pairs per edge, adjacent; empty for Negatives::none
};

/// @code
/// const SeedEdges edges{.src = data.edges.src, .dst = data.edges.dst, .id = data.edges.id};
/// EdgeDataLoader loader(NeighborSampler(graph, {5, 5}), edges, {.batches = {.batch_size = 500}});
/// loader.start_epoch(1);
/// while (const auto batch = loader.next()) {
///   const Variable x = gather_rows(features, batch->blocks.front().src_rows());
///   const Variable ends = batch->positive->src(batch->blocks.back().update_all(fn::copy_u(
///       batch->blocks.front().update_all(fn::copy_u(x), fn::mean)), fn::mean));
/// }
/// @endcode
class EdgeDataLoader {
 public:
  /// Collective. `edges`: the edges of this rank, in any order; each edge on one rank, and a rank may give
  /// none. They need not be edges of the sampler's graph. Throws the same exception on every rank:
  /// ShapeError for columns of different lengths, InputError for an end that is not a node, and as
  /// SeedBatches and NegativeSampler.
  EdgeDataLoader(NeighborSampler sampler, SeedEdges edges, const EdgeDataLoaderOptions& options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< per epoch
  [[nodiscard]] Index num_edges() const noexcept { return batches_.num_seeds(); }      ///< of all ranks
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// Collective. Returns the next batch, or nothing after the last one.
  [[nodiscard]] std::optional<EdgeMiniBatch> next();

 private:
  [[nodiscard]] Array<Index> find_excluded(const NodePairList& edges) const;

  NeighborSampler sampler_;
  SeedEdges edges_;
  EdgeDataLoaderOptions options_;
  SeedBatches batches_;
  std::optional<NegativeSampler> negatives_;
  Array<Index> halo_ids_;  // global ids of the halo rows, if required
};

}}  // namespace sar
