// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;

const RandomKey key{17, 3, 5};

std::vector<Index> scattered_ids(Index n) {
  std::vector<Index> ids;
  for (Index i = 0; i < n; ++i) ids.push_back((i * 7919 + 5) % 100003 + (Index{1} << 33));
  return ids;
}

TEST_CASE("the mask is the one that Random draws word by word") {
  for (const double p : {0.0, 0.1, 0.5, 0.9})
    for (const Index width : {Index{1}, Index{2}, Index{3}, Index{4}, Index{5}, Index{16}, Index{31},
                              Index{64}, Index{127}, Index{256}, Index{1001}, Index{4100}}) {
      CAPTURE(p);
      CAPTURE(width);
      const std::vector<Index> ids = scattered_ids(23);
      const DropoutMask mask(key, p);
      const Random random(key);
      std::vector<real> factors(static_cast<std::size_t>(23 * width) + 1, real(-1));
      mask.factors(ids, width, factors.data());
      bool same = true;
      for (Index i = 0; i < 23; ++i)
        for (Index j = 0; j < width; ++j) {
          const auto words = random.words(static_cast<std::uint64_t>(ids[static_cast<std::size_t>(i)]),
                                          static_cast<std::uint64_t>(j / 4));
          const bool dropped = words[static_cast<std::size_t>(j % 4)] < std::round(p * 0x1p32);
          same = same && factors[static_cast<std::size_t>(i * width + j)] ==
                             (dropped ? 0 : static_cast<real>(1 / (1 - p)));
        }
      CHECK(same);
      CHECK(factors.back() == -1);
    }
}

TEST_CASE("apply multiplies by the factors, for every split of the rows and number of threads") {
  const Index n = 1200;
  const Index width = 100;
  const std::vector<Index> ids = scattered_ids(n);
  const DropoutMask mask(key, 0.3);
  const Tensor x = random_tensor({n, width}, 1);
  std::vector<real> factors(static_cast<std::size_t>(n * width));
  mask.factors(ids, width, factors.data());
  for (const Index split : {Index{0}, Index{1}, Index{17}, Index{600}, n})
    for (const int threads : {1, 2}) {
      const ThreadLimit limit(threads);
      Tensor out = x.clone();
      Tensor head = out.slice_rows(0, split);
      Tensor tail = out.slice_rows(split, n);
      const auto some = std::span(ids);
      DropoutBits(mask, some.first(static_cast<std::size_t>(split)), width).apply(head, head);
      DropoutBits(mask, some.subspan(static_cast<std::size_t>(split)), width)
          .apply(x.slice_rows(split, n), tail);
      bool same = true;
      for (Index i = 0; i < n * width; ++i)
        same = same && out.data()[i] == x.data()[i] * factors[static_cast<std::size_t>(i)];
      CHECK(same);
    }
  Tensor sum = x.clone();
  DropoutBits(mask, ids, width).apply(x, sum, true);
  CHECK(sum.data()[12345] == doctest::Approx(x.data()[12345] * (1 + factors[12345])));
}

TEST_CASE("bits are the draws of the mask, whatever the rows and the width") {
  for (const Index n : {Index{0}, Index{1}, Index{31}, Index{32}, Index{33}, Index{100}})
    for (const Index width :
         {Index{1}, Index{3}, Index{4}, Index{30}, Index{32}, Index{40}, Index{129}, Index{5003}}) {
      CAPTURE(n);
      CAPTURE(width);
      const std::vector<Index> ids = scattered_ids(n);
      const DropoutMask mask(key, 0.4);
      const DropoutBits bits(mask, ids, width);
      std::vector<real> factors(static_cast<std::size_t>(n * width));
      mask.factors(ids, width, factors.data());
      const Tensor x = random_tensor({n, width}, 1);
      Tensor y({n, width}), sum = x.clone(), here = x.clone();
      bits.apply(x, y);
      bits.apply(x, sum, true);
      bits.apply(here, here);
      bool same = bits.keep_scale() == mask.keep_scale();
      for (Index i = 0; i < n * width; ++i) {
        const real factor = factors[static_cast<std::size_t>(i)];
        const bool kept = (bits.words(i / width)[i % width] >> (i / width) % 32 & 1) != 0;
        same = same && kept == (factor != 0) && y.data()[i] == x.data()[i] * factor &&
               here.data()[i] == y.data()[i] && std::abs(sum.data()[i] - (x.data()[i] + y.data()[i])) < 1e-6;
      }
      CHECK(same);
    }
  CHECK_FALSE(static_cast<bool>(DropoutBits()));
  Tensor x = Tensor::zeros({3, 2}), y = Tensor::zeros({2, 2});
  const DropoutBits bits(DropoutMask(key, 0.4), std::vector<Index>{1, 2, 3}, 2);
  CHECK_THROWS_AS(bits.apply(x, y), ShapeError);
  CHECK_THROWS_AS(bits.apply(y, y), ShapeError);
}

TEST_CASE("ReLU with dropout and its gradient, of rows of either type, round once") {
  const auto rounded = [](real x, NumberType type) {
    return TypedRows(Tensor::full({1}, x), type).to_tensor().data()[0];
  };
  constexpr NumberType reals = NumberType::reals, halves = NumberType::bfloat16;
  for (const Index width : {Index{1}, Index{3}, Index{16}, Index{33}, Index{256}, Index{4100}})
    for (const NumberType type : {reals, halves})
      for (const NumberType grad_type : {reals, halves})
        for (const bool accumulate : {false, true}) {
          CAPTURE(width);
          CAPTURE(accumulate);
          const Index n = 9;
          const std::vector<Index> ids = scattered_ids(n);
          const DropoutMask mask(key, 0.4);
          std::vector<real> factors(static_cast<std::size_t>(n * width));
          mask.factors(ids, width, factors.data());
          const TypedRows x(random_tensor({n, width}, 1), type);
          const TypedRows grad(random_tensor({n, width}, 2), grad_type);
          TypedRows y(x.shape(), type), in_place = x.clone();
          mask.apply_to_relu(x, ids, y);
          mask.apply_to_relu(in_place, ids, in_place);
          TypedRows sum(random_tensor({n, width}, 3), type);
          const Tensor before = sum.clone(), of_x = x, of_y = y, of_grad = grad, here = in_place;
          relu_dropout_backward(y, mask.keep_scale(), grad, sum, accumulate);
          const Tensor after = sum;
          bool same = true;
          for (Index i = 0; i < n * width; ++i) {
            const real factor = factors[static_cast<std::size_t>(i)];
            const real value = rounded(std::max(of_x.data()[i], real{0}) * factor, type);
            const real passed = value > 0 ? of_grad.data()[i] * factor : real{0};
            const double exact = static_cast<double>(accumulate ? before.data()[i] : 0) + passed;
            same = same && of_y.data()[i] == value && here.data()[i] == value;
            if (type == halves)
              same =
                  same && after.data()[i] == rounded(accumulate ? before.data()[i] + passed : passed, type);
            else
              same = same && std::abs(after.data()[i] - exact) < 1e-6;
          }
          CHECK(same);
        }
  TypedRows some(Shape{2, 3}, halves), other(Shape{2, 3}, reals);
  const std::vector<Index> ids{1, 2};
  CHECK_THROWS_AS(DropoutMask(key, 0.4).apply_to_relu(some, ids, other), Error);
  CHECK_THROWS_AS(DropoutMask(key, 0.4).apply_to_relu(some, scattered_ids(3), some), ShapeError);
}

TEST_CASE("the share of dropped elements is p") {
  const Index n = 4000;
  const std::vector<Index> ids = scattered_ids(n);
  for (const double p : {0.1, 0.5, 0.75}) {
    const DropoutMask mask(key, p);
    std::vector<real> factors(static_cast<std::size_t>(n * 50));
    mask.factors(ids, 50, factors.data());
    const double dropped =
        static_cast<double>(std::count(factors.begin(), factors.end(), real(0))) / (n * 50.0);
    CHECK(std::abs(dropped - p) < 5 * std::sqrt(p * (1 - p) / (n * 50.0)));
  }
}

TEST_CASE("probabilities outside [0, 1) are refused") {
  CHECK_THROWS_AS(DropoutMask(key, 1.0), Error);
  CHECK_THROWS_AS(DropoutMask(key, -0.1), Error);
  CHECK_THROWS_AS(DropoutMask(key, std::nan("")), Error);
}

}  // namespace
