// SPDX-License-Identifier: MIT

/// DataLoader and EdgeDataLoader: iterate over seeds and edges in mini-batches, as
/// dgl.dataloading.DataLoader.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/sampling/node_pairs.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Options of a DataLoader; the same on every rank.
struct DataLoaderOptions {
  /// Number of seeds per batch over all ranks, so that training curves do not depend on the number of ranks.
  /// At least 1.
  Index batch_size = 1024;
  /// Interprets batch_size as seeds per rank, as DGL does.
  bool per_rank = false;
  /// Shuffles the seeds in every epoch; otherwise batches follow the original ids.
  bool shuffle = true;
  /// Skips the last batch of an epoch if it is smaller than the others; with per_rank, skips all batches that
  /// are not full on every rank.
  bool drop_last = false;
  std::uint64_t seed = 0;
};

/// Assigns the seeds of this rank to the batches of an epoch. Every rank has the same number of batches, some
/// of them possibly without its seeds. The position of a seed in an epoch is a keyed bijection of its
/// position among the original ids of all seeds. It does not depend on the number of ranks (except with
/// `per_rank`), and an epoch needs no communication.
class SeedBatches {
 public:
  /// Collective. `keys`: the original id of each seed of this rank. Throws InputError on every rank for a
  /// batch size below 1, negative ids and options that differ between ranks.
  SeedBatches(const Communicator& comm, std::span<const Index> keys, const DataLoaderOptions& options);

  [[nodiscard]] Index num_batches() const noexcept { return num_batches_; }  ///< the same on every rank
  [[nodiscard]] Index num_seeds() const noexcept { return num_seeds_; }      ///< of all ranks, per epoch
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0);
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_.get().number; }
  [[nodiscard]] Index number() const noexcept { return number_; }  ///< index of the current batch
  /// Collective. Returns the positions in `keys` of this rank's seeds of the current batch, in the order of
  /// the epoch; nothing after the last batch. Throws InputError on every rank if the ranks are in different
  /// epochs or batches; the message names `call` as the function that was called.
  [[nodiscard]] std::optional<std::vector<Index>> at_hand(const Communicator& comm, const char* call) const;
  void advance() { ++number_.change(); }  ///< Moves to the next batch.

 private:
  struct Epoch {
    std::uint64_t number = 0;
    std::shared_ptr<const std::vector<std::pair<Index, Index>>> order;  // (position in the epoch, in keys)
  };

  DataLoaderOptions options_;
  int rank_;
  Index total_ = 0;  // seeds that are permuted together
  Index num_seeds_ = 0, num_batches_ = 0;
  Array<Index> places_;  // position of each seed among them, by original id
  Recoverable<Epoch> epoch_;
  Recoverable<Index> number_;
};

/// The input of a training step.
struct MiniBatch {
  Index number = 0;                      ///< index in its epoch, from 0
  /// This rank's seeds, global ids in NeighborSampler::graph(); destinations of the last block. With types,
  /// its dst_rows(type) are the seeds of a type.
  Array<Index> seeds;
  std::vector<MessageFlowGraph> blocks;  ///< one per layer, the first layer first
};

/// Iterates over the seeds of all ranks in batches, once per epoch:
///
/// @code
/// const Array<Index> seeds = labelled_nodes(data, comm, {data.train_mask});
/// DataLoader loader(NeighborSampler(graph, {10, 5}, {.seed = 1}), seeds, {.batch_size = 64});
/// for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
///   loader.start_epoch(epoch);
///   while (const auto batch = loader.next())
///     const Variable x = deferred_gather_rows(features, batch->blocks.front().src_rows());
/// }
/// @endcode
///
/// Each rank stores the features of its own nodes. The features of a batch are read from local memory, and
/// rows of other ranks are fetched inside the first layer, overlapped with its computation. One batch is in
/// memory at a time.
class DataLoader {
 public:
  /// Collective. `seeds`: distinct global ids of nodes of this rank, in any order; a rank may give none.
  /// Throws InputError on every rank as NeighborSampler::sample_blocks and SeedBatches do.
  DataLoader(NeighborSampler sampler, std::span<const Index> seeds, const DataLoaderOptions& options = {});
  /// Collective. The same with seeds by type, which are drawn together: a batch has seeds of several types.
  DataLoader(const NeighborSampler& sampler, const NodesByType& seeds, const DataLoaderOptions& options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< per epoch
  [[nodiscard]] Index num_seeds() const noexcept { return batches_.num_seeds(); }      ///< of all ranks
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// Collective. Returns the next batch, or nothing after the last one. Throws InputError on every rank if
  /// epochs or batches of the ranks differ.
  [[nodiscard]] std::optional<MiniBatch> next();

 private:
  NeighborSampler sampler_;
  Array<Index> seeds_;
  SeedBatches batches_;
};

// EdgeDataLoader: iterates over edges in mini-batches, with negative pairs, for link prediction and edge
// classification. The semantics are those of DGL's DataLoader with as_edge_prediction_sampler.

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
