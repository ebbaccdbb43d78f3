// SPDX-License-Identifier: MIT

/// HaloRowCache: input rows of other ranks that several mini-batches read, kept in a bounded memory.
#pragma once

#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The first layer of a batch on rows in memory.
struct CachedInput {
  /// The first block of the batch, whose sources are the local ones and then its halo rows, so that the layer
  /// fetches nothing and sends no gradients.
  MessageFlowGraph block;
  Tensor rows;  ///< [sources of the block, F]
};

/// Keeps the rows of other ranks that the first layers of batches read most often, so that they are not
/// fetched again for each batch. Which rows a batch reads is known before it is computed, since samplers draw
/// by keys: count() some batches, then keep_hottest(). The other rows of a batch are pulled by start(), and
/// are in flight while the batch before it is computed.
///
/// The rows must be constant, such as features: learnable rows change between batches. The size of the cache
/// changes what is fetched and never a bit of the results.
///
/// Memory: `max_bytes` for the kept rows, 32 bytes per halo row of the graph, and the input rows of the
/// batches that were started.
///
/// @code
/// HaloRowCache cache(graph, features, /*max_bytes=*/1 << 20);
/// const Array<Index> seeds = labelled_nodes(data, comm, {data.train_mask});
/// DataLoader loader(NeighborSampler(graph, {10, 5}, {.seed = 1}), seeds, {.batch_size = 64});
/// loader.start_epoch(1);
/// while (const auto batch = loader.next()) cache.count(batch->blocks.front());
/// cache.keep_hottest();
/// loader.start_epoch(1);
/// while (auto batch = loader.next()) {
///   CachedInput input = cache.start(batch->blocks.front()).finish();
///   batch->blocks.front() = input.block;
///   const Variable h = batch->blocks.front().update_all(fn::copy_u(Variable(input.rows)), fn::mean);
/// }
/// @endcode
class HaloRowCache {
 public:
  /// Collective. `rows` [nodes of this rank, F] are borrowed and must not change. Throws the same exception
  /// on every rank: ShapeError unless there is a row per node, InputError for max_bytes below 0 or different
  /// on some ranks, rows of different widths, and a graph that is not homogeneous.
  HaloRowCache(const Graph& graph, const Tensor& rows, Index max_bytes);

  HaloRowCache(HaloRowCache&&) = default;
  HaloRowCache& operator=(HaloRowCache&&) = default;

  /// Local. Counts the halo rows of a batch's first block, made from this graph.
  void count(const MessageFlowGraph& block);
  /// Collective. Keeps the rows that were counted most often since the last call, as many as max_bytes holds;
  /// of equal counts the first. Pulls those that were not kept before, 1 MiB at a time.
  void keep_hottest();

  /// Rows of a batch being pulled.
  class Pending {
   public:
    /// Waits for the rows. Call it once. Local.
    [[nodiscard]] CachedInput finish();

   private:
    friend class HaloRowCache;
    explicit Pending(CachedInput input) : input_(std::move(input)) {}
    CachedInput input_;
    PendingRows<real> pulled_;
    std::vector<Index> places_;  // of the pulled rows among the input rows
  };
  /// Collective. Counts the rows of the block and requests those that are not kept.
  [[nodiscard]] Pending start(const MessageFlowGraph& block);

  [[nodiscard]] Index rows_kept() const noexcept { return kept_rows_; }  ///< of this rank
  /// Rows that this rank has pulled until now.
  [[nodiscard]] Index rows_pulled() const noexcept { return pulled_; }

 private:
  [[nodiscard]] Array<Index> halo_of(const MessageFlowGraph& block) const;
  [[nodiscard]] MessageFlowGraph holding_halo(const MessageFlowGraph& block, Array<Index> halo) const;

  Graph graph_;
  Tensor rows_;
  std::shared_ptr<const DistributedTensor<>> table_;
  // of the halo rows of the graph
  Array<Index> halo_ids_, halo_nodes_;                             // original and global ids
  std::shared_ptr<const Array<std::int32_t>> halo_in_, halo_out_;  // degrees
  Array<std::int32_t> counts_, slots_;                             // slot -1: not kept
  Tensor kept_;                                                    // [slots, F]
  Index kept_rows_ = 0, pulled_ = 0;
};

}}  // namespace sar
