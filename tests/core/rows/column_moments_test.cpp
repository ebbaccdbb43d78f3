// SPDX-License-Identifier: MIT
#include <sar/core/rows/batch_norm.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"

#include <doctest/doctest.h>

namespace {

using namespace sar;
using sar::test::random_tensor;

/// The two-pass formula, row by row.
ColumnMoments reference(const Tensor& x) {
  const Index columns = x.row_size();
  ColumnMoments m{static_cast<double>(x.num_rows()), std::vector<double>(columns),
                  std::vector<double>(columns)};
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < x.num_rows(); ++i) m.mean[j] += x.row(i)[j] / m.count;
    for (Index i = 0; i < x.num_rows(); ++i) m.m2[j] += (x.row(i)[j] - m.mean[j]) * (x.row(i)[j] - m.mean[j]);
  }
  return m;
}

void check_equal(const ColumnMoments& a, const ColumnMoments& b) {
  CHECK(a.count == b.count);
  for (std::size_t j = 0; j < b.mean.size(); ++j) {
    CHECK(a.mean[j] == doctest::Approx(b.mean[j]).epsilon(1e-12));
    CHECK(a.m2[j] == doctest::Approx(b.m2[j]).epsilon(1e-9));
  }
}

TEST_CASE("moments are those of two passes, for a large mean and many blocks, too") {
  for (const double mean : {0.0, 1e4})
    for (const Index rows : {Index{1}, Index{300}, Index{40'000}}) {
      CAPTURE(mean);
      CAPTURE(rows);
      const Tensor x = random_tensor({rows, 5}, 1, mean - 1, mean + 1);
      check_equal(column_moments(x), reference(x));
    }
}

TEST_CASE("moments of parts merge to those of the whole; no rows change nothing") {
  const Tensor x = random_tensor({1000, 3}, 2, 99, 101);
  ColumnMoments sum = column_moments(x.slice_rows(0, 0));
  CHECK(sum.count == 0);
  for (const Index begin : {Index{0}, Index{1}, Index{600}})
    sum.merge(column_moments(x.slice_rows(begin, begin == 0 ? 1 : begin == 1 ? 600 : 1000)));
  sum.merge(column_moments(x.slice_rows(1000, 1000)));
  check_equal(sum, reference(x));
}

TEST_CASE("moments are the same bits for every number of threads") {
  const Tensor x = random_tensor({30'000, 7}, 3);
  const auto run = [&](int threads) {
    const ThreadLimit limit(threads);
    return column_moments(x);
  };
  const ColumnMoments one = run(1), three = run(3);
  CHECK(one.mean == three.mean);
  CHECK(one.m2 == three.m2);
}

}  // namespace
