// SPDX-License-Identifier: MIT
#include "surrogate.hpp"

#include <cmath>

using namespace sar;

namespace {

/// Returns rows [nodes, 1 + 3] of a field [nodes, 1] and a drive [nodes, 3].
Tensor features(const Tensor& field, const Tensor& drive) {
  Tensor x({field.num_rows(), Surrogate::num_feats});
  for (Index i = 0; i < x.num_rows(); ++i) {
    x.row(i)[0] = *field.row(i);
    std::copy_n(drive.row(i), 3, x.row(i) + 1);
  }
  return x;
}

}  // namespace

Surrogate::Surrogate(const Communicator& comm, const SurrogateOptions& options)
    : comm_(comm),
      options_(options),
      generator_(options.seed),
      network_({.node_feats = num_feats,
                .edge_feats = 3,
                .out_feats = 1,
                .hidden = options.hidden,
                .blocks = options.blocks,
                .activation = silu,
                .normalize = true},
               comm, generator_),
      optimizer_(network_.named_parameters(), {.lr = options.lr}) {}

void Surrogate::set_mesh(const HostGraph& graph, const Tensor& positions) {
  const NoTape no_tape;
  graph_ = graph;
  edges_ = relative_positions(graph, positions).value();
  const auto forward = [this](const Graph& on, const Variable& x, const Variable& edges) {
    return network_(on, x, edges);
  };
  predictor_.emplace(network_, forward,
                     Predictor::Widths{.in_feats = num_feats, .out_feats = 1, .edge_feats = 3}, graph);
  last_ = {};
  pairs_.clear();
}

std::optional<double> Surrogate::observe(const Tensor& field, const Tensor& drive) {
  Tensor now = features(field, drive);
  if (last_.defined()) {
    Tensor change({now.num_rows(), 1});
    for (Index i = 0; i < now.num_rows(); ++i) *change.row(i) = *now.row(i) - *last_.row(i);
    pairs_.push_back({std::move(last_), std::move(change)});
    if (std::ssize(pairs_) > options_.history) pairs_.pop_front();
  }
  last_ = std::move(now);
  if (!network_.has_statistics() && std::ssize(pairs_) >= options_.first_pairs) determine_scales();
  if (pairs_.empty() || !network_.has_statistics()) return {};

  const Random random({.seed = options_.seed, .stream = 2});  // the same draws on every rank
  double loss = 0;
  for (int k = 0; k < options_.train_steps; ++k)
    loss += train(pairs_[random.bits(draws_++) % pairs_.size()]) / options_.train_steps;
  require<InputError>(std::isfinite(loss), "the loss is ", loss, " after ", steps_,
                      " steps: try a smaller -lr than ", options_.lr);
  return loss;
}

void Surrogate::determine_scales() {
  std::vector<double> sums(2);  // of the squares of changes, and their number
  for (const Pair& pair : pairs_) {
    network_.update_statistics(pair.x, edges_, pair.change);
    for (Index i = 0; i < pair.change.num_rows(); ++i) sums[0] += std::pow(double{*pair.change.row(i)}, 2);
    sums[1] += static_cast<double>(pair.change.num_rows());
  }
  comm_.all_reduce(std::span(sums));
  typical_change_ = std::sqrt(sums[0] / sums[1]);
}

double Surrogate::train(const Pair& pair) {
  // Adds noise to the input and takes it back in the target, so that the network learns to correct its own
  // errors. Host ids key the noise, so it does not depend on who owns a node.
  const Random noise({.seed = options_.seed, .stream = 1, .step = steps_++});
  Tensor x = pair.x.clone(), target = pair.change.clone();
  for (Index i = 0; i < x.num_rows(); ++i) {
    const auto id = static_cast<std::uint64_t>(graph_->src_ids()[i]);
    const auto shift = static_cast<real>(options_.noise * typical_change_ * noise.normal(id));
    *x.row(i) += shift;
    *target.row(i) -= shift;
  }
  Tape tape;
  const Variable result = network_.normalized(*graph_, x, edges_);
  const Variable loss = mse(result, network_.normalized_target(target).value(), comm_);
  tape.backward(loss);
  gather_grads(comm_, network_);
  optimizer_.step();
  optimizer_.zero_grad();
  return static_cast<double>(loss.value().item());
}

Tensor Surrogate::predict(const Tensor& field, const Tensor& drive) {
  Tensor change({field.num_rows(), 1});
  (*predictor_)(features(field, drive), edges_, change);
  for (Index i = 0; i < change.num_rows(); ++i) *change.row(i) += *field.row(i);
  return change;
}
