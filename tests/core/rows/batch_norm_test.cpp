// SPDX-License-Identifier: MIT
#include <sar/core/rows/batch_norm.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

constexpr Index rows = 300, columns = 9;
constexpr double eps = 1e-5;

double mean_of(Index j) {
  return 1000 + 0.1 * static_cast<double>(j);
}
double var_of(Index j) {
  return 0.5 + static_cast<double>(j);
}
double weight_of(Index j) {
  return j % 2 == 0 ? 1.5 : -0.5;
}
double bias_of(Index j) {
  return 0.1 * static_cast<double>(j) - 0.4;
}

TEST_CASE(
    "batch normalization, its sums and its gradient against the formulas, with and without activation") {
  const Tensor x = random_tensor({rows, columns}, 1, 999, 1001);
  const Tensor grad = random_tensor({rows, columns}, 2);
  std::vector<Index> ids(rows);
  std::iota(ids.begin(), ids.end(), 77);
  BatchNormCoefficients c(columns);
  for (Index j = 0; j < columns; ++j) c.set(j, mean_of(j), var_of(j), eps, weight_of(j), bias_of(j));
  const DropoutMask mask({1, 2, 3}, 0.25);
  Tensor factors(x.shape());
  mask.factors(ids, columns, factors.data());

  for (const NormActivation& activation :
       {NormActivation{}, NormActivation{.relu = true},
        NormActivation{.relu = true, .dropout = DropoutBits(mask, ids, columns)}}) {
    CAPTURE(activation.relu);
    CAPTURE(static_cast<bool>(activation.dropout));
    const auto mean_g = [](Index j) { return 0.01 * static_cast<double>(j); };
    const auto mean_gx = [](Index j) { return 0.02 * static_cast<double>(j) - 0.05; };
    std::vector<double> y, g, dx, sums(2 * columns);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        const double inv_std = 1 / std::sqrt(var_of(j) + eps);
        const double xhat = (x.row(i)[j] - mean_of(j)) * inv_std;
        const double before = xhat * weight_of(j) + bias_of(j);
        const double slope =
            (activation.relu && before <= 0 ? 0 : 1) * (activation.dropout ? factors.row(i)[j] : 1);
        y.push_back(before * slope);
        g.push_back(grad.row(i)[j] * slope);
        sums[j] += g.back();
        sums[columns + j] += g.back() * xhat;
        dx.push_back(inv_std * weight_of(j) * (g.back() - mean_g(j) - xhat * mean_gx(j)));
      }

    Tensor out(x.shape());
    batch_norm(x, c, activation, out);
    CHECK(relative_error(out, y) < tolerance());

    std::vector<double> found(2 * columns);
    batch_norm_backward_sums(x, c, activation, grad, found);
    for (Index j = 0; j < 2 * columns; ++j)
      CHECK(found[j] == doctest::Approx(sums[j]).epsilon(10 * tolerance()));

    std::vector<real> means_g(columns), means_gx(columns);
    for (Index j = 0; j < columns; ++j) {
      means_g[j] = static_cast<real>(mean_g(j));
      means_gx[j] = static_cast<real>(mean_gx(j));
    }
    Tensor apart(x.shape()), in_place = grad.clone();
    batch_norm_backward_x(x, c, activation, grad, means_g, means_gx, apart);
    batch_norm_backward_x(x, c, activation, in_place, means_g, means_gx, in_place);
    CHECK(relative_error(apart, dx) < tolerance());
    CHECK(relative_error(in_place, dx) < tolerance());
  }
}

TEST_CASE("batch norm of rows in bfloat16 is that of the widened rows, rounded") {
  constexpr Index width = 37;
  constexpr NumberType types[] = {NumberType::reals, NumberType::bfloat16};
  std::vector<Index> ids(rows);
  std::iota(ids.begin(), ids.end(), 5);
  BatchNormCoefficients c(width);
  for (Index j = 0; j < width; ++j) c.set(j, 0.1, 0.5, eps, weight_of(j), bias_of(j));
  const std::vector<real> means_g(width, static_cast<real>(0.01)), means_gx(width, static_cast<real>(-0.02));
  const auto same = [](const TypedRows& found, const Tensor& expected) {
    const double rounding = found.is_bfloat16() ? 0x1p-8 : 0;
    const Tensor values = found.to_tensor();
    double excess = 0;
    for (Index i = 0; i < values.size(); ++i)
      excess = std::max(excess, std::abs(static_cast<double>(values.data()[i]) - expected.data()[i]) -
                                    rounding * std::abs(static_cast<double>(expected.data()[i])));
    return excess <= 100 * tolerance();
  };
  for (const NumberType of_x : types)
    for (const NumberType of_grad : types)
      for (const bool drops : {false, true}) {
        const NormActivation activation{
            .relu = true,
            .dropout = drops ? DropoutBits(DropoutMask({1, 2, 3}, 0.25), ids, width) : DropoutBits()};
        const TypedRows x(random_tensor({rows, width}, 1), of_x),
            grad(random_tensor({rows, width}, 2), of_grad);
        const Tensor wide_x = x.to_tensor(), wide_grad = grad.to_tensor();
        Tensor expected(wide_x.shape());
        batch_norm(wide_x, c, activation, expected);
        TypedRows y(wide_x.shape(), of_x), rounded(wide_x.shape(), NumberType::bfloat16);
        batch_norm(x, c, activation, y);
        CHECK(same(y, expected));
        batch_norm_rows(x, c, activation, 0, rows, rounded.bfloat16());
        CHECK(same(rounded, expected));

        std::vector<double> sums(2 * width), expected_sums(2 * width);
        batch_norm_backward_sums(x, c, activation, grad, sums);
        batch_norm_backward_sums(wide_x, c, activation, wide_grad, expected_sums);
        for (Index j = 0; j < 2 * width; ++j)
          CHECK(std::abs(sums[j] - expected_sums[j]) <= 1000 * tolerance());
        batch_norm_backward_x(wide_x, c, activation, wide_grad, means_g, means_gx, expected);
        for (const NumberType of_dx : types) {
          TypedRows dx(wide_x.shape(), of_dx);
          batch_norm_backward_x(x, c, activation, grad, means_g, means_gx, dx);
          CHECK(same(dx, expected));
        }
        TypedRows in_place = grad.clone();
        batch_norm_backward_x(x, c, activation, in_place, means_g, means_gx, in_place);
        CHECK(same(in_place, expected));
      }
}

TEST_CASE("batch norm of no columns") {
  const BatchNormCoefficients none(0);
  const NormActivation activation{.relu = true};
  const Tensor x({5, 0}), grad({5, 0});
  Tensor out({5, 0}), dx({5, 0});
  batch_norm(x, none, activation, out);
  batch_norm_backward_sums(x, none, activation, grad, {});
  batch_norm_backward_x(x, none, activation, grad, {}, {}, dx);
  CHECK(dx.shape() == Shape{5, 0});
}

}  // namespace
