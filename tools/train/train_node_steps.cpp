#include "train_node_steps.hpp"

#include <algorithm>
#include <utility>

namespace sar::tools {

NodeSteps::NodeSteps(const GraphShardManager& graph, const NodeData& data, NodeInput& input,
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
  if (loader_) loader_->start_epoch(epoch, first_batch);
  if (cluster_loader_) cluster_loader_->start_epoch(epoch, first_batch);
}

std::optional<Index> NodeSteps::next_batch() {
  part_.reset();
  if (cluster_loader_) return next_clusters();
  std::optional<MiniBatch> batch = loader_->next();
  if (!batch) return std::nullopt;
  part_ = part_of(std::move(batch->blocks));
  batch_rows_ = part_->data.blocks.front().num_global_src_nodes();
  return std::ssize(batch->seeds);
}

std::optional<Index> NodeSteps::next_clusters() {
  std::optional<ClusterBatch> batch = cluster_loader_->next();
  if (!batch) return std::nullopt;
  std::vector<MessageFlowGraph> graph;
  graph.push_back(std::move(batch->graph));
  part_ = part_of(std::move(graph));
  const MessageFlowGraph& clusters = part_->data.blocks.front();
  batch_rows_ = clusters.num_global_src_nodes();
  for (Index i = 0; i < std::ssize(part_->mask); ++i)
    part_->mask[i] = data_.train_mask[clusters.dst_rows()[i]] != 0 && part_->labels[i] >= 0 ? 1 : 0;
  return std::ranges::count(part_->mask, 1);
}

Variable NodeSteps::loss_of(const Variable& scores, std::span<const std::int64_t> labels,
                            const Tensor& targets, std::span<const std::uint8_t> mask) const {
  return loss_of_labels(comm_, o_.task, class_weights_, scores, labels, targets, mask);
}

Variable NodeSteps::loss() {
  if (cluster_loader_) {
    const GraphShardManager& clusters = part_->data.blocks.front();
    return loss_of(model_(clusters, input_of(part_->data), part_->data.relations), part_->labels,
                   part_->targets, part_->mask);
  }
  return part_ ? loss_of(model_(part_->data.blocks, input_of(part_->data), part_->data.relations),
                         part_->labels, part_->targets, part_->mask)
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
