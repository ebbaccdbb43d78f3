// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/rows.hpp>
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

std::vector<Index> random_ids(Index n, Index rows, std::uint64_t stream) {
  const Random random({7, stream, 0});
  std::vector<Index> ids;
  for (Index i = 0; i < n; ++i) {
    // Half of the ids hit the first tenth of the rows: some receive many, some nothing.
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    ids.push_back(static_cast<Index>((u < 0.5 ? u * 0.2 : u) * static_cast<double>(rows)));
  }
  return ids;
}

TEST_CASE("gather and scatter rows against naive loops") {
  for (const auto& [n, rows, width] : std::vector<std::array<Index, 3>>{
           {10, 4, 3}, {5000, 300, 17}, {300, 5000, 16}, {0, 5, 2}, {40, 1, 3}, {4, 4, 0}}) {
    CAPTURE(n);
    const std::vector<Index> ids = random_ids(n, rows, 1);
    const Tensor x = random_tensor({rows, width}, 1);
    const Tensor y = random_tensor({n, width}, 2);
    for (const bool accumulate : {false, true}) {
      Tensor out = random_tensor({n, width}, 3);
      std::vector<double> expected(out.values().begin(), out.values().end());
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < width; ++j) {
          double& e = expected[static_cast<std::size_t>(i * width + j)];
          e = (accumulate ? e : 0) + x.row(ids[static_cast<std::size_t>(i)])[j];
        }
      gather_rows(x, ids, out, accumulate);
      CHECK(relative_error(out, expected) < tolerance() / 100);
    }
    Tensor out = random_tensor({rows, width}, 4);
    std::vector<double> expected(out.values().begin(), out.values().end());
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < width; ++j)
        expected[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)] * width + j)] += y.row(i)[j];
    scatter_add_rows(y, ids, out);
    CHECK(relative_error(out, expected) < tolerance() / 10);
  }
}

TEST_CASE("scattered rows are added in the order of their positions on any number of threads") {
  const std::vector<Index> ids = random_ids(20000, 500, 2);
  const Tensor x = random_tensor({20000, 8}, 1);
  Tensor in_order = Tensor::zeros({500, 8});
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (Index j = 0; j < 8; ++j) in_order.row(ids[i])[j] += x.row(static_cast<Index>(i))[j];
  for (const int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    Tensor out = Tensor::zeros({500, 8});
    scatter_add_rows(x, ids, out);
    CHECK(std::ranges::equal(out.values(), in_order.values()));
  }
}

TEST_CASE("row numbers out of range are refused") {
  Tensor out({2, 3});
  CHECK_THROWS_WITH_AS(gather_rows(Tensor::zeros({4, 3}), std::vector<Index>{0, 4}, out),
                       "row number 4 at position 1 for a tensor of 4 rows", ShapeError);
  CHECK_THROWS_AS(gather_rows(Tensor::zeros({4, 3}), std::vector<Index>{0, -1}, out), ShapeError);
  CHECK_THROWS_AS(scatter_add_rows(Tensor::zeros({1, 3}), std::vector<Index>{2}, out), ShapeError);
  CHECK_THROWS_AS(gather_rows(Tensor::zeros({4, 3}), std::vector<Index>{0}, out), ShapeError);
}

TEST_CASE("copy_columns moves a window of the last dimension") {
  const Tensor from = random_tensor({3, 2, 5}, 1);
  Tensor to = Tensor::zeros({3, 2, 4});
  copy_columns(from, 1, to, 2, 2);
  copy_columns(from, 1, to, 2, 2, true);
  for (Index i = 0; i < 6; ++i) {
    CHECK(to.data()[i * 4 + 1] == 0);
    CHECK(to.data()[i * 4 + 2] == 2 * from.data()[i * 5 + 1]);
    CHECK(to.data()[i * 4 + 3] == 2 * from.data()[i * 5 + 2]);
  }
  CHECK_THROWS_AS(copy_columns(from, 4, to, 0, 2), ShapeError);
  CHECK_THROWS_AS(copy_columns(from, 0, to, 3, 2), ShapeError);
  Tensor other({4, 5});
  CHECK_THROWS_AS(copy_columns(from, 0, other, 0, 2), ShapeError);
}

}  // namespace
