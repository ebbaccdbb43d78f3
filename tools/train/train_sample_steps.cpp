#include "train_sample_steps.hpp"

#include "train_predict.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sar::tools {
namespace {

ModelDescription description_of(const TrainingGraph& loaded, const SampleInput& input) {
  ModelDescription description = loaded.model.with_widths(input.width(), loaded.data.num_outputs());
  description.edge_feats = input.edge_width();
  return description;
}

}  // namespace

SampleSteps::SampleSteps(TrainingGraph& loaded, const TrainOptions& o)
    : Steps(loaded.graph, loaded.data, *loaded.input, loaded.relations, o),
      task_(*loaded.samples),
      encoder_(task_, o, loaded.gen),
      model_(description_of(loaded, encoder_), comm_, loaded.gen),
      class_weights_(o.task.class_weights) {
  if (!encoder_.named_parameters().empty()) model_.add_input(encoder_);
  if (o.task.balanced_classes)
    class_weights_ = balanced_class_weights(data_.labels, data_.train_mask, data_.num_classes, comm_);
  if (o.epochs == 0) return;
  Array<Index> training = labelled_nodes(data_, comm_, {data_.train_mask});
  for (Index& graph : training) graph -= data_.book.begin(comm_.rank());
  loader_.emplace(comm_, task_.samples, training,
                  DataLoaderOptions{.batch_size = o.sample.batch_size,
                                    .per_rank = o.sample.batch_per_rank,
                                    .drop_last = o.sample.drop_last,
                                    .seed = o.seed});
  require_batches(comm_, o, loader_->num_batches(), std::ssize(training), "training graphs");
}

std::string SampleSteps::description() const {
  return describe_layers(model_.description());
}

std::optional<Index> SampleSteps::next_batch() {
  batch_.reset();
  batch_ = loader_->next();
  if (!batch_) return std::nullopt;
  return std::ssize(batch_->positions);
}

Variable SampleSteps::loss() {
  const Array<Index>& positions = batch_->positions;
  Array<std::int64_t> labels;
  for (const Index i : positions) labels.push_back(data_.labels[i]);
  Tensor targets;
  if (data_.targets.defined()) {
    targets = Tensor({std::ssize(positions), data_.targets.row_size()});
    for (Index i = 0; i < std::ssize(positions); ++i)
      std::copy_n(data_.targets.row(positions[i]), data_.targets.row_size(), targets.row(i));
  }
  const Variable scores = scores_of(batch_->batch);
  return loss_of_labels(comm_, o_.task, class_weights_, scores, labels, targets,
                        Array<std::uint8_t>(labels.size(), 1));
}

Tensor SampleSteps::scores_of_all() {
  Array<Index> all(static_cast<std::size_t>(task_.samples->num_graphs()));
  std::iota(all.begin(), all.end(), Index{0});
  SampleLoader loader(
      comm_, task_.samples, all,
      {.batch_size = o_.sample.batch_size, .per_rank = o_.sample.batch_per_rank, .shuffle = false});
  Tensor scores({std::ssize(all), data_.num_outputs()});
  while (const std::optional<SampleMiniBatch> next = loader.next()) {
    const Tensor of_batch = scores_of(next->batch).value();
    for (Index i = 0; i < of_batch.num_rows(); ++i)
      std::copy_n(of_batch.row(i), of_batch.row_size(), scores.row(next->positions[i]));
  }
  return scores;
}

std::vector<Scores> SampleSteps::evaluate() {
  model_.eval();
  return scores_of_labels(scores_of_all());
}

void SampleSteps::predict() {
  if (o_.predict.empty()) return;
  const bool was_training = model_.is_training();
  model_.eval();
  predict_graphs(comm_, o_, scores_of_all(), data_);
  if (was_training) model_.train();
}

}  // namespace sar::tools
