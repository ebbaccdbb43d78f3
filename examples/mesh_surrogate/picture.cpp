// SPDX-License-Identifier: MIT
#include "picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

namespace {

constexpr int canvas_width = 160, canvas_height = 80;  // cells of a panel
constexpr int num_colours = 24;
constexpr double unpainted = std::numeric_limits<double>::lowest();

using Colour = std::array<double, 3>;

/// Interpolates between colors that are evenly spaced over [0, 1].
Colour mix(std::span<const Colour> colours, double at) {
  const double place = at * static_cast<double>(colours.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(place), colours.size() - 2);
  Colour mixed;
  for (std::size_t c = 0; c < 3; ++c)
    mixed[c] = std::lerp(colours[i][c], colours[i + 1][c], place - static_cast<double>(i));
  return mixed;
}

std::string hex(const Colour& colour) {
  char text[8];
  const auto byte = [&](std::size_t c) { return static_cast<unsigned>(std::lround(colour[c])) & 255u; };
  std::snprintf(text, sizeof text, "#%02x%02x%02x", byte(0), byte(1), byte(2));
  return text;
}

std::string colour_of(int level, bool signed_colours) {
  static constexpr std::array<Colour, 5> bright{
      {{24, 15, 61}, {64, 74, 138}, {42, 145, 142}, {120, 205, 90}, {250, 238, 110}}};
  static constexpr std::array<Colour, 5> two_sided{
      {{20, 60, 140}, {120, 170, 215}, {250, 250, 248}, {230, 150, 115}, {150, 20, 35}}};
  const double at = (level + 0.5) / num_colours;
  return hex(signed_colours ? mix(two_sided, at) : mix(bright, at));
}

/// Returns the values at the centers of the canvas's cells, interpolated linearly in each triangle. Every
/// rank paints its triangles; the maximum over the ranks selects the painted value.
std::vector<double> paint(MPI_Comm comm, const Mesh& mesh, std::span<const double> values) {
  std::vector<double> canvas(std::size_t{canvas_width} * canvas_height, unpainted);
  constexpr double dx = width / canvas_width, dy = height / canvas_height;
  for (const auto& triangle : mesh.triangles) {
    std::array<Point, 3> p;
    std::array<double, 3> value;
    for (std::size_t k = 0; k < 3; ++k) {
      p[k] = mesh.position[triangle[k]];
      value[k] = values[triangle[k]];
    }
    const auto [x0, x1] = std::minmax({p[0].x, p[1].x, p[2].x});
    const auto [y0, y1] = std::minmax({p[0].y, p[1].y, p[2].y});
    const double twice_area = (p[1].x - p[0].x) * (p[2].y - p[0].y) - (p[1].y - p[0].y) * (p[2].x - p[0].x);
    for (int j = static_cast<int>(y0 / dy); j < canvas_height && (j + 0.5) * dy <= y1; ++j)
      for (int i = static_cast<int>(x0 / dx); i < canvas_width && (i + 0.5) * dx <= x1; ++i) {
        const Point q{(i + 0.5) * dx, (j + 0.5) * dy};
        double sum = 0;
        bool inside = true;
        for (std::size_t k = 0; k < 3; ++k) {  // barycentric coordinates
          const Point a = p[(k + 1) % 3], b = p[(k + 2) % 3];
          const double weight = ((a.x - q.x) * (b.y - q.y) - (a.y - q.y) * (b.x - q.x)) / twice_area;
          inside = inside && weight >= -1e-9;
          sum += weight * value[k];
        }
        if (inside) canvas[(canvas_height - 1 - j) * canvas_width + i] = sum;
      }
  }
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : canvas.data(), canvas.data(), static_cast<int>(canvas.size()),
             MPI_DOUBLE, MPI_MAX, 0, comm);
  return canvas;
}

/// Writes one path per color, made of runs of cells.
void write_panel(std::ostream& out, const Panel& panel, const std::vector<double>& canvas) {
  std::array<std::ostringstream, num_colours> paths;
  const auto level = [&](int x, int y) {
    const double value = canvas[y * canvas_width + x];
    const double at = (value - panel.low) / (panel.high - panel.low);
    return std::clamp(static_cast<int>(std::floor(std::clamp(at, 0., 1.) * num_colours)), 0, num_colours - 1);
  };
  for (int y = 0; y < canvas_height; ++y)
    for (int x = 0, end = 0; x < canvas_width; x = end) {
      while (end < canvas_width && level(end, y) == level(x, y)) ++end;
      paths[level(x, y)] << 'M' << x << ' ' << y << 'h' << end - x << "v1h" << x - end << 'z';
    }
  for (int colour = 0; colour < num_colours; ++colour) {
    const std::string path = paths[colour].str();
    if (!path.empty())
      out << "<path fill=\"" << colour_of(colour, panel.signed_colours) << "\" d=\"" << path << "\"/>\n";
  }
}

}  // namespace

std::string draw(MPI_Comm comm, const Mesh& mesh, std::span<const Panel> panels) {
  constexpr int margin = 10, title_height = 14, scale_height = 16;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::ostringstream out;
  out.precision(3);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"8\" viewBox=\"0 0 "
      << margin + static_cast<int>(panels.size()) * (canvas_width + margin) << ' '
      << title_height + canvas_height + scale_height + 4
      << "\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  int left = margin;
  for (const Panel& panel : panels) {
    const std::vector<double> canvas = paint(comm, mesh, panel.values);
    if (rank == 0) {
      out << "<g transform=\"translate(" << left << ' ' << title_height << ")\">\n<text y=\"-4\">"
          << panel.title << "</text>\n<g shape-rendering=\"crispEdges\">\n";
      write_panel(out, panel, canvas);
      for (int colour = 0; colour < num_colours; ++colour)  // the color scale, 4 units per color
        out << "<rect x=\"" << 32 + 4 * colour << "\" y=\"" << canvas_height + 5
            << "\" width=\"4\" height=\"6\" fill=\"" << colour_of(colour, panel.signed_colours) << "\"/>\n";
      out << "</g>\n<text x=\"29\" y=\"" << canvas_height + 11 << "\" text-anchor=\"end\">" << panel.low
          << "</text>\n<text x=\"" << 35 + 4 * num_colours << "\" y=\"" << canvas_height + 11 << "\">"
          << panel.high << "</text>\n</g>\n";
    }
    left += canvas_width + margin;
  }
  out << "</svg>\n";
  return rank == 0 ? out.str() : std::string();
}
