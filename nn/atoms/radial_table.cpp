// SPDX-License-Identifier: MIT
#include <sar/nn/atoms/radial_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <numbers>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::size_t intervals = 96, degree = 7, nodes = degree + 1;
constexpr std::size_t per_section = intervals / static_cast<std::size_t>(RadialTable::sections);

using Column = std::vector<double>;  // a function at all distances

/// Node q of an interval, in [-1, 1]: a root of the polynomial T_nodes of Chebyshev.
double node(std::size_t q) {
  return std::cos((static_cast<double>(q) + 0.5) * std::numbers::pi / nodes);
}

/// Returns the coefficients of the powers of x of the polynomial that has the values f at the nodes.
std::array<double, nodes> polynomial(const double* f) {
  std::array<double, nodes> sum{}, before{}, now{};  // of powers, T_k-1 and T_k
  now[0] = 1;
  for (std::size_t k = 0; k < nodes; ++k) {
    double c = 0;
    for (std::size_t q = 0; q < nodes; ++q)
      c += f[q] * std::cos(static_cast<double>(k * (2 * q + 1)) * std::numbers::pi / (2 * nodes));
    c *= (k == 0 ? 1.0 : 2.0) / nodes;
    std::array<double, nodes> next{};
    for (std::size_t i = 0; i < nodes; ++i) {
      sum[i] += c * now[i];
      if (i + 1 < nodes) next[i + 1] = (k == 0 ? 1 : 2) * now[i];
    }
    for (std::size_t i = 0; i < nodes; ++i) next[i] -= k == 0 ? 0 : before[i];
    before = std::exchange(now, next);
  }
  return sum;
}

double norm(const Column& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// Returns phi, at least one function, and writes B [columns of a, rank] by rows.
std::vector<Column> few_functions(std::vector<Column> a, std::vector<std::vector<double>>& b) {
  constexpr double small = 4e-8;
  b.assign(a.size(), {});
  std::vector<Column> phi;
  double largest = 0;
  while (phi.size() < a.size()) {
    std::vector<double> norms;
    for (const Column& each : a) norms.push_back(norm(each));
    const auto pivot = static_cast<std::size_t>(std::ranges::max_element(norms) - norms.begin());
    largest = std::max(largest, norms[pivot]);
    if (norms[pivot] <= small * largest && !phi.empty()) break;
    Column next = a[pivot];
    for (double& x : next) x /= largest > 0 ? norms[pivot] : 1;
    for (std::size_t j = 0; j < a.size(); ++j) {
      double product = 0;
      for (std::size_t s = 0; s < next.size(); ++s) product += next[s] * a[j][s];
      product /= static_cast<double>(next.size());
      for (std::size_t s = 0; s < next.size(); ++s) a[j][s] -= product * next[s];
      b[j].push_back(product);
    }
    phi.push_back(std::move(next));
  }
  return phi;
}

Column times(const Tensor& w, const Column& x) {
  Column y(static_cast<std::size_t>(w.num_rows()), 0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t k = 0; k < x.size(); ++k)
      y[i] += static_cast<double>(w.row(static_cast<Index>(i))[k]) * x[k];
  return y;
}

}  // namespace

RadialTable::RadialTable(const HarmonicFunctions& functions, const std::vector<Tensor>& network,
                         const Tensor& density, std::vector<real> radii)
    : radii_(std::move(radii)),
      cutoff_(static_cast<real>(functions.cutoff)),
      per_length_(static_cast<real>(static_cast<double>(intervals) / functions.cutoff)) {
  const Tensor& w = network.back();
  const std::vector<real> kinds = radii_.empty() ? std::vector<real>{0} : radii_;
  std::vector<std::vector<Column>>
      phi;  // of each section: at the nodes of its intervals, for each of the kinds
  std::vector<Column> root(kinds.size());
  for (std::size_t section = 0; section < static_cast<std::size_t>(sections); ++section) {
    std::vector<Column> a(static_cast<std::size_t>(w.row_size()));
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      for (std::size_t i = section * per_section; i < (section + 1) * per_section; ++i)
        for (std::size_t q = 0; q < nodes; ++q) {
          const double r = functions.cutoff * (static_cast<double>(i) + 0.5 * (1 + node(q))) / intervals;
          Column row = radial_functions_at(r, functions, static_cast<double>(kinds[kind]));
          if (density.defined()) root[kind].push_back(times(density, row)[0]);
          for (std::size_t k = 0; k + 1 < network.size(); ++k) {
            row = times(network[k], row);
            for (double& x : row) x /= 1 + std::exp(-x);
          }
          for (std::size_t j = 0; j < a.size(); ++j) a[j].push_back(row[j]);
        }
    std::vector<std::vector<double>> b;
    phi.push_back(few_functions(std::move(a), b));
    const std::size_t rank = phi.back().size();
    columns_ = std::max(columns_, static_cast<Index>(rank));
    Tensor& last = last_.emplace_back(Shape{w.num_rows(), static_cast<Index>(rank)});
    for (Index c = 0; c < w.num_rows(); ++c)
      for (std::size_t j = 0; j < rank; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < b.size(); ++k) sum += static_cast<double>(w.row(c)[k]) * b[k][j];
        last.row(c)[j] = static_cast<real>(sum);
      }
  }
  if (density.defined()) ++columns_;
  const auto per_kind = static_cast<Index>(intervals);
  coefficients_ = Tensor::zeros({std::ssize(kinds) * per_kind, static_cast<Index>(nodes), columns_});
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (std::size_t i = 0; i < intervals; ++i) {
      const auto put = [&](Index column, const double* values) {
        const std::array<double, nodes> powers = polynomial(values);
        real* const to = coefficients_.row(static_cast<Index>(kind * intervals + i));
        for (std::size_t k = 0; k < nodes; ++k)
          to[static_cast<Index>(k) * columns_ + column] = static_cast<real>(powers[k]);
      };
      const std::vector<Column>& of = phi[i / per_section];
      for (std::size_t j = 0; j < of.size(); ++j)
        put(static_cast<Index>(j), &of[j][(kind * per_section + i % per_section) * nodes]);
      if (density.defined()) put(columns_ - 1, &root[kind][i * nodes]);
    }
}

Index RadialTable::number_of(real radii) const {
  auto found = std::ranges::lower_bound(radii_, radii);
  // the nearest: radii of other ranks may have travelled in fewer digits
  if (found != radii_.begin() && (found == radii_.end() || radii - found[-1] < *found - radii)) --found;
  return found - radii_.begin();
}

Index RadialTable::section_of(real r) const {
  if (!(r < cutoff_)) return sections - 1;  // also NaN
  return std::min(static_cast<Index>(r * per_length_) / static_cast<Index>(per_section), sections - 1);
}

void RadialTable::write(real r, Index number, real* values, real* slopes) const {
  const real beyond = std::isnan(r) ? r : 0;
  std::fill_n(values, columns_, beyond);
  std::fill_n(slopes, columns_, beyond);
  if (!(r > 0) || r >= cutoff_) return;
  const real place = r * per_length_;
  const auto i = std::min(static_cast<Index>(place), static_cast<Index>(intervals) - 1);
  const real x = 2 * (place - static_cast<real>(i)) - 1;
  const real* c = coefficients_.data() +
                  (number * static_cast<Index>(intervals) + i + 1) * static_cast<Index>(nodes) * columns_;
  for (std::size_t k = 0; k < nodes; ++k) {
    c -= columns_;
    for (Index j = 0; j < columns_; ++j) {
      slopes[j] = slopes[j] * x + values[j];
      values[j] = values[j] * x + c[j];
    }
  }
  for (Index j = 0; j < columns_; ++j) slopes[j] *= 2 * per_length_;
}
}}  // namespace sar
