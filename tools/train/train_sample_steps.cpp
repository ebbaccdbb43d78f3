// SPDX-License-Identifier: MIT
#include "train_sample_steps.hpp"

#include "train_predict.hpp"

#include <algorithm>
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
    : SampleBatchSteps(loaded, o),
      task_(*loaded.samples),
      encoder_(task_, o, loaded.gen),
      model_(description_of(loaded, encoder_), comm_, loaded.gen),
      class_weights_(o.task.class_weights) {
  if (!encoder_.named_parameters().empty()) model_.add_input(encoder_);
  if (o.task.balanced_classes)
    class_weights_ = balanced_class_weights(data_.labels, data_.train_mask, data_.num_classes, comm_);
  start_batches();
}

std::string SampleSteps::description() const {
  return describe_layers(model_.description());
}

Array<std::int64_t> SampleSteps::labels_of_batch() const {
  Array<std::int64_t> labels;
  for (const Index i : positions_) labels.push_back(data_.labels[i]);
  return labels;
}

std::optional<Index> SampleSteps::next_batch() {
  const std::optional<Index> seeds = SampleBatchSteps::next_batch();
  const ModelDescription& d = model_.description();
  Index nodes = 0;
  for (const Index i : positions_) nodes += seeds ? samples_->num_nodes(i) : 0;
  const bool lacks_nodes = (d.norm == "batch" || d.type == "gin") && comm_.all_reduce(nodes) < 2;
  const Array<std::int64_t> labels = labels_of_batch();
  counts_ = seeds && !lacks_nodes &&
            has_class_weight(class_weights_, labels, Array<std::uint8_t>(labels.size(), 1));
  return seeds;
}

Variable SampleSteps::loss() {
  const Array<Index>& positions = positions_;
  const Array<std::int64_t> labels = labels_of_batch();
  Tensor targets;
  if (data_.targets.defined()) {
    targets = Tensor({std::ssize(positions), data_.targets.row_size()});
    for (Index i = 0; i < std::ssize(positions); ++i)
      std::copy_n(data_.targets.row(positions[i]), data_.targets.row_size(), targets.row(i));
  }
  const Variable scores = scores_of(positions);
  return loss_of_labels(comm_, o_.task, class_weights_, scores, labels, targets,
                        Array<std::uint8_t>(labels.size(), 1));
}

Tensor SampleSteps::scores_of_samples(Which which) {
  Tensor scores = Tensor::zeros({samples_->num_graphs(), data_.num_outputs()});
  for_batches(which, [&](const Array<Index>& positions) {
    const Tensor of_batch = scores_of(positions).value();
    for (Index i = 0; i < of_batch.num_rows(); ++i)
      std::copy_n(of_batch.row(i), of_batch.row_size(), scores.row(positions[i]));
  });
  return scores;
}

std::vector<Scores> SampleSteps::evaluate() {
  model_.eval();
  return scores_of_labels(scores_of_samples(Which::in_splits));
}

void SampleSteps::predict() {
  if (o_.predict.empty()) return;
  const bool was_training = model_.is_training();
  model_.eval();
  predict_graphs(comm_, o_, scores_of_samples(Which::all), data_);
  if (was_training) model_.train();
}

}  // namespace sar::tools
