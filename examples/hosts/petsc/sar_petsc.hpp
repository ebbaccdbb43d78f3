// SPDX-License-Identifier: MIT

/// Graphs of sar on PETSc's distributed meshes (DMPlex): a header to copy into your program. README.md shows
/// its use. Node i of a rank is its i-th own vertex or cell in the order of the DMPlex and of its vectors.
#pragma once

#include <petscdmplex.h>
#include <petscsf.h>
#include <sar/sar.hpp>

#include <cmath>

namespace sar_petsc {

/// The exception that left a callback() of this process and is on its way through PETSc.
inline std::exception_ptr exception_of_callback;

/// Local. Throws what a failed call of PETSc reports: the exception that left a callback(), sar::InputError
/// for wrong options and values, sar::MemoryError, or sar::Error.
inline void check(PetscErrorCode code) {
  if (code == 0) return;
  if (exception_of_callback) std::rethrow_exception(std::exchange(exception_of_callback, nullptr));
  const char* text = nullptr;
  char* details = nullptr;
  PetscErrorMessage(code, &text, &details);
  auto kind = code == PETSC_ERR_MEM ? sar::ErrorKind::memory : sar::ErrorKind::general;
  if (code == PETSC_ERR_ARG_WRONG || code == PETSC_ERR_ARG_OUTOFRANGE || code == PETSC_ERR_USER_INPUT)
    kind = sar::ErrorKind::input;
  sar::throw_error(kind, sar::concat("PETSc: ", text ? text : "", ": ", details ? details : ""));
}

/// Local. Runs a body that may throw in a function that PETSc calls, as a monitor of a TS. PETSc hands the
/// code on to its caller, where check() throws the exception again.
template <class Body>
PetscErrorCode callback(const Body& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    exception_of_callback = std::current_exception();
    return PetscError(PETSC_COMM_SELF, __LINE__, "callback", __FILE__, PETSC_ERR_LIB, PETSC_ERROR_INITIAL,
                      "%s", error.what());
  }
}

enum class PlexNodes { vertices, cells };  ///< joined by edges of the mesh, or where they share a face

/// What a rank gives for a graph: the nodes that it owns, and edges, each of which one rank gives.
struct PlexGraph {
  PetscInt dim = 0;
  std::vector<PetscInt> points;        ///< the DMPlex point of node i
  std::vector<std::int64_t> ids;       ///< its host id, which only its position determines
  std::vector<std::int64_t> src, dst;  ///< host ids of the ends of edges
  std::vector<double> positions;       ///< [nodes, dim]: vertices, or the mean of a cell's vertices
};

/// Collective. Returns the nodes and edges of a mesh with any overlap. Host ids number a fine grid over the
/// mesh's box: PETSc's own numbers depend on the partition, and random draws would, too. Nodes closer than
/// 1e-6 of the box get one id, which HostGraph refuses. Throws sar::InputError on every rank for a DM that is
/// no DMPlex or has no edges and faces.
inline PlexGraph plex_graph(DM dm, PlexNodes nodes) {
  PetscBool is_plex = PETSC_FALSE;
  DMPlexInterpolatedFlag complete = DMPLEX_INTERPOLATED_NONE;
  check(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(dm), DMPLEX, &is_plex));
  if (is_plex) check(DMPlexIsInterpolatedCollective(dm, &complete));
  sar::require<sar::InputError>(is_plex, "plex_graph: the DM is no DMPlex");
  sar::require<sar::InputError>(complete == DMPLEX_INTERPOLATED_FULL,
                                "plex_graph: the mesh has no edges and faces; DMPlexInterpolate makes them");
  const bool cells = nodes == PlexNodes::cells;
  PlexGraph graph;
  PetscReal low[3] = {}, high[3] = {};
  PetscInt begin = 0, end = 0, num_points = 0, num_leaves = 0, num_roots = 0;
  const PetscInt* leaves = nullptr;
  PetscSF shared = nullptr;
  PetscSection layout = nullptr;
  Vec coordinates = nullptr;
  check(DMGetCoordinateDim(dm, &graph.dim));
  check(DMGetBoundingBox(dm, low, high));
  check(DMGetCoordinateSection(dm, &layout));
  check(DMGetCoordinatesLocal(dm, &coordinates));
  check(DMPlexGetChart(dm, nullptr, &num_points));
  check(DMGetPointSF(dm, &shared));
  check(PetscSFGetGraph(shared, &num_roots, &num_leaves, &leaves, nullptr));
  std::vector<bool> owned(num_points, true);  // points of other ranks are the leaves of the point SF
  for (PetscInt i = 0; i < num_leaves; ++i) owned[leaves ? leaves[i] : i] = false;
  std::vector<std::int64_t> id(num_points, -1);  // of nodes, including ghosts
  const double fine = std::ldexp(1, graph.dim <= 2 ? 30 : 20);
  check(cells ? DMPlexGetHeightStratum(dm, 0, &begin, &end) : DMPlexGetDepthStratum(dm, 0, &begin, &end));
  for (PetscInt point = begin; point < end; ++point) {
    PetscScalar* corners = nullptr;
    PetscInt size = 0;
    check(DMPlexVecGetClosure(dm, layout, coordinates, point, &size, &corners));
    id[point] = 0;
    for (PetscInt d = 0; d < graph.dim; ++d) {
      double x = 0;
      for (PetscInt k = d; k < size; k += graph.dim) x += corners[k] * graph.dim / size;
      const double share = high[d] > low[d] ? (x - low[d]) / (high[d] - low[d]) : 0;
      id[point] = id[point] * static_cast<std::int64_t>(2 * fine) + std::llround(share * fine);
      if (owned[point]) graph.positions.push_back(x);
    }
    check(DMPlexVecRestoreClosure(dm, layout, coordinates, point, &size, &corners));
    if (owned[point]) graph.points.push_back(point), graph.ids.push_back(id[point]);
  }
  const auto ends = [&](PetscInt point) {  // the nodes that an edge or face joins, as far as they are here
    const PetscInt* list = nullptr;
    PetscInt size = 0;
    check(cells ? DMPlexGetSupport(dm, point, &list) : DMPlexGetCone(dm, point, &list));
    check(cells ? DMPlexGetSupportSize(dm, point, &size) : DMPlexGetConeSize(dm, point, &size));
    return std::span(list, size);
  };
  check(cells ? DMPlexGetHeightStratum(dm, 1, &begin, &end) : DMPlexGetDepthStratum(dm, 1, &begin, &end));
  std::vector<std::int64_t> here(num_points, -1), there(num_points, -1);
  if (cells && num_roots >= 0) {  // without overlap, the owner of a face asks the other rank for its cell
    for (PetscInt face = begin; face < end; ++face) here[face] = id[ends(face).front()];
    check(PetscSFReduceBegin(shared, MPI_INT64_T, here.data(), there.data(), MPI_REPLACE));
    check(PetscSFReduceEnd(shared, MPI_INT64_T, here.data(), there.data(), MPI_REPLACE));
  }
  for (PetscInt point = begin; point < end; ++point) {
    if (!owned[point]) continue;
    const std::span<const PetscInt> local = ends(point);
    const std::int64_t first = id[local.front()], last = local.size() == 2 ? id[local.back()] : there[point];
    if (last >= 0 && last != first) graph.src.push_back(first), graph.dst.push_back(last);  // else boundary
  }
  return graph;
}

/// Where the values of nodes lie in the global vectors of a DM.
struct NodeValues {
  /// Collective. Throws sar::InputError on every rank unless all nodes have equally many values. Essential
  /// boundary conditions of a DM take values out of its global vectors.
  NodeValues(const sar::Communicator& comm, DM dm, const PlexGraph& mesh) {
    PetscSection layout = nullptr;
    Vec vector = nullptr;
    PetscInt begin = 0;
    check(DMGetGlobalSection(dm, &layout));
    check(DMCreateGlobalVector(dm, &vector));
    check(VecGetOwnershipRange(vector, &begin, &local_size));
    local_size -= begin;
    check(VecDestroy(&vector));
    std::vector<std::int64_t> range{PETSC_MIN_INT, 0};  // minus the least, and the most values of a node
    for (const PetscInt point : mesh.points) {
      PetscInt offset = 0, all = 0, fixed = 0;
      check(PetscSectionGetOffset(layout, point, &offset));
      check(PetscSectionGetDof(layout, point, &all));
      check(PetscSectionGetConstraintDof(layout, point, &fixed));
      offsets.push_back(offset - begin);
      range = {std::max<std::int64_t>(range[0], fixed - all), std::max<std::int64_t>(range[1], all - fixed)};
    }
    comm.all_reduce(std::span(range), sar::ReduceOp::max);
    sar::require<sar::InputError>(-range[0] == range[1] && range[1] > 0, "NodeValues: nodes have ", -range[0],
                                  " to ", range[1], " values in global vectors, expected equally many");
    columns = range[1];
  }
  /// Local. Returns the columns of the nodes in a vector's array. Throws sar::ShapeError for another layout.
  template <class Number>
  auto columns_of(Vec vector, Number* array) const {
    PetscInt size = 0;
    check(VecGetLocalSize(vector, &size));
    sar::require<sar::ShapeError>(size == local_size, "a vector has ", size, " values, the DM ", local_size);
    std::vector<std::span<Number>> list;
    for (PetscInt j = 0; j < columns; ++j) list.emplace_back(array + j, std::max(size - j, PetscInt{0}));
    return list;
  }
  /// Local. Writes rows [nodes, columns] to a global vector, whose other values stay. Throws sar::ShapeError.
  void write(const sar::Tensor& rows, Vec vector) const {
    struct OpenVec {
      ~OpenVec() { VecRestoreArray(vec, &array); }
      Vec vec;
      PetscScalar* array = nullptr;
    } open{vector};
    check(VecGetArray(vector, &open.array));
    copy_to_columns(rows, columns_of(vector, open.array), offsets);
  }
  std::vector<PetscInt> offsets;  ///< of each node's values in the local array of a vector
  PetscInt columns = 0, local_size = 0;
};

/// The values of a global vector as node rows. The vector is open for reading while this object lives.
class ReadRows : sar::NonCopyable {
 public:
  /// Local. Throws sar::ShapeError for a vector of another layout.
  ReadRows(const NodeValues& values, Vec vector) : ReadRows(vector) {
    const auto columns = values.columns_of(vector, array_);
    const sar::Shape shape{std::ssize(values.offsets), values.columns};
    const auto borrow = [&](const auto* array) {  // no copy if nothing lies between the rows
      if constexpr (std::is_same_v<decltype(array), const sar::real*>)
        if (shape.size() == values.local_size) rows_ = sar::Tensor::borrow(array, shape);
    };
    borrow(array_);
    // A copy: PetscScalar is double where sar has float, or the vector has values of other points, too.
    if (!rows_.defined()) rows_ = sar::from_columns(columns, values.offsets);
  }
  ~ReadRows() { VecRestoreArrayRead(vector_, &array_); }
  [[nodiscard]] const sar::Tensor& rows() const { return rows_; }  ///< [nodes, columns]; local

 private:
  explicit ReadRows(Vec vector) : vector_(vector) { check(VecGetArrayRead(vector, &array_)); }
  Vec vector_;
  const PetscScalar* array_ = nullptr;
  sar::Tensor rows_;
};
}  // namespace sar_petsc
