// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/atoms/couplings.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <map>

namespace sar { inline namespace SAR_PRECISION {
namespace {

double factorial(int n) {
  return std::tgamma(n + 1.0);
}

double sign(int n) {
  return n % 2 == 0 ? 1 : -1;
}

/// The Clebsch-Gordan coefficient <j1 m1 j2 m2 | j3 m1 + m2>, by Racah's formula.
double clebsch_gordan(int j1, int m1, int j2, int m2, int j3) {
  const int m3 = m1 + m2;
  if (std::abs(m3) > j3) return 0;
  const double norm = (2 * j3 + 1) * factorial(j3 + j1 - j2) * factorial(j3 - j1 + j2) *
                      factorial(j1 + j2 - j3) * factorial(j3 + m3) * factorial(j3 - m3) /
                      (factorial(j1 + j2 + j3 + 1) * factorial(j1 - m1) * factorial(j1 + m1) *
                       factorial(j2 - m2) * factorial(j2 + m2));
  double sum = 0;
  for (int v = std::max({j1 * -1 + j2 + m3, m1 - j1, 0});
       v <= std::min({j2 + j3 + m1, j3 - j1 + j2, j3 + m3}); ++v)
    sum +=
        sign(v + j2 + m2) * factorial(j2 + j3 + m1 - v) * factorial(j1 - m1 + v) /
        (factorial(v) * factorial(j3 - j1 + j2 - v) * factorial(j3 + m3 - v) * factorial(v + j1 - j2 - m3));
  return std::sqrt(norm) * sum;
}

/// Row m of the matrix from complex to real spherical harmonics of degree l, times (-i)^l, has these values
/// in the columns |m| and -|m|.
std::array<std::complex<double>, 2> real_harmonic(int l, int m) {
  constexpr std::complex<double> i(0, 1);
  std::complex<double> phase = 1;
  for (int k = 0; k < l; ++k) phase *= -i;
  const double half = std::sqrt(0.5);
  if (m == 0) return {phase, 0};
  if (m < 0) return {phase * half, phase * -i * half};
  return {phase * sign(m) * half, phase * i * sign(m) * half};
}

Index first_component(int l) {
  return Index{l} * l;
}

std::size_t at(int l, int m) {
  return static_cast<std::size_t>(l + m);
}

}  // namespace

std::vector<double> wigner_3j(int l1, int l2, int l3) {
  const auto size = [](int l) { return static_cast<std::size_t>(2 * l + 1); };
  // Rows of real_harmonic() belong to complex components, so that its columns are the real ones.
  std::vector<std::complex<double>> sums(size(l1) * size(l2) * size(l3));
  const auto each_column = [](int l, int m, const auto& visit) {
    const auto values = real_harmonic(l, m);
    visit(std::abs(m), values[0]);
    if (m != 0) visit(-std::abs(m), values[1]);
  };
  for (int m1 = -l1; m1 <= l1; ++m1)
    for (int m2 = -l2; m2 <= l2; ++m2) {
      const double c = clebsch_gordan(l1, m1, l2, m2, l3);
      if (c == 0) continue;
      each_column(l1, m1, [&](int a, std::complex<double> of_a) {
        each_column(l2, m2, [&](int b, std::complex<double> of_b) {
          each_column(l3, m1 + m2, [&](int k, std::complex<double> of_k) {
            sums[(at(l1, a) * size(l2) + at(l2, b)) * size(l3) + at(l3, k)] +=
                of_a * of_b * std::conj(of_k) * c;
          });
        });
      });
    }
  double squares = 0;
  std::vector<double> w;
  for (const std::complex<double>& each : sums) {
    w.push_back(std::abs(each.real()) < 1e-12 ? 0 : each.real());
    squares += w.back() * w.back();
  }
  for (double& each : w) each /= std::sqrt(squares);
  return w;
}

TensorProduct::TensorProduct(int max_l1, int max_l2, int max_l3)
    : paths_to(static_cast<std::size_t>(max_l3 + 1), 0),
      rows1(components(max_l1)),
      rows2(components(max_l2)) {
  for (int l3 = 0; l3 <= max_l3; ++l3) {
    Index& count = paths_to[static_cast<std::size_t>(l3)];
    for (int l1 = 0; l1 <= max_l1; ++l1)
      for (int l2 = std::abs(l1 - l3); l2 <= std::min(l1 + l3, max_l2); l2 += 2) {
        const Index size2 = 2 * l2 + 1, size3 = 2 * l3 + 1;
        const std::vector<double> w = wigner_3j(l1, l2, l3);
        for (std::size_t k = 0; k < w.size(); ++k) {
          const auto at = static_cast<Index>(k), m1 = at / (size2 * size3), m2 = at / size3 % size2;
          if (w[k] != 0)
            entries.push_back({matrices + m1 * size3 + at % size3, first_component(l2) + m2,
                               static_cast<real>(std::sqrt(size3) * w[k])});
        }
        paths.push_back({l1, l2, l3, rows + count++, 0, matrices});
        matrices += (2 * l1 + 1) * size3;
      }
    for (TensorPath& path : paths)
      if (path.l3 == l3) path.stride = count;
    rows += (2 * l3 + 1) * count;
  }
}

namespace {

/// A coefficient's place: o, i, j, k.
using Column = std::array<Index, 4>;
using Polynomial = std::map<Column, double>;

/// Adds the product of components l1, l2 and l3 that is coupled over l12 to degree l, for all components o.
Polynomial coupled(std::array<int, 3> ls, int l12, int l) {
  const std::vector<double> first = wigner_3j(ls[0], ls[1], l12), second = wigner_3j(l12, ls[2], l);
  const std::array<Index, 5> size{2 * ls[0] + 1, 2 * ls[1] + 1, 2 * ls[2] + 1, 2 * l12 + 1, 2 * l + 1};
  Polynomial result;
  for (Index a = 0; a < size[0]; ++a)
    for (Index b = 0; b < size[1]; ++b)
      for (Index c = 0; c < size[2]; ++c)
        for (Index o = 0; o < size[4]; ++o) {
          double value = 0;
          for (Index m = 0; m < size[3]; ++m)
            value += first[static_cast<std::size_t>((a * size[1] + b) * size[3] + m)] *
                     second[static_cast<std::size_t>((m * size[2] + c) * size[4] + o)];
          std::array<Index, 3> x{first_component(ls[0]) + a, first_component(ls[1]) + b,
                                 first_component(ls[2]) + c};
          std::ranges::sort(x);
          result[{first_component(l) + o, x[0], x[1], x[2]}] += value;
        }
  return result;
}

/// Brings polynomials into reduced row echelon form, and then makes them orthonormal.
std::vector<std::vector<double>> unique_basis(std::vector<std::vector<double>> rows) {
  constexpr double zero = 1e-8;
  std::size_t rank = 0;
  const std::size_t columns = rows.empty() ? 0 : rows[0].size();
  for (std::size_t column = 0; column < columns && rank < rows.size(); ++column) {
    std::size_t pivot = rank;
    for (std::size_t i = rank; i < rows.size(); ++i)
      if (std::abs(rows[i][column]) > std::abs(rows[pivot][column])) pivot = i;
    if (std::abs(rows[pivot][column]) < zero) continue;
    std::swap(rows[pivot], rows[rank]);
    const double scale = rows[rank][column];
    for (double& each : rows[rank]) each /= scale;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double factor = rows[i][column];
      for (std::size_t j = 0; i != rank && j < columns; ++j) rows[i][j] -= factor * rows[rank][j];
    }
    ++rank;
  }
  rows.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto dot = [&](const std::vector<double>& other) {
      double sum = 0;
      for (std::size_t j = 0; j < columns; ++j) sum += rows[i][j] * other[j];
      return sum;
    };
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t k = 0; k < i; ++k) {
        const double along = dot(rows[k]);
        for (std::size_t j = 0; j < columns; ++j) rows[i][j] -= along * rows[k][j];
      }
    const double length = std::sqrt(dot(rows[i]));
    for (double& each : rows[i]) each = std::abs(each) < 1e-12 ? 0 : each / length;
  }
  return rows;
}

}  // namespace

SymmetricBasis::SymmetricBasis(int max_l, int max_out, int correlation)
    : one(components(max_l)), outs(components(max_out)) {
  std::map<std::array<Index, 4>, std::vector<std::pair<Index, double>>> found;  // by i, j, k, o
  const auto add = [&](std::array<int, 3> ls, int degree, int l) {
    // A polynomial of a lower degree has factors of degree 0 in front, which become `one`.
    std::vector<Polynomial> all;
    for (int l12 = std::abs(ls[0] - ls[1]); l12 <= ls[0] + ls[1]; ++l12)
      if (std::abs(l12 - ls[2]) <= l && l <= l12 + ls[2]) all.push_back(coupled(ls, l12, l));
    std::map<Column, std::size_t> columns;
    for (const Polynomial& each : all)
      for (const auto& [column, value] : each) columns.emplace(column, 0);
    std::size_t number = 0;
    for (auto& [column, index] : columns) index = number++;
    std::vector<std::vector<double>> rows;
    for (const Polynomial& each : all) {
      rows.emplace_back(number, 0.0);
      for (const auto& [column, value] : each) rows.back()[columns.at(column)] = value;
    }
    std::vector<std::vector<double>> basis = unique_basis(std::move(rows));
    Block& block = blocks.emplace_back(Block{std::ssize(basis), 0, {}, 0});
    std::vector<std::vector<double>> mixing(basis.size());
    std::sort(ls.begin() + (3 - degree), ls.end());
    do {  // the couplings of the factors in another order
      for (int l12 = std::abs(ls[0] - ls[1]); l12 <= ls[0] + ls[1]; ++l12) {
        if (std::abs(l12 - ls[2]) > l || l > l12 + ls[2]) continue;
        for (std::vector<double>& each : mixing) each.push_back(0);
        for (const auto& [column, value] : coupled(ls, l12, l))
          for (std::size_t p = 0; p < basis.size(); ++p)
            mixing[p].back() += std::sqrt((2 * l12 + 1) * (2 * l + 1)) * value * basis[p][columns.at(column)];
        ++block.couplings;
      }
    } while (std::next_permutation(ls.begin() + (3 - degree), ls.end()));
    for (std::size_t p = 0; p < basis.size(); ++p) {
      double scale = 0;
      for (const double each : mixing[p]) scale += std::abs(each);
      for (double& each : basis[p]) each *= scale;
      for (const double each : mixing[p]) block.mixing.push_back(each / scale);
    }
    for (const std::vector<double>& row : basis) {
      for (const auto& [column, index] : columns) {
        if (row[index] == 0) continue;
        std::array<Index, 4> place{column[1], column[2], column[3], column[0]};
        for (int k = 0; k < 3 - degree; ++k) std::rotate(place.begin(), place.begin() + 1, place.begin() + 3);
        for (int k = degree; k < 3; ++k) place[static_cast<std::size_t>(k)] = one;
        found[place].emplace_back(paths, row[index]);
      }
      ++paths;
    }
  };
  for (int l = 0; l <= max_out; ++l)
    for (int degree = 1; degree <= correlation; ++degree) {
      const auto first = std::ssize(blocks);
      for (int a = 0; a <= (degree > 2 ? max_l : 0); ++a)
        for (int b = a; b <= (degree > 1 ? max_l : 0); ++b)
          for (int c = b; c <= max_l; ++c)
            if ((a + b + c + l) % 2 == 0) add({a, b, c}, degree, l);
      Index couplings = 0;
      for (auto each = blocks.begin() + first; each != blocks.end(); ++each) couplings += each->couplings;
      for (auto each = blocks.begin() + first; each != blocks.end(); ++each) each->all_couplings = couplings;
    }
  for (auto& [place, values] : found) {
    const std::array<Index, 3> x{place[0], place[1], place[2]};
    if (products.empty() || products.back().x != x) products.push_back({x, std::ssize(terms), 0});
    terms.push_back({place[3], std::move(values)});
    products.back().last_term = std::ssize(terms);
  }
}
}}  // namespace sar
