// SPDX-License-Identifier: MIT

/// The simulation: a tracer that is advected by a steady flow and diffuses,
///
///     du/dt + div(v u) = D lap(u),
///
/// with vertex-centered finite volumes on the mesh's median dual, three-stage Runge-Kutta steps and zero flux
/// through the walls. It depends on MPI and its mesh, but not on neural networks.
#pragma once

#include "mesh.hpp"

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

class Solver {
 public:
  /// `comm` and `mesh` must outlive the solver. Collective.
  Solver(MPI_Comm comm, const Mesh& mesh);

  /// Starts from a few blobs of tracer; their places depend only on `seed`.
  void start(std::uint64_t seed);
  /// Advances by `steps` steps of dt(). Collective.
  void advance(int steps);

  /// The tracer at all nodes, including ghosts. The array keeps its address during the lifetime of the
  /// solver.
  [[nodiscard]] std::span<double> field() { return field_; }
  [[nodiscard]] std::span<const double> field() const { return field_; }
  [[nodiscard]] double dt() const { return dt_; }  ///< the largest stable step times a safety factor

  /// Fills the ghosts of a nodal array with their owners' values. Collective.
  void update_ghosts(std::span<double> values) const;

  /// Returns the velocity of the flow.
  [[nodiscard]] static Point velocity(Point p);

 private:
  /// The fluxes between the two ends of an edge per unit of time: the volume through the face of the dual
  /// mesh from the first end to the second, and the diffusion coefficient.
  struct Face {
    double volume = 0;
    double diffusion = 0;
  };

  void compute_faces();
  void compute_rates(std::span<const double> values);
  double stable_step() const;

  MPI_Comm comm_;
  const Mesh& mesh_;
  std::vector<double> area_;  ///< areas of the dual cells of this rank's nodes
  std::vector<Face> faces_;   ///< one per edge
  std::vector<double> field_, stage_, rate_;
  double dt_ = 0;
};
