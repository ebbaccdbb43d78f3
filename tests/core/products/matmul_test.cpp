// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/random.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/effort.hpp"
#include "support/random_tensor.hpp"
#include "support/transposed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <pthread.h>
#include <climits>

using namespace sar;
using sar::test::random_tensor;
using sar::test::sanitized;
using sar::test::transposed;

namespace {

/// a b by the definition, in double precision.
class Definition {
 public:
  Definition(const Tensor& a, const Tensor& b)
      : k_(a.shape()[1]), product_(static_cast<std::size_t>(a.shape()[0] * b.shape()[1])) {
    const Index m = b.shape()[1];
    for (Index i = 0; i < a.shape()[0]; ++i) {
      const real* a_row = a.data() + i * k_;
      double* const sum = product_.data() + i * m;
      for (Index l = 0; l < k_; ++l) {
        const double factor = a_row[l];
        const real* b_row = b.data() + l * m;
        for (Index j = 0; j < m; ++j) sum[j] += factor * static_cast<double>(b_row[j]);
      }
    }
  }

  /// The largest error of `result` against (accumulate ? start : 0) + a b, in units of the rounding that a
  /// sum of k products of magnitude at most 1 may have.
  [[nodiscard]] double error(const Tensor& start, bool accumulate, const Tensor& result) const {
    REQUIRE(result.values().size() == product_.size());
    double worst = 0;
    for (std::size_t i = 0; i < product_.size(); ++i) {
      const double expected = (accumulate ? static_cast<double>(start.values()[i]) : 0) + product_[i];
      const double difference = std::abs(expected - static_cast<double>(result.values()[i]));
      worst =
          std::isfinite(difference) ? std::max(worst, difference) : std::numeric_limits<double>::infinity();
    }
    return worst / (std::numeric_limits<real>::epsilon() * static_cast<double>(k_ + 2));
  }

 private:
  Index k_;
  std::vector<double> product_;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.values().begin(), a.values().end(), b.values().begin());
}

struct Sizes {
  Index n, k, m;
};

const std::vector<Sizes> small_sizes = {{0, 0, 0},    {0, 3, 2},    {3, 0, 2},     {3, 2, 0},
                                        {1, 1, 1},    {1, 5, 1},    {5, 1, 1},     {1, 1, 5},
                                        {7, 3, 2},    {17, 33, 9},  {100, 1, 7},   {100, 7, 1},
                                        {3, 300, 70}, {70, 300, 3}, {257, 64, 48}, {1025, 31, 17}};

// several blocks, parts and tiles, with remainders
const std::vector<Sizes> large_sizes = {{sanitized ? 1029 : 2708, 1433, 7},
                                        {2049, 256, 40},
                                        {sanitized ? 5003 : 20011, 16, 7},
                                        {sanitized ? 5001 : 30001, 1, 1},
                                        {1025, 300, sanitized ? 40 : 128}};

}  // namespace

TEST_CASE("out = a b, out += a b agree with the definition") {
  for (const auto& sizes : {small_sizes, large_sizes})
    for (const auto [n, k, m] : sizes) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      const Tensor a = random_tensor({n, k}, 1), b = random_tensor({k, m}, 2),
                   start = random_tensor({n, m}, 3);
      const Definition expected(a, b);
      for (const bool accumulate : {false, true}) {
        CAPTURE(accumulate);
        Tensor out = start.clone();
        matmul(a, b, out, {.accumulate = accumulate});
        CHECK(expected.error(start, accumulate, out) < 1);
        out.copy_from(start);
        matmul_nt(a, transposed(b), out, {.accumulate = accumulate});
        CHECK(expected.error(start, accumulate, out) < 1);
      }
    }
}

TEST_CASE("a bias is added to each row") {
  for (const auto& sizes : {small_sizes, large_sizes})
    for (const auto [n, k, m] : sizes) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      const Tensor a = random_tensor({n, k}, 1), b = random_tensor({k, m}, 2), bias = random_tensor({m}, 3);
      Tensor rows({n, m}), out({n, m});
      for (Index i = 0; i < n; ++i) std::copy_n(bias.data(), m, rows.row(i));
      const Definition expected(a, b);
      matmul(a, b, out, {.bias = bias});
      CHECK(expected.error(rows, true, out) < 1);
      out.fill(7);
      matmul_nt(a, transposed(b), out, {.bias = bias});
      CHECK(expected.error(rows, true, out) < 1);
    }
}

TEST_CASE("out = a^T b, out += a^T b agree with the definition") {
  for (const auto& sizes : {small_sizes, large_sizes})
    for (const auto [n, k, m] : sizes) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      const Tensor a = random_tensor({n, k}, 4), b = random_tensor({n, m}, 5),
                   start = random_tensor({k, m}, 6);
      const Definition expected(transposed(a), b);
      for (const bool accumulate : {false, true}) {
        CAPTURE(accumulate);
        Tensor out = start.clone();
        matmul_tn(a, b, out, accumulate);
        CHECK(expected.error(start, accumulate, out) < 1);
      }
    }
}

TEST_CASE("a^T b takes the sums of the columns of its factors, the same bits on one thread and two") {
  for (const auto& sizes : {small_sizes, large_sizes})
    for (const auto [n, k, m] : sizes) {
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      const Tensor a = random_tensor({n, k}, 4), b = random_tensor({n, m}, 5);
      Tensor out({k, m}), expected({k, m});
      Tensor sums_of_a = Tensor::full({k}, 7), sums_of_b = Tensor::full({m}, 7);
      matmul_tn(a, b, expected);
      matmul_tn(a, b, out, false, {.of_a = &sums_of_a, .of_b = &sums_of_b});
      CHECK(same_bits(out, expected));
      CHECK(Definition(Tensor::full({1, n}, 1), a).error(sums_of_a, false, sums_of_a) < 1);
      CHECK(Definition(Tensor::full({1, n}, 1), b).error(sums_of_b, false, sums_of_b) < 1);
      const ThreadLimit limit(1);
      Tensor again({k});
      matmul_tn(a, b, out, true, {.of_a = &again});
      CHECK(same_bits(again, sums_of_a));
    }
  const Tensor a = random_tensor({5, 3}, 1);
  Tensor out({3, 3}), other({2});
  CHECK_THROWS_WITH_AS(matmul_tn(a, a, out, false, {.of_b = &other}),
                       "sums of 3 columns in a tensor of shape [2]", ShapeError);
}

TEST_CASE("values left in the output do not matter, not even NaN") {
  Tensor nan = Tensor::full({300, 2}, std::numeric_limits<real>::quiet_NaN());
  Tensor nan_square = nan.slice_rows(0, 2);
  const Tensor a = random_tensor({300, 2}, 1), b = random_tensor({2, 2}, 2);
  const auto finite = [](const Tensor& t) {
    return std::all_of(t.values().begin(), t.values().end(), [](real x) { return std::isfinite(x); });
  };
  matmul_tn(a, a, nan_square);
  CHECK(finite(nan_square));
  nan.fill(std::numeric_limits<real>::quiet_NaN());
  matmul(a, b, nan);
  CHECK(finite(nan));
  nan.fill(std::numeric_limits<real>::quiet_NaN());
  matmul_nt(a, b, nan);
  CHECK(finite(nan));
}

TEST_CASE("one thread and two give the same bits") {
  for (const auto [n, k, m] : {Sizes{20011, 64, 48}, {5000, 256, 130}, {2708, 1433, 16}, {50000, 8, 1}}) {
    const Tensor a = random_tensor({n, k}, 1), b = random_tensor({k, m}, 2), g = random_tensor({n, m}, 3);
    const auto products = [&](int threads) {
      const ThreadLimit limit(threads);
      std::vector<Tensor> out = {Tensor({n, m}), Tensor({k, m}), Tensor({n, k})};
      matmul(a, b, out[0]);
      matmul_tn(a, g, out[1]);
      matmul_nt(g, b, out[2]);
      return out;
    };
    const auto one = products(1);
    for (int repetition = 0; repetition < (sar::test::full_run() && !sanitized ? 3 : 1); ++repetition) {
      const auto two = products(2);
      for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(one[i], two[i]));
    }
  }
}

TEST_CASE("products need little stack") {
  const auto body = [](void*) -> void* {
    const ThreadLimit one(1);  // this thread
    const Tensor a = Tensor::full({700, 300}, 1), b = Tensor::full({300, 260}, 2);
    Tensor ab({700, 260}), atb({300, 260});
    matmul(a, b, ab);
    matmul_tn(a, ab, atb);
    Tensor back({700, 300});
    matmul_nt(ab, b, back);
    return ab.data()[5] == 600 && atb.data()[7] == 700 * 600 && back.data()[3] == 600 * 520
               ? const_cast<char*>("right")
               : nullptr;
  };
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  // 64 KiB for us, the rest for the C library, which takes thread-local variables of all libraries from it
  REQUIRE(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + (64 << 10)) == 0);
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, &attributes, body, nullptr) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result != nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_CASE("the sum over rows needs at most 1/32 of the memory of its operands, and packing buffers") {
  constexpr std::size_t packing_bytes = std::size_t{512} << 10;  // of a thread
  for (const auto [n, k, m] : {Sizes{40000, 64, 64}, {100000, 16, 7}, {2708, 1433, 16}}) {
    const Tensor a = Tensor::zeros({n, k}), b = Tensor::zeros({n, m});
    Tensor out({k, m});
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    matmul_tn(a, b, out);
    CHECK(peak_bytes() - before <= (a.bytes() + b.bytes()) / 32 + num_threads() * packing_bytes);
    CHECK(live_bytes() == before);
  }
}

TEST_CASE("communication is polled within the long sums, too") {
  const ThreadLimit limit(1);
  int polls = 0;
  const auto count = [&] { ++polls; };
  const PollScope scope(count);
  const Tensor a = Tensor::zeros({20000, 128});
  Tensor out({128, 128});
  matmul_tn(a, a, out);
  CHECK(polls >= 20);
}

TEST_CASE("shapes that do not fit are named, all three") {
  Tensor out({3, 4});
  const Tensor a({3, 2}), b({2, 4}), wrong({5, 4});
  CHECK_THROWS_WITH_AS(matmul(a, wrong, out),
                       "out [n, m] = a [n, k] b [k, m]: a has shape [3, 2], b [5, 4], out [3, 4]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(matmul_tn(a, b, out),
                       "out [k, m] = (a [n, k])^T b [n, m]: a has shape [3, 2], b [2, 4], out [3, 4]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(matmul_nt(a, b, out),
                       "out [n, m] = a [n, k] (b [m, k])^T: a has shape [3, 2], b [2, 4], out [3, 4]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(matmul(a, b, out, {.bias = Tensor({3})}),
                       "out [n, m] = a [n, k] b [k, m]: bias has shape [3], out [3, 4]", ShapeError);
  Tensor small({2, 4});
  CHECK_THROWS_AS(matmul(a, b, small), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor({6}), b, out), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor({3, 1, 2}), b, out), ShapeError);
  CHECK_THROWS_AS(matmul(Tensor(), b, out), ShapeError);
}
