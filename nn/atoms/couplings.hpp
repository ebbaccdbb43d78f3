// SPDX-License-Identifier: MIT

/// Couplings of real spherical harmonics, as MACE uses them.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the Wigner 3j symbol of real spherical harmonics w[m1][m2][m3], [2 l1 + 1, 2 l2 + 1, 2 l3 +
/// 1], whose squares have the sum 1. Where l1 + l2 + l3 is even, it is that of e3nn, also in its sign.
[[nodiscard]] std::vector<double> wigner_3j(int l1, int l2, int l3);

/// Returns the number of components of degrees 0 .. l.
[[nodiscard]] constexpr Index components(Index l) noexcept {
  return (l + 1) * (l + 1);
}

/// A coupling of degrees l1 and l2 to l3, with l1 + l2 + l3 even, so that reflections act on all of them as
/// on spherical harmonics.
struct TensorPath {
  int l1, l2, l3;
  Index out;     ///< component m3 = 0 of the result
  Index stride;  ///< components from m3 to m3 + 1
  Index matrix;  ///< first number of its matrix [2 l1 + 1, 2 l3 + 1] in TensorProduct::entries
};

/// The products of x of degrees 0 .. max_l1 with y of degrees 0 .. max_l2, to degrees 0 .. max_l3:
///
///     z_p,m3 = sqrt(2 l3 + 1) sum over m1 and m2 of wigner_3j(l1, l2, l3)[m1][m2][m3] x_l1,m1 y_l2,m2
///
/// for each path p, as o3.TensorProduct of e3nn. The components of degree l of a result, [2 l + 1, p] for p
/// paths to it, are followed by those of l + 1.
struct TensorProduct {
  TensorProduct(int max_l1, int max_l2, int max_l3);

  /// A coupling that is not 0. For given y, a path is a matrix from x to z: the entry adds `value` y[row2] to
  /// number `at` of the matrices.
  struct Entry {
    Index at, row2;
    real value;
  };

  /// In the order of l3, and then of l1 and l2, as weights of a radial network have them.
  std::vector<TensorPath> paths;
  std::vector<Index> paths_to;  ///< number of paths to each degree
  std::vector<Entry> entries;
  Index rows1, rows2, rows = 0;  ///< components of both factors and of the result
  Index matrices = 0;            ///< numbers of the matrices of all paths
};

/// A basis of the symmetric equivariant polynomials of degrees 1 .. `correlation` in the components x of
/// degrees 0 .. max_l, with values of degrees 0 .. max_out and the parity of spherical harmonics:
///
///     B_p(x)_o = sum over terms of path p to component o of value x_i x_j x_k
///
/// Batatia, Kovacs, Simm, Ortner, Csanyi, arXiv 2206.07697, equation (10), without repeated polynomials.
///
/// Paths are ordered by the degree of the value, the degree of the polynomial and the degrees l of its
/// factors, l_i <= l_j <= l_k. The polynomials of the same degrees are orthogonal in their coefficients of
/// x_i x_j x_k, i <= j <= k, which makes them unique up to a factor: the reduced row echelon form of any
/// basis, with columns in the order of (o, i, j, k), orthogonalized in the order of its rows. The factor is
/// such that the magnitudes of a row of Block::mixing have the sum 1: a step of Adam that changes the weights
/// of all couplings by as much changes that of the path by as much, too.
struct SymmetricBasis {
  SymmetricBasis(int max_l, int max_out, int correlation);

  /// What a product of components adds to component `out` of the value: the weights of these paths, times
  /// these values.
  struct Term {
    Index out;
    std::vector<std::pair<Index, double>> paths;
  };
  /// x_i x_j x_k, i <= j <= k, and its terms. An index that a lower degree has not is `one`.
  struct Product {
    std::array<Index, 3> x;
    Index first_term, last_term;  ///< from the first one to before the last one
  };
  /// Paths of the same degrees, and all couplings x_i x_j x_k of these degrees, in any order and over any
  /// degree between, with the norm of e3nn: coupling c is the sum over the paths p of mixing[p][c] B_p.
  struct Block {
    Index paths, couplings;
    std::vector<double> mixing;
    Index all_couplings;  ///< those to the same degree of the value, of polynomials of the same degree
  };
  Index one;   ///< number of components, and the index of a factor 1 behind them
  Index outs;  ///< components of the values
  Index paths = 0;
  std::vector<Product> products;
  std::vector<Term> terms;
  std::vector<Block> blocks;  ///< of all paths, in their order
};

}}  // namespace sar
