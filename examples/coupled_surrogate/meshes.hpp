// SPDX-License-Identifier: MIT

/// Two meshes that meet at an interface: a channel with a fluid, and the heated plate below it. They do not
/// depend on the library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

struct Point {
  double x = 0, y = 0;
};

/// A grid of nodes, numbered column by column. A rank owns some columns, which are a range of node numbers.
struct Mesh {
  int columns = 0, rows = 0;
  std::vector<int> first;           ///< [ranks + 1]: rank p owns the nodes first[p] .. first[p + 1] - 1
  std::vector<Point> position;      ///< of all nodes
  std::vector<double> loss;         ///< of all nodes: heat loss to the cold inflow
  std::vector<std::int64_t> owned;  ///< the nodes of this rank

  [[nodiscard]] int num_nodes() const { return columns * rows; }
};

/// Heat flows along links: du_to/dt = sum of rate (u_from - u_to). Holds the links that end at this rank's
/// nodes.
struct Links {
  std::vector<std::int64_t> from, to;
  std::vector<double> rate;
};

struct MeshOptions {
  int fluid_columns = 24, fluid_rows = 10;
  int plate_columns = 17, plate_rows = 4;  ///< the interface nodes differ from those of the fluid
};

enum Body { fluid, plate };

struct Meshes {
  std::array<Mesh, 2> mesh;                   ///< by Body
  std::array<std::array<Links, 2>, 2> links;  ///< links[from][to]
};

Meshes make_meshes(const MeshOptions& options, int rank, int num_ranks);
