/// EdgeDataLoader: edges in mini-batches, with pairs of nodes to tell them from, for link prediction and for
/// labels of edges. The semantics are those of DGL's DataLoader with as_edge_prediction_sampler.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/build/negative_sampler.hpp>
#include <sar/graph/build/node_pairs.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Edges of the graph that a batch does not pass messages along, because they would tell what is asked.
enum class ExcludeEdges {
  none,
  self,     ///< all edges between the ends of the batch's edges, in their direction
  reverse,  ///< these, and all in the other direction
};

/// Pairs of nodes against which the edges of a batch stand.
enum class Negatives {
  none,        ///< for labels of edges
  per_source,  ///< an edge's source with NegativeOptions::k other destinations
  global       ///< k pairs of any nodes for each edge
};

/// The same on every rank.
struct EdgeDataLoaderOptions {
  DataLoaderOptions batches = {};  ///< batch_size counts edges
  ExcludeEdges exclude = ExcludeEdges::none;
  Negatives negatives = Negatives::none;
  NegativeOptions negative = {};
};

/// Edges to be predicted, as columns: any pairs of nodes, on any rank.
struct SeedEdges {
  Array<Index> src, dst;  ///< global ids
  Array<Index> id;        ///< unique over all ranks, and the same for every partition: keys of all draws

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(id.size()); }
};

/// What a step of training takes. The representations of all nodes that occur in pairs are the rows of the
/// last block's destinations, at their owners; `positive` and `negative` read them from there:
///
///     const Variable h = model(batch->blocks, x);
///     const Variable p = predictor(batch->positive->src(h), batch->positive->dst(h));
struct EdgeMiniBatch {
  Index number = 0;              ///< in its epoch, from 0
  std::vector<Index> positions;  ///< of this rank's edges of the batch among the seed edges
  std::vector<MessageFlowGraph> blocks;
  std::optional<NodePairs> positive;  ///< the edges, in the order of `positions`
  std::optional<NodePairs> negative;  ///< k for each, one after the other; none for Negatives::none
};

class EdgeDataLoader {
 public:
  /// `edges`: of this rank, each on one rank, in any order; a rank may give none. They need not be edges of
  /// the sampler's graph. Collective. Throws, the same on every rank, ShapeError for columns of different
  /// lengths, InputError for an end that is no node, and as SeedBatches and NegativeSampler.
  EdgeDataLoader(NeighborSampler sampler, SeedEdges edges, const EdgeDataLoaderOptions& options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< in an epoch
  [[nodiscard]] Index num_edges() const noexcept { return batches_.num_seeds(); }      ///< of all ranks
  /// The next batch is `first_batch` of the epoch. Throws InputError for a batch that is none.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// The next batch; empty after the last. Collective.
  [[nodiscard]] std::optional<EdgeMiniBatch> next();

 private:
  [[nodiscard]] Array<Index> find_excluded(const NodePairList& edges) const;

  NeighborSampler sampler_;
  SeedEdges edges_;
  EdgeDataLoaderOptions options_;
  SeedBatches batches_;
  std::optional<NegativeSampler> negatives_;
  Array<Index> halo_ids_;  // global ids of the halo rows, where wanted
};

}  // namespace sar
