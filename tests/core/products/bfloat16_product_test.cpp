// SPDX-License-Identifier: MIT

/// Products of rows stored in bfloat16, and results in bfloat16: every way that products can be called in,
/// within the rounding of factors, sums and results. Factors are rounded for results in bfloat16 alone.
#include <doctest/doctest.h>

#include <sar/core/numbers.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// As the library rounds: of double precision, to single precision first.
double rounded(real x) {
  return static_cast<double>(
      bfloat16_to_float(float_to_bfloat16(static_cast<double>(static_cast<float>(x)))));
}

/// Bounds: a sum of n products has an error of n 2^-23 times the sum of their magnitudes, for any order; a
/// result in bfloat16 one of 2^-8 times the result besides.
struct Expected {
  double value = 0, magnitude = 0;
  void add(double a, double b) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
};

bool near(real found, const Expected& e, Index terms, bool to_bfloat16) {
  const double sums = static_cast<double>(terms + 2) * 0x1p-23 * e.magnitude;
  const double result = to_bfloat16 ? 0x1p-8 * (std::abs(e.value) + sums) : 0;
  return std::abs(static_cast<double>(found) - e.value) <= sums + result + 1e-37;
}

struct Operand {
  TypedRows rows;
  Tensor values;  ///< as they are multiplied
  Operand(const Shape& shape, std::uint64_t stream, NumberType type, bool rounds)
      : rows(random_tensor(shape, stream), type), values(rows.to_tensor().clone()) {
    for (real& x : values.values())
      if (rounds) x = static_cast<real>(rounded(x));  // also those that are not stored so
  }
};

Tensor factors(const Tensor& w, bool rounds) {
  Tensor of = w.clone();
  for (real& x : of.values())
    if (rounds) x = static_cast<real>(rounded(x));
  return of;
}

constexpr NumberType types[] = {NumberType::reals, NumberType::bfloat16};

}  // namespace

TEST_CASE("matmul and matmul_nt of rows and results in bfloat16") {
  struct Size {
    Index n, k, m;
  };
  for (const auto [n, k, m] : {Size{1, 1, 1}, Size{70, 40, 33}, Size{131, 256, 40}, Size{49, 7, 100},
                               Size{0, 5, 3}, Size{13, 2, 64}, Size{11, 31, 65}, Size{95, 66, 16}})
    for (const NumberType from : types)
      for (const NumberType to : types) {
        if (from == NumberType::reals && to == NumberType::reals) continue;
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(m);
        const bool rounds = to == NumberType::bfloat16;
        const Operand a({n, k}, 1, from, rounds);
        const Tensor w = random_tensor({k, m}, 2), wt = random_tensor({m, k}, 3),
                     bias = random_tensor({m}, 4), used_w = factors(w, rounds), used_wt = factors(wt, rounds);
        for (const int way : {0, 1, 2, 3}) {  // matmul, plus a bias; matmul_nt, added to the result
          CAPTURE(way);
          TypedRows out(random_tensor({n, m}, 5), to);
          const Tensor before = out.to_tensor().clone();
          if (way == 0) matmul(a.rows, w, out);
          if (way == 1) matmul(a.rows, w, out, {.bias = bias});
          if (way == 2) matmul_nt(a.rows, wt, out);
          if (way == 3) matmul_nt(a.rows, wt, out, {.accumulate = true});
          const Tensor found = out.to_tensor();
          bool all_near = true;
          for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < m; ++j) {
              Expected e;
              if (way == 1) e.add(bias.data()[j], 1);
              if (way == 3) e.add(before.row(i)[j], 1);
              for (Index d = 0; d < k; ++d)
                e.add(a.values.row(i)[d], way < 2 ? used_w.row(d)[j] : used_wt.row(j)[d]);
              all_near &= near(found.row(i)[j], e, k, to == NumberType::bfloat16);
            }
          CHECK(all_near);
        }
      }
}

TEST_CASE("a row of bfloat16 numbers that are not finite stays alone") {
  constexpr Index n = 50, m = 20;
  const real nan = std::numeric_limits<real>::quiet_NaN(), inf = std::numeric_limits<real>::infinity();
  for (const Index k : {1, 6, 7, 33, 64})
    for (const real number : {nan, inf}) {
      CAPTURE(k);
      Tensor values = random_tensor({n, k}, 1);
      std::fill_n(values.row(20), k, number);
      const TypedRows rows(values, NumberType::bfloat16);
      Tensor out({n, m});
      matmul(rows, random_tensor({k, m}, 2), out);
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < m; ++j) REQUIRE(std::isfinite(out.row(i)[j]) == (i != 20));
      for (const Index rows_before : {1, 19, 20}) {  // the row behind the last one has the number
        Tensor product({k, m});
        matmul_tn(rows.slice_rows(20 - rows_before, 20), random_tensor({rows_before, m}, 3), product);
        CHECK(std::ranges::all_of(product.values(), [](real x) { return std::isfinite(x); }));
      }
    }
}

TEST_CASE("a subnormal number to which a product of zeros is added is kept") {
  const TypedRows rows(Tensor::zeros({9, 4}), NumberType::bfloat16);
  const auto tiny = static_cast<real>(0x1p-130);
  TypedRows out(Tensor::full({9, 70}, tiny), NumberType::bfloat16);
  matmul(rows, random_tensor({4, 70}, 1), out, {.accumulate = true});
  const Tensor found = out.to_tensor();
  CHECK(std::ranges::all_of(found.values(), [&](real x) { return x == tiny; }));
}

TEST_CASE("a product overwrites its rows in bfloat16") {
  for (const Index width : {40, 130})  // several panels of columns read the same rows
    for (const Index n : {1, 47, 200}) {
      const Tensor w = random_tensor({width, width}, 2);
      TypedRows rows(random_tensor({n, width}, 1), NumberType::bfloat16);
      TypedRows apart(rows.shape(), NumberType::bfloat16);
      matmul(rows, w, apart);
      matmul(rows, w, rows);
      CHECK(std::memcmp(rows.bfloat16(), apart.bfloat16(), static_cast<std::size_t>(2 * n * width)) == 0);
    }
}

TEST_CASE("matmul_tn of rows in bfloat16, with column sums; the same bits with any number of threads") {
  struct Size {
    Index n, k, m;
  };
  for (const auto [n, k, m] : {Size{1, 3, 2}, Size{700, 100, 33}, Size{5000, 40, 64}})
    for (const NumberType of_a : types)
      for (const NumberType of_b : types) {
        if (of_a == NumberType::reals && of_b == NumberType::reals) continue;
        const Operand a({n, k}, 1, of_a, false), b({n, m}, 2, of_b, false);
        Tensor out({k, m}), sums_a({k}), sums_b({m});
        matmul_tn(a.rows, b.rows, out, false, {&sums_a, &sums_b});
        bool all_near = true;
        for (Index i = 0; i < k; ++i)
          for (Index j = 0; j < m; ++j) {
            Expected e;
            for (Index r = 0; r < n; ++r) e.add(a.values.row(r)[i], b.values.row(r)[j]);
            all_near &= near(out.row(i)[j], e, n, false);
          }
        CHECK(all_near);
        const Tensor unrounded = b.rows.to_tensor();
        for (Index j = 0; j < m; ++j) {
          Expected e;
          for (Index r = 0; r < n; ++r) e.add(unrounded.row(r)[j], 1);
          all_near &= near(sums_b.data()[j], e, n, false);
        }
        CHECK(all_near);
        const ThreadLimit one(1);
        Tensor alone({k, m});
        matmul_tn(a.rows, b.rows, alone);
        CHECK(std::ranges::equal(alone.values(), out.values()));
      }
}
