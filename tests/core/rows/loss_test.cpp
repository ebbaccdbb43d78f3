// SPDX-License-Identifier: MIT
#include <sar/core/rows/loss.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

TEST_CASE("cross entropy counts rows with a target, and its gradient is softmax minus one there") {
  const Index rows = 2500, classes = 5;
  const Tensor x = random_tensor({rows, classes}, 1, -3, 3);
  std::vector<std::int32_t> targets;
  for (Index i = 0; i < rows; ++i) targets.push_back(static_cast<std::int32_t>(i % (classes + 1)) - 1);
  double sum = 0, count = 0;
  std::vector<double> gradient;
  for (Index i = 0; i < rows; ++i) {
    double total = 0;
    for (Index j = 0; j < classes; ++j) total += std::exp(static_cast<double>(x.row(i)[j]));
    for (Index j = 0; j < classes; ++j)
      gradient.push_back(targets[i] < 0 ? 0
                                        : 0.5 * (std::exp(static_cast<double>(x.row(i)[j])) / total -
                                                 (j == targets[i] ? 1 : 0)));
    if (targets[i] < 0) continue;
    sum += std::log(total) - x.row(i)[targets[i]];
    ++count;
  }
  const SumAndCount found = cross_entropy_sum(x, targets);
  CHECK(found.count.value() == count);
  CHECK(found.sum.value() == doctest::Approx(sum).epsilon(tolerance()));
  Tensor out(x.shape());
  cross_entropy_backward(x, targets, real(0.5), out, false);
  CHECK(relative_error(out, gradient) < tolerance());
  cross_entropy_backward(x, targets, real(0.5), out, true);
  for (double& g : gradient) g *= 2;
  CHECK(relative_error(out, gradient) < tolerance());
}

TEST_CASE("binary cross entropy and squared errors against their formulas") {
  const Tensor x = random_tensor({20'000}, 1, -4, 4), t = random_tensor({20'000}, 2, 0, 1);
  double bce = 0, squares = 0;
  std::vector<double> bce_gradient, gradient;
  for (Index i = 0; i < x.size(); ++i) {
    const double z = x.data()[i], target = t.data()[i], sigmoid = 1 / (1 + std::exp(-z));
    bce -= target * std::log(sigmoid) + (1 - target) * std::log(1 - sigmoid);
    squares += (z - target) * (z - target);
    bce_gradient.push_back(2 * (sigmoid - target));
    gradient.push_back(2 * (z - target));
  }
  CHECK(element_loss_sum({ElementLoss::bce}, x, t).sum.value() == doctest::Approx(bce).epsilon(tolerance()));
  CHECK(element_loss_sum({ElementLoss::bce}, x, t).count.value() == 20'000);
  CHECK(element_loss_sum({ElementLoss::squared}, x, t).sum.value() ==
        doctest::Approx(squares).epsilon(tolerance()));
  Tensor out(x.shape());
  element_loss_backward({ElementLoss::bce}, x, t, 2, out, false);
  CHECK(relative_error(out, bce_gradient) < tolerance());
  element_loss_backward({ElementLoss::squared}, x, t, 1, out, false);
  CHECK(relative_error(out, gradient) < tolerance());
}

TEST_CASE("absolute errors and Huber's against their formulas; NaN stays") {
  const Tensor x = random_tensor({20'001}, 1, -3, 3), t = random_tensor({20'001}, 2, -1, 1);
  const ElementLoss huber_at{ElementLoss::huber, 0.75};
  double absolute = 0, huber = 0;
  std::vector<double> signs, clamped;
  for (Index i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x.data()[i]) - t.data()[i], size = std::abs(d);
    absolute += size;
    huber += size <= 0.75 ? d * d / 2 : 0.75 * (size - 0.375);
    signs.push_back(d > 0 ? 2 : -2);
    clamped.push_back(2 * std::min(std::max(d, -0.75), 0.75));
  }
  CHECK(element_loss_sum({ElementLoss::absolute}, x, t).sum.value() ==
        doctest::Approx(absolute).epsilon(tolerance()));
  CHECK(element_loss_sum(huber_at, x, t).sum.value() == doctest::Approx(huber).epsilon(tolerance()));
  CHECK(element_loss_sum(huber_at, x, t).count.value() == 20'001);
  Tensor out(x.shape());
  element_loss_backward({ElementLoss::absolute}, x, t, 2, out, false);
  CHECK(relative_error(out, signs) == 0);
  element_loss_backward({ElementLoss::absolute}, x, x, 2, out, false);
  CHECK(relative_error(out, std::vector<double>(20'001)) == 0);
  element_loss_backward(huber_at, x, t, 2, out, true);
  CHECK(relative_error(out, clamped) < tolerance());

  const Tensor none = Tensor::full({1}, std::numeric_limits<real>::quiet_NaN()), zero = Tensor::zeros({1});
  Tensor slope({1});
  CHECK(std::isnan(element_loss_sum({ElementLoss::absolute}, none, zero).sum.value()));
  CHECK(std::isnan(element_loss_sum({ElementLoss::huber}, none, zero).sum.value()));
  element_loss_backward({ElementLoss::absolute}, none, zero, 1, slope, false);
  CHECK(std::isnan(slope.item()));
  element_loss_backward({ElementLoss::huber}, none, zero, 1, slope, false);
  CHECK(std::isnan(slope.item()));
}

TEST_CASE("sums with weights are exact: rows in another order give the same bits") {
  constexpr Index n = 3000;
  const Tensor x = random_tensor({n, 3}, 1, -4, 4), t = random_tensor({n, 3}, 2, 0, 1);
  std::vector<real> weights;  // of magnitudes that a sum in doubles does not hold together
  std::vector<std::int32_t> targets;
  for (Index i = 0; i < n; ++i) {
    weights.push_back(std::ldexp(real(1) + real(i) / n, static_cast<int>(i * 7 % 60) - 30));
    targets.push_back(static_cast<std::int32_t>(i % 3));
  }
  const std::vector<real> of_class{real(0.3), real(1.1), real(0.7)}, spread{0, real(0.1), 0};
  const auto sums = [&](bool reversed) {
    Tensor a(x.shape()), a1({n}), b1({n});
    std::vector<real> w(weights);
    std::vector<std::int32_t> c(targets);
    if (reversed) std::reverse(w.begin(), w.end()), std::reverse(c.begin(), c.end());
    for (Index i = 0; i < n; ++i) {
      const Index from = reversed ? n - 1 - i : i;
      std::copy_n(x.row(from), 3, a.row(i));
      a1.data()[i] = x.row(from)[0], b1.data()[i] = t.row(from)[0];
    }
    const TargetWeights of_targets{.of_class = of_class, .spread = spread, .of_row = w};
    const SumAndCount entropy = cross_entropy_sum(a, c, &of_targets);
    return std::vector<double>{entropy.sum.value(), entropy.count.value(),
                               element_loss_sum({ElementLoss::bce}, a1, b1, w).sum.value(),
                               element_loss_sum({ElementLoss::squared}, a1, b1, w).sum.value(),
                               element_loss_sum({ElementLoss::absolute}, a1, b1, w).sum.value()};
  };
  CHECK(sums(false) == sums(true));
  double squares = 0;
  const Tensor a = random_tensor({n}, 3, -1, 1), b = random_tensor({n}, 4, -1, 1);
  for (Index i = 0; i < n; ++i)
    squares +=
        weights[static_cast<std::size_t>(i)] * std::pow(static_cast<double>(a.data()[i]) - b.data()[i], 2);
  const SumAndCount found = element_loss_sum({ElementLoss::squared}, a, b, weights);
  CHECK(found.sum.value() == doctest::Approx(squares).epsilon(tolerance()));
  CHECK(found.count.value() == n);
}

TEST_CASE("a row is correct when the first of its largest elements is the label's, and no element is NaN") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Tensor x = Tensor::from({4, 2}, {2, 1, 3, 3, nan, 1, 1, 2});
  const SumAndCount all = count_correct(x, std::vector<std::int32_t>{0, 1, 1, 1});
  CHECK(all.sum.value() == 2);
  CHECK(all.count.value() == 4);
  const SumAndCount some = count_correct(x, std::vector<std::int32_t>{-1, 1, 1, -1});
  CHECK(some.sum.value() == 0);
  CHECK(some.count.value() == 2);
}

}  // namespace
