// SPDX-License-Identifier: MIT
#include "atom_dataset.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sar::formats {
namespace {

/// The rows of x with `width` numbers in another order.
template <class T>
void reorder(std::vector<T>& x, const std::vector<std::int32_t>& order, Index width) {
  if (x.empty()) return;
  std::vector<T> sorted;
  sorted.reserve(x.size());
  for (const Index i : order) sorted.insert(sorted.end(), x.begin() + i * width, x.begin() + (i + 1) * width);
  x = std::move(sorted);
}

}  // namespace

std::vector<std::size_t> file_order(const AtomStructure& atoms) {
  std::vector<std::size_t> order(atoms.elements.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[atoms.numbers.empty() ? i : static_cast<std::size_t>(atoms.numbers[i])] = i;
  return order;
}

void sort_in_space(AtomStructure& atoms) {
  // A cell that is damaged, or none, is refused where the neighbors are found.
  const double volume = atoms.cell.volume();
  const CellBasis basis(volume > 0 && std::isfinite(volume) ? atoms.cell : Cell{});
  const auto n = static_cast<std::size_t>(atoms.num_atoms());
  std::vector<double> along(n);
  double longest = -1;
  for (std::size_t k = 0; k < 3; ++k) {
    const bool wraps = basis.periodic()[k];
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double* const at = &atoms.positions[3 * i];
      x[i] = basis.coordinates({at[0], at[1], at[2]})[k];
      if (wraps) x[i] -= std::floor(x[i]);
    }
    const auto [least, greatest] = std::ranges::minmax_element(x);
    const double length = wraps ? basis.height(k) : n > 0 ? *greatest - *least : 0;
    if (length <= longest) continue;
    longest = length;
    along = std::move(x);
  }
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return along[i]; });
  reorder(atoms.elements, order, 1);
  reorder(atoms.positions, order, 3);
  reorder(atoms.forces, order, 3);
  reorder(atoms.force_deviations, order, 1);
  atoms.numbers = std::move(order);
}

}  // namespace sar::formats
