/// The simulation: a tracer that a steady flow carries and stirs while it diffuses,
///
///     du/dt + div(v u) = D lap(u),
///
/// by vertex-centred finite volumes on the mesh's median dual, three-stage Runge-Kutta steps, no flux through
/// the walls. It knows MPI and its mesh, and nothing of neural networks.
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

  /// Starts anew from a few blobs of tracer; where they are depends on `seed` only.
  void start(std::uint64_t seed);
  /// Advances by `steps` steps of dt(). Collective.
  void advance(int steps);

  /// The tracer at all nodes, ghosts included. The array stays where it is as long as the solver lives.
  [[nodiscard]] std::span<double> field() { return field_; }
  [[nodiscard]] std::span<const double> field() const { return field_; }
  [[nodiscard]] double dt() const { return dt_; }  ///< the largest stable step times a safety factor

  /// Fills the ghosts of a nodal array with their owners' values. Collective.
  void update_ghosts(std::span<double> values) const;

  /// The flow's velocity.
  [[nodiscard]] static Point velocity(Point p);

 private:
  /// What flows between the two ends of an edge, per unit of time: the volume through the face of the dual
  /// mesh from the first end to the second, and the coefficient of diffusion.
  struct Face {
    double volume = 0;
    double diffusion = 0;
  };

  void compute_faces();
  void compute_rates(std::span<const double> values);
  double stable_step() const;

  MPI_Comm comm_;
  const Mesh& mesh_;
  std::vector<double> area_;  ///< of the dual cells of our nodes
  std::vector<Face> faces_;   ///< one an edge
  std::vector<double> field_, stage_, rate_;
  double dt_ = 0;
};
