// SPDX-License-Identifier: MIT
#include "train_node_steps.hpp"

namespace sar::tools {

NodeSteps::NodeSteps(TrainingGraph& g, const TrainOptions& o)
    : LabelSteps(g, o),
      model_(g.model.with_widths(input_.width(), data_.num_outputs()), comm_, g.gen, keeps_first_sums()) {
  if (input_.has_parameters()) model_.add_input(input_);
  if (o.epochs > 0) train_on(make_node_batches(g, o, class_weights_));
}

std::vector<Scores> NodeSteps::evaluate() {
  model_.eval();
  return values_of(o_.sample.evaluate ? scores_of_all(*make_evaluated_node_batches(g_, o_))
                                      : scores_of(Batch()).value());
}

void NodeSteps::predict() {
  predict_nodes(comm_, o_, model_, graph_, data_, input_, g_.relations, g_.node_types);
}

}  // namespace sar::tools
