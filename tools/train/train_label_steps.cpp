// SPDX-License-Identifier: MIT

// Steps of predicting labels of rows, which are nodes or graphs.
#include "train_predict.hpp"
#include "train_samples.hpp"
#include "train_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace sar::tools {
namespace {

/// What both have in common.
class LabelSteps : public Steps {
 protected:
  LabelSteps(TrainingGraph& g, const TrainOptions& o) : Steps(g, o), class_weights_(o.task.class_weights) {
    if (o.task.balanced_classes)
      class_weights_ = balanced_class_weights(data_.labels, data_.train_mask, data_.num_classes, comm_);
  }

  /// Collective. Returns the scores [batch.rows, outputs]; of the whole graph [local rows, outputs].
  [[nodiscard]] virtual Variable scores_of(const Batch& batch) = 0;
  /// Returns the loss of --loss on the training rows.
  [[nodiscard]] Variable loss(const Batch& batch) override {
    const Variable scores = scores_of(batch);
    if (batch.is_whole_graph()) return loss_of(scores, data_.labels, data_.targets, data_.train_mask, {});
    const RowClasses of = classes_of(batch.rows);
    RowWeights weights;
    if (batch.loss_weights.defined()) weights = batch.loss_weights.values();
    return loss_of(scores, of.classes, targets_of(batch.rows), of.mask, weights);
  }

  [[nodiscard]] bool counts(const Batch& batch) const override {
    if (batch.loss_weights.defined() && o_.task.label_smoothing > 0) return true;  // a sum of all classes
    const RowClasses of = classes_of(batch.rows);
    return has_class_weight(class_weights_, of.classes, of.mask);
  }

  /// Collective. Returns the scores of all rows of this rank, [rows, outputs]; 0 of those in no batch.
  [[nodiscard]] Tensor scores_of_all(BatchSource& batches) {
    Tensor scores = Tensor::zeros({std::ssize(data_.labels), data_.num_outputs()});
    while (const BatchPtr batch = batches.next()) {
      const Tensor of_batch = scores_of(*batch).value();
      for (Index i = 0; i < of_batch.num_rows(); ++i)
        std::copy_n(of_batch.row(i), of_batch.row_size(), scores.row(batch->rows[i]));
    }
    return scores;
  }

  /// Collective. Returns the values of the metrics for the scores of all rows of this rank.
  [[nodiscard]] std::vector<Scores> values_of(const Tensor& scores) const {
    const Labels labels{.type = data_.label_type, .classes = data_.labels, .targets = data_.targets};
    std::vector<Scores> values;
    for (const Metric metric : metrics_of(o_.task)) {
      const auto on = [&](const auto& mask) { return value_of(metric, scores, labels, mask, comm_); };
      values.push_back(
          {.train = on(data_.train_mask), .val = on(data_.val_mask), .test = on(data_.test_mask)});
    }
    return values;
  }

  std::vector<double> class_weights_;  // empty: all 1

 private:
  /// The classes of some rows, and which of these count: training rows that have a label.
  struct RowClasses {
    Array<std::int64_t> classes;
    Array<std::uint8_t> mask;
  };
  [[nodiscard]] RowClasses classes_of(const Array<Index>& rows) const {
    RowClasses of;
    for (const Index row : rows) {
      of.classes.push_back(data_.labels[row]);
      of.mask.push_back(data_.train_mask[row] != 0 && data_.labels[row] >= 0 ? 1 : 0);
    }
    return of;
  }

  [[nodiscard]] Tensor targets_of(const Array<Index>& rows) const {
    if (!data_.targets.defined()) return {};
    Tensor targets({std::ssize(rows), data_.targets.row_size()});
    for (Index i = 0; i < std::ssize(rows); ++i)
      std::copy_n(data_.targets.row(rows[i]), data_.targets.row_size(), targets.row(i));
    return targets;
  }

  [[nodiscard]] Variable loss_of(const Variable& scores, std::span<const std::int64_t> classes,
                                 const Tensor& targets, std::span<const std::uint8_t> mask,
                                 const RowWeights& row_weights) const {
    switch (o_.task.label_loss) {
      case LabelLoss::bce:
        return bce_with_logits(scores, targets, mask, comm_, row_weights);
      case LabelLoss::mse:
        return mse(scores, targets, mask, comm_, row_weights);
      case LabelLoss::mae:
        return l1(scores, targets, mask, comm_, row_weights);
      case LabelLoss::automatic:
      case LabelLoss::cross_entropy:
        break;
    }
    return cross_entropy(scores, classes, mask, comm_,
                         CrossEntropyOptions{.class_weights = class_weights_,
                                             .label_smoothing = o_.task.label_smoothing,
                                             .row_weights = row_weights});
  }
};

/// Steps of predicting labels of nodes.
class NodeSteps : public LabelSteps {
 public:
  NodeSteps(TrainingGraph& g, const TrainOptions& o)
      : LabelSteps(g, o),
        model_(g.model.with_widths(input_.width(), data_.num_outputs()), comm_, g.gen, keeps_first_sums()) {
    if (input_.has_parameters()) model_.add_input(input_);
    if (o.epochs > 0) train_on(make_node_batches(g, o, class_weights_));
  }

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return describe_layers(model_.description()); }

 protected:
  /// On the whole graph, or on sampled neighbors with --sample-eval.
  [[nodiscard]] std::vector<Scores> scores() override {
    return values_of(o_.sample.evaluate ? scores_of_all(*make_evaluated_node_batches(g_, o_))
                                        : scores_of(Batch()).value());
  }

  void write_predictions() override {
    if (o_.predict_layer > 0)
      predict_embeddings(o_, model_.after_layer(o_.predict_layer, graph_, input_.all(), g_.relations).value(),
                         graph_, data_, g_.node_types);
    predict_nodes(o_, scores_of(Batch()).value(), graph_, data_, g_.node_types);
  }

  /// False, too, where a batch norm would have fewer than two rows.
  [[nodiscard]] bool counts(const Batch& batch) const override {
    const ModelDescription& d = model_.description();
    const bool normalizes_last = d.type == "gin" || d.jk != "none";
    const Index last = d.layers - (normalizes_last ? 1 : 2), graphs = std::ssize(batch.blocks);
    if (d.has_batch_norm() && last >= 0 && graphs > 0 &&
        batch.blocks[static_cast<std::size_t>(std::min(last, graphs - 1))].num_global_dst_nodes() < 2)
      return false;
    return LabelSteps::counts(batch);
  }

  [[nodiscard]] Variable scores_of(const Batch& batch) override { return apply(model_, batch); }

 private:
  LayerStack model_;
};

ModelDescription description_of(const TrainingGraph& g, const SampleInput& input) {
  ModelDescription description = g.model.with_widths(input.width(), g.data.num_outputs());
  description.edge_feats = input.edge_width();
  return description;
}

/// Steps of predicting labels of graphs.
class SampleSteps : public LabelSteps {
 public:
  SampleSteps(TrainingGraph& g, const TrainOptions& o)
      : LabelSteps(g, o), encoder_(*g.samples, o, g.gen), model_(description_of(g, encoder_), comm_, g.gen) {
    if (!encoder_.named_parameters().empty()) model_.add_input(encoder_);
    if (o.epochs > 0) train_on(make_sample_batches(g, o));
  }

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return describe_layers(model_.description()); }

 protected:
  [[nodiscard]] std::vector<Scores> scores() override {
    return values_of(scores_of_all(*make_ordered_sample_batches(g_, o_, Which::in_splits)));
  }

  void write_predictions() override {
    predict_nodes(o_, scores_of_all(*make_ordered_sample_batches(g_, o_, Which::all)), graph_, data_);
  }

  [[nodiscard]] Variable scores_of(const Batch& batch) override {
    const SampleBatch graphs(comm_, g_.samples->samples->select(batch.rows), o_.graph_options);
    return model_(graphs, encoder_(graphs), encoder_.edges(graphs));
  }

  /// A batch norm needs two nodes.
  [[nodiscard]] bool counts(const Batch& batch) const override {
    const ModelDescription& d = model_.description();
    Index nodes = 0;
    for (const Index i : batch.rows) nodes += g_.samples->samples->num_nodes(i);
    if (d.has_batch_norm() && comm_.all_reduce(nodes) < 2) return false;
    return LabelSteps::counts(batch);
  }

 private:
  SampleInput encoder_;
  LayerStack model_;
};

}  // namespace

std::unique_ptr<Steps> make_node_steps(TrainingGraph& g, const TrainOptions& o) {
  return std::make_unique<NodeSteps>(g, o);
}

std::unique_ptr<Steps> make_sample_steps(TrainingGraph& g, const TrainOptions& o) {
  return std::make_unique<SampleSteps>(g, o);
}

}  // namespace sar::tools
