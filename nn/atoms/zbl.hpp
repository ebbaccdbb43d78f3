// SPDX-License-Identifier: MIT

/// The repulsion of nuclei at short distances, by Ziegler, Biersack and Littmark (ZBL).
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the atomic number of a chemical symbol such as "Si"; 0 for other names.
[[nodiscard]] int atomic_number(const std::string& symbol);
/// Returns the covalent radius of an element in Angstrom (Cordero et al., Dalton Trans. 2008, 2832). Throws
/// InputError for elements beyond Cm and for other names.
[[nodiscard]] double covalent_radius(const std::string& symbol);
/// Returns the chemical symbol of an atomic number; an empty text for other numbers.
[[nodiscard]] std::string chemical_symbol(Index number);

struct ZblScreening;

/// The energy of two nuclei with atomic numbers Z and Z' at distance r in Angstrom, in eV, as pair_style zbl
/// of LAMMPS in units metal:
///
///     V(r) = 14.399645 Z Z' phi(r / a) / r + S(r), r < outer        V(r) = 0, r >= outer
///
///     a = 0.46850 / (Z^0.23 + Z'^0.23)
///
///     phi(x) = 0.02817 exp(-0.20162 x) + 0.28022 exp(-0.40290 x) + 0.50986 exp(-0.94229 x) + 0.18175 exp(-3.19980 x)
///
///     S(r) = C, r < inner        S(r) = C + A (r - inner)^3 / 3 + B (r - inner)^4 / 4, r >= inner
///
/// with the A, B and C for which V, V' and V'' are 0 at r = outer. Or, as mace-torch, with a = 0.2403247 /
/// (Z^0.3 + Z'^0.3), coefficients of fewer digits and the sum of both covalent radii as outer,
///
///     V(r) = scale 14.3996 Z Z' phi(r / a) / r fc(r), r < outer
///
/// and the fc of HarmonicFunctions with the power p and the cutoff outer.
class Zbl {
 public:
  /// Local. `species`: chemical symbols. Throws InputError for other names, and unless 0 <= inner < outer.
  Zbl(const std::vector<std::string>& species, double inner, double outer);
  /// Local. With the covalent radius of each species. Throws InputError for names that are no chemical
  /// symbols, and unless there are as many radii.
  Zbl(const std::vector<std::string>& species, const std::vector<double>& radii, int power, double scale);

  struct Value {
    double energy, slope;  ///< V, V'
  };
  /// Local. Returns V and V' of a pair with the numbers of its species, for r > 0.
  [[nodiscard]] Value operator()(Index a, Index b, double r) const;

  /// Local. Returns, for the vectors d = x_u - x_v [edges, 3] of edges u -> v in both directions, what an
  /// edge adds to its destination v: the energy V / 2 and the force V' d / r, [edges, 4]. `species`: of u and
  /// v. Throws InputError for two atoms at the same place, and for a species that there is not.
  [[nodiscard]] Tensor edge_rows(const Tensor& vectors, std::span<const std::array<Index, 2>> species) const;

 private:
  struct Pair {
    double charges;                ///< 14.399645 Z Z'
    std::array<double, 4> weights, decays;  ///< of phi, with the factors of r
    double inner = 0, outer = 0;
    double a = 0, b = 0, c = 0;  ///< of S

    [[nodiscard]] static Pair of(const ZblScreening& s, const std::string& a, const std::string& b);
    [[nodiscard]] std::array<double, 3> screened(double r) const;  // V - S and two derivatives
  };

  Index num_species_;
  int power_ = 0;            // of fc; 0: S in its place
  std::vector<Pair> pairs_;  // [num_species * num_species]
};

}}  // namespace sar
