// SPDX-License-Identifier: MIT

/// The solver: heat in the fluid and in the plate, with explicit time steps. Every rank stores the whole
/// fields and advances its own nodes.
#pragma once

#include "meshes.hpp"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

using Fields = std::array<std::vector<double>, 2>;  ///< by Body, of all nodes

class Solver {
 public:
  Solver(MPI_Comm comm, const Meshes& meshes);

  /// Starts a run with warm spots in the fluid and heaters in the plate; the same on every rank.
  void start(std::uint64_t run);
  /// Collective.
  void advance(int steps);

  [[nodiscard]] const Fields& temperature() const { return temperature_; }
  [[nodiscard]] const std::vector<double>& heating() const { return heating_; }  ///< plate heat source
  [[nodiscard]] double dt() const { return dt_; }

 private:
  MPI_Comm comm_;
  const Meshes& meshes_;
  double dt_ = 0;
  Fields temperature_;
  std::vector<double> heating_;
};
