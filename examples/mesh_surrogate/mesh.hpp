// SPDX-License-Identifier: MIT

/// The solver's mesh: triangles over a rectangle, partitioned over the ranks by the solver itself.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

struct Point {
  double x = 0, y = 0;
};

/// The domain is [0, width] x [0, height].
inline constexpr double width = 2, height = 1;

struct MeshOptions {
  int columns = 72, rows = 36;  ///< points along each side, at least 2
};

/// A neighboring rank. Both ranks list the shared nodes in the order of their global ids, so that no index
/// lists need to be exchanged.
struct Neighbor {
  int rank = 0;
  std::vector<int> send;     ///< our nodes that are ghosts there
  std::vector<int> receive;  ///< our ghosts that are owned there
};

/// One rank's part of the mesh. Nodes 0 .. num_owned-1 are its own; the others are ghosts, nodes of other
/// ranks at the ends of its edges. Global ids are as a mesh generator might leave them: unique, but neither
/// contiguous nor sorted.
struct Mesh {
  int num_owned = 0;
  std::vector<std::int64_t> global_id;
  std::vector<Point> position;
  std::vector<int> owner;          ///< owning rank
  std::vector<std::uint8_t> wall;  ///< 1 on the boundary of the rectangle

  std::vector<std::array<int, 3>> triangles;  ///< counterclockwise; all with a node of this rank
  std::vector<std::array<int, 2>> edges;      ///< each once; all with an end on this rank
  std::vector<Neighbor> neighbors;

  [[nodiscard]] int num_nodes() const { return static_cast<int>(global_id.size()); }
};

/// Creates this rank's part of the mesh without communication: every point is a function of its grid
/// position, so that the mesh is the same for any number of ranks.
Mesh make_mesh(const MeshOptions& options, int rank, int num_ranks);
