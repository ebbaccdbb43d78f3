// SPDX-License-Identifier: MIT

/// The surrogate: one graph network over both meshes, with a node type per mesh and an edge type for the
/// links within each mesh and in each direction between them. It learns the change of both fields over a time
/// step.
#pragma once

#include "solver.hpp"

#include <sar/models.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

struct SurrogateOptions {
  int rounds = 2;  ///< message passing steps: how many links far a node sees
  int hidden = 24;
  double lr = 5e-3;
  std::uint64_t seed = 1;
};

/// Aggregates the links of one type: the sum over the in-edges e = (u, v) of MLP(h_u, h_v, x_e). The features
/// x_e are the field "x" of the relation.
struct Transfer : sar::Module {
  sar::MLP edge;
  Transfer(int hidden, sar::Generator& gen);
  sar::Variable operator()(const sar::Graph& graph, const std::pair<sar::Variable, sar::Variable>& h) const;
};

/// Computes h_v + norm(MLP(h_v, sum of the transfers over all link types)).
struct Round : sar::Module {
  sar::HeteroGraphConv transfers;
  std::array<sar::MLP, 2> node;
  std::array<sar::LayerNorm, 2> norm;
  Round(int hidden, sar::Generator& gen);
  sar::HeteroGraphConv::Rows operator()(const sar::Graph& graph, const sar::HeteroGraphConv::Rows& h) const;
};

struct Network : sar::Module {
  std::array<sar::MLP, 2> encoder;
  sar::ModuleList<Round> rounds;
  std::array<sar::MLP, 2> decoder;
  Network(const SurrogateOptions& options, sar::Generator& gen);
  /// Returns the change of each field, [local nodes, 1], from [local nodes, features].
  std::array<sar::Variable, 2> operator()(const sar::Graph& graph,
                                          const std::array<sar::Tensor, 2>& features) const;
};

/// A time step of the surrogate.
struct TimeStep {
  Fields before, after;
  std::vector<double> heating;
};

/// All functions are collective.
class Surrogate {
 public:
  Surrogate(const sar::Communicator& comm, const Meshes& meshes, const SurrogateOptions& options);

  /// Determines the typical temperature and the typical change. Call it before train() and predict().
  void set_scales(const std::vector<TimeStep>& steps);
  /// Performs one optimizer step. Returns the loss: the sum over both meshes of the mean squares of
  /// (predicted - true change) / (typical change).
  double train(const TimeStep& step);
  void set_lr(double lr) { optimizer_.set_lr(lr); }
  /// Advances this rank's nodes of both fields by one time step.
  void predict(Fields& temperature, const std::vector<double>& heating) const;

 private:
  [[nodiscard]] std::array<sar::Variable, 2> change(const Fields& temperature,
                                                    const std::vector<double>& heating) const;

  sar::Communicator comm_;
  const Meshes& meshes_;
  sar::HostGraph graph_;
  sar::Generator generator_;  ///< the same seed gives the same parameters on every rank, without a broadcast
  Network network_;
  sar::Adam optimizer_;
  std::array<double, 2> scale_{1, 1}, change_scale_{1, 1};
};
