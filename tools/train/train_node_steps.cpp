// SPDX-License-Identifier: MIT
#include "train_node_steps.hpp"

#include "train_saint.hpp"

#include <algorithm>
#include <utility>

namespace sar::tools {

NodeSteps::NodeSteps(const Graph& graph, const NodeData& data, NodeInput& input,
                     std::span<const GraphRelations> relations, const TrainOptions& o,
                     const ModelDescription& model, bool cached, Generator& gen,
                     std::span<const std::int32_t> clusters)
    : Steps(graph, data, input, relations, o),
      model_(model.with_widths(input.width(), data.num_outputs()), graph.comm(), gen, cached),
      class_weights_(o.task.class_weights) {
  if (input.has_parameters()) model_.add_input(input);
  if (o.task.balanced_classes)
    class_weights_ = balanced_class_weights(data.labels, data.train_mask, data.num_classes, comm_);
  if (o.epochs == 0 || (!o.mfg && !o.sample.has_batches())) return;
  if (o.sample.clusters != 0) {
    cluster_loader_.emplace(
        graph, clusters,
        ClusterLoaderOptions{.clusters_per_batch = o.sample.clusters_per_batch, .seed = o.seed});
    const MaskCounts counts = count_mask(data, comm_, data.train_mask);
    cluster_seeds_ = counts.nodes - counts.unlabelled;
    return;
  }
  if (o.sample.saint) {
    saint_loader_.emplace(graph, saint_options(o));
    loss_terms_ = loss_terms(comm_, data, class_weights_);
    return;
  }
  const Array<Index> seeds = labelled_nodes(data, comm_, {data.train_mask});
  if (o.mfg) {
    part_ = part_of(construct_mfgs(graph, seeds, static_cast<int>(o.model.layers)));
    return;
  }
  loader_.emplace(make_sampler(graph, relations, model.edge_types, o, o.seed), seeds,
                  DataLoaderOptions{.batch_size = o.sample.batch_size,
                                    .per_rank = o.sample.batch_per_rank,
                                    .drop_last = o.sample.drop_last,
                                    .seed = o.seed});
  require_batches(comm_, o, loader_->num_batches(), std::ssize(seeds), "training nodes");
  if (o.halo_cache_bytes > 0 && comm_.size() > 1)
    cache_.emplace(graph, input.all().value(), o.halo_cache_bytes);
}

std::string NodeSteps::description() const {
  return describe_layers(model_.description());
}

NodeSteps::Part NodeSteps::part_of(std::vector<MessageFlowGraph> blocks) const {
  Part part{BlockData(std::move(blocks), relations_), {}, {}, {}};
  const Array<Index>& rows = part.data.blocks.back().dst_rows();
  for (const Index row : rows) part.labels.push_back(data_.labels[row]);
  if (data_.targets.defined()) {
    part.targets = Tensor({std::ssize(rows), data_.targets.row_size()});
    for (Index i = 0; i < std::ssize(rows); ++i)
      std::copy_n(data_.targets.row(rows[i]), data_.targets.row_size(), part.targets.row(i));
  }
  part.mask.assign(part.labels.size(), 1);
  return part;
}

void NodeSteps::start_epoch(std::uint64_t epoch, Index first_batch) {
  if (cache_) prepare_cache(epoch);
  if (loader_) loader_->start_epoch(epoch, first_batch);
  if (cluster_loader_) cluster_loader_->start_epoch(epoch, first_batch);
  if (saint_loader_) saint_loader_->start_epoch(epoch, first_batch);
}

std::optional<Index> NodeSteps::next_batch() {
  part_.reset();
  const std::optional<Index> seeds = next_part();
  const bool smooths = part_ && part_->loss_weights && o_.task.label_smoothing > 0;  // a sum of all classes
  counts_ = part_ && (smooths || has_class_weight(class_weights_, part_->labels, part_->mask));
  return seeds;
}

std::optional<Index> NodeSteps::next_part() {
  if (cluster_loader_) return next_clusters();
  if (saint_loader_) return next_drawn();
  if (cache_) return next_cached();
  std::optional<MiniBatch> batch = loader_->next();
  if (!batch) return std::nullopt;
  part_ = part_of(std::move(batch->blocks));
  count_rows(part_->data.blocks.front());
  return std::ssize(batch->seeds);
}

// The rows that the first epoch reads are counted before it, those of the others in the epoch before.
void NodeSteps::prepare_cache(std::uint64_t epoch) {
  ahead_.reset();
  is_ahead_ = false;
  if (!std::exchange(is_counted_, true)) {
    loader_->start_epoch(epoch);
    while (const std::optional<MiniBatch> batch = loader_->next()) cache_->count(batch->blocks.front());
  }
  cache_->keep_hottest();
}

void NodeSteps::load_ahead() {
  ahead_.reset();
  is_ahead_ = true;
  std::optional<MiniBatch> batch = loader_->next();
  if (!batch) return;
  HaloRowCache::Pending input = cache_->start(batch->blocks.front());
  ahead_.emplace(Ahead{std::move(*batch), std::move(input)});
}

std::optional<Index> NodeSteps::next_cached() {
  if (!is_ahead_) load_ahead();
  if (!ahead_) return std::nullopt;
  Ahead now = std::move(*ahead_);
  CachedInput input = now.input.finish();
  load_ahead();
  count_rows(now.batch.blocks.front());
  batch_halo_rows_ = cache_->rows_pulled() - std::exchange(rows_pulled_, cache_->rows_pulled());
  now.batch.blocks.front() = std::move(input.block);
  part_ = part_of(std::move(now.batch.blocks));
  part_->input = std::move(input.rows);
  return std::ssize(now.batch.seeds);
}

std::optional<Index> NodeSteps::next_clusters() {
  std::optional<ClusterBatch> batch = cluster_loader_->next();
  if (!batch) return std::nullopt;
  return take(std::move(batch->graph));
}

std::optional<Index> NodeSteps::next_drawn() {
  std::optional<SaintBatch> batch = saint_loader_->next();
  if (!batch) return std::nullopt;
  const Index seeds = take(std::move(batch->graph));
  for (real& weight : batch->loss_weights.values())
    weight = static_cast<real>(static_cast<double>(weight) / loss_terms_);
  part_->loss_weights = std::move(batch->loss_weights);
  return seeds;
}

Index NodeSteps::take(MessageFlowGraph graph) {
  std::vector<MessageFlowGraph> graphs;
  graphs.push_back(std::move(graph));
  part_ = part_of(std::move(graphs));
  const MessageFlowGraph& nodes = part_->data.blocks.front();
  count_rows(nodes);
  for (Index i = 0; i < std::ssize(part_->mask); ++i)
    part_->mask[i] = data_.train_mask[nodes.dst_rows()[i]] != 0 && part_->labels[i] >= 0 ? 1 : 0;
  return std::ranges::count(part_->mask, 1);
}

Variable NodeSteps::loss_of(const Variable& scores, std::span<const std::int64_t> labels,
                            const Tensor& targets, std::span<const std::uint8_t> mask,
                            const RowWeights& row_weights) const {
  return loss_of_labels(comm_, o_.task, class_weights_, scores, labels, targets, mask, row_weights);
}

Variable NodeSteps::loss() {
  if (cluster_loader_ || saint_loader_) {
    const Graph& nodes = part_->data.blocks.front();
    RowWeights weights;
    if (part_->loss_weights) weights = part_->loss_weights->values();
    return loss_of(model_(nodes, input_of(part_->data), part_->data.relations), part_->labels, part_->targets,
                   part_->mask, weights);
  }
  const auto input = [&] { return part_->input.defined() ? Variable(part_->input) : input_of(part_->data); };
  return part_ ? loss_of(model_(part_->data.blocks, input(), part_->data.relations), part_->labels,
                         part_->targets, part_->mask)
               : loss_of(model_(graph_, input_.all(), relations_), data_.labels, data_.targets,
                         data_.train_mask);
}

std::vector<Scores> NodeSteps::evaluate() {
  model_.eval();
  return scores_of_labels(o_.sample.evaluate ? scores_of_samples()
                                             : model_(graph_, input_.all(), relations_).value());
}

Tensor NodeSteps::scores_of_samples() {
  DataLoader loader(
      make_sampler(graph_, relations_, model_.description().edge_types, o_, o_.seed + 1),
      labelled_nodes(data_, comm_, {data_.train_mask, data_.val_mask, data_.test_mask}),
      {.batch_size = o_.sample.batch_size, .per_rank = o_.sample.batch_per_rank, .shuffle = false});
  Tensor scores = Tensor::zeros({graph_.num_dst_nodes(), data_.num_outputs()});
  while (std::optional<MiniBatch> batch = loader.next()) {
    const BlockData data(std::move(batch->blocks), relations_);
    const Tensor of_batch = model_(data.blocks, input_of(data), data.relations).value();
    const Array<Index>& rows = data.blocks.back().dst_rows();
    for (Index i = 0; i < of_batch.num_rows(); ++i)
      std::copy_n(of_batch.row(i), of_batch.row_size(), scores.row(rows[i]));
  }
  return scores;
}

void NodeSteps::predict() {
  predict_nodes(comm_, o_, model_, graph_, data_, input_, relations_, types_);
}

}  // namespace sar::tools
