/// DataLoader: the seeds of an epoch in mini-batches. The name is DGL's (dgl.dataloading.DataLoader).
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The same on every rank.
struct DataLoaderOptions {
  /// Seeds of a batch, of all ranks together; so the curve does not depend on the number of ranks. At
  /// least 1.
  Index batch_size = 1024;
  /// The batch size is that of each rank, as DGL counts.
  bool per_rank = false;
  /// Another order in every epoch; otherwise that of the original ids.
  bool shuffle = true;
  /// Leaves out the last batch of an epoch when it is smaller than the others; with per_rank all batches that
  /// are not full on every rank.
  bool drop_last = false;
  std::uint64_t seed = 0;
};

/// Seeds in batches: which seeds of this rank are in which batch of an epoch. Every rank has the same number
/// of batches, perhaps without seeds of its own in some. The place of a seed in an epoch is a keyed bijection
/// of its place among the original ids of all seeds; it is the same for every number of ranks (but for
/// `per_rank`), and nothing travels in an epoch.
class SeedBatches {
 public:
  /// `keys`: the original id of each seed of this rank. Collective. Throws InputError, the same on every
  /// rank, for a batch size less than 1, negative ids and options that differ between ranks.
  SeedBatches(const Communicator& comm, std::span<const Index> keys, const DataLoaderOptions& options);

  [[nodiscard]] Index num_batches() const noexcept { return num_batches_; }  ///< the same on every rank
  [[nodiscard]] Index num_seeds() const noexcept { return num_seeds_; }      ///< of all ranks, in an epoch
  /// The batch at hand is `first_batch` of the epoch. Throws InputError for a batch that is none.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0);
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] Index number() const noexcept { return number_; }  ///< of the batch at hand, in its epoch
  /// Positions in `keys` of this rank's seeds of the batch at hand, in the order of the epoch; nothing after
  /// the last batch. Collective. Throws InputError, the same on every rank, when the ranks are in different
  /// epochs or batches; `call` is what it says they called.
  [[nodiscard]] std::optional<std::vector<Index>> at_hand(const Communicator& comm, const char* call) const;
  void advance() noexcept { ++number_; }  ///< The next batch is at hand.

 private:
  DataLoaderOptions options_;
  int rank_;
  Index total_ = 0;  // seeds that are permuted together
  Index num_seeds_ = 0, num_batches_ = 0;
  Array<Index> places_;                         // of each seed among them, by original id
  std::vector<std::pair<Index, Index>> order_;  // place in the epoch, position in keys
  std::uint64_t epoch_ = 0;
  Index number_ = 0;
};

/// What a step of training takes.
struct MiniBatch {
  Index number = 0;                      ///< in its epoch, from 0
  Array<Index> seeds;                    ///< of this rank, global ids: the destinations of the last block
  std::vector<MessageFlowGraph> blocks;  ///< of the layers, the first layer first
};

/// Goes through the seeds of all ranks, in batches, once an epoch:
///
///     DataLoader loader(NeighborSampler(graph, {15, 10, 5}, {.seed = 1}), seeds, {.batch_size = 1024});
///     for (int epoch = 1; epoch <= 10; ++epoch) {
///       loader.start_epoch(epoch);
///       while (const auto batch = loader.next()) {
///         const Variable x = deferred_gather_rows(features, batch->blocks.front().src_rows());
///         ... model(batch->blocks, x) ...
///       }
///     }
///
/// Features are rows of the ranks that own the nodes, so a batch takes them from local memory, and those of
/// other ranks arrive inside the first layer, while it computes. One batch is held at a time.
class DataLoader {
 public:
  /// `seeds`: global ids of nodes of this rank, each once, in any order; a rank may give none. Collective.
  /// Throws InputError, the same on every rank, as NeighborSampler::sample_blocks and SeedBatches.
  DataLoader(NeighborSampler sampler, std::span<const Index> seeds, const DataLoaderOptions& options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< in an epoch
  [[nodiscard]] Index num_seeds() const noexcept { return batches_.num_seeds(); }      ///< of all ranks
  /// The next batch is `first_batch` of the epoch. Throws InputError for a batch that is none.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// The next batch; empty after the last. Collective. Throws InputError, the same on every rank, when epochs
  /// or batches of the ranks differ.
  [[nodiscard]] std::optional<MiniBatch> next();

 private:
  NeighborSampler sampler_;
  Array<Index> seeds_;
  SeedBatches batches_;
};

}  // namespace sar
