/// The surrogate: a graph network that learns the change of the solver's field over a time step from the
/// solver's own time steps, on the solver's mesh, as the solver has cut it.
///
/// The network is the library's MeshGraphNet: encode, blocks of message passing with a small network on every
/// edge, decode (Pfaff et al., "Learning Mesh-Based Simulation with Graph Networks", arXiv 2010.03409).
#pragma once

#include "mesh.hpp"

#include <sar/sar.hpp>

#include <cstdint>
#include <span>
#include <vector>

struct SurrogateOptions {
  int blocks = 3;      ///< of message passing: how many edges far a node sees
  int hidden = 32;     ///< width of the network
  double lr = 3e-3;    ///< of Adam, at the beginning
  double noise = 0.2;  ///< in training, on the input; in units of the typical change over a step
  std::uint64_t seed = 1;
};

/// The mesh's edges in both directions, each given by the rank that owns the end it goes to.
struct DirectedEdges {
  std::vector<std::int32_t> from, to;
};
DirectedEdges directed_edges(const Mesh& mesh);

inline constexpr int num_node_features = 3, num_edge_features = 4;
/// The graph of the mesh's nodes and directed edges. Collective, as the features.
sar::HostGraph make_graph(const sar::Communicator& comm, const Mesh& mesh);
/// Velocity and wall: [nodes, 3].
sar::Tensor node_features(const sar::Communicator& comm, const Mesh& mesh);
/// dx, dy, length, velocity along the edge: [directed edges, 4].
sar::Tensor edge_features(const sar::Communicator& comm, const Mesh& mesh);

/// From the field and node_features() to the change of the field.
sar::MeshGraphNetOptions network_options(const SurrogateOptions& options);

/// A time step as the surrogate sees it: the field at this rank's nodes before and after.
struct TimeStep {
  std::vector<double> before, after;
};

/// Everything is collective. Arrays are those of the solver: the values of this rank's nodes come first, and
/// ghosts are not looked at; the library brings the rows of other ranks that a message needs.
class Surrogate {
 public:
  Surrogate(const sar::Communicator& comm, const Mesh& mesh, const SurrogateOptions& options);

  /// What a typical field and a typical change are, over all ranks; before the first call of train() and
  /// predict().
  void set_scales(std::span<const TimeStep> steps);
  /// One step of the optimizer; returns the loss, the mean square of (predicted - true change) / (typical
  /// change).
  double train(const TimeStep& step);
  void set_lr(double lr) { optimizer_.set_lr(lr); }

  /// Advances the field by one time step.
  void predict(std::span<double> field) const;

 private:
  /// The predicted change in units of the typical one: [nodes, 1], for a field [nodes, 1].
  [[nodiscard]] sar::Variable change(const sar::Variable& field) const;

  sar::Communicator comm_;
  sar::Index num_nodes_;
  SurrogateOptions options_;
  sar::HostGraph graph_;
  sar::Tensor node_features_, edge_features_;  ///< those of the edges in the graph's order
  sar::Generator generator_;  ///< the same seed gives the same parameters on every rank, without a message
  sar::MeshGraphNet network_;
  sar::Adam optimizer_;
  std::uint64_t steps_ = 0;
  double field_mean_ = 0, field_scale_ = 1, change_scale_ = 1;
};
