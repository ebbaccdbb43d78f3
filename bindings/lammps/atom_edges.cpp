// Atoms are sorted by cells of side `reach` or more. An atom's partners are in the 27 cells around its own.
#include "atom_edges.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace sar::lammps {
namespace {

struct Cells {
  std::array<double, 3> low{};
  double side = 0;
  std::array<int, 3> count{};
  std::vector<int> begin;  // of each cell in `sorted`
  std::vector<int> sorted;

  [[nodiscard]] std::array<int, 3> of(const double* x) const {
    std::array<int, 3> cell{};
    for (std::size_t c = 0; c < 3; ++c)
      cell[c] = std::min(static_cast<int>((x[c] - low[c]) / side), count[c] - 1);
    return cell;
  }
  [[nodiscard]] std::size_t number(int a, int b, int c) const {
    return (static_cast<std::size_t>(a) * static_cast<std::size_t>(count[1]) + static_cast<std::size_t>(b)) *
               static_cast<std::size_t>(count[2]) +
           static_cast<std::size_t>(c);
  }
};

void check_positions(const double* const* x, const std::vector<int>& atoms) {
  for (const int i : atoms)
    require<InputError>(std::isfinite(x[i][0]) && std::isfinite(x[i][1]) && std::isfinite(x[i][2]),
                        "an atom is at (", x[i][0], ", ", x[i][1], ", ", x[i][2],
                        "), expected finite numbers");
}

Cells sort_by_cells(const double* const* x, const std::vector<int>& atoms, double reach) {
  Cells cells;
  std::array<double, 3> high{};
  for (std::size_t c = 0; c < 3; ++c) {
    cells.low[c] = high[c] = x[atoms[0]][c];
    for (const int i : atoms) {
      cells.low[c] = std::min(cells.low[c], x[i][c]);
      high[c] = std::max(high[c], x[i][c]);
    }
  }
  // not many more cells than atoms, however far apart these are
  double number = 0;
  for (cells.side = reach;; cells.side *= 2) {
    number = 1;
    for (std::size_t c = 0; c < 3; ++c) number *= std::floor((high[c] - cells.low[c]) / cells.side) + 1;
    if (number <= 8 * static_cast<double>(atoms.size()) + 64) break;
  }
  for (std::size_t c = 0; c < 3; ++c)
    cells.count[c] = static_cast<int>((high[c] - cells.low[c]) / cells.side) + 1;
  cells.begin.assign(static_cast<std::size_t>(number) + 1, 0);
  std::vector<std::size_t> cell_of;
  for (const int i : atoms) {
    const auto [a, b, c] = cells.of(x[i]);
    cell_of.push_back(cells.number(a, b, c));
    ++cells.begin[cell_of.back() + 1];
  }
  for (std::size_t k = 1; k < cells.begin.size(); ++k) cells.begin[k] += cells.begin[k - 1];
  std::vector<int> next(cells.begin.begin(), cells.begin.end() - 1);
  cells.sorted.resize(atoms.size());
  for (std::size_t i = 0; i < atoms.size(); ++i)
    cells.sorted[static_cast<std::size_t>(next[cell_of[i]]++)] = static_cast<int>(i);
  return cells;
}

}  // namespace

AtomEdges find_atom_edges(const double* const* x, const std::vector<int>& atoms, int num_owned,
                          double reach) {
  AtomEdges edges;
  check_positions(x, atoms);
  if (atoms.empty()) return edges;
  const Cells cells = sort_by_cells(x, atoms, reach);
  for (int v = 0; v < num_owned; ++v) {
    const double* at = x[atoms[static_cast<std::size_t>(v)]];
    const auto cell = cells.of(at);
    std::array<int, 3> first{}, last{};
    for (std::size_t c = 0; c < 3; ++c) {
      first[c] = std::max(cell[c] - 1, 0);
      last[c] = std::min(cell[c] + 1, cells.count[c] - 1);
    }
    for (int a = first[0]; a <= last[0]; ++a)
      for (int b = first[1]; b <= last[1]; ++b)
        for (int k = cells.begin[cells.number(a, b, first[2])];
             k < cells.begin[cells.number(a, b, last[2]) + 1]; ++k) {
          const int u = cells.sorted[static_cast<std::size_t>(k)];
          const double* from = x[atoms[static_cast<std::size_t>(u)]];
          const double d[3] = {from[0] - at[0], from[1] - at[1], from[2] - at[2]};
          if (u == v || d[0] * d[0] + d[1] * d[1] + d[2] * d[2] >= reach * reach) continue;
          edges.src.push_back(u);
          edges.dst.push_back(v);
        }
  }
  return edges;
}

}  // namespace sar::lammps
