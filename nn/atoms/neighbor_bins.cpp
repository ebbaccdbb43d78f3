// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/neighbor_bins.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr double max_bins = 1 << 20;  // in a direction, so that a bin is a number of 60 bits
constexpr double max_images = 100;
constexpr double max_position = 1e9;

std::span<const BinnedAtom> atoms_in(std::span<const BinnedAtom> sorted, Index bin) {
  const auto found = std::ranges::equal_range(sorted, bin, {}, &BinnedAtom::bin);
  return {found.begin(), found.end()};
}

/// Marks the atoms v with |d| < cutoff, d = (x_u - x_v) + t, and returns how many there are. The loop is
/// vectorized: it has neither branches nor calls, and all numbers have 8 bytes.
std::int64_t mark_near(const Vector3& u, const Vector3& t, const std::array<std::vector<double>, 3>& x,
                       double cutoff2, std::vector<std::int64_t>& is_near) {
  const double *const x0 = x[0].data(), *const x1 = x[1].data(), *const x2 = x[2].data();
  const double u0 = u[0], u1 = u[1], u2 = u[2], t0 = t[0], t1 = t[1], t2 = t[2];
  std::int64_t* const near = is_near.data();
  const auto size = std::ssize(is_near);
  std::int64_t count = 0;
  for (std::ptrdiff_t k = 0; k < size; ++k) {
    const double d0 = (u0 - x0[k]) + t0, d1 = (u1 - x1[k]) + t1, d2 = (u2 - x2[k]) + t2;
    const std::int64_t is_within = d0 * d0 + d1 * d1 + d2 * d2 < cutoff2 ? 1 : 0;
    near[k] = is_within;
    count += is_within;
  }
  return count;
}

void append(AtomPairs& pairs, const AtomPairs& more) {
  pairs.src.insert(pairs.src.end(), more.src.begin(), more.src.end());
  pairs.dst.insert(pairs.dst.end(), more.dst.begin(), more.dst.end());
  pairs.vectors.insert(pairs.vectors.end(), more.vectors.begin(), more.vectors.end());
}

}  // namespace

BinGrid::BinGrid(const CellBasis& basis, double cutoff, const CoordinateRange& range)
    : basis_(basis), cutoff_(cutoff), range_(range) {
  require<InputError>(cutoff > 0 && std::isfinite(cutoff), "a neighbor list with a cutoff of ", cutoff,
                      ", expected a positive number");
  const double safe = cutoff * (1 + 1e-9);  // coordinates are rounded
  for (std::size_t k = 0; k < 3; ++k) {
    if (basis.periodic()[k]) {
      range_.min[k] = 0;
      range_.max[k] = 1;
    }
    const double length = (range_.max[k] - range_.min[k]) * basis.height(k);
    const double bins = std::clamp(std::floor(length / safe), 1.0, max_bins);
    bins_[k] = static_cast<Index>(bins);
    const double reach = basis.periodic()[k] ? std::ceil(safe * bins / length) : 1;
    require<InputError>(reach <= max_images, "a cell that is ", length, " thick, in which a cutoff of ",
                        cutoff, " reaches more than ", max_images, " images");
    reach_[k] = static_cast<Index>(reach);
  }
}

BinnedAtom BinGrid::place(Index id, const Vector3& x) const {
  const Vector3 f = basis_.coordinates(x);
  Vector3 n{};
  Index bin = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    if (basis_.periodic()[k]) n[k] = std::floor(f[k]);
    const double length = range_.max[k] - range_.min[k];
    const double share = length > 0 ? (f[k] - n[k] - range_.min[k]) / length : 0;
    const auto bins = static_cast<double>(bins_[k]);
    bin = bin * bins_[k] + static_cast<Index>(std::clamp(std::floor(share * bins), 0.0, bins - 1));
  }
  const Vector3 t = basis_.position(n);
  return {bin, id, {x[0] - t[0], x[1] - t[1], x[2] - t[2]}};
}

CoordinateRange range_of(const CellBasis& basis, std::span<const double> positions, const AtomNames& names) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  CoordinateRange range{.min = {inf, inf, inf}, .max = {-inf, -inf, -inf}};
  for (std::size_t i = 0; i + 2 < positions.size(); i += 3) {
    const Vector3 x{positions[i], positions[i + 1], positions[i + 2]};
    for (const double each : x)
      require<InputError>(std::abs(each) <= max_position, "a neighbor list with atom ",
                          names(static_cast<Index>(i / 3)), " at (", x[0], ", ", x[1], ", ", x[2],
                          "), expected coordinates of at most ", max_position);
    const Vector3 f = basis.coordinates(x);
    for (std::size_t k = 0; k < 3; ++k) {
      range.min[k] = std::min(range.min[k], f[k]);
      range.max[k] = std::max(range.max[k], f[k]);
    }
  }
  return range;
}

void sort_by_bin(Array<BinnedAtom>& atoms) {
  std::ranges::sort(atoms, [](const BinnedAtom& a, const BinnedAtom& b) {
    return a.bin != b.bin ? a.bin < b.bin : a.id < b.id;
  });
}

Array<BinnedAtom> placed(const BinGrid& grid, std::span<const double> positions, Index first_id) {
  Array<BinnedAtom> atoms(positions.size() / 3);
  for (std::size_t i = 0; i < atoms.size(); ++i)
    atoms[i] = grid.place(first_id + static_cast<Index>(i),
                          {positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]});
  sort_by_bin(atoms);
  return atoms;
}

std::vector<Index> bins_of(std::span<const BinnedAtom> atoms) {
  std::vector<Index> bins;
  for (const BinnedAtom& atom : atoms)
    if (bins.empty() || bins.back() != atom.bin) bins.push_back(atom.bin);
  return bins;
}

AtomPairs find_pairs(const BinGrid& grid, std::span<const BinnedAtom> sources,
                     std::span<const BinnedAtom> destinations) {
  const std::vector<Index> bins = bins_of(destinations);
  const double cutoff2 = grid.cutoff() * grid.cutoff();
  const auto pairs_of_bins = [&](Index first, Index last) {
    AtomPairs pairs;
    std::array<std::vector<double>, 3> x;  // of the bin's atoms
    std::vector<std::int64_t> is_near;     // to an image of u
    for (Index b = first; b < last; ++b) {
      const Index bin = bins[static_cast<std::size_t>(b)];
      const std::span<const BinnedAtom> centers = atoms_in(destinations, bin);
      for (std::size_t k = 0; k < 3; ++k) {
        x[k].clear();
        for (const BinnedAtom& v : centers) x[k].push_back(v.x[k]);
      }
      is_near.resize(centers.size());
      grid.each_neighbor(bin, [&](Index other, const Vector3& t) {
        const bool same = other == bin && t == Vector3{};
        for (const BinnedAtom& u : atoms_in(sources, other)) {
          std::int64_t left = mark_near(u.x, t, x, cutoff2, is_near);
          for (std::size_t k = 0; left > 0; ++k) {
            if (is_near[k] == 0) continue;
            --left;
            const BinnedAtom& v = centers[k];
            if (same && u.id == v.id) continue;
            pairs.src.push_back(u.id);
            pairs.dst.push_back(v.id);
            for (std::size_t c = 0; c < 3; ++c) pairs.vectors.push_back((u.x[c] - v.x[c]) + t[c]);
          }
        }
      });
    }
    return pairs;
  };
  constexpr Index bins_per_task = 8;
  return parallel_reduce(std::ssize(bins), bins_per_task, AtomPairs{}, pairs_of_bins,
                         [](AtomPairs pairs, const AtomPairs& more) {
                           append(pairs, more);
                           return pairs;
                         });
}

void require_apart(const BinGrid& grid, const AtomPairs& pairs, const AtomNames& names) {
  const double least = same_place * grid.cutoff();
  for (Index k = 0; k < std::ssize(pairs.src); ++k) {
    const double* const d = &pairs.vectors[3 * k];
    if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] >= least * least) continue;
    throw InputError(concat("a neighbor list with the atoms ", names(pairs.src[k]), " and ",
                            names(pairs.dst[k]), " at the same place (their distance is ",
                            std::hypot(d[0], d[1], d[2]), "), expected different places"));
  }
}
}}  // namespace sar
