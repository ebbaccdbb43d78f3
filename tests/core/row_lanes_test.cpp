#include <sar/core/layer_norm.hpp>
#include <sar/core/loss.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/row_lanes.hpp>
#include <sar/core/softmax.hpp>

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
namespace row_lanes = sar::SAR_ISA::row_lanes;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

TEST_CASE("sums and maxima of groups of rows of every width") {
  using namespace row_lanes;
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
  real largest[row_lanes::group];
  row_lanes::largest_of_rows(
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
  result([&](Tensor& g) { bce_backward(x, g, 2, g, true); });
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
