// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/tensor/broadcast.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <algorithm>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

/// Where element `flat` of `from` goes when it is summed to `to`.
Index destination(const Shape& from, const Shape& to, Index flat) {
  Index at = 0;
  Index stride = 1;
  for (int d = 0; d < to.dims(); ++d) {
    const Index extent = to[to.dims() - 1 - d];
    const Index i = flat % from[from.dims() - 1 - d];
    flat /= from[from.dims() - 1 - d];
    if (extent > 1) at += i * stride;
    stride *= extent;
  }
  return at;
}

TEST_CASE("sum_to and sum_products_to agree with a naive loop") {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{50, 7}, {7}},
                                                       {{50, 7}, {1, 7}},
                                                       {{50, 7}, {50, 1}},
                                                       {{50, 7}, {1}},
                                                       {{50, 7}, {50, 7}},
                                                       {{6, 5, 4}, {5, 1}},
                                                       {{6, 5, 4}, {6, 1, 4}},
                                                       {{6, 5, 4}, {6, 5, 1}},
                                                       {{6, 5, 4}, {6, 1, 1}},
                                                       {{2, 3, 4, 5}, {3, 1, 5}},
                                                       {{2, 3, 4, 5}, {2, 1, 4, 1}},
                                                       {{0, 7}, {7}},
                                                       {{0, 7}, {0, 1}},
                                                       {{7, 0}, {7, 1}},
                                                       {{90001, 5}, {5}},
                                                       {{90001, 5}, {90001, 1}},
                                                       {{90001, 5}, {1}},
                                                       {{3, 90001}, {3, 1}},
                                                       {{1, 1}, {1}}};
  for (const auto& [from, to] : shapes)
    for (const bool accumulate : {false, true}) {
      CAPTURE(from);
      CAPTURE(to);
      const Tensor x = random_tensor(from, 1, 0, 1);
      const Tensor y = random_tensor(from, 2, 0, 1);
      Tensor sums = random_tensor(to, 3);
      Tensor dots = sums.clone();
      std::vector<double> expected_sums(static_cast<std::size_t>(sums.size()), 0.0);
      if (accumulate) std::copy(sums.values().begin(), sums.values().end(), expected_sums.begin());
      std::vector<double> expected_dots = expected_sums;
      for (Index i = 0; i < x.size(); ++i) {
        const auto at = static_cast<std::size_t>(destination(from, to, i));
        expected_sums[at] += x.data()[i];
        expected_dots[at] += static_cast<double>(x.data()[i]) * y.data()[i];
      }
      sum_to(x, sums, accumulate);
      sum_products_to(x, y, dots, accumulate);
      CHECK(relative_error(sums, expected_sums) < tolerance() / 100);
      CHECK(relative_error(dots, expected_dots) < tolerance() / 100);
    }
  Tensor out({6});
  CHECK_THROWS_AS(sum_to(Tensor::zeros({50, 7}), out), ShapeError);
}

TEST_CASE("column sums of rows in bfloat16 are those of the widened rows") {
  for (const Index width : {1, 63, 64, 200}) {
    const TypedRows x(random_tensor({500, width}, 1), NumberType::bfloat16);
    Tensor sums({width}), expected({width});
    sum_columns(x, sums);
    sum_columns(x.to_tensor(), expected);
    CHECK(std::ranges::equal(sums.values(), expected.values()));
  }
}

TEST_CASE("sums keep their digits when the mean is large") {
  // 2^24 + 1 is not a float: a sum in single precision would stop growing.
  const Index n = 1 << 20;
  const Tensor x = Tensor::full({n, 2}, 10001);
  CHECK(sum_squares(x) == 2 * 10001.0 * 10001.0 * n);
  Tensor sums({2});
  sum_to(x, sums);
  CHECK(sums.data()[1] == static_cast<real>(10001.0 * n));
  sum_products_to(x, x, sums);
  CHECK(sums.data()[1] == static_cast<real>(10001.0 * 10001.0 * n));
}

TEST_CASE("sums are the same bits for every number of threads") {
  const Tensor x = random_tensor({30011, 33}, 1);
  const Tensor y = random_tensor({30011, 33}, 2);
  const auto all = [&] {
    std::vector<double> result{sum_squares(x)};
    Tensor columns({33}), rows({30011, 1});
    sum_to(x, columns);
    for (const real value : columns.values()) result.push_back(value);
    sum_products_to(x, y, columns);
    for (const real value : columns.values()) result.push_back(value);
    sum_products_to(x, y, rows);
    for (const real value : rows.values()) result.push_back(value);
    return result;
  };
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    results.push_back(all());
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("a fused reduction over blocks of rows") {
  const Tensor x = random_tensor({5000, 9}, 1);
  std::vector<double> fused(18);
  sum_row_blocks(
      x.num_rows(), 9,
      [&](Index begin, Index end, double* partial) {
        for (Index i = begin; i < end; ++i)
          for (Index j = 0; j < 9; ++j) {
            partial[j] += x.row(i)[j];
            partial[9 + j] += static_cast<double>(x.row(i)[j]) * x.row(i)[j];
          }
      },
      fused);
  for (std::size_t j = 0; j < 9; ++j) {
    double sum = 0, squares = 0;
    for (Index i = 0; i < x.num_rows(); ++i) {
      const double value = x.row(i)[j];
      sum += value;
      squares += value * value;
    }
    CHECK(fused[j] == doctest::Approx(sum).epsilon(1e-12));
    CHECK(fused[9 + j] == doctest::Approx(squares).epsilon(1e-12));
  }
  sum_row_blocks(
      0, 9, [](Index, Index, double*) {}, fused);
  CHECK(fused[3] == 0);
}

}  // namespace
