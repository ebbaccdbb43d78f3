// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/isa/instruction_set.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/right_operand.hpp>
#include <sar/core/random.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"
#include "support/transposed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace sar;
using sar::test::random_tensor;
using sar::test::transposed;

namespace {

MatrixView view(const Tensor& t) {
  return {t.data(), t.num_rows(), t.row_size(), t.row_size(), 1};
}

/// a b and |a| |b|, in double precision.
class Definition {
 public:
  Definition(const Tensor& a, const Tensor& b)
      : sums_(static_cast<std::size_t>(a.shape()[0] * b.shape()[1])), magnitudes_(sums_.size()) {
    const Index k = a.shape()[1], m = b.shape()[1];
    for (Index i = 0; i < a.shape()[0]; ++i) {
      double *const sum = sums_.data() + i * m, *const magnitude = magnitudes_.data() + i * m;
      for (Index l = 0; l < k; ++l) {
        const double factor = a.data()[i * k + l];
        for (Index j = 0; j < m; ++j) {
          const double product = factor * static_cast<double>(b.data()[l * m + j]);
          sum[j] += product;
          magnitude[j] += std::abs(product);
        }
      }
    }
  }

  /// The largest |result - (start + a b)|, each divided by its |start| + |a| |b|.
  [[nodiscard]] double relative_error(const Tensor& start, const Tensor& result) const {
    REQUIRE(result.values().size() == sums_.size());
    double worst = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double from = start.values()[i];
      const double difference = std::abs(static_cast<double>(result.values()[i]) - (from + sums_[i]));
      worst = std::max(worst, difference == 0 ? 0 : difference / (std::abs(from) + magnitudes_[i]));
    }
    return worst;
  }

 private:
  std::vector<double> sums_, magnitudes_;
};

/// The largest relative error of a product, and of the sum of k of them.
double bound(MatmulPrecision precision, Index k) {
  const double sum = static_cast<double>(k + 4) * static_cast<double>(std::numeric_limits<float>::epsilon());
  return sum + (precision == MatmulPrecision::high     ? 3 * std::ldexp(1, -16)
                : precision == MatmulPrecision::medium ? std::ldexp(1, -7) * (1 + std::ldexp(1, -8))
                                                       : 0);
}

const std::vector<MatmulPrecision> precisions = {MatmulPrecision::highest, MatmulPrecision::high,
                                                 MatmulPrecision::medium};

struct Sizes {
  Index n, k, m;
};
const std::vector<Sizes> shapes = {{1, 1, 1},    {3, 0, 2},    {5, 1, 7},    {17, 33, 9},   {16, 32, 16},
                                   {64, 64, 32}, {31, 65, 47}, {65, 31, 33}, {300, 70, 40}, {130, 600, 130}};

std::vector<Bfloat16Unit> units() {
  std::vector<Bfloat16Unit> there = {Bfloat16Unit::emulated};
  if (sizeof(real) > sizeof(float)) return there;
  if (has_avx512_bf16()) there.push_back(Bfloat16Unit::avx512);
  if (has_amx_bf16()) there.push_back(Bfloat16Unit::amx);
  return there;
}

}  // namespace

TEST_CASE("each precision keeps its bound, in all forms") {
  for (const auto [n, k, m] : shapes) {
    const Tensor a = random_tensor({n, k}, 1), b = random_tensor({k, m}, 2), zero = Tensor::zeros({n, m}),
                 start = random_tensor({n, m}, 3), bias = random_tensor({m}, 4);
    const Definition expected(a, b);
    Tensor out({n, m}), rows({n, m});
    for (Index i = 0; i < n; ++i) std::copy_n(bias.data(), m, rows.row(i));
    for (const MatmulPrecision precision : precisions) {
      CAPTURE(to_string(precision));
      CAPTURE(n);
      CAPTURE(k);
      CAPTURE(m);
      const MatmulPrecisionScope scope(precision);
      matmul(a, b, out);
      CHECK(expected.relative_error(zero, out) <= bound(precision, k));
      matmul(a, b, out, {.bias = bias});
      CHECK(expected.relative_error(rows, out) <= bound(precision, k));
      matmul_nt(a, transposed(b), out);
      CHECK(expected.relative_error(zero, out) <= bound(precision, k));
      out.copy_from(start);
      matmul_nt(a, transposed(b), out, {.accumulate = true});
      CHECK(expected.relative_error(start, out) <= bound(precision, k));
      matmul_tn(transposed(a), b, out);
      CHECK(expected.relative_error(zero, out) <= bound(precision, k));
      out.copy_from(start);
      matmul_tn(transposed(a), b, out, true);
      CHECK(expected.relative_error(start, out) <= bound(precision, k));
    }
  }
}

TEST_CASE("the precisions differ in single precision, and are the same in double") {
  const Tensor a = random_tensor({100, 256}, 1), b = random_tensor({256, 64}, 2),
               zero = Tensor::zeros({100, 64});
  const Definition expected(a, b);
  std::vector<double> errors;
  for (const MatmulPrecision precision : precisions) {
    const MatmulPrecisionScope scope(precision);
    Tensor out({100, 64});
    matmul(a, b, out);
    errors.push_back(expected.relative_error(zero, out));
  }
  if (sizeof(real) > sizeof(float)) {
    CHECK(errors[2] == errors[0]);
    CHECK(errors[1] == errors[0]);
    CHECK(errors[0] < 1e-14);
  } else {
    CHECK(errors[2] > 100 * errors[1]);
    CHECK(errors[1] > errors[0]);
  }
}

TEST_CASE("instructions for bfloat16 give what single precision gives on the same parts") {
  for (const MatmulPrecision precision : {MatmulPrecision::high, MatmulPrecision::medium})
    for (const auto [n, k, m] : shapes)
      for (const bool a_by_columns : {false, true})
        for (const bool b_by_columns : {false, true}) {
          CAPTURE(to_string(precision));
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(m);
          const Tensor a = random_tensor({n, k}, 1), b = random_tensor({k, m}, 2),
                       start = random_tensor({n, m}, 3);
          const Tensor at = transposed(a), bt = transposed(b);
          std::vector<Tensor> results;
          for (const Bfloat16Unit unit : units()) {
            RightOperand right({precision, unit});
            right.pack(b_by_columns ? view(bt).transposed() : view(b));
            Tensor& out = results.emplace_back(start.clone());
            right.multiply(a_by_columns ? view(at).transposed() : view(a), {out.data(), m, out.data(), m});
          }
          const double rounding =
              4 * static_cast<double>(k + 4) * static_cast<double>(std::numeric_limits<float>::epsilon());
          for (const Tensor& result : results) {
            double difference = 0;
            for (Index i = 0; i < result.size(); ++i)
              difference = std::max<double>(difference, std::abs(result.data()[i] - results[0].data()[i]));
            CHECK(difference <= rounding);
          }
        }
}

TEST_CASE("numbers at the ends of the range, NaN") {
  const real largest = std::numeric_limits<float>::max() / 2, nan = std::numeric_limits<real>::quiet_NaN();
  for (const MatmulPrecision precision : precisions)
    for (const Bfloat16Unit unit : units()) {
      const Tensor a = Tensor::from({3, 2}, {largest, 1, nan, 1, 0, static_cast<real>(1e-30)});
      const Tensor b = Tensor::from({2, 1}, {1, 1});
      Tensor out({3, 1});
      RightOperand right({precision, unit});
      right.pack(view(b));
      right.multiply(view(a), {out.data(), 1});
      CHECK(std::abs(out.data()[0] / largest - 1) < real{0.01});
      CHECK(std::isnan(out.data()[1]));
      CHECK(std::abs(out.data()[2] / static_cast<real>(1e-30) - 1) < real{0.01});
    }
}

TEST_CASE("each precision gives the same bits on one thread and on two") {
  for (const MatmulPrecision precision : precisions) {
    const MatmulPrecisionScope scope(precision);
    const Tensor a = random_tensor({3000, 130}, 1), b = random_tensor({130, 70}, 2),
                 g = random_tensor({3000, 70}, 3);
    const auto products = [&](int threads) {
      const ThreadLimit limit(threads);
      std::vector<Tensor> out = {Tensor({3000, 70}), Tensor({130, 70}), Tensor({3000, 130})};
      matmul(a, b, out[0]);
      matmul_tn(a, g, out[1]);
      matmul_nt(g, b, out[2]);
      return out;
    };
    const auto one = products(1), two = products(2);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(std::equal(one[i].values().begin(), one[i].values().end(), two[i].values().begin()));
  }
}

TEST_CASE("products with the matrix of a type have the precision, too") {
  constexpr Index n = 400, in = 70, out = 50, types = 5;
  const Tensor x = random_tensor({n, in}, 1), w = random_tensor({types, in, out}, 2),
               g = random_tensor({n, out}, 3);
  for (const bool sorted : {false, true}) {
    std::vector<Index> type(n);
    for (Index i = 0; i < n; ++i) type[static_cast<std::size_t>(i)] = i < 3 ? 0 : 1 + i * 7 % (types - 1);
    if (sorted) std::sort(type.begin(), type.end());
    const TypeGroups groups(type, types);
    const auto products = [&](MatmulPrecision precision) {
      const MatmulPrecisionScope scope(precision);
      std::vector<Tensor> results = {Tensor({n, out}), Tensor({n, in}), Tensor({types, in, out})};
      gather_mm(x, w, groups, results[0]);
      gather_mm_nt(g, w, groups, results[1]);
      gather_mm_tn(x, g, groups, results[2]);
      return results;
    };
    const auto exact = products(MatmulPrecision::highest);
    for (const MatmulPrecision precision : precisions) {
      const auto results = products(precision);
      const std::vector<Index> terms = {in, out, n};
      for (std::size_t r = 0; r < 3; ++r) {
        double difference = 0;
        for (Index i = 0; i < exact[r].size(); ++i)
          difference = std::max<double>(difference, std::abs(results[r].data()[i] - exact[r].data()[i]));
        CHECK(difference <= bound(precision, terms[r]) * static_cast<double>(terms[r]));
        if (precision == MatmulPrecision::medium && sizeof(real) == sizeof(float)) CHECK(difference > 1e-4);
      }
    }
    double error = 0;  // of `exact`, to the definition
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < out; ++j) {
        double sum = 0;
        const real* matrix = w.row(type[static_cast<std::size_t>(i)]);
        for (Index k = 0; k < in; ++k)
          sum += static_cast<double>(x.row(i)[k]) * static_cast<double>(matrix[k * out + j]);
        error = std::max(error, std::abs(static_cast<double>(exact[0].row(i)[j]) - sum));
      }
    CHECK(error < bound(MatmulPrecision::highest, in) * in);
  }
}

TEST_CASE("a precision is that of its scope, on the thread and in its loops") {
  CHECK(matmul_precision() == MatmulPrecision::highest);
  {
    const MatmulPrecisionScope medium(MatmulPrecision::medium);
    for (const MatmulPrecision precision : precisions) {
      const MatmulPrecisionScope scope(precision);
      std::atomic<int> others = 0;
      parallel_for(1000, 1, [&](Index, Index) { others += matmul_precision() != precision ? 1 : 0; });
      CHECK(others == 0);
      std::thread([&] { others += matmul_precision() != MatmulPrecision::highest ? 1 : 0; }).join();
      CHECK(others == 0);
    }
    CHECK(matmul_precision() == MatmulPrecision::medium);
  }
  for (const bool mixed : {sizeof(real) == 4, false}) {
    const MixedPrecisionScope scope(mixed);
    std::atomic<int> others = 0;
    parallel_for(1000, 1, [&](Index, Index) { others += mixed_precision() != mixed ? 1 : 0; });
    CHECK(others == 0);
  }
  CHECK(matmul_precision() == MatmulPrecision::highest);
}
