// SPDX-License-Identifier: MIT

/// Sums of more terms than a float can count one by one: 16,777,216 + 1 = 16,777,216.
#include <sar/core/products/matmul.hpp>
#include <sar/core/rows/batch_norm.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

using namespace sar;

constexpr Index count = 17'000'000;

Tensor full(const Shape& shape, real value) {
  Tensor t(shape);
  t.fill(value);
  return t;
}

TEST_CASE("columns, elements, losses and products of 17 million rows") {
  const Tensor ones = full({count, 1}, 1);
  Tensor sum = Tensor::zeros({1});
  sum_to(ones, sum);
  CHECK(sum.data()[0] == count);
  sum_products_to(ones, ones, sum, true);
  CHECK(sum.data()[0] == 2 * count);
  CHECK(sum_squares(ones) == count);
  CHECK(column_moments(ones).mean[0] == 1);
  CHECK(element_loss_sum({ElementLoss::squared}, ones, full({count, 1}, 2)).sum.value() == count);
  Tensor product({1, 1});
  matmul_tn(ones, ones, product, false, {.of_a = &sum});
  CHECK(std::abs(product.data()[0] - count) <= 2);  // the parts are added in real
  CHECK(sum.data()[0] == count);
}

TEST_CASE("the backward sums of batch norm over 17 million rows") {
  const Tensor ones = full({count, 1}, 1);
  BatchNormCoefficients c(1);
  c.set(0, 0, 1, 0, 1, 0);  // xhat = x
  std::vector<double> sums(2);
  batch_norm_backward_sums(ones, c, {.relu = true}, ones, sums);
  CHECK(sums == std::vector<double>{count, count});
}

TEST_CASE("17 million rows scattered to one row, on any number of threads") {
  const Index width = 2;
  std::vector<Index> ids(count, 1);
  ids[7] = 0;
  const Tensor ones = full({count, width}, 1);
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    Tensor out = Tensor::zeros({3, width});
    scatter_add_rows(ones, ids, out);
    for (Index j = 0; j < width; ++j) {
      CHECK(out.row(0)[j] == 1);
      CHECK(out.row(1)[j] == count - 1);
      CHECK(out.row(2)[j] == 0);
    }
  }
}

TEST_CASE("a number that is too large for ones to count loses those of its block only") {
  constexpr Index rows = 60'000;  // no hub
  Tensor x = full({rows, 1}, 1), out = Tensor::zeros({1, 1});
  x.data()[0] = 1 << 24;
  scatter_add_rows(x, std::vector<Index>(rows, 0), out);
  CHECK(std::abs(double{out.data()[0]} - ((1 << 24) + rows - 1)) <= 1024);
}

TEST_CASE("rows of hubs among others are scattered as by one loop") {
  const Index rows = 300, n = 300'000;
  std::vector<Index> ids(n);
  for (Index i = 0; i < n; ++i) ids[i] = i % 3 == 0 ? 17 : i * 7919 % rows;
  Tensor x({n, 3});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(i % 64);
  std::vector<double> expected(rows * 3, 0);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < 3; ++j) expected[ids[i] * 3 + j] += x.row(i)[j];
  Tensor out = Tensor::zeros({rows, 3});
  scatter_add_rows(x, ids, out);
  for (Index i = 0; i < out.size(); ++i) CHECK(out.data()[i] == expected[i]);  // integers below 2^24
}

}  // namespace
