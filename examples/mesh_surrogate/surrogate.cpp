// SPDX-License-Identifier: MIT
#include "surrogate.hpp"

#include "solver.hpp"

#include <cmath>

using namespace sar;

namespace {

/// Divides the columns [first, last) by their common root mean square over all ranks: networks train best on
/// values of order 1, and a vector keeps its direction.
void normalize(const Communicator& comm, Tensor& features, Index first, Index last) {
  std::vector<double> sums(2);  // sum of squares, and the count
  for (Index i = 0; i < features.num_rows(); ++i)
    for (Index column = first; column < last; ++column) {
      sums[0] += static_cast<double>(features.row(i)[column]) * static_cast<double>(features.row(i)[column]);
      sums[1] += 1;
    }
  comm.all_reduce(std::span(sums));
  const auto factor = static_cast<real>(std::sqrt(sums[1] / sums[0]));
  for (Index i = 0; i < features.num_rows(); ++i)
    for (Index column = first; column < last; ++column) features.row(i)[column] *= factor;
}

}  // namespace

DirectedEdges directed_edges(const Mesh& mesh) {
  DirectedEdges edges;
  for (const auto& [a, b] : mesh.edges)
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
      if (to < mesh.num_owned) {
        edges.from.push_back(from);
        edges.to.push_back(to);
      }
  return edges;
}

HostGraph make_graph(const Communicator& comm, const Mesh& mesh) {
  const DirectedEdges edges = directed_edges(mesh);
  return {comm, LocalToGlobal{.num_owned = mesh.num_owned, .global_ids = mesh.global_id},
          LocalEdges{.src = edges.from, .dst = edges.to}};
}

Tensor node_features(const Communicator& comm, const Mesh& mesh) {
  Tensor features({mesh.num_owned, num_node_features});
  for (Index i = 0; i < features.num_rows(); ++i) {
    const auto node = static_cast<std::size_t>(i);
    const Point v = Solver::velocity(mesh.position[node]);
    real* row = features.row(i);
    row[0] = static_cast<real>(v.x);
    row[1] = static_cast<real>(v.y);
    row[2] = static_cast<real>(mesh.wall[node]);
  }
  normalize(comm, features, 0, 2);
  return features;
}

Tensor edge_features(const Communicator& comm, const Mesh& mesh) {
  const DirectedEdges edges = directed_edges(mesh);
  Tensor features({static_cast<Index>(edges.from.size()), num_edge_features});
  for (Index e = 0; e < features.num_rows(); ++e) {
    const Point a = mesh.position[edges.from[e]];
    const Point b = mesh.position[edges.to[e]];
    const Point v = Solver::velocity({(a.x + b.x) / 2, (a.y + b.y) / 2});
    const double dx = b.x - a.x, dy = b.y - a.y, length = std::hypot(dx, dy);
    real* row = features.row(e);
    row[0] = static_cast<real>(dx);
    row[1] = static_cast<real>(dy);
    row[2] = static_cast<real>(length);
    row[3] = static_cast<real>((v.x * dx + v.y * dy) / length);
  }
  normalize(comm, features, 0, 3);
  normalize(comm, features, 3, 4);
  return features;
}

MeshGraphNetOptions network_options(const SurrogateOptions& options) {
  return {.node_feats = 1 + num_node_features,
          .edge_feats = num_edge_features,
          .out_feats = 1,
          .hidden = options.hidden,
          .blocks = options.blocks,
          .activation = silu};
}

Surrogate::Surrogate(const Communicator& comm, const Mesh& mesh, const SurrogateOptions& options)
    : comm_(comm),
      num_nodes_(mesh.num_owned),
      options_(options),
      graph_(make_graph(comm, mesh)),
      node_features_(node_features(comm, mesh)),
      edge_features_(graph_.to_graph_order(edge_features(comm, mesh))),
      generator_(options.seed),
      network_(network_options(options), generator_),
      optimizer_(network_.named_parameters(), {.lr = options.lr}) {}

void Surrogate::set_scales(std::span<const TimeStep> steps) {
  std::vector<double> sums(4);  // sums of 1, u, u^2, (change of u)^2
  for (const auto& [before, after] : steps)
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_nodes_); ++i) {
      sums[0] += 1;
      sums[1] += before[i];
      sums[2] += before[i] * before[i];
      sums[3] += (after[i] - before[i]) * (after[i] - before[i]);
    }
  comm_.all_reduce(std::span(sums));
  field_mean_ = sums[1] / sums[0];
  field_scale_ = std::sqrt(sums[2] / sums[0] - field_mean_ * field_mean_);
  change_scale_ = std::sqrt(sums[3] / sums[0]);
}

Variable Surrogate::change(const Variable& field) const {
  const Variable scaled = (field - static_cast<real>(field_mean_)) * static_cast<real>(1 / field_scale_);
  return network_(graph_, concat_columns({scaled, node_features_}), edge_features_);
}

double Surrogate::train(const TimeStep& step) {
  // Adds noise to the input and subtracts it from the target, so that the network learns to correct its own
  // errors. The noise is keyed by the nodes' host ids and does not depend on their owners.
  const Random noise({.seed = options_.seed, .stream = 1, .step = steps_++});
  Tensor input({num_nodes_, 1}), target({num_nodes_, 1});
  for (Index i = 0; i < num_nodes_; ++i) {
    const auto node = static_cast<std::size_t>(i);
    const double before =
        step.before[node] +
        options_.noise * change_scale_ * noise.normal(static_cast<std::uint64_t>(graph_.src_ids()[node]));
    *input.row(i) = static_cast<real>(before);
    *target.row(i) = static_cast<real>((step.after[node] - before) / change_scale_);
  }

  const MixedPrecisionScope mixed(options_.mixed_precision);
  Tape tape;
  const Variable loss = mse(change(input), target, comm_);
  tape.backward(loss);
  gather_grads(comm_, network_);
  optimizer_.step();
  optimizer_.zero_grad();
  return static_cast<double>(loss.value().item());
}

void Surrogate::predict(std::span<double> field) const {
  const NoTape inference;
  Tensor now({num_nodes_, 1});
  for (Index i = 0; i < num_nodes_; ++i) *now.row(i) = static_cast<real>(field[i]);
  const Tensor predicted = change(now).value();
  for (Index i = 0; i < num_nodes_; ++i) field[i] += change_scale_ * static_cast<double>(*predicted.row(i));
}
