// SPDX-License-Identifier: MIT

/// The batches of an epoch: mini-batches of a loader of the library, or one step on the whole graph.
#pragma once

#include "options/train_options.hpp"
#include "train_graph.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar::tools {

/// What the loss of a step is computed on. It has what its task reads.
struct Batch {
  /// One for each layer, or one for all layers. Empty: the whole graph.
  std::vector<MessageFlowGraph> blocks = {};
  std::vector<GraphRelations> relations = {};  ///< of their edges
  Tensor input = {};  ///< input rows of the sources, if they are not those of the node input
  /// What is predicted, on this rank: local nodes, positions of training edges or of graph samples.
  Array<Index> rows = {};
  Tensor loss_weights = {};                               ///< [rows], with which the loss is a sum
  std::optional<NodePairs> positive = {}, negative = {};  ///< of edges
  std::optional<Index> seeds = {};  ///< training rows of this rank; nothing: the step is on all of them
  Index input_rows = 0;             ///< rows of the input that the batch reads, of all ranks
  Index halo_rows = 0;              ///< rows that this rank fetches from others for the first layer

  [[nodiscard]] bool is_whole_graph() const noexcept { return blocks.empty() && !seeds; }
  /// Collective. Sets the graphs, and the numbers of rows of the first one; `of_graph`: relations of the
  /// whole graph.
  void set_blocks(std::vector<MessageFlowGraph> graphs, std::span<const GraphRelations> of_graph);
};
using BatchPtr = std::shared_ptr<const Batch>;

/// The batches of an epoch, the same number on every rank. What it is made of must outlive it.
class BatchSource : NonCopyable {
 public:
  virtual ~BatchSource() = default;

  [[nodiscard]] virtual Index num_batches() const = 0;  ///< of an epoch
  /// Returns the number of seeds of an epoch, of all ranks, to which the losses of batches are averaged.
  /// Nothing: each batch estimates the loss of all.
  [[nodiscard]] virtual std::optional<Index> num_seeds() const = 0;
  /// Collective.
  virtual void start_epoch(std::uint64_t epoch, Index first_batch) = 0;
  /// Collective. Returns the next batch; null after the last one.
  [[nodiscard]] virtual BatchPtr next() = 0;
};

/// Batches of a loader of the library. `next(loader)` returns one of them, or null.
template <class Loader, class Next>
class LoadedBatches : public BatchSource {
 public:
  LoadedBatches(Loader loader, std::optional<Index> num_seeds, Next next)
      : loader_(std::move(loader)), num_seeds_(num_seeds), next_(std::move(next)) {}

  [[nodiscard]] Index num_batches() const override { return loader_.num_batches(); }
  [[nodiscard]] std::optional<Index> num_seeds() const override { return num_seeds_; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    loader_.start_epoch(epoch, first_batch);
  }
  [[nodiscard]] BatchPtr next() override { return next_(loader_); }

 private:
  Loader loader_;
  std::optional<Index> num_seeds_;
  Next next_;
};

template <class Loader, class Next>
std::unique_ptr<BatchSource> loaded_batches(Loader loader, std::optional<Index> num_seeds, Next next) {
  return std::make_unique<LoadedBatches<Loader, Next>>(std::move(loader), num_seeds, std::move(next));
}

/// One step on all training rows in each epoch, on what `make(epoch)` returns.
class WholeEpochs : public BatchSource {
 public:
  explicit WholeEpochs(std::function<BatchPtr(std::uint64_t epoch)> make) : make_(std::move(make)) {}

  [[nodiscard]] Index num_batches() const override { return 1; }
  [[nodiscard]] std::optional<Index> num_seeds() const override { return std::nullopt; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    epoch_ = epoch;
    is_done_ = first_batch > 0;
  }
  [[nodiscard]] BatchPtr next() override { return std::exchange(is_done_, true) ? nullptr : make_(epoch_); }

 private:
  std::function<BatchPtr(std::uint64_t epoch)> make_;
  std::uint64_t epoch_ = 0;
  bool is_done_ = false;
};

/// Collective. Makes the sampler of --sample. For a typed graph, the edges have the types `edge_types`.
/// Throws InputError for fan-outs of an unknown type.
NeighborSampler make_sampler(const TrainingGraph& g, const TrainOptions& o, std::uint64_t seed);

/// Collective. Throws InputError if the seeds (named in the message, such as "training nodes") make no
/// batch.
void require_batches(const Communicator& comm, const TrainOptions& o, Index num_batches, Index seeds_of_rank,
                     const std::string& seeds);

/// Collective. The batches of the training nodes, as the options say: sampled, of clusters, of GraphSAINT,
/// or the whole graph. The loss has these class weights.
std::unique_ptr<BatchSource> make_node_batches(TrainingGraph& g, const TrainOptions& o,
                                               std::span<const double> class_weights);

/// Collective. All nodes of the splits with their sampled neighbors, in order.
std::unique_ptr<BatchSource> make_evaluated_node_batches(const TrainingGraph& g, const TrainOptions& o);

/// Collective. The batches of the training samples.
std::unique_ptr<BatchSource> make_sample_batches(const TrainingGraph& g, const TrainOptions& o);

/// Which samples are computed: all of them, or those that are in a split.
enum class Which { all, in_splits };

/// Collective. Samples in order: these, or those at the given positions.
std::unique_ptr<BatchSource> make_ordered_sample_batches(const TrainingGraph& g, const TrainOptions& o,
                                                         Which which);
std::unique_ptr<BatchSource> make_ordered_sample_batches(const TrainingGraph& g, const TrainOptions& o,
                                                         std::span<const Index> positions);

}  // namespace sar::tools
