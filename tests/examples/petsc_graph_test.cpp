// SPDX-License-Identifier: MIT

/// sar_petsc.hpp on box meshes of PETSc, whose nodes have known neighbors: vertices and cells, two and three
/// dimensions, with and without overlap, ranks without nodes; vectors; errors.
#include "../../examples/hosts/petsc/sar_petsc.hpp"

#include <petscdmshell.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

using namespace sar_petsc;

namespace {

int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

/// A PETSc object that is destroyed at the end of a scope.
template <class Object>
struct Owned : sar::NonCopyable {
  explicit Owned(PetscErrorCode (*destroy_object)(Object*)) : destroy(destroy_object) {}
  ~Owned() { destroy(&object); }
  operator Object() const { return object; }  // NOLINT: converts by design
  PetscErrorCode (*destroy)(Object*);
  Object object = nullptr;
};

struct Dm : Owned<DM> {
  Dm() : Owned(DMDestroy) {}
};

void make_box(Dm& mesh, int dim, PetscInt cells, PetscInt overlap, PetscBool interpolate = PETSC_TRUE) {
  const PetscInt faces[] = {cells, cells, cells};
  const PetscReal low[] = {0, 0, 0}, high[] = {1, 1, 1};
  Dm whole;
  check(DMPlexCreateBoxMesh(PETSC_COMM_WORLD, dim, PETSC_FALSE, faces, low, high, nullptr, interpolate,
                            &whole.object));
  check(DMPlexDistribute(whole, overlap, nullptr, &mesh.object));
  if (mesh.object == nullptr) std::swap(mesh.object, whole.object);  // one rank
}

/// Sums of positions over the neighbors of each node, and their number: as on a grid of n points along each
/// side.
void check_graph(const sar::Communicator& comm, int dim, PetscInt cells, PetscInt overlap, PlexNodes nodes) {
  const std::string what = sar::concat(dim, " dimensions, ", cells, " cells, overlap ", overlap, ", ",
                                       nodes == PlexNodes::cells ? "cells" : "vertices");
  const int n = static_cast<int>(nodes == PlexNodes::cells ? cells : cells + 1);
  Dm mesh;
  make_box(mesh, dim, cells, overlap);
  const PlexGraph plex = plex_graph(mesh, nodes);
  const sar::HostGraph graph(comm, plex.ids, {.src = plex.src, .dst = plex.dst}, {.add_reverse_edges = true});
  expect(comm.all_reduce(graph.num_nodes()) == std::lround(std::pow(n, dim)), what + ": number of nodes");

  const std::span<const double> x(plex.positions);
  const sar::Tensor positions = sar::Tensor::from({graph.num_nodes(), dim}, x);
  const sar::Tensor ones = sar::Tensor::full({graph.num_nodes(), 1}, 1);
  const sar::Variable sums = graph.update_all(sar::fn::copy_u(positions), sar::fn::sum);
  const sar::Variable degrees = graph.update_all(sar::fn::copy_u(ones), sar::fn::sum);
  const double step = 1.0 / static_cast<double>(cells), first = nodes == PlexNodes::cells ? step / 2 : 0;
  double error = 0;
  for (sar::Index i = 0; i < graph.num_nodes(); ++i) {
    double degree = 0;
    std::vector<double> sum(dim);
    for (int d = 0; d < dim; ++d)
      for (const int to : {-1, 1}) {
        const long place = std::lround((x[i * dim + d] - first) / step) + to;
        if (place < 0 || place >= n) continue;
        ++degree;
        for (int k = 0; k < dim; ++k) sum[k] += x[i * dim + k] + (k == d ? to * step : 0);
      }
    error = std::max(error, std::abs(static_cast<double>(*degrees.value().row(i)) - degree));
    for (int d = 0; d < dim; ++d)
      error = std::max(error, std::abs(static_cast<double>(sums.value().row(i)[d]) - sum[d]));
  }
  expect(error < 1e-5, sar::concat(what, ": neighbors, error ", error));

  // the ids do not depend on the partition: their sum is that of a mesh on one rank
  Dm alone;
  const PetscInt faces[] = {cells, cells, cells};
  check(DMPlexCreateBoxMesh(PETSC_COMM_SELF, dim, PETSC_FALSE, faces, nullptr, nullptr, nullptr, PETSC_TRUE,
                            &alone.object));
  std::int64_t here = 0, there = 0;
  for (const std::int64_t id : plex.ids) here += id % 1000003;
  for (const std::int64_t id : plex_graph(alone, nodes).ids) there += id % 1000003;
  expect(comm.all_reduce(here) == there, what + ": ids");
}

/// Gives points of each depth so many values, of which `fixed` of one vertex are constrained.
void set_layout(DM mesh, std::initializer_list<PetscInt> values_at_depth, PetscInt fixed = 0) {
  Owned<PetscSection> layout(PetscSectionDestroy);
  PetscInt begin = 0, end = 0, depth = 0;
  check(PetscSectionCreate(PETSC_COMM_WORLD, &layout.object));
  check(DMPlexGetChart(mesh, &begin, &end));
  check(PetscSectionSetChart(layout, begin, end));
  for (const PetscInt values : values_at_depth) {
    check(DMPlexGetDepthStratum(mesh, depth++, &begin, &end));
    for (PetscInt point = begin; point < end; ++point) check(PetscSectionSetDof(layout, point, values));
  }
  IS numbers = nullptr;  // belongs to the DM
  const PetscInt* number = nullptr;
  check(DMPlexGetVertexNumbering(mesh, &numbers));
  check(ISGetIndices(numbers, &number));
  check(DMPlexGetDepthStratum(mesh, 0, &begin, &end));
  for (PetscInt vertex = begin; vertex < end; ++vertex)
    if (number[vertex - begin] == 0 || number[vertex - begin] == -1)  // of a ghost: minus the number minus 1
      check(PetscSectionSetConstraintDof(layout, vertex, fixed));
  check(ISRestoreIndices(numbers, &number));
  check(PetscSectionSetUp(layout));
  check(DMSetLocalSection(mesh, layout));
}

void check_vectors(const sar::Communicator& comm, bool with_edges) {
  Dm mesh;
  make_box(mesh, 2, 5, 1);
  set_layout(mesh, {2, with_edges ? 1 : 0});
  const PlexGraph plex = plex_graph(mesh, PlexNodes::vertices);
  const NodeValues values(comm, mesh, plex);
  Owned<Vec> u(VecDestroy);
  check(DMCreateGlobalVector(mesh, &u.object));
  check(VecSet(u, 7));
  const sar::Index n = std::ssize(plex.points);
  values.write(sar::Tensor::from({n, 2}, std::span<const double>(plex.positions)), u);
  double error = 0, sum = 0;
  {
    const ReadRows now(values, u);
    expect(now.rows().shape() == sar::Shape{n, 2}, "the shape of the rows of a vector");
    for (sar::Index i = 0; i < 2 * n; ++i)
      error = std::max(error, std::abs(static_cast<double>(now.rows().data()[i]) - plex.positions[i]));
    if (!with_edges && sizeof(sar::real) == sizeof(PetscScalar))
      expect(now.rows().read_only(), "the rows are the vector's memory");
  }
  expect(error < 1e-6, sar::concat("a vector is written and read, error ", error));
  check(VecSum(u, &sum));  // 36 vertices of the mean (1/2, 1/2) in two columns; 60 edges
  expect(std::abs(sum - (36 + (with_edges ? 420 : 0))) < 1e-5, sar::concat("other values stay: ", sum));
}

template <class E>
void expect_error(const std::string& text, const std::function<void()>& call) {
  try {
    call();
    expect(false, "nothing was thrown, expected: " + text);
  } catch (const E& error) {
    expect(std::string(error.what()).find(text) != std::string::npos, error.what() + (", expected: " + text));
  } catch (const std::exception& error) {
    expect(false, std::string("another class: ") + error.what());
  }
}

void check_errors(const sar::Communicator& comm) {
  Dm shell, cells_only, mesh;
  check(DMShellCreate(PETSC_COMM_WORLD, &shell.object));
  expect_error<sar::InputError>("the DM is no DMPlex", [&] { plex_graph(shell, PlexNodes::vertices); });
  make_box(mesh, 2, 4, 0);
  if (comm.size() == 1) {  // PETSc distributes no mesh without edges
    make_box(cells_only, 2, 4, 0, PETSC_FALSE);
    expect_error<sar::InputError>("DMPlexInterpolate makes them",
                                  [&] { plex_graph(cells_only, PlexNodes::vertices); });
  }
  const PlexGraph plex = plex_graph(mesh, PlexNodes::vertices);
  set_layout(mesh, {1}, 1);
  expect_error<sar::InputError>("NodeValues: nodes have 0 to 1 values",
                                [&] { NodeValues(comm, mesh, plex); });
  set_layout(mesh, {0, 1});
  expect_error<sar::InputError>("NodeValues: nodes have 0 to 0 values",
                                [&] { NodeValues(comm, mesh, plex); });

  set_layout(mesh, {1});
  const NodeValues values(comm, mesh, plex);
  const sar::Index n = std::ssize(plex.points);
  Owned<Vec> other(VecDestroy), u(VecDestroy);
  check(VecCreateMPI(PETSC_COMM_WORLD, static_cast<PetscInt>(n + 1), PETSC_DETERMINE, &other.object));
  check(DMCreateGlobalVector(mesh, &u.object));
  const std::string text = sar::concat("a vector has ", n + 1, " values, the DM ", n);
  expect_error<sar::ShapeError>(text, [&] { const ReadRows rows(values, other); });
  expect_error<sar::ShapeError>(text, [&] { values.write(sar::Tensor({n, 1}), other); });
  expect_error<sar::ShapeError>("", [&] { values.write(sar::Tensor({n, 2}), u); });
  const ReadRows open_again(values, u);  // nothing was left open

  expect_error<sar::InputError>("from a callback",
                                [] { check(callback([] { throw sar::InputError("from a callback"); })); });
  check(0);
  expect_error<sar::InputError>("PETSc: Argument out of range", [] { check(PETSC_ERR_ARG_OUTOFRANGE); });
  expect_error<sar::MemoryError>("PETSc: Out of memory", [] { check(PETSC_ERR_MEM); });
}

void check_all() {
  const sar::Communicator comm(PETSC_COMM_WORLD);
  for (const PlexNodes nodes : {PlexNodes::vertices, PlexNodes::cells})
    for (const PetscInt overlap : {0, 1})
      for (const int dim : {2, 3})
        for (const PetscInt cells : {1, 2, 4}) check_graph(comm, dim, cells, overlap, nodes);
  for (const bool with_edges : {false, true}) check_vectors(comm, with_edges);
  check_errors(comm);
  failures = comm.all_reduce(failures);
}

}  // namespace

int main(int argc, char** argv) {
  if (PetscInitialize(&argc, &argv, nullptr, nullptr) != 0) return 1;
  PetscPushErrorHandler(PetscReturnErrorHandler, nullptr);
  try {
    check_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAILED: %s\n", error.what());
    MPI_Abort(PETSC_COMM_WORLD, 1);
  }
  PetscPopErrorHandler();
  PetscFinalize();
  return failures == 0 ? 0 : 1;
}
