// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr const char* symbols =
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr "
    "Y "
    "Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W "
    "Re "
    "Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds "
    "Rg "
    "Cn Nh Fl Mc Lv Ts Og";
constexpr std::array<double, 4> weights{0.02817, 0.28022, 0.50986, 0.18175};
constexpr std::array<double, 4> unit_decays{0.20162, 0.40290, 0.94229, 3.19980};
constexpr double coulomb = 14.399645, radius = 0.46850, exponent = 0.23;
constexpr Index edge_grain = 1 << 12;

/// The chemical symbols, by atomic number; an empty one at 0.
const std::vector<std::string>& all_symbols() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found(1);
    std::istringstream words(symbols);
    for (std::string each; words >> each;) found.push_back(each);
    return found;
  }();
  return all;
}

}  // namespace

int atomic_number(const std::string& symbol) {
  const std::vector<std::string>& all = all_symbols();
  const auto found = std::ranges::find(all, symbol);
  return found == all.end() ? 0 : static_cast<int>(found - all.begin());
}

std::string chemical_symbol(Index number) {
  const std::vector<std::string>& all = all_symbols();
  return number > 0 && number < std::ssize(all) ? all[static_cast<std::size_t>(number)] : "";
}

std::array<double, 3> Zbl::Pair::screened(double r) const {
  double f = 0, f1 = 0, f2 = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double term = weights[i] * std::exp(-decays[i] * r);
    f += term;
    f1 -= decays[i] * term;
    f2 += decays[i] * decays[i] * term;
  }
  const double s = 1 / r;
  return {charges * f * s, charges * (f1 - f * s) * s, charges * (f2 - 2 * f1 * s + 2 * f * s * s) * s};
}

Zbl::Zbl(const std::vector<std::string>& species, double inner, double outer)
    : num_species_(std::ssize(species)), inner_(inner), outer_(outer) {
  require<InputError>(0 <= inner && inner < outer && std::isfinite(outer), "ZBL from ", inner, " to ", outer,
                      ", expected two distances, the second one larger");
  for (const std::string& a : species) {
    require<InputError>(atomic_number(a) > 0, "ZBL of the species '", a, "', expected chemical symbols");
    for (const std::string& b : species) {
      const double z = atomic_number(a), other = atomic_number(b);
      const double by_length = (std::pow(z, exponent) + std::pow(other, exponent)) / radius;
      Pair pair{.charges = coulomb * z * other, .decays = unit_decays};
      for (double& each : pair.decays) each *= by_length;
      const auto [v, v1, v2] = pair.screened(outer);
      const double t = outer - inner;
      pair.a = (t * v2 - 3 * v1) / (t * t);
      pair.b = (2 * v1 - t * v2) / (t * t * t);
      pair.c = -v + t * v1 / 2 - t * t * v2 / 12;
      pairs_.push_back(pair);
    }
  }
}

Zbl::Value Zbl::operator()(Index a, Index b, double r) const {
  if (r >= outer_) return {0, 0};
  const Pair& pair = pairs_[static_cast<std::size_t>(a * num_species_ + b)];
  const auto [v, v1, v2] = pair.screened(r);
  const double t = std::max(r - inner_, 0.0);
  return {v + pair.c + t * t * t * (pair.a / 3 + pair.b / 4 * t), v1 + t * t * (pair.a + pair.b * t)};
}

Tensor Zbl::edge_rows(const Tensor& vectors, std::span<const std::array<Index, 2>> species) const {
  Tensor rows = Tensor::zeros({vectors.num_rows(), 4});
  parallel_for(rows.num_rows(), edge_grain, [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double d[3] = {vectors.row(k)[0], vectors.row(k)[1], vectors.row(k)[2]};
      const double r = std::hypot(d[0], d[1], d[2]);
      if (r >= outer_) continue;
      require<InputError>(r > 0, "ZBL of two atoms at the same place, expected a distance");
      const auto [a, b] = species[static_cast<std::size_t>(k)];
      require<InputError>(std::min(a, b) >= 0 && std::max(a, b) < num_species_, "ZBL of the species ", a,
                          " and ", b, ", expected ", index_range(num_species_));
      const Value v = (*this)(a, b, r);
      rows.row(k)[0] = static_cast<real>(v.energy / 2);
      for (Index c = 0; c < 3; ++c) rows.row(k)[1 + c] = static_cast<real>(v.slope * d[c] / r);
    }
  });
  return rows;
}

}}  // namespace sar
