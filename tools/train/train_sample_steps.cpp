// SPDX-License-Identifier: MIT
#include "train_sample_steps.hpp"

#include "train_predict.hpp"

namespace sar::tools {
namespace {

ModelDescription description_of(const TrainingGraph& g, const SampleInput& input) {
  ModelDescription description = g.model.with_widths(input.width(), g.data.num_outputs());
  description.edge_feats = input.edge_width();
  return description;
}

}  // namespace

SampleSteps::SampleSteps(TrainingGraph& g, const TrainOptions& o)
    : LabelSteps(g, o), encoder_(*g.samples, o, g.gen), model_(description_of(g, encoder_), comm_, g.gen) {
  if (!encoder_.named_parameters().empty()) model_.add_input(encoder_);
  if (o.epochs > 0) train_on(make_sample_batches(g, o));
}

Variable SampleSteps::scores_of(const Batch& batch) {
  const SampleBatch graphs(comm_, g_.samples->samples->select(batch.rows), o_.graph_options);
  return model_(graphs, encoder_(graphs), encoder_.edges(graphs));
}

bool SampleSteps::counts(const Batch& batch) const {
  const ModelDescription& d = model_.description();
  Index nodes = 0;
  for (const Index i : batch.rows) nodes += g_.samples->samples->num_nodes(i);
  if ((d.norm == "batch" || d.type == "gin") && comm_.all_reduce(nodes) < 2) return false;
  return LabelSteps::counts(batch);
}

std::vector<Scores> SampleSteps::scores() {
  return values_of(scores_of_all(*make_ordered_sample_batches(g_, o_, Which::in_splits)));
}

void SampleSteps::write_predictions() {
  predict_graphs(comm_, o_, scores_of_all(*make_ordered_sample_batches(g_, o_, Which::all)), data_);
}

}  // namespace sar::tools
