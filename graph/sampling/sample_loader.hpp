// SPDX-License-Identifier: MIT

/// SampleLoader: iterates over graph samples in mini-batches, as dgl.dataloading.GraphDataLoader.
#pragma once

#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/sample_batch.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The input of a training step.
struct SampleMiniBatch {
  Index number = 0;        ///< index in its epoch, from 0
  Array<Index> positions;  ///< of this rank's samples among those that the loader was given
  SampleBatch batch;
};

/// Iterates over samples of all ranks in batches, once per epoch. Which samples a batch has depends on their
/// ids, on the seed and on the epoch, not on the ranks. A rank computes those of its own samples.
///
/// @code
/// GraphSamples samples;
/// samples.add(comm.rank(), 2, std::vector<Index>{0}, std::vector<Index>{1});
/// SampleLoader loader(comm, std::make_shared<const GraphSamples>(std::move(samples)), std::vector<Index>{0},
///                     {.batch_size = 1});
/// loader.start_epoch(1);
/// Index graphs = 0;
/// while (const auto next = loader.next()) graphs += next->batch.num_global_graphs();
/// @endcode
class SampleLoader {
 public:
  /// Collective. `positions`: distinct samples of this rank, in any order; a rank may give none. Throws
  /// InputError on every rank as GraphSamples::check() and SeedBatches, for a position that does not exist
  /// or is given twice, and for fields that differ between ranks.
  SampleLoader(const Communicator& comm, std::shared_ptr<const GraphSamples> samples,
               std::span<const Index> positions, const DataLoaderOptions& options = {},
               const GraphOptions& graph_options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< per epoch
  [[nodiscard]] Index num_samples() const noexcept { return batches_.num_seeds(); }    ///< of all ranks
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// Collective. Returns the next batch, or nothing after the last one. Throws InputError on every rank if
  /// epochs or batches of the ranks differ.
  [[nodiscard]] std::optional<SampleMiniBatch> next();
  /// Collective. As next(), of which it returns the positions alone: for a batch of another kind, such as a
  /// SpreadBatch.
  [[nodiscard]] std::optional<Array<Index>> next_positions();

 private:
  [[nodiscard]] std::optional<Array<Index>> positions_at_hand(const char* call) const;

  Communicator comm_;
  std::shared_ptr<const GraphSamples> samples_;
  Array<Index> positions_;
  SeedBatches batches_;
  GraphOptions graph_options_;
};
}}  // namespace sar
