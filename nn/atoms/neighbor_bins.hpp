// SPDX-License-Identifier: MIT

/// Linked cells: atoms sorted into bins, and all pairs within a cutoff found by visiting neighboring bins.
/// For neighbor lists.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/nn/atoms/cell.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// An atom, moved by cell vectors into the cell.
struct BinnedAtom {
  Index bin;
  Index id;
  Vector3 x;
};

/// The least and the greatest coordinates of atoms in a CellBasis.
struct CoordinateRange {
  Vector3 min, max;
};

/// Pairs u -> v with d = x_u + t - x_v, where t is a combination of cell vectors.
struct AtomPairs {
  Array<Index> src, dst;  ///< ids of u and v
  Array<double> vectors;  ///< d, 3 for each pair
};

/// Divides a cell into bins that are at least as thick as the cutoff, or into one bin in directions in which
/// the cell is thinner. Bins are numbers; two atoms within the cutoff are in bins that each_neighbor visits.
class BinGrid {
 public:
  /// Throws InputError unless the cutoff is positive and finite, and if it reaches more than 100 images of a
  /// cell in a direction. `range`: over all atoms; it matters in directions that are not periodic.
  BinGrid(const CellBasis& basis, double cutoff, const CoordinateRange& range);

  [[nodiscard]] double cutoff() const noexcept { return cutoff_; }
  [[nodiscard]] BinnedAtom place(Index id, const Vector3& x) const;

  /// Calls visit(bin, t) for each bin that has atoms within the cutoff of atoms in `bin`, moved by t.
  template <class Visit>
  void each_neighbor(Index bin, const Visit& visit) const {
    const std::array<Index, 3> at{bin / (bins_[1] * bins_[2]), bin / bins_[2] % bins_[1], bin % bins_[2]};
    std::array<Index, 3> step;
    for (step[0] = -reach_[0]; step[0] <= reach_[0]; ++step[0])
      for (step[1] = -reach_[1]; step[1] <= reach_[1]; ++step[1])
        for (step[2] = -reach_[2]; step[2] <= reach_[2]; ++step[2]) {
          std::array<Index, 3> to;
          Vector3 images{};
          bool exists = true;
          for (std::size_t k = 0; k < 3; ++k) {
            const Index unwrapped = at[k] + step[k];
            const Index image = floor_ratio(unwrapped, bins_[k]);
            exists = exists && (image == 0 || basis_.periodic()[k]);
            to[k] = unwrapped - image * bins_[k];
            images[k] = static_cast<double>(image);
          }
          if (exists) visit((to[0] * bins_[1] + to[1]) * bins_[2] + to[2], basis_.position(images));
        }
  }

 private:
  static Index floor_ratio(Index a, Index b) noexcept { return (a >= 0 ? a : a - b + 1) / b; }

  CellBasis basis_;
  double cutoff_;
  CoordinateRange range_;
  std::array<Index, 3> bins_;   // number of bins
  std::array<Index, 3> reach_;  // bins that the cutoff reaches
};

/// What messages call atoms: their numbers, or, without numbers, their ids.
struct AtomNames {
  std::span<const Index> numbers{};

  [[nodiscard]] Index operator()(Index id) const noexcept {
    return numbers.empty() ? id : numbers[static_cast<std::size_t>(id)];
  }
};

/// Returns the coordinates' range of positions (3 for each atom). Throws InputError, naming the atom, for one
/// that is not finite or farther than 1e9 from the origin.
CoordinateRange range_of(const CellBasis& basis, std::span<const double> positions,
                         const AtomNames& names = {});

/// Sorts atoms by bin, then by id.
void sort_by_bin(Array<BinnedAtom>& atoms);

/// Returns atoms first_id, first_id + 1, ... at these positions (3 for each), sorted.
Array<BinnedAtom> placed(const BinGrid& grid, std::span<const double> positions, Index first_id = 0);

/// Returns the distinct bins of sorted atoms.
std::vector<Index> bins_of(std::span<const BinnedAtom> atoms);

/// Returns all pairs with |d| < cutoff of a u of `sources` with a v of `destinations`, which are sorted. An
/// atom pairs with its own images, not with itself. Pairs of the same atoms come in the same order for any
/// lists.
///
/// d is (x_u - x_v) + t, so that the d of the opposite pair has the same bits but the sign: whether a pair is
/// within the cutoff is the same for both directions. Multithreaded: blocks of destinations' bins.
AtomPairs find_pairs(const BinGrid& grid, std::span<const BinnedAtom> sources,
                     std::span<const BinnedAtom> destinations);

/// Atoms that are closer than this share of a cutoff are at the same place: no direction leads from one to
/// the other, and an atom that a cell vector leads to another one is there to rounding only.
constexpr double same_place = 1e-6;

/// Throws InputError, naming the atoms, for a pair at the same place.
void require_apart(const BinGrid& grid, const AtomPairs& pairs, const AtomNames& names = {});
}}  // namespace sar
