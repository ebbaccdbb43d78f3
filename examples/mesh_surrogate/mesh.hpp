/// The solver's mesh: triangles over a rectangle, cut over the ranks by the solver's own rules.
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
  int columns = 72, rows = 36;  ///< points along the sides, at least 2
};

/// A rank whose nodes are neighbours of ours. Both ranks list the nodes in the order of their global ids, so
/// that neither needs to tell the other which values it sends.
struct Neighbour {
  int rank = 0;
  std::vector<int> send;     ///< our nodes that are ghosts there
  std::vector<int> receive;  ///< our ghosts that are owned there
};

/// What one rank holds of the mesh. Nodes 0 .. num_owned-1 are its own, the others are ghosts: ends of edges
/// that belong to other ranks. Global ids are what a mesh generator might leave: unique, and neither
/// contiguous nor sorted.
struct Mesh {
  int num_owned = 0;
  std::vector<std::int64_t> global_id;
  std::vector<Point> position;
  std::vector<int> owner;          ///< rank
  std::vector<std::uint8_t> wall;  ///< 1 on the boundary of the rectangle

  std::vector<std::array<int, 3>> triangles;  ///< counterclockwise; all that have a node of ours
  std::vector<std::array<int, 2>> edges;      ///< each once; all that have an end of ours
  std::vector<Neighbour> neighbours;

  [[nodiscard]] int num_nodes() const { return static_cast<int>(global_id.size()); }
};

/// This rank's share of the mesh, made without the other ranks: every point is a function of its place in the
/// grid that the mesh is made from, so that the mesh is the same for any number of ranks.
Mesh make_mesh(const MeshOptions& options, int rank, int num_ranks);
