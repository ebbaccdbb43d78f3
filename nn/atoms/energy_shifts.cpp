// SPDX-License-Identifier: MIT

// The normal equations A b = c have as many rows as there are species, few. Their eigenvectors, by Jacobi's
// rotations, give the solution of least norm.
#include <sar/core/error.hpp>
#include <sar/nn/atoms/energy_shifts.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A square matrix by rows.
struct Square {
  std::size_t n;
  std::vector<double> values = std::vector<double>(n * n, 0);
  double& operator()(std::size_t i, std::size_t j) { return values[n * i + j]; }
};

/// Makes a symmetric matrix diagonal, and returns the eigenvectors as columns.
Square diagonalize(Square& a) {
  const std::size_t n = a.n;
  Square vectors{n};
  for (std::size_t i = 0; i < n; ++i) vectors(i, i) = 1;
  constexpr int sweeps = 40;  // converges quadratically: fewer than 10 are needed
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
        const double c = std::cos(angle), s = std::sin(angle);
        const auto rotate = [&](double& x, double& y) {
          const double before = x;
          x = c * before - s * y;
          y = s * before + c * y;
        };
        for (std::size_t k = 0; k < n; ++k) rotate(a(k, p), a(k, q));
        for (std::size_t k = 0; k < n; ++k) rotate(a(p, k), a(q, k));
        for (std::size_t k = 0; k < n; ++k) rotate(vectors(k, p), vectors(k, q));
        a(p, q) = a(q, p) = 0;
      }
  return vectors;
}

EnergyShifts least_norm_solution(Square a, std::span<const double> c) {
  const std::size_t n = a.n;
  Square vectors = diagonalize(a);
  double largest = 0;
  for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, a(k, k));
  std::vector<double> b(n, 0), free(n, 0);  // free: length of the part of each axis that the null space has
  constexpr double least = 1e-10;  // of the largest eigenvalue: smaller ones are 0 to rounding
  for (std::size_t k = 0; k < n; ++k) {
    if (a(k, k) <= least * largest) {
      for (std::size_t i = 0; i < n; ++i) free[i] = std::hypot(free[i], vectors(i, k));
      continue;
    }
    double share = 0;
    for (std::size_t i = 0; i < n; ++i) share += vectors(i, k) * c[i];
    for (std::size_t i = 0; i < n; ++i) b[i] += vectors(i, k) * share / a(k, k);
  }
  EnergyShifts shifts{.energies = std::move(b), .undetermined = {}};
  constexpr double rounding = 1e-6;
  for (std::size_t i = 0; i < n; ++i)
    if (free[i] > rounding) shifts.undetermined.push_back(static_cast<Index>(i));
  return shifts;
}

}  // namespace

EnergyShifts fit_energy_shifts(const Communicator& comm, std::span<const double> counts,
                               std::span<const double> energies, Index num_species,
                               std::span<const double> given) {
  return comm.agree([&] {
    const CallScope scope(comm, CollectiveCall("fit_energy_shifts")
                                    .equal("num_species", num_species)
                                    .equal("given", joined(given, [](double b) { return concat(b); })));
    require<ShapeError>(given.empty() || std::ssize(given) == num_species, "energy shifts of ", num_species,
                        " species got ", given.size(), " that are given, expected one for each");
    require<ShapeError>(num_species >= 0 && std::ssize(counts) == std::ssize(energies) * num_species,
                        "energy shifts of ", num_species, " species got ", counts.size(), " counts for ",
                        energies.size(), " energies");
    const auto n = static_cast<std::size_t>(num_species);
    const auto is_given = [&](std::size_t k) { return !given.empty() && !std::isnan(given[k]); };
    Square a{n};
    std::vector<double> c(n, 0);
    for (std::size_t s = 0; s < energies.size(); ++s) {
      const std::span<const double> of = counts.subspan(s * n, n);
      double atoms = 0;
      for (const double count : of) atoms += count;
      require<InputError>(atoms > 0 && std::isfinite(energies[s]), "energy shifts: structure ", s, " of ",
                          atoms, " atoms with the energy ", energies[s]);
      double rest = energies[s];
      for (std::size_t k = 0; k < n; ++k) rest -= is_given(k) ? of[k] * given[k] : 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (is_given(i)) continue;
        c[i] += of[i] / atoms * (rest / atoms);
        for (std::size_t j = 0; j < n; ++j) a(i, j) += is_given(j) ? 0 : of[i] / atoms * (of[j] / atoms);
      }
    }
    comm.all_reduce(std::span<double>(a.values));
    comm.all_reduce(std::span<double>(c));
    EnergyShifts shifts = least_norm_solution(std::move(a), c);  // 0 where one is given
    for (std::size_t k = 0; k < n; ++k)
      if (is_given(k)) shifts.energies[k] = given[k];
    std::erase_if(shifts.undetermined, [&](Index k) { return is_given(static_cast<std::size_t>(k)); });
    return shifts;
  });
}
}}  // namespace sar
