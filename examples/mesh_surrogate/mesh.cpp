// SPDX-License-Identifier: MIT
#include "mesh.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace {

/// Returns a number in [0, 1) that depends only on `key` (splitmix64).
double hashed_unit(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  key ^= key >> 31;
  return static_cast<double>(key >> 11) * 0x1p-53;
}

/// The points of the mesh: a regular grid with random displacements, except that points on walls stay on
/// them.
class Points {
 public:
  explicit Points(const MeshOptions& options)
      : options_(options), dx_(width / (options.columns - 1)), dy_(height / (options.rows - 1)) {}

  [[nodiscard]] bool wall(int i, int j) const { return on_x_wall(i) || on_y_wall(j); }
  [[nodiscard]] Point at(int i, int j) const {
    // Below a quarter of the spacing, all quadrilaterals stay convex: both diagonals are inside.
    constexpr double shake = 0.22;
    const auto key = static_cast<std::uint64_t>(number(i, j)) * 2;
    Point p{i * dx_, j * dy_};
    if (!on_x_wall(i)) p.x += shake * dx_ * (2 * hashed_unit(key) - 1);
    if (!on_y_wall(j)) p.y += shake * dy_ * (2 * hashed_unit(key + 1) - 1);
    return p;
  }
  /// Unique, because the factor and the modulus are coprime (a step of the minimal standard generator).
  [[nodiscard]] std::int64_t global_id(int i, int j) const { return (number(i, j) + 1) * 48271 % 2147483647; }

  /// The range of grid columns (rows) that may have points in [low, high).
  [[nodiscard]] int first_column(double low) const { return std::max(0, static_cast<int>(low / dx_) - 1); }
  [[nodiscard]] int last_column(double high) const {
    return std::min(options_.columns - 1, static_cast<int>(high / dx_) + 1);
  }
  [[nodiscard]] int first_row(double low) const { return std::max(0, static_cast<int>(low / dy_) - 1); }
  [[nodiscard]] int last_row(double high) const {
    return std::min(options_.rows - 1, static_cast<int>(high / dy_) + 1);
  }

 private:
  [[nodiscard]] std::int64_t number(int i, int j) const {
    return static_cast<std::int64_t>(j) * options_.columns + i;
  }
  [[nodiscard]] bool on_x_wall(int i) const { return i == 0 || i == options_.columns - 1; }
  [[nodiscard]] bool on_y_wall(int j) const { return j == 0 || j == options_.rows - 1; }

  MeshOptions options_;
  double dx_, dy_;
};

/// The half-open boxes of recursive coordinate bisection: a box for several ranks is cut across its longer
/// side, in proportion to the numbers of ranks on both sides of the cut.
struct Box {
  double x0, x1, y0, y1;
  [[nodiscard]] bool contains(Point p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

void bisect(const Box& box, int num_ranks, std::vector<Box>& boxes) {
  if (num_ranks == 1) {
    boxes.push_back(box);
    return;
  }
  const int left_ranks = num_ranks / 2;
  const double share = static_cast<double>(left_ranks) / num_ranks;
  Box left = box, right = box;
  if (box.x1 - box.x0 >= box.y1 - box.y0)
    left.x1 = right.x0 = box.x0 + share * (box.x1 - box.x0);
  else
    left.y1 = right.y0 = box.y0 + share * (box.y1 - box.y0);
  bisect(left, left_ranks, boxes);
  bisect(right, num_ranks - left_ranks, boxes);
}

int owner_of(Point p, const std::vector<Box>& boxes) {
  return static_cast<int>(std::ranges::find_if(boxes, [&](const Box& box) { return box.contains(p); }) -
                          boxes.begin());
}

double cross(Point origin, Point a, Point b) {
  return (a.x - origin.x) * (b.y - origin.y) - (a.y - origin.y) * (b.x - origin.x);
}

/// Returns the cotangent of the angle at `corner`; a comes before b, counterclockwise.
double cotangent(Point corner, Point a, Point b) {
  return ((a.x - corner.x) * (b.x - corner.x) + (a.y - corner.y) * (b.y - corner.y)) / cross(corner, a, b);
}

/// Grid positions (i, j) of a triangle's corners.
using Place = std::array<int, 2>;
using PlaceTriangle = std::array<Place, 3>;

/// Splits the grid square with the lowest corner (i, j) along the diagonal that Delaunay's criterion prefers.
std::array<PlaceTriangle, 2> cut_square(const Points& points, int i, int j) {
  const Place a{i, j}, b{i + 1, j}, c{i + 1, j + 1}, d{i, j + 1};
  const Point pa = points.at(i, j), pb = points.at(i + 1, j), pc = points.at(i + 1, j + 1),
              pd = points.at(i, j + 1);
  const bool a_to_c = cotangent(pb, pc, pa) + cotangent(pd, pa, pc) >= 0;
  if (a_to_c) return {PlaceTriangle{a, b, c}, PlaceTriangle{a, c, d}};
  return {PlaceTriangle{a, b, d}, PlaceTriangle{b, c, d}};
}

void find_edges(Mesh& mesh) {
  for (const auto& triangle : mesh.triangles)
    for (std::size_t k = 0; k < 3; ++k) {
      const int a = triangle[k], b = triangle[(k + 1) % 3];
      if (a < mesh.num_owned || b < mesh.num_owned) mesh.edges.push_back({std::min(a, b), std::max(a, b)});
    }
  std::ranges::sort(mesh.edges);
  mesh.edges.erase(std::unique(mesh.edges.begin(), mesh.edges.end()), mesh.edges.end());
}

/// For an edge between two ranks, each end is a ghost on the other rank.
void find_neighbors(Mesh& mesh, int rank) {
  const auto by_id = [&](int a, int b) { return mesh.global_id[a] < mesh.global_id[b]; };
  using Nodes = std::set<int, decltype(by_id)>;
  std::map<int, std::pair<Nodes, Nodes>> lists;
  for (const auto& [a, b] : mesh.edges)
    for (const auto& [mine, theirs] : {std::pair{a, b}, std::pair{b, a}}) {
      const int other = mesh.owner[theirs];
      if (mine >= mesh.num_owned || other == rank) continue;
      auto& [send, receive] = lists.try_emplace(other, Nodes(by_id), Nodes(by_id)).first->second;
      send.insert(mine);
      receive.insert(theirs);
    }
  for (const auto& [other, nodes] : lists)
    mesh.neighbors.push_back(
        {other, {nodes.first.begin(), nodes.first.end()}, {nodes.second.begin(), nodes.second.end()}});
}

}  // namespace

Mesh make_mesh(const MeshOptions& options, int rank, int num_ranks) {
  const Points points(options);
  std::vector<Box> boxes;
  // extended, so that points on the far walls belong to the last boxes
  bisect({0, width * (1 + 1e-9), 0, height * (1 + 1e-9)}, num_ranks, boxes);
  const Box& box = boxes[rank];

  Mesh mesh;
  std::map<Place, int> node_at;
  const auto add_node = [&](const Place& place) {
    const auto [found, added] = node_at.try_emplace(place, mesh.num_nodes());
    if (added) {
      const auto [i, j] = place;
      mesh.global_id.push_back(points.global_id(i, j));
      mesh.position.push_back(points.at(i, j));
      mesh.owner.push_back(owner_of(mesh.position.back(), boxes));
      mesh.wall.push_back(points.wall(i, j) ? 1 : 0);
    }
    return found->second;
  };

  const int i0 = points.first_column(box.x0), i1 = points.last_column(box.x1);
  const int j0 = points.first_row(box.y0), j1 = points.last_row(box.y1);
  for (int j = j0; j <= j1; ++j)
    for (int i = i0; i <= i1; ++i)
      if (box.contains(points.at(i, j))) add_node({i, j});
  mesh.num_owned = mesh.num_nodes();

  // extended by one square on each side: these squares may have a corner of ours
  for (int j = std::max(0, j0 - 1); j <= std::min(options.rows - 2, j1); ++j)
    for (int i = std::max(0, i0 - 1); i <= std::min(options.columns - 2, i1); ++i)
      for (const PlaceTriangle& triangle : cut_square(points, i, j)) {
        const auto owned = [&](const Place& place) { return box.contains(points.at(place[0], place[1])); };
        if (std::ranges::any_of(triangle, owned))
          mesh.triangles.push_back({add_node(triangle[0]), add_node(triangle[1]), add_node(triangle[2])});
      }
  find_edges(mesh);
  find_neighbors(mesh, rank);
  return mesh;
}
