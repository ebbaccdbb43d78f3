// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

namespace sar { inline namespace SAR_PRECISION {
/// Of phi, with 1 / a = (Z^exponent + Z'^exponent) / radius.
struct ZblScreening {
  std::array<double, 4> weights, decays;
  double coulomb, radius, exponent;
};

namespace {

constexpr const char* symbols =
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf "
    "Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og";
constexpr ZblScreening of_lammps{
    {0.02817, 0.28022, 0.50986, 0.18175}, {0.20162, 0.40290, 0.94229, 3.19980}, 14.399645, 0.46850, 0.23};
constexpr ZblScreening of_mace{
    {0.02817, 0.2802, 0.5099, 0.1818}, {0.2016, 0.4028, 0.9423, 3.2}, 14.3996, 0.4543 * 0.529, 0.3};
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

double covalent_radius(const std::string& symbol) {
  constexpr double radii[] = {
      0.31, 0.28, 1.28, 0.96, 0.84, 0.76, 0.71, 0.66, 0.57, 0.58, 1.66, 1.41, 1.21, 1.11, 1.07, 1.05,
      1.02, 1.06, 2.03, 1.76, 1.7,  1.6,  1.53, 1.39, 1.39, 1.32, 1.26, 1.24, 1.32, 1.22, 1.22, 1.2,
      1.19, 1.2,  1.2,  1.16, 2.2,  1.95, 1.9,  1.75, 1.64, 1.54, 1.47, 1.46, 1.42, 1.39, 1.45, 1.44,
      1.42, 1.39, 1.39, 1.38, 1.39, 1.4,  2.44, 2.15, 2.07, 2.04, 2.03, 2.01, 1.99, 1.98, 1.98, 1.96,
      1.94, 1.92, 1.92, 1.89, 1.9,  1.87, 1.87, 1.75, 1.7,  1.62, 1.51, 1.44, 1.41, 1.36, 1.36, 1.32,
      1.45, 1.46, 1.48, 1.4,  1.5,  1.5,  2.6,  2.21, 2.15, 2.06, 2,    1.96, 1.9,  1.87, 1.8,  1.69};
  const int number = atomic_number(symbol);
  require<InputError>(1 <= number && number <= std::ssize(radii), "the species '", symbol,
                      "' has no covalent radius, expected an element up to Cm");
  return radii[number - 1];
}

std::string chemical_symbol(Index number) {
  const std::vector<std::string>& all = all_symbols();
  return number > 0 && number < std::ssize(all) ? all[static_cast<std::size_t>(number)] : "";
}

Zbl::Pair Zbl::Pair::of(const ZblScreening& s, const std::string& a, const std::string& b) {
  for (const std::string& each : {a, b})
    require<InputError>(atomic_number(each) > 0, "ZBL of the species '", each,
                        "', expected chemical symbols");
  const double z = atomic_number(a), other = atomic_number(b);
  const double by_length = (std::pow(z, s.exponent) + std::pow(other, s.exponent)) / s.radius;
  Pair pair{.charges = s.coulomb * z * other, .weights = s.weights, .decays = s.decays};
  for (double& each : pair.decays) each *= by_length;
  return pair;
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
    : num_species_(std::ssize(species)) {
  require<InputError>(0 <= inner && inner < outer && std::isfinite(outer), "ZBL from ", inner, " to ", outer,
                      ", expected two distances, the second one larger");
  for (const std::string& a : species)
    for (const std::string& b : species) {
      Pair pair = Pair::of(of_lammps, a, b);
      pair.inner = inner;
      pair.outer = outer;
      const auto [v, v1, v2] = pair.screened(outer);
      const double t = outer - inner;
      pair.a = (t * v2 - 3 * v1) / (t * t);
      pair.b = (2 * v1 - t * v2) / (t * t * t);
      pair.c = -v + t * v1 / 2 - t * t * v2 / 12;
      pairs_.push_back(pair);
    }
}

Zbl::Zbl(const std::vector<std::string>& species, const std::vector<double>& radii, int power, double scale)
    : num_species_(std::ssize(species)), power_(power) {
  require<InputError>(radii.size() == species.size() && power > 0, "ZBL of ", species.size(),
                      " species with ", radii.size(), " radii and the power ", power,
                      ", expected one radius each");
  for (std::size_t i = 0; i < species.size(); ++i)
    for (std::size_t k = 0; k < species.size(); ++k) {
      Pair pair = Pair::of(of_mace, species[i], species[k]);
      pair.outer = radii[i] + radii[k];
      pair.charges *= scale;
      pairs_.push_back(pair);
    }
}

Zbl::Value Zbl::operator()(Index a, Index b, double r) const {
  const Pair& pair = pairs_[static_cast<std::size_t>(a * num_species_ + b)];
  if (r >= pair.outer) return {0, 0};
  const auto [v, v1, v2] = pair.screened(r);
  if (power_ > 0) {
    const double p = power_, x = r / pair.outer, below = std::pow(x, p - 1);
    const double cut = 1 - below * x * ((p + 1) * (p + 2) / 2 - x * (p * (p + 2) - x * p * (p + 1) / 2));
    const double slope = -p * (p + 1) * (p + 2) / 2 * below * (1 - x) * (1 - x) / pair.outer;
    return {v * cut, v1 * cut + v * slope};
  }
  const double t = std::max(r - pair.inner, 0.0);
  return {v + pair.c + t * t * t * (pair.a / 3 + pair.b / 4 * t), v1 + t * t * (pair.a + pair.b * t)};
}

Tensor Zbl::edge_rows(const Tensor& vectors, std::span<const std::array<Index, 2>> species) const {
  Tensor rows = Tensor::zeros({vectors.num_rows(), 4});
  parallel_for(rows.num_rows(), edge_grain, [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      const double d[3] = {vectors.row(k)[0], vectors.row(k)[1], vectors.row(k)[2]};
      const double r = std::hypot(d[0], d[1], d[2]);
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
