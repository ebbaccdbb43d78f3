#include "train_node_steps.hpp"

#include <algorithm>
#include <utility>

namespace sar::tools {

NodeSteps::NodeSteps(const GraphShardManager& graph, const NodeData& data, NodeInput& input,
                     std::span<const GraphRelations> relations, const TrainOptions& o,
                     const ModelDescription& model, bool cached, Generator& gen)
    : Steps(graph, data, input, relations, o),
      model_(with_widths(model, input.width(), data.num_classes), graph.comm(), gen, cached) {
  if (input.has_parameters()) model_.add_input(input);
  if (o.epochs == 0 || (!o.mfg && o.sample.fan_outs.empty())) return;
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
  Part part{BlockData(std::move(blocks), relations_), {}, {}};
  for (const Index row : part.data.blocks.back().dst_rows()) part.labels.push_back(data_.labels[row]);
  part.mask.assign(part.labels.size(), 1);
  return part;
}

void NodeSteps::start_epoch(std::uint64_t epoch, Index first_batch) {
  if (loader_) loader_->start_epoch(epoch, first_batch);
}

std::optional<Index> NodeSteps::next_batch() {
  part_.reset();
  std::optional<MiniBatch> batch = loader_->next();
  if (!batch) return std::nullopt;
  part_ = part_of(std::move(batch->blocks));
  return std::ssize(batch->seeds);
}

Variable NodeSteps::loss() {
  return part_
             ? cross_entropy(model_(part_->data.blocks, input_of(part_->data), part_->data.relations),
                             part_->labels, part_->mask, comm_)
             : cross_entropy(model_(graph_, input_.all(), relations_), data_.labels, data_.train_mask, comm_);
}

std::vector<Scores> NodeSteps::evaluate() {
  model_.eval();
  const Tensor logits =
      o_.sample.evaluate ? logits_of_samples() : model_(graph_, input_.all(), relations_).value();
  const auto of = [&](const auto& mask) { return accuracy(logits, data_.labels, mask, comm_); };
  return {{.train = of(data_.train_mask), .val = of(data_.val_mask), .test = of(data_.test_mask)}};
}

Tensor NodeSteps::logits_of_samples() {
  DataLoader loader(
      make_sampler(graph_, relations_, model_.description().edge_types, o_, o_.seed + 1),
      labelled_nodes(data_, comm_, {data_.train_mask, data_.val_mask, data_.test_mask}),
      {.batch_size = o_.sample.batch_size, .per_rank = o_.sample.batch_per_rank, .shuffle = false});
  Tensor logits = Tensor::zeros({graph_.num_dst_nodes(), data_.num_classes});
  while (std::optional<MiniBatch> batch = loader.next()) {
    const BlockData data(std::move(batch->blocks), relations_);
    const Tensor of_batch = model_(data.blocks, input_of(data), data.relations).value();
    const Array<Index>& rows = data.blocks.back().dst_rows();
    for (Index i = 0; i < of_batch.num_rows(); ++i)
      std::copy_n(of_batch.row(i), of_batch.row_size(), logits.row(rows[i]));
  }
  return logits;
}

void NodeSteps::predict() {
  predict_nodes(comm_, o_, model_, graph_, data_, input_, relations_, types_);
}

}  // namespace sar::tools
