// SPDX-License-Identifier: MIT
#include "train_node_steps.hpp"

namespace sar::tools {

NodeSteps::NodeSteps(TrainingGraph& g, const TrainOptions& o)
    : LabelSteps(g, o),
      model_(g.model.with_widths(input_.width(), data_.num_outputs()), comm_, g.gen, keeps_first_sums()) {
  if (input_.has_parameters()) model_.add_input(input_);
  if (o.epochs > 0) train_on(make_node_batches(g, o, class_weights_));
}

std::vector<Scores> NodeSteps::scores() {
  return values_of(o_.sample.evaluate ? scores_of_all(*make_evaluated_node_batches(g_, o_))
                                      : scores_of(Batch()).value());
}

void NodeSteps::write_predictions() {
  if (o_.predict_layer > 0)
    predict_embeddings(o_, model_.after_layer(o_.predict_layer, graph_, input_.all(), g_.relations).value(),
                       graph_, data_, g_.node_types);
  predict_nodes(o_, scores_of(Batch()).value(), graph_, data_, g_.node_types);
}

}  // namespace sar::tools
