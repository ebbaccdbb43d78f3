// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/tensor/broadcast.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace sar;
using sar::test::full_run;
using sar::test::random_away_from_zero;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

/// Element of a broadcast operand at a position of the common shape, one dimension at a time.
real element(const Tensor& t, const Shape& common, Index flat) {
  Index at = 0;
  Index stride = 1;
  for (int d = 0; d < common.dims(); ++d) {
    const Index i = flat % common[common.dims() - 1 - d];
    flat /= common[common.dims() - 1 - d];
    if (d >= t.shape().dims()) continue;
    const Index extent = t.shape()[t.shape().dims() - 1 - d];
    if (extent > 1) at += i * stride;
    stride *= extent;
  }
  return t.data()[at];
}

double apply(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
  }
  return 0;
}

struct UnaryCase {
  Unary op;
  real parameter;
  std::function<double(double)> value;
  std::function<double(double)> slope;
};

std::vector<UnaryCase> unary_cases() {
  const auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto normal = [](double x) { return (1 + std::erf(x / std::sqrt(2))) / 2; };
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); };
  const double scale = std::sqrt(2 / std::acos(-1.0));
  const auto t = [=](double x) { return std::tanh(scale * (x + 0.044715 * x * x * x)); };
  return {
      {Unary::relu, 0, [](double x) { return std::max(x, 0.0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
      {Unary::leaky_relu, real(0.25), [](double x) { return x > 0 ? x : 0.25 * x; },
       [](double x) { return x > 0 ? 1 : 0.25; }},
      {Unary::elu, real(0.5), [](double x) { return x > 0 ? x : 0.5 * (std::exp(x) - 1); },
       [](double x) { return x > 0 ? 1 : 0.5 * std::exp(x); }},
      {Unary::sigmoid, 0, s, [s](double x) { return s(x) * (1 - s(x)); }},
      {Unary::softplus, 0, [](double x) { return std::log1p(std::exp(x)); }, s},
      {Unary::tanh, 0, [](double x) { return std::tanh(x); },
       [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
      {Unary::exp, 0, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
      {Unary::log, 0, [](double x) { return std::log(x); }, [](double x) { return 1 / x; }},
      {Unary::sqrt, 0, [](double x) { return std::sqrt(x); },
       [](double x) { return 1 / (2 * std::sqrt(x)); }},
      {Unary::abs, 0, [](double x) { return std::abs(x); }, [](double x) { return x > 0 ? 1 : -1; }},
      {Unary::silu, 0, [s](double x) { return x * s(x); },
       [s](double x) { return s(x) * (1 + x * (1 - s(x))); }},
      {Unary::gelu, 0, [=](double x) { return x * normal(x); },
       [=](double x) { return normal(x) + x * density(x); }},
      {Unary::gelu_tanh, 0, [=](double x) { return x * (1 + t(x)) / 2; },
       [=](double x) {
         return (1 + t(x)) / 2 + x * (1 - t(x) * t(x)) * scale * (1 + 3 * 0.044715 * x * x) / 2;
       }}};
}

TEST_CASE("binary operations broadcast as a naive loop does") {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{5, 3}, {5, 3}},          {{5, 3}, {3}},          {{5, 3}, {1, 3}},
      {{5, 3}, {5, 1}},          {{5, 3}, {1}},          {{3}, {5, 3}},
      {{5, 1}, {1, 3}},          {{4, 3, 2}, {3, 1}},    {{4, 3, 2}, {4, 1, 2}},
      {{4, 3, 2}, {4, 3, 1}},    {{4, 1, 2}, {1, 3, 1}}, {{2, 3, 4, 5}, {3, 1, 5}},
      {{2, 1, 4, 1}, {3, 1, 5}}, {{1, 1}, {1}},          {{0, 3}, {3}},
      {{70001, 3}, {70001, 1}},  {{3, 70001}, {3, 1}},   {{3, 70001}, {70001}},
      {{200003}, {200003}}};
  for (const auto& [shape_a, shape_b] : shapes) {
    CAPTURE(shape_a);
    CAPTURE(shape_b);
    const Tensor a = random_tensor(shape_a, 1);
    const Tensor b = random_away_from_zero(shape_b, 2);
    const Tensor start = random_tensor(broadcast(shape_a, shape_b), 3);
    std::vector<double> of_a, of_b;
    for (Index i = 0; i < start.size(); ++i) {
      of_a.push_back(element(a, start.shape(), i));
      of_b.push_back(element(b, start.shape(), i));
    }
    for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div})
      for (const bool accumulate : {false, true}) {
        Tensor out = start.clone();
        std::vector<double> expected(of_a.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] = (accumulate ? start.values()[i] : 0) + apply(op, of_a[i], of_b[i]);
        binary(op, a, b, out, accumulate);
        CHECK(relative_error(out, expected) < tolerance() / 100);
      }
  }
}

TEST_CASE("binary operations may write to an operand") {
  const Tensor a = random_tensor({1000, 17}, 1);
  const Tensor b = random_tensor({17}, 2);
  Tensor expected(a.shape());
  binary(BinaryOp::mul, a, b, expected);
  Tensor in_place = a.clone();
  binary(BinaryOp::mul, in_place, b, in_place);
  CHECK(relative_error(in_place, expected) == 0);
}

TEST_CASE("operands that do not broadcast are refused with their shapes") {
  Tensor out({5, 3});
  CHECK_THROWS_WITH_AS(binary(BinaryOp::add, Tensor::zeros({5, 3}), Tensor::zeros({5}), out),
                       "shapes [5, 3] and [5] do not broadcast: 3 against 5 in dimension 1 (a vector is a "
                       "row; write a column as [N, 1])",
                       ShapeError);
  CHECK_THROWS_AS(binary(BinaryOp::add, Tensor::zeros({5, 3}), Tensor::zeros({2, 5, 3}), out), ShapeError);
  CHECK_THROWS_AS(binary(BinaryOp::add, Tensor::zeros({5, 3}), Tensor(), out), ShapeError);
}

TEST_CASE("unary operations and their slopes") {
  for (const UnaryCase& c : unary_cases()) {
    CAPTURE(static_cast<int>(c.op));
    for (const Index size : {Index{0}, Index{1}, Index{7}, Index{1000}, Index{full_run() ? 150001 : 70001}}) {
      const Tensor x = c.op == Unary::log || c.op == Unary::sqrt ? random_tensor({size}, 1, 0.1, 5)
                                                                 : random_tensor({size}, 1, -4, 4);
      const Tensor grad = random_tensor({size}, 2);
      Tensor y(x.shape());
      unary(c.op, x, y, c.parameter);
      Tensor sum = random_tensor({size}, 3);
      std::vector<double> values, slopes, sums;
      for (Index i = 0; i < size; ++i) {
        values.push_back(c.value(x.data()[i]));
        slopes.push_back(grad.data()[i] * c.slope(x.data()[i]));
        sums.push_back(sum.data()[i] + slopes.back());
      }
      CHECK(relative_error(y, values) < tolerance() / 50);
      const Tensor& kept = differentiates_from_output(c.op) ? y : x;
      Tensor in_place = grad.clone();
      unary_backward(c.op, kept, in_place, in_place, false, c.parameter);
      CHECK(relative_error(in_place, slopes) < tolerance() / 10);
      unary_backward(c.op, kept, grad, sum, true, c.parameter);
      CHECK(relative_error(sum, sums) < tolerance() / 10);
      Tensor over = x.clone();
      unary(c.op, over, over, c.parameter);
      CHECK(relative_error(over, y) == 0);
    }
  }
  Tensor y({1});
  CHECK_THROWS_AS(unary(Unary::leaky_relu, Tensor::zeros({1}), y, real(-0.1)), Error);
}

TEST_CASE("the result for an element depends on its value only, not on where it lies") {
  const Tensor x = random_tensor({300}, 1, 0.1, 3);
  for (const UnaryCase& c : unary_cases()) {
    CAPTURE(static_cast<int>(c.op));
    Tensor whole(x.shape());
    unary(c.op, x, whole, c.parameter);
    bool same = true;
    for (Index begin = 0; begin < 40; ++begin)
      for (const Index n : {Index{1}, Index{5}, Index{64}, Index{200}}) {
        Tensor part({n + 3});
        Tensor shifted = part.slice_rows(begin % 3, begin % 3 + n);
        unary(c.op, x.slice_rows(begin, begin + n), shifted, c.parameter);
        same = same && std::equal(shifted.data(), shifted.data() + n, whole.data() + begin);
      }
    CHECK(same);
  }
}

TEST_CASE("clamp, and where it has a slope") {
  const real nan = std::numeric_limits<real>::quiet_NaN(), infinity = std::numeric_limits<real>::infinity();
  const Tensor x = Tensor::from({6}, {-2, -1, real(0.5), 1, 3, nan}), g = Tensor::full({6}, 2);
  Tensor y({6}), dx = Tensor::full({6}, 1);
  clamp(x, -1, 1, y);
  for (const auto& [at, value] : {std::pair(0, -1), {1, -1}, {3, 1}, {4, 1}}) CHECK(y.data()[at] == value);
  CHECK(y.data()[2] == real(0.5));
  CHECK(std::isnan(y.data()[5]));
  clamp_backward(x, -1, 1, g, dx, true);
  CHECK(relative_error(dx, Tensor::from({6}, {1, 3, 3, 3, 1, 1})) == 0);
  clamp(x, -infinity, 0, y);
  CHECK(y.data()[0] == -2);
  CHECK(y.data()[4] == 0);
  clamp(x, 2, -3, y);
  CHECK(y.data()[0] == -3);
}

TEST_CASE("select takes nothing from what is not chosen") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  Tensor y({4});
  select(Tensor::from({4}, {0, 1, -2, nan}), Tensor::from({4}, {nan, 2, 3, 4}),
         Tensor::from({4}, {5, nan, nan, nan}), y);
  CHECK(relative_error(y, Tensor::from({4}, {5, 2, 3, 4})) == 0);
  CHECK_THROWS_AS(select(Tensor::zeros({1}), y, y, y), ShapeError);
}

TEST_CASE("slopes at 0, and of functions whose arguments are far away") {
  const Tensor x = Tensor::from({4}, {0, -200, 200, -30}), ones = Tensor::full({4}, 1);
  Tensor y({4}), dx({4});
  for (const auto op : {Unary::silu, Unary::gelu, Unary::gelu_tanh}) {
    CAPTURE(static_cast<int>(op));
    unary(op, x, y);
    unary_backward(op, x, ones, dx);
    CHECK(relative_error(y, Tensor::from({4}, {0, 0, 200, 0})) < tolerance());
    CHECK(relative_error(dx, Tensor::from({4}, {real(0.5), 0, 1, 0})) < tolerance());
  }
  unary_backward(Unary::abs, x, ones, dx);
  CHECK(relative_error(dx, Tensor::from({4}, {0, -1, 1, -1})) == 0);
}

TEST_CASE("extreme arguments stay finite where the function is") {
  const Tensor x = Tensor::from({4}, {-200, -50, 50, 200});
  Tensor y({4});
  unary(Unary::sigmoid, x, y);
  CHECK(y.data()[0] >= 0);
  CHECK(y.data()[0] < 1e-15);
  CHECK(y.data()[3] == 1);
  unary(Unary::tanh, x, y);
  CHECK(y.data()[0] == -1);
  CHECK(y.data()[3] == 1);
  unary(Unary::elu, x, y, 1);
  CHECK(y.data()[0] == -1);
  CHECK(y.data()[3] == 200);
}

TEST_CASE("elu is accurate near 0 and far from it") {
  std::vector<real> numbers;
  for (double size = 1e-30; size < 80; size *= 1.007) numbers.push_back(static_cast<real>(-size));
  const Tensor x = Tensor::from({std::ssize(numbers)}, numbers);
  Tensor y(x.shape());
  unary(Unary::elu, x, y, 1);
  for (Index i = 0; i < x.size(); ++i) {
    const auto exact = std::expm1(static_cast<long double>(x.data()[i]));
    CAPTURE(x.data()[i]);
    CHECK(std::abs(y.data()[i] / exact - 1) < 4 * std::numeric_limits<real>::epsilon());
  }
}

TEST_CASE("what is not a number stays visible") {
  Tensor x = random_tensor({100}, 1);
  x.data()[3] = x.data()[99] = std::numeric_limits<real>::quiet_NaN();
  for (const UnaryCase& c : unary_cases()) {
    CAPTURE(static_cast<int>(c.op));
    Tensor y({100});
    unary(c.op, x, y, c.parameter);
    CHECK(std::isnan(y.data()[3]));
    CHECK(std::isnan(y.data()[99]));
  }
}

TEST_CASE("scale_shift") {
  const Tensor x = random_tensor({7, 3}, 1);
  Tensor y = random_tensor({7, 3}, 2);
  std::vector<double> expected;
  for (Index i = 0; i < x.size(); ++i) expected.push_back(y.data()[i] + 2 * x.data()[i] + 0.5);
  scale_shift(x, 2, real(0.5), y, true);
  CHECK(relative_error(y, expected) < tolerance() / 100);
}

}  // namespace
