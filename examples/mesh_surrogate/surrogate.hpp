// SPDX-License-Identifier: MIT

/// The surrogate: a graph network that learns the change of the solver's field over a time step from the
/// solver's own time steps. It uses the solver's mesh and partition.
///
/// The network is the library's MeshGraphNet: encode, message passing with a small network on every edge,
/// decode (Pfaff et al., "Learning Mesh-Based Simulation with Graph Networks", arXiv 2010.03409).
#pragma once

#include "mesh.hpp"

#include <sar/models.hpp>

#include <cstdint>
#include <span>
#include <vector>

struct SurrogateOptions {
  int blocks = 3;      ///< message passing steps: how many edges far a node sees
  int hidden = 32;     ///< width of the network
  double lr = 3e-3;    ///< initial learning rate of Adam
  double noise = 0.2;  ///< on the input in training, in units of the typical change per step
  bool mixed_precision = false;
  std::uint64_t seed = 1;
};

/// The mesh's edges in both directions, each given by the rank that owns its destination.
struct DirectedEdges {
  std::vector<std::int32_t> from, to;
};
DirectedEdges directed_edges(const Mesh& mesh);

inline constexpr int num_node_features = 3, num_edge_features = 4;
/// Returns the graph of the mesh's nodes and directed edges. This function and the features are collective.
sar::HostGraph make_graph(const sar::Communicator& comm, const Mesh& mesh);
/// Returns velocity and wall: [nodes, 3].
sar::Tensor node_features(const sar::Communicator& comm, const Mesh& mesh);
/// Returns dx, dy, length, velocity along the edge: [directed edges, 4].
sar::Tensor edge_features(const sar::Communicator& comm, const Mesh& mesh);

/// Returns the options of a network from the field and node_features() to the change of the field.
sar::MeshGraphNetOptions network_options(const SurrogateOptions& options);

/// A time step of the surrogate: the field at this rank's nodes before and after.
struct TimeStep {
  std::vector<double> before, after;
};

/// All functions are collective. Arrays have the solver's layout: the values of this rank's nodes come first,
/// and ghosts are ignored; the library fetches the rows of other ranks.
class Surrogate {
 public:
  Surrogate(const sar::Communicator& comm, const Mesh& mesh, const SurrogateOptions& options);

  /// Determines the typical field and the typical change over all ranks. Call it before train() and
  /// predict().
  void set_scales(std::span<const TimeStep> steps);
  /// Performs one optimizer step. Returns the loss: the mean square of (predicted - true change) / (typical
  /// change).
  double train(const TimeStep& step);
  void set_lr(double lr) { optimizer_.set_lr(lr); }

  /// Advances the field by one time step.
  void predict(std::span<double> field) const;

 private:
  /// Returns the predicted change in units of the typical one, [nodes, 1], for a field [nodes, 1].
  [[nodiscard]] sar::Variable change(const sar::Variable& field) const;

  sar::Communicator comm_;
  sar::Index num_nodes_;
  SurrogateOptions options_;
  sar::HostGraph graph_;
  sar::Tensor node_features_, edge_features_;  ///< edge features are in the graph's edge order
  sar::Generator generator_;  ///< the same seed gives the same parameters on every rank, without a broadcast
  sar::MeshGraphNet network_;
  sar::Adam optimizer_;
  std::uint64_t steps_ = 0;
  double field_mean_ = 0, field_scale_ = 1, change_scale_ = 1;
};
