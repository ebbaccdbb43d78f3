// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include "support/effort.hpp"

#include <sar/core/numbers.hpp>
#include <sar/core/products/exact_product.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

using namespace sar;

namespace {

/// One of several ranks whose numbers are known beforehand.
class OtherRanks final : public RankSums {
 public:
  std::vector<double> largest, sums;  // of the others
  mutable std::vector<double> my_largest, my_sums;
  void agree(FunctionRef<void()> body) const override { body(); }
  void maximum(std::span<double> numbers) const override {
    my_largest.assign(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < largest.size(); ++i) numbers[i] = std::max(numbers[i], largest[i]);
  }
  void sum(std::span<double> numbers) const override {
    my_sums.assign(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] += sums[i];
  }
  void sum(std::span<ExactSum>) const override {}
  [[nodiscard]] bool is_first() const override { return true; }
};

/// Numbers of very different sizes, in columns of different sizes.
Tensor wide_numbers(Index rows, Index columns, unsigned seed) {
  std::mt19937 gen(seed);
  Tensor x({rows, columns});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = std::ldexp(std::uniform_real_distribution<real>(-1, 1)(gen),
                             static_cast<int>(i % columns) - static_cast<int>(gen() % 12));
  return x;
}

double largest_of(const Tensor& x) {
  double largest = 0;
  for (const real number : x.values()) largest = std::max(largest, std::abs(static_cast<double>(number)));
  return largest;
}

Tensor chosen(const Tensor& x, const std::vector<Index>& rows, Index begin, Index end) {
  Tensor some({end - begin, x.row_size()});
  for (Index i = begin; i < end; ++i) std::copy_n(x.row(rows[i]), x.row_size(), some.row(i - begin));
  return some;
}

}  // namespace

TEST_CASE("an exact sum does not depend on the order of its terms") {
  std::mt19937 gen(3);
  std::vector<double> terms(10'000);
  for (double& x : terms)
    x = std::ldexp(std::uniform_real_distribution<float>(-1, 1)(gen), static_cast<int>(gen() % 40) - 20);
  const auto sum_of = [&] {
    ExactSum sum;
    for (const double x : terms) sum.add(x);
    return sum.value();
  };
  const double sum = sum_of(), plain = std::accumulate(terms.begin(), terms.end(), 0.0);
  CHECK(sum == doctest::Approx(plain).epsilon(1e-9));
  bool plain_differs = false;
  for (int turn = 0; turn < 10; ++turn) {
    std::shuffle(terms.begin(), terms.end(), gen);
    CHECK(sum_of() == sum);
    plain_differs |= std::accumulate(terms.begin(), terms.end(), 0.0) != plain;
  }
  CHECK(plain_differs);
  ExactSum infinite;
  infinite.add(1);
  infinite.add(std::numeric_limits<double>::infinity());
  CHECK(std::isinf(infinite.value()));
}

TEST_CASE("exact products are the products, whatever the order of the rows and their division among ranks") {
  for (const auto& [n, k, m] : {std::tuple<Index, Index, Index>{700, 13, 29},
                                {3000, 1, 1},
                                {1, 5, 3},
                                {sar::test::full_run() ? 20'000 : 5'000, 9, 50}}) {
    CAPTURE(n);
    const Tensor a = wide_numbers(n, k, 1), b = wide_numbers(n, m, 2);
    std::vector<Index> rows(static_cast<std::size_t>(n));
    std::iota(rows.begin(), rows.end(), Index{0});
    const RowOperand left(a);
    const std::vector<double> products = exact_products(OtherRanks(), left, RowOperand(b), true);
    REQUIRE(std::ssize(products) == (k + 1) * m);
    for (Index i = 0; i <= k; ++i)
      for (Index j = 0; j < m; ++j) {
        double sum = 0, largest_a = i == k ? 1 : 0, largest_b = 0;
        for (Index row = 0; row < n; ++row) {
          const double x = i == k ? 1 : static_cast<double>(a.row(row)[i]),
                       y = static_cast<double>(b.row(row)[j]);
          sum += x * y;
          largest_a = std::max(largest_a, std::abs(x));
          largest_b = std::max(largest_b, std::abs(y));
        }
        const double unit = sizeof(real) == 4 ? 0x1p-20 : 0x1p-50;
        CHECK(std::abs(products[i * m + j] - sum) <= unit * largest_a * largest_b * static_cast<double>(n));
      }
    std::mt19937 gen(5);
    for (int turn = 0; turn < 3; ++turn) {
      std::shuffle(rows.begin(), rows.end(), gen);
      const Index middle = n / (turn + 2);
      OtherRanks first, second;
      const Tensor a1 = chosen(a, rows, 0, middle), b1 = chosen(b, rows, 0, middle);
      const Tensor a2 = chosen(a, rows, middle, n), b2 = chosen(b, rows, middle, n);
      const RowOperand left1(a1), left2(a2);
      (void)exact_products(second, left2, b2, true);  // for its largest numbers
      first.largest = second.my_largest;
      (void)exact_products(first, left1, b1, true);
      second.largest = first.my_largest;
      second.sums = {};
      (void)exact_products(second, left2, b2, true);
      first.sums = second.my_sums;
      const ThreadLimit limit(turn + 1);
      CHECK(exact_products(first, left1, b1, true) == products);
      const std::vector<double> shuffled = exact_column_sums(OtherRanks(), chosen(b, rows, 0, n));
      CHECK(shuffled == exact_column_sums(OtherRanks(), b));
      for (Index j = 0; j < m; ++j)
        CHECK(std::abs(shuffled[j] - products[k * m + j]) <=
              0x1p-20 * static_cast<double>(n) * largest_of(b));
    }
  }
}

TEST_CASE("exact products of chunks have the same sum for any chunks, and are sums of rounded products") {
  for (const int powers : {0, 5}) {  // of ten: sums of 64 products are exact in double precision, or are not
    const Index n = 1000, k = 7, m = 21;
    Tensor a({n, k}), b({n, m});
    std::mt19937 gen(3);
    std::uniform_real_distribution<double> number(-1, 1), power(-powers, powers);
    for (Tensor* x : {&a, &b})
      for (real& value : x->values()) value = static_cast<real>(number(gen) * std::pow(10.0, power(gen)));
    std::fill_n(a.row(500), k, real{0});
    for (Index row = 0; row < n; ++row)
      a.row(row)[2] = row == 77 ? std::numeric_limits<real>::denorm_min() : real(row % 2);
    std::vector<ExactSum> want(static_cast<std::size_t>((k + 1) * m));
    for (Index row = 0; row < n; ++row)
      for (Index i = 0; i <= k; ++i)
        for (Index j = 0; j < m; ++j) {
          const volatile real product = (i < k ? a.row(row)[i] : real{1}) * b.row(row)[j];
          want[i * m + j].add(static_cast<double>(product));
        }
    for (const Index chunk : {n, Index{1}, Index{64}, Index{130}}) {
      CAPTURE(chunk);
      std::vector<ExactSum> found(want.size());
      for (Index first = 0; first < n; first += chunk) {
        const Index last = std::min(n, first + chunk);
        const RowOperand left(a.slice_rows(first, last));
        const std::vector<ExactSum> part = exact_products_of_chunk(&left, b.slice_rows(first, last), true);
        for (std::size_t i = 0; i < found.size(); ++i) found[i].add(part[i]);
      }
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].value() == want[i].value());
    }
  }
}

TEST_CASE("a column with NaN or an infinite number gives none, and no other") {
  const Tensor b = wide_numbers(600, 4, 2);
  Tensor with = b.clone();
  with.row(500)[1] = std::numeric_limits<real>::quiet_NaN();
  with.row(3)[3] = std::numeric_limits<real>::infinity();
  const std::vector<double> sums = exact_column_sums(OtherRanks(), with),
                            want = exact_column_sums(OtherRanks(), b);
  CHECK(sums[0] == want[0]);
  CHECK(std::isnan(sums[1]));
  CHECK(sums[2] == want[2]);
  CHECK_FALSE(std::isfinite(sums[3]));
  const RowOperand left(b);
  const std::vector<double> products = exact_products(OtherRanks(), left, RowOperand(with), false);
  for (const int j : {0, 2}) CHECK(std::isfinite(products[j]));
  for (const int j : {1, 3}) CHECK(std::isnan(products[j]));
}

TEST_CASE("products of no rows and of numbers near the ends of the range") {
  CHECK(exact_column_sums(OtherRanks(), Tensor({0, 2})) == std::vector<double>(2, 0.0));
  Tensor ends({2, 2});
  ends.row(0)[0] = ends.row(1)[0] = std::numeric_limits<real>::denorm_min();
  ends.row(0)[1] = std::numeric_limits<real>::max() / 4;
  ends.row(1)[1] = -ends.row(0)[1];
  const std::vector<double> sums = exact_column_sums(OtherRanks(), ends);
  if (sizeof(real) == 4) CHECK(sums[0] == 2 * static_cast<double>(std::numeric_limits<real>::denorm_min()));
  CHECK(sums[1] == 0);
}
