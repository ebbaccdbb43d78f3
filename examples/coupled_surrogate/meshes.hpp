/// Two meshes that meet at an interface: a channel in which a fluid flows, and the heated plate below it.
/// They know nothing of the library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

struct Point {
  double x = 0, y = 0;
};

/// A grid of nodes, numbered column by column. A rank owns some columns, and so a range of numbers.
struct Mesh {
  int columns = 0, rows = 0;
  std::vector<int> first;           ///< [ranks + 1]: rank p owns nodes first[p] to first[p + 1]
  std::vector<Point> position;      ///< of all nodes
  std::vector<double> loss;         ///< of all nodes: to the inflow, which is cold
  std::vector<std::int64_t> owned;  ///< the nodes of this rank

  [[nodiscard]] int num_nodes() const { return columns * rows; }
};

/// Heat goes along links: du_to/dt = sum of rate (u_from - u_to). Those that end at this rank's nodes.
struct Links {
  std::vector<std::int64_t> from, to;
  std::vector<double> rate;
};

struct MeshOptions {
  int fluid_columns = 24, fluid_rows = 10;
  int plate_columns = 17, plate_rows = 4;  ///< other nodes at the interface than the fluid has
};

enum Body { fluid, plate };

struct Meshes {
  std::array<Mesh, 2> mesh;                   ///< by Body
  std::array<std::array<Links, 2>, 2> links;  ///< links[from][to]
};

Meshes make_meshes(const MeshOptions& options, int rank, int num_ranks);
