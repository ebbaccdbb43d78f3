// SPDX-License-Identifier: MIT
#include "meshes.hpp"

#include <algorithm>

namespace {

constexpr double length = 2, height = 1, thickness = 0.3;
constexpr double fluid_diffusivity = 0.02, plate_diffusivity = 0.05, contact = 12;

/// Creates a mesh from `bottom` to `top` over the whole length.
Mesh make_mesh(int columns, int rows, double bottom, double top, int rank, int num_ranks) {
  Mesh mesh{.columns = columns, .rows = rows, .first = {}, .position = {}, .loss = {}, .owned = {}};
  for (int p = 0; p <= num_ranks; ++p) mesh.first.push_back(columns * p / num_ranks * rows);
  for (int column = 0; column < columns; ++column)
    for (int row = 0; row < rows; ++row)
      mesh.position.push_back({length * column / (columns - 1), bottom + (top - bottom) * row / (rows - 1)});
  mesh.loss.assign(mesh.position.size(), 0);
  for (int v = mesh.first[rank]; v < mesh.first[rank + 1]; ++v) mesh.owned.push_back(v);
  return mesh;
}

/// Adds a link unless another rank owns its end.
void link(const Mesh& to_mesh, Links& links, int from, int to, double rate) {
  if (to_mesh.owned.empty() || to < to_mesh.owned.front() || to > to_mesh.owned.back()) return;
  links.from.push_back(from);
  links.to.push_back(to);
  links.rate.push_back(rate);
}

/// Adds heat conduction between neighbors of a mesh.
void conduct(const Mesh& mesh, Links& links, double diffusivity) {
  for (int v = 0; v < mesh.num_nodes(); ++v)
    for (const int w : {v % mesh.rows + 1 < mesh.rows ? v + 1 : -1,
                        v + mesh.rows < mesh.num_nodes() ? v + mesh.rows : -1}) {
      if (w < 0) continue;
      const double dx = mesh.position[w].x - mesh.position[v].x, dy = mesh.position[w].y - mesh.position[v].y;
      for (const auto& [from, to] : {std::pair{v, w}, std::pair{w, v}})
        link(mesh, links, from, to, diffusivity / (dx * dx + dy * dy));
    }
}

/// Adds advection: the fluid flows from left to right, fastest in the middle of the channel (upwind
/// differences).
void advect(Mesh& mesh, Links& links) {
  const double spacing = length / (mesh.columns - 1);
  for (int v = 0; v < mesh.num_nodes(); ++v) {
    const double y = mesh.position[v].y / height, rate = 4 * y * (1 - y) / spacing;
    if (v < mesh.rows)
      mesh.loss[v] = rate;
    else
      link(mesh, links, v - mesh.rows, v, rate);
  }
}

/// Couples the meshes: each fluid node at the interface exchanges heat with the two plate nodes beside it.
void couple(Meshes& meshes) {
  auto& [channel, below] = meshes.mesh;
  const double spacing = length / (below.columns - 1);
  for (int column = 0; column < channel.columns; ++column) {
    const int v = column * channel.rows;  // the lowest node of its column
    const int left = std::min(static_cast<int>(channel.position[v].x / spacing), below.columns - 2);
    const double part = channel.position[v].x / spacing - left;
    for (const auto& [neighbor, weight] : {std::pair{left, 1 - part}, std::pair{left + 1, part}}) {
      if (weight < 1e-12) continue;
      const int w = neighbor * below.rows + below.rows - 1;  // the highest node
      link(below, meshes.links[fluid][plate], v, w, contact * weight);
      link(channel, meshes.links[plate][fluid], w, v, contact * weight);
    }
  }
}

}  // namespace

Meshes make_meshes(const MeshOptions& options, int rank, int num_ranks) {
  Meshes meshes{
      .mesh = {make_mesh(options.fluid_columns, options.fluid_rows, 0, height, rank, num_ranks),
               make_mesh(options.plate_columns, options.plate_rows, -thickness, 0, rank, num_ranks)},
      .links = {}};
  conduct(meshes.mesh[fluid], meshes.links[fluid][fluid], fluid_diffusivity);
  conduct(meshes.mesh[plate], meshes.links[plate][plate], plate_diffusivity);
  advect(meshes.mesh[fluid], meshes.links[fluid][fluid]);
  couple(meshes);
  return meshes;
}
