// SPDX-License-Identifier: MIT
#include <sar/core/rows/layer_norm.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/simd/vector_exp.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace sar;
namespace lanes = sar::SAR_ISA::lanes;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

/// f(x) in every lane of a vector, which must have the bits of f(x) of the number alone.
template <class Function>
real in_every_lane(const Function& f, real x) {
  const lanes::Line v = f(lanes::Line{} + x);
  const real alone = f(x);
  for (Index l = 0; l < lanes::line_lanes; ++l)
    CHECK((v[l] == alone || (std::isnan(v[l]) && std::isnan(alone))));
  return alone;
}

TEST_CASE("exponentials of vectors and of single numbers") {
  const auto f = [](const auto& x) { return lanes::exp(x); };
  const auto log1p_exp_minus = [](const auto& x) { return lanes::log1p_exp_minus(x); };
  const auto eps = static_cast<double>(std::numeric_limits<real>::epsilon());
  const double end = std::log(static_cast<double>(std::numeric_limits<real>::max()));
  for (int i = -4000; i <= 4000; ++i) {
    const real x = static_cast<real>(end * 0.984 * i / 4000);
    CAPTURE(x);
    const double exact = std::exp(static_cast<double>(x));
    CHECK(std::abs(in_every_lane(f, x) - exact) <= 2 * eps * exact);
    const real size = std::abs(x) / 4;
    const double log = std::log1p(std::exp(-static_cast<double>(size)));
    CHECK(std::abs(in_every_lane(log1p_exp_minus, size) - log) <= 4 * eps * log);
  }
  constexpr real infinity = std::numeric_limits<real>::infinity();
  CHECK(in_every_lane(f, 0) == 1);
  CHECK(in_every_lane(f, -0.0) == 1);
  CHECK(in_every_lane(f, -infinity) == 0);
  CHECK(in_every_lane(f, static_cast<real>(-end - 30)) == 0);
  CHECK(in_every_lane(f, infinity) == infinity);
  CHECK(in_every_lane(f, static_cast<real>(end + 1)) == infinity);
  CHECK(std::isnan(in_every_lane(f, std::numeric_limits<real>::quiet_NaN())));
  CHECK(in_every_lane(log1p_exp_minus, infinity) == 0);
}

TEST_CASE("softmax in place, of rows of every width") {
  for (const Index width : {1, 3, 7, 15, 16, 17, 33, 40, 47, 513, 1300}) {
    CAPTURE(width);
    const Tensor x = random_tensor({19, width}, 2, -3, 3);
    for (const auto& softmax : {softmax_rows, log_softmax_rows}) {
      Tensor separate(x.shape()), in_place = x.clone();
      softmax(x, separate);
      softmax(in_place, in_place);
      CHECK(std::equal(separate.data(), separate.data() + x.size(), in_place.data()));
    }
  }
}

TEST_CASE("sums and maxima of groups of rows of every width") {
  using namespace lanes;
  for (const Index width : {1, 2, 7, 15, 16, 17, 31, 32, 33, 40, 47, 100, 511, 512, 513, 1300})
    for (const Index count : {Index{1}, Index{3}, group}) {
      CAPTURE(width);
      CAPTURE(count);
      const Tensor x = random_tensor({count, width}, 1, -3, -1);
      const auto row = [&](Index r) { return [from = x.row(r)](auto at) { return at(from); }; };
      double sums[group];
      real largest[group];
      sum_rows(count, width, row, sums);
      largest_of_rows(count, width, row, largest);
      for (Index r = 0; r < count; ++r) {
        double sum = 0;
        for (Index j = 0; j < width; ++j) sum += x.row(r)[j];
        CHECK(sums[r] == doctest::Approx(sum).epsilon(tolerance() / 50));
        CHECK(largest[r] == *std::max_element(x.row(r), x.row(r) + width));
      }
      // over a row that is read, every column once
      Tensor y = x.clone();
      for (Index r = 0; r < count; ++r)
        write_columns(y.row(r), width, [from = y.row(r)](auto at) { return at(from) * 2; });
      std::vector<double> doubled;
      for (const real value : x.values()) doubled.push_back(2.0 * value);
      CHECK(relative_error(y, doubled) == 0);
    }
}

TEST_CASE("the largest number of a row passes over NaN, and is -infinity when there is no other") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  Tensor x = Tensor::full({2, 40}, nan);
  x.row(0)[37] = -5;
  real largest[lanes::group];
  lanes::largest_of_rows(
      2, 40, [&](Index r) { return [from = x.row(r)](auto at) { return at(from); }; }, largest);
  CHECK(largest[0] == -5);
  CHECK(largest[1] == -std::numeric_limits<real>::infinity());
}

/// What the kernels compute from x and grad, one below the other.
std::vector<Tensor> results(const Tensor& x, const Tensor& grad) {
  const Index width = x.row_size();
  std::vector<Tensor> found;
  const auto result = [&](const std::function<void(Tensor&)>& kernel) {
    found.push_back(grad.clone());
    kernel(found.back());
  };
  const Tensor weight = random_tensor({width}, 8), bias = random_tensor({width}, 9);
  std::vector<std::int32_t> targets(x.num_rows());
  for (Index i = 0; i < x.num_rows(); ++i) targets[i] = static_cast<std::int32_t>(i % (width + 1) - 1);
  result([&](Tensor& y) { layer_norm(x, weight, bias, 1e-5, y); });
  result([&](Tensor& g) { layer_norm_backward_x(x, weight, 1e-5, g); });
  result([&](Tensor& y) { softmax_rows(x, y); });
  result([&](Tensor& y) { log_softmax_rows(x, y); });
  result([&](Tensor& g) { softmax_rows_backward(x, g, g); });
  result([&](Tensor& g) { log_softmax_rows_backward(x, g, g); });
  result([&](Tensor& g) { cross_entropy_backward(x, targets, 2, g, true); });
  result([&](Tensor& g) { element_loss_backward({ElementLoss::bce}, x, g, 2, g, true); });
  return found;
}

bool same(const real* a, const real* b, Index n) {
  return std::equal(a, a + n, b, [](real p, real q) { return p == q || (std::isnan(p) && std::isnan(q)); });
}

TEST_CASE("a row's results are the same bits among any rows, on 1 and 2 threads; NaN stays in its row") {
  for (const Index width : {Index{7}, Index{33}, Index{40}}) {
    CAPTURE(width);
    const Index rows = 3000, bad = 1234, first = 13;
    Tensor x = random_tensor({rows, width}, 1, -4, 4);
    const Tensor grad = random_tensor({rows, width}, 2);
    x.row(bad)[width - 1] = std::numeric_limits<real>::quiet_NaN();
    const auto run = [&](int threads, const Tensor& of, const Tensor& with) {
      const ThreadLimit limit(threads);
      return results(of, with);
    };
    const auto one = run(1, x, grad), two = run(2, x, grad);
    for (std::size_t k = 0; k < one.size(); ++k) {
      CAPTURE(k);
      CHECK(same(one[k].data(), two[k].data(), rows * width));
      CHECK(std::isnan(one[k].row(bad)[width - 1]));
      CHECK(std::none_of(one[k].row(bad + 1), one[k].row(rows), [](real v) { return std::isnan(v); }));
    }
    const auto some = run(1, x.slice_rows(first, rows), grad.slice_rows(first, rows));
    for (const std::size_t k : {0, 1, 2, 3, 4, 5, 7})  // the sixth has other targets
      CHECK(same(some[k].data(), one[k].row(first), (rows - first) * width));
  }
}

TEST_CASE("layer normalization of rows whose mean is large, and of constant rows") {
  for (const Index width : {Index{5}, Index{40}, Index{700}}) {
    CAPTURE(width);
    Tensor x({20, width});
    std::vector<double> expected;
    for (Index i = 0; i < 20; ++i) {
      double mean = 0, var = 0;
      for (Index j = 0; j < width; ++j) {
        x.row(i)[j] = static_cast<real>(1e4 + (i == 3 ? 0 : (j * 7 % 5 - 2 + i) / 8.0));
        mean += x.row(i)[j];  // exact
      }
      mean /= static_cast<double>(width);
      for (Index j = 0; j < width; ++j)
        var += (x.row(i)[j] - mean) * (x.row(i)[j] - mean) / static_cast<double>(width);
      for (Index j = 0; j < width; ++j) expected.push_back((x.row(i)[j] - mean) / std::sqrt(var + 1e-5));
    }
    Tensor y(x.shape());
    layer_norm(x, Tensor(), Tensor(), 1e-5, y);
    CHECK(relative_error(y, expected) < tolerance() / 10);
    CHECK(y.row(3)[0] == 0);
  }
}

}  // namespace
