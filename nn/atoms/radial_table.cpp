// SPDX-License-Identifier: MIT
#include <sar/nn/atoms/radial_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

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
  constexpr double small = 1e-8;
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
                         const Tensor& density)
    : cutoff_(static_cast<real>(functions.cutoff)),
      per_length_(static_cast<real>(static_cast<double>(intervals) / functions.cutoff)) {
  for (const Tensor& each : network) weights_.push_back(each.clone());
  if (density.defined()) weights_.push_back(density.clone());
  const Tensor& w = network.back();
  std::vector<std::vector<Column>> phi;  // of each section
  Column root;
  for (std::size_t section = 0; section < static_cast<std::size_t>(sections); ++section) {
    std::vector<Column> a(static_cast<std::size_t>(w.row_size()));
    for (std::size_t i = section * per_section; i < (section + 1) * per_section; ++i)
      for (std::size_t q = 0; q < nodes; ++q) {
        const double r = functions.cutoff * (static_cast<double>(i) + 0.5 * (1 + node(q))) / intervals;
        Column row = radial_functions_at(r, functions);
        if (density.defined()) root.push_back(times(density, row)[0]);
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
  coefficients_ = Tensor::zeros({static_cast<Index>(intervals), static_cast<Index>(nodes), columns_});
  const auto put = [&](std::size_t i, Index column, const double* values) {
    const std::array<double, nodes> powers = polynomial(values);
    for (std::size_t k = 0; k < nodes; ++k)
      coefficients_.row(static_cast<Index>(i))[static_cast<Index>(k) * columns_ + column] =
          static_cast<real>(powers[k]);
  };
  for (std::size_t i = 0; i < intervals; ++i) {
    const std::vector<Column>& of = phi[i / per_section];
    for (std::size_t j = 0; j < of.size(); ++j)
      put(i, static_cast<Index>(j), &of[j][i % per_section * nodes]);
    if (density.defined()) put(i, columns_ - 1, &root[i * nodes]);
  }
}

Index RadialTable::section_of(real r) const {
  return std::min(static_cast<Index>(r * per_length_) / static_cast<Index>(per_section), sections - 1);
}

bool RadialTable::is_of(const std::vector<Tensor>& network, const Tensor& density) const {
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.shape() == y.shape() && std::ranges::equal(x.values(), y.values());
  };
  const std::size_t count = network.size() + (density.defined() ? 1 : 0);
  return weights_.size() == count && std::ranges::equal(network.begin(), network.end(), weights_.begin(),
                                                        weights_.begin() + std::ssize(network), same) &&
         (!density.defined() || same(density, weights_.back()));
}

void RadialTable::write(real r, real* values, real* slopes) const {
  std::fill_n(values, columns_, real{0});
  std::fill_n(slopes, columns_, real{0});
  if (!(r > 0) || r >= cutoff_) return;
  const real place = r * per_length_;
  const auto i = std::min(static_cast<Index>(place), static_cast<Index>(intervals) - 1);
  const real x = 2 * (place - static_cast<real>(i)) - 1;
  const real* c = coefficients_.data() + (i + 1) * static_cast<Index>(nodes) * columns_;
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
