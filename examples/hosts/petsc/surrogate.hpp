// SPDX-License-Identifier: MIT

/// The surrogate: a graph network that learns the change of a field over an interval of time from the
/// solver's own states, on whatever mesh the solver has at the moment. It knows nothing of PETSc.
#pragma once

#include <sar/models.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

struct SurrogateOptions {
  int hidden = 32;      ///< width of the network
  int blocks = 3;       ///< message passing steps: how many edges far a node sees
  double lr = 3e-3;     ///< learning rate of Adam
  double noise = 0.1;   ///< on the field in training, in units of its typical change
  int first_pairs = 8;  ///< pairs of states that determine the typical values before the training begins
  int history = 40;     ///< pairs that training draws from
  int train_steps = 4;  ///< optimizer steps for each new pair
  std::uint64_t seed = 1;
};

/// All functions are collective. Rows belong to the nodes of the graph of set_mesh().
class Surrogate {
 public:
  static constexpr sar::Index num_feats = 4;  ///< of a node: the field, and three numbers of what drives it

  Surrogate(const sar::Communicator& comm, const SurrogateOptions& options);

  /// Goes to another mesh: positions [nodes, 2]. Weights, the optimizer and typical values stay; states of
  /// the last mesh are forgotten.
  void set_mesh(const sar::HostGraph& graph, const sar::Tensor& positions);

  /// Takes the solver's state at the end of an interval: the field [nodes, 1], and what drives it in the next
  /// interval [nodes, 3]. Both are copied, because the solver goes on. Trains, and returns the mean loss of
  /// the steps, as soon as there are enough pairs. Throws sar::InputError if the loss is not finite.
  std::optional<double> observe(const sar::Tensor& field, const sar::Tensor& drive);

  /// Returns the field after the interval, [nodes, 1].
  sar::Tensor predict(const sar::Tensor& field, const sar::Tensor& drive);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }  ///< of the optimizer; local

 private:
  struct Pair {
    sar::Tensor x, change;  ///< [nodes, num_feats] at the beginning, [nodes, 1]
  };
  void determine_scales();
  double train(const Pair& pair);

  sar::Communicator comm_;
  SurrogateOptions options_;
  sar::Generator generator_;  ///< the same seed gives the same parameters on every rank, without a broadcast
  sar::MeshGraphNet network_;
  sar::Adam optimizer_;
  std::optional<sar::HostGraph> graph_;
  sar::Tensor edges_;                        ///< relative positions, in the graph's edge order
  std::optional<sar::Predictor> predictor_;  ///< of this graph
  sar::Tensor last_;                         ///< the last state, [nodes, num_feats]
  std::deque<Pair> pairs_;
  std::uint64_t steps_ = 0, draws_ = 0;
  double typical_change_ = 0;
};
