// SPDX-License-Identifier: MIT
#include "heat.hpp"

#include <petscdmplextransform.h>
#include <petscds.h>
#include <petscfe.h>
#include <petscsf.h>

#include <algorithm>
#include <cmath>

namespace {

// The names of PETSc's pointwise functions for the weak form, of which most are not used here.
#define POINT_ARGUMENTS                                                                     \
  PetscInt, PetscInt, PetscInt, const PetscInt[], const PetscInt[], const PetscScalar u[],  \
      const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt[], const PetscInt[], \
      const PetscScalar[], const PetscScalar[], const PetscScalar[], PetscReal t

Plate plate_of(const PetscScalar constants[]) {
  return {
      .diffusion = constants[0], .cooling = constants[1], .power = constants[2], .spot_radius = constants[3]};
}

/// du/dt + c u - f
void residual(POINT_ARGUMENTS, const PetscReal x[], PetscInt, const PetscScalar constants[],
              PetscScalar f0[]) {
  (void)u_x;
  const Plate plate = plate_of(constants);
  f0[0] = u_t[0] + plate.cooling * u[0] - heating(plate, t, x);
}

/// D grad(u)
void flux(POINT_ARGUMENTS, const PetscReal[], PetscInt, const PetscScalar constants[], PetscScalar f1[]) {
  (void)u, (void)u_t, (void)t;
  for (int d = 0; d < 2; ++d) f1[d] = plate_of(constants).diffusion * u_x[d];
}

void residual_by_u(POINT_ARGUMENTS, PetscReal shift, const PetscReal[], PetscInt,
                   const PetscScalar constants[], PetscScalar g0[]) {
  (void)u, (void)u_t, (void)u_x, (void)t;
  g0[0] = shift + plate_of(constants).cooling;
}

void flux_by_gradient(POINT_ARGUMENTS, PetscReal, const PetscReal[], PetscInt, const PetscScalar constants[],
                      PetscScalar g3[]) {
  (void)u, (void)u_t, (void)u_x, (void)t;
  g3[0] = g3[3] = plate_of(constants).diffusion;
}

#undef POINT_ARGUMENTS

/// Gives a mesh linear elements and the equation. Vertices at the boundary are unknowns as the others.
PetscErrorCode set_equation(DM dm, const Plate& plate) {
  PetscFE elements = nullptr;
  PetscDS equation = nullptr;
  PetscScalar constants[] = {plate.diffusion, plate.cooling, plate.power, plate.spot_radius};
  PetscInt fields = 0;
  PetscFunctionBeginUser;
  PetscCall(DMGetNumFields(dm, &fields));
  if (fields == 0) {  // else DMPlexDistribute has copied them
    PetscCall(PetscFECreateLagrange(PETSC_COMM_SELF, 2, 1, PETSC_TRUE, 1, PETSC_DETERMINE, &elements));
    PetscCall(PetscObjectSetName(reinterpret_cast<PetscObject>(elements), "temperature"));
    PetscCall(DMSetField(dm, 0, nullptr, reinterpret_cast<PetscObject>(elements)));
    PetscCall(PetscFEDestroy(&elements));
    PetscCall(DMCreateDS(dm));
  }
  PetscCall(DMGetDS(dm, &equation));
  PetscCall(PetscDSSetResidual(equation, 0, residual, flux));
  PetscCall(PetscDSSetJacobian(equation, 0, 0, residual_by_u, nullptr, nullptr, flux_by_gradient));
  PetscCall(PetscDSSetConstants(equation, 4, constants));
  PetscFunctionReturn(0);
}

/// Makes the time stepper and the vector for a mesh, which it takes.
PetscErrorCode set_solver(DM dm, const Plate& plate, PetscReal time, Heat& heat) {
  SNES newton = nullptr;
  KSP solver = nullptr;
  PC preconditioner = nullptr;
  PetscInt begin = 0, end = 0;
  PetscFunctionBeginUser;
  heat.dm = dm;
  heat.plate = plate;
  PetscCall(DMPlexGetHeightStratum(dm, 0, &begin, &end));
  heat.variation.assign(static_cast<std::size_t>(end - begin), 0);
  PetscCall(set_equation(dm, plate));
  PetscCall(DMCreateGlobalVector(dm, &heat.u));
  PetscCall(PetscObjectSetName(reinterpret_cast<PetscObject>(heat.u), "solver_"));

  PetscCall(TSCreate(PetscObjectComm(reinterpret_cast<PetscObject>(dm)), &heat.ts));
  PetscCall(TSSetDM(heat.ts, dm));
  PetscCall(DMTSSetBoundaryLocal(dm, DMPlexTSComputeBoundary, nullptr));
  PetscCall(DMTSSetIFunctionLocal(dm, DMPlexTSComputeIFunctionFEM, nullptr));
  PetscCall(DMTSSetIJacobianLocal(dm, DMPlexTSComputeIJacobianFEM, nullptr));
  PetscCall(TSSetType(heat.ts, TSBEULER));
  PetscCall(TSSetTime(heat.ts, time));
  PetscCall(TSSetTimeStep(heat.ts, plate.dt));
  PetscCall(TSSetMaxTime(heat.ts, PETSC_MAX_REAL));
  PetscCall(TSSetExactFinalTime(heat.ts, TS_EXACTFINALTIME_STEPOVER));
  PetscCall(TSGetSNES(heat.ts, &newton));
  PetscCall(SNESSetType(newton, SNESKSPONLY));  // the equation is linear: one matrix for all steps
  PetscCall(SNESSetLagJacobian(newton, -2));
  PetscCall(SNESSetLagJacobianPersists(newton, PETSC_TRUE));
  PetscCall(SNESGetKSP(newton, &solver));
  PetscCall(KSPSetType(solver, KSPCG));
  PetscCall(KSPSetTolerances(solver, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPGetPC(solver, &preconditioner));
  PetscCall(PCSetType(preconditioner, PCJACOBI));
  PetscCall(TSSetFromOptions(heat.ts));
  PetscFunctionReturn(0);
}

/// Marks the cells to divide.
PetscErrorCode mark_cells(const Heat& heat, PetscReal share, DMLabel marks) {
  PetscInt begin = 0, end = 0;
  PetscReal largest = 0;
  PetscFunctionBeginUser;
  for (const PetscReal each : heat.variation) largest = std::max(largest, each);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPIU_REAL, MPIU_MAX,
                             PetscObjectComm(reinterpret_cast<PetscObject>(heat.dm))));
  PetscCall(DMPlexGetHeightStratum(heat.dm, 0, &begin, &end));
  PetscCall(DMLabelSetDefaultValue(marks, DM_ADAPT_KEEP));
  for (PetscInt cell = begin; cell < end; ++cell)
    if (heat.variation[static_cast<std::size_t>(cell - begin)] > share * largest)
      PetscCall(DMLabelSetValue(marks, cell, DM_ADAPT_REFINE));
  PetscFunctionReturn(0);
}

/// Copies the values of old vertices, and gives new vertices the mean of the edge that they divide, which is
/// the finite element function on the finer mesh. Local vectors.
PetscErrorCode interpolate(DMPlexTransform division, DM from, Vec u, DM to, Vec values) {
  PetscSection from_layout = nullptr, to_layout = nullptr;
  const PetscScalar* old = nullptr;
  PetscScalar* result = nullptr;
  PetscInt begin = 0, end = 0, place = 0, target = 0;
  const auto old_value = [&](PetscInt vertex, PetscScalar& value) {
    PetscInt offset = 0;
    const PetscErrorCode code = PetscSectionGetOffset(from_layout, vertex, &offset);
    value = code == 0 ? old[offset] : 0;
    return code;
  };
  PetscFunctionBeginUser;
  PetscCall(DMGetLocalSection(from, &from_layout));
  PetscCall(DMGetLocalSection(to, &to_layout));
  PetscCall(VecGetArrayRead(u, &old));
  PetscCall(VecGetArray(values, &result));
  PetscCall(DMPlexGetDepthStratum(from, 0, &begin, &end));
  for (PetscInt vertex = begin; vertex < end; ++vertex) {
    PetscCall(
        DMPlexTransformGetTargetPoint(division, DM_POLYTOPE_POINT, DM_POLYTOPE_POINT, vertex, 0, &target));
    PetscCall(PetscSectionGetOffset(to_layout, target, &place));
    PetscCall(old_value(vertex, result[place]));
  }
  PetscCall(DMPlexGetDepthStratum(from, 1, &begin, &end));
  for (PetscInt edge = begin; edge < end; ++edge) {
    PetscInt num_types = 0, *sizes = nullptr, *cones = nullptr, *orientations = nullptr;
    DMPolytopeType* types = nullptr;
    const PetscInt* ends = nullptr;
    PetscScalar first = 0, second = 0;
    PetscCall(DMPlexTransformCellTransform(division, DM_POLYTOPE_SEGMENT, edge, nullptr, &num_types, &types,
                                           &sizes, &cones, &orientations));
    if (std::find(types, types + num_types, DM_POLYTOPE_POINT) == types + num_types) continue;
    PetscCall(
        DMPlexTransformGetTargetPoint(division, DM_POLYTOPE_SEGMENT, DM_POLYTOPE_POINT, edge, 0, &target));
    PetscCall(PetscSectionGetOffset(to_layout, target, &place));
    PetscCall(DMPlexGetCone(from, edge, &ends));
    PetscCall(old_value(ends[0], first));
    PetscCall(old_value(ends[1], second));
    result[place] = (first + second) / 2;
  }
  PetscCall(VecRestoreArray(values, &result));
  PetscCall(VecRestoreArrayRead(u, &old));
  PetscFunctionReturn(0);
}

/// Distributes a mesh anew, with the values of its vertices: replaces both.
PetscErrorCode distribute(DM& dm, Vec& values) {
  DM distributed = nullptr;
  PetscSF moves = nullptr;
  PetscSection layout = nullptr, new_layout = nullptr;
  Vec new_values = nullptr;
  PetscFunctionBeginUser;
  PetscCall(DMPlexDistribute(dm, 0, &moves, &distributed));
  if (distributed == nullptr) PetscFunctionReturn(0);  // one rank
  PetscCall(DMGetLocalSection(dm, &layout));
  PetscCall(PetscSectionCreate(PetscObjectComm(reinterpret_cast<PetscObject>(dm)), &new_layout));
  PetscCall(VecCreate(PETSC_COMM_SELF, &new_values));
  PetscCall(DMPlexDistributeField(dm, moves, layout, values, new_layout, new_values));
  PetscCall(PetscSectionDestroy(&new_layout));
  PetscCall(PetscSFDestroy(&moves));
  PetscCall(VecDestroy(&values));
  PetscCall(DMDestroy(&dm));
  dm = distributed;
  values = new_values;
  PetscFunctionReturn(0);
}

}  // namespace

PetscReal heating(const Plate& plate, PetscReal time, const PetscReal* x) {
  const PetscReal turn = 2 * PETSC_PI * time;
  const PetscReal radius = 0.27 + 0.1 * std::sin(0.37 * turn);
  const PetscReal dx = x[0] - 0.5 - radius * std::cos(turn), dy = x[1] - 0.5 - radius * std::sin(turn);
  return plate.power * std::exp(-(dx * dx + dy * dy) / (2 * plate.spot_radius * plate.spot_radius));
}

PetscErrorCode create_heat(MPI_Comm comm, PetscInt cells, const Plate& plate, Heat& heat) {
  std::vector<PetscInt> corners;  // of each triangle: rank 0 gives all
  std::vector<PetscReal> positions;
  DM triangles = nullptr, distributed = nullptr;
  PetscMPIInt rank = 0;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  for (PetscInt row = 0; rank == 0 && row <= cells; ++row)
    for (PetscInt column = 0; column <= cells; ++column) {
      const PetscInt a = row * (cells + 1) + column, b = a + 1, c = b + cells + 1, d = c - 1;
      positions.push_back(static_cast<PetscReal>(column) / static_cast<PetscReal>(cells));
      positions.push_back(static_cast<PetscReal>(row) / static_cast<PetscReal>(cells));
      if (row < cells && column < cells) corners.insert(corners.end(), {a, b, c, a, c, d});
    }
  PetscCall(DMPlexCreateFromCellListPetsc(comm, 2, static_cast<PetscInt>(corners.size() / 3),
                                          static_cast<PetscInt>(positions.size() / 2), 3, PETSC_TRUE,
                                          corners.data(), 2, positions.data(), &triangles));
  PetscCall(DMPlexDistribute(triangles, 0, nullptr, &distributed));
  if (distributed != nullptr) {
    PetscCall(DMDestroy(&triangles));
    triangles = distributed;
  }
  PetscCall(set_solver(triangles, plate, 0, heat));
  PetscCall(VecSet(heat.u, 0));
  PetscFunctionReturn(0);
}

PetscErrorCode advance(Heat& heat, PetscInt steps) {
  PetscInt done = 0;
  PetscFunctionBeginUser;
  PetscCall(TSGetStepNumber(heat.ts, &done));
  PetscCall(TSSetMaxSteps(heat.ts, done + steps));
  PetscCall(TSSolve(heat.ts, heat.u));
  PetscFunctionReturn(0);
}

PetscErrorCode note_variation(Heat& heat) {
  PetscSection layout = nullptr;
  Vec local = nullptr;
  PetscInt begin = 0, end = 0;
  PetscFunctionBeginUser;
  PetscCall(DMGetLocalSection(heat.dm, &layout));
  PetscCall(DMGetLocalVector(heat.dm, &local));
  PetscCall(DMGlobalToLocal(heat.dm, heat.u, INSERT_VALUES, local));
  PetscCall(DMPlexGetHeightStratum(heat.dm, 0, &begin, &end));
  for (PetscInt cell = begin; cell < end; ++cell) {
    PetscScalar* corners = nullptr;
    PetscInt size = 0;
    PetscCall(DMPlexVecGetClosure(heat.dm, layout, local, cell, &size, &corners));
    const auto [least, most] = std::minmax_element(corners, corners + size);
    PetscReal& noted = heat.variation[static_cast<std::size_t>(cell - begin)];
    noted = std::max(noted, *most - *least);
    PetscCall(DMPlexVecRestoreClosure(heat.dm, layout, local, cell, &size, &corners));
  }
  PetscCall(DMRestoreLocalVector(heat.dm, &local));
  PetscFunctionReturn(0);
}

PetscErrorCode refine(Heat& heat, PetscReal share) {
  DMLabel marks = nullptr;
  DMPlexTransform division = nullptr;
  DM finer = nullptr;
  Vec u = nullptr, values = nullptr;
  PetscReal time = 0;
  Heat next;
  PetscFunctionBeginUser;
  PetscCall(DMLabelCreate(PETSC_COMM_SELF, "divide", &marks));
  PetscCall(mark_cells(heat, share, marks));
  PetscCall(DMPlexTransformCreate(PetscObjectComm(reinterpret_cast<PetscObject>(heat.dm)), &division));
  PetscCall(DMPlexTransformSetDM(division, heat.dm));
  PetscCall(DMPlexTransformSetActive(division, marks));
  PetscCall(DMPlexTransformSetType(division, DMPLEXREFINESBR));  // divides longest edges
  PetscCall(DMPlexTransformSetUp(division));
  PetscCall(DMPlexTransformApply(division, heat.dm, &finer));
  PetscCall(set_equation(finer, heat.plate));

  PetscCall(DMGetLocalVector(heat.dm, &u));
  PetscCall(DMGlobalToLocal(heat.dm, heat.u, INSERT_VALUES, u));
  PetscCall(DMCreateLocalVector(finer, &values));
  PetscCall(interpolate(division, heat.dm, u, finer, values));
  PetscCall(DMRestoreLocalVector(heat.dm, &u));
  PetscCall(DMPlexTransformDestroy(&division));
  PetscCall(DMLabelDestroy(&marks));

  PetscCall(distribute(finer, values));
  PetscCall(TSGetTime(heat.ts, &time));
  PetscCall(set_solver(finer, heat.plate, time, next));
  PetscCall(DMLocalToGlobal(finer, values, INSERT_VALUES, next.u));
  PetscCall(VecDestroy(&values));
  heat.swap(next);
  PetscFunctionReturn(0);
}

PetscErrorCode write_vtu(const Heat& heat, const char* path, const std::vector<Vec>& vectors) {
  PetscViewer file = nullptr;
  PetscFunctionBeginUser;
  PetscCall(PetscViewerVTKOpen(PetscObjectComm(reinterpret_cast<PetscObject>(heat.dm)), path, FILE_MODE_WRITE,
                               &file));
  for (Vec vector : vectors) PetscCall(VecView(vector, file));
  PetscCall(PetscViewerDestroy(&file));  // writes it
  PetscFunctionReturn(0);
}
