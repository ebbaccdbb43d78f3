// SPDX-License-Identifier: MIT

/// The solver: the temperature u of an insulated plate that a wandering spot heats and the air cools,
///
///     du/dt = D lap(u) - c u + f(x, t)
///
/// After PETSc's tutorial src/ts/tutorials/ex45.c: linear finite elements on a DMPlex of triangles, backward
/// Euler steps of a TS. The mesh is refined where the temperature varies most, and then distributed again. It
/// knows nothing of sar. Functions are collective and return PETSc's error codes.
#pragma once

#include <petscdmplex.h>
#include <petscts.h>

#include <vector>

struct Plate {
  PetscReal diffusion = 0.01, cooling = 2;   ///< D and c
  PetscReal power = 30, spot_radius = 0.06;  ///< of f
  PetscReal dt = 0.005;                      ///< the solver's time step
};

/// Returns f at the position x in the unit square. Local.
PetscReal heating(const Plate& plate, PetscReal time, const PetscReal* x);

/// A mesh, its time stepper and the temperature. Whoever has this object owns them.
struct Heat {
  Heat() = default;
  Heat(Heat&& other) noexcept { swap(other); }
  Heat& operator=(Heat&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Heat() { VecDestroy(&u), TSDestroy(&ts), DMDestroy(&dm); }
  void swap(Heat& other) noexcept {
    std::swap(dm, other.dm), std::swap(ts, other.ts), std::swap(u, other.u);
    std::swap(variation, other.variation), std::swap(plate, other.plate);
  }

  Plate plate;
  DM dm = nullptr;
  TS ts = nullptr;
  Vec u = nullptr;                   ///< global vector: a value for each vertex
  std::vector<PetscReal> variation;  ///< of each local cell: the largest difference of its corners so far
};

/// Makes a cold plate of 2 * cells^2 triangles at time 0, distributed over the ranks of `comm`.
PetscErrorCode create_heat(MPI_Comm comm, PetscInt cells, const Plate& plate, Heat& heat);

/// Advances by `steps` time steps. Monitors of heat.ts see the temperature before each step and after the
/// last.
PetscErrorCode advance(Heat& heat, PetscInt steps);

/// Notes how much the temperature varies within each cell.
PetscErrorCode note_variation(Heat& heat);

/// Divides the triangles whose variation is more than `share` of the largest one, and as many others as a
/// conforming mesh needs; distributes the mesh anew and takes the temperature to it. Time goes on.
PetscErrorCode refine(Heat& heat, PetscReal share);

/// Writes vectors of heat.dm to a file for ParaView, under the names of the vectors (PetscObjectSetName).
PetscErrorCode write_vtu(const Heat& heat, const char* path, const std::vector<Vec>& vectors);
