// SPDX-License-Identifier: MIT
#include <sar/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

using namespace sar;

namespace {

constexpr std::uint64_t num_rows = 2000;
constexpr std::uint64_t row_elements = 100;
constexpr double num_draws = num_rows * row_elements;

template <class Draw>
std::vector<double> draws(const Draw& draw) {
  std::vector<double> values;
  for (std::uint64_t row = 0; row < num_rows; ++row)
    for (std::uint64_t i = 0; i < row_elements; ++i) values.push_back(draw(row, i));
  return values;
}

/// Mean of f over the values, in standard deviations of that mean from the expected one.
template <class F>
double deviation(const std::vector<double>& values, double mean, double variance, const F& f) {
  double sum = 0;
  for (const double x : values) sum += f(x);
  return (sum / num_draws - mean) / std::sqrt(variance / num_draws);
}

/// Correlation of each value with the one `lag` later, in standard deviations from 0.
double correlation(const std::vector<double>& values, std::size_t lag, double mean, double variance) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - mean) * (values[i + lag] - mean);
  return sum / variance / std::sqrt(static_cast<double>(values.size() - lag));
}

}  // namespace

TEST_CASE("Philox4x32-10 gives the known answers of the Random123 distribution") {
  using Words = std::array<std::uint32_t, 4>;
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a draw depends on seed, stream, step, row and element, and on nothing else") {
  const RandomKey key{1, 2, 3};
  CHECK(Random(key).bits(4, 5) == Random(key).bits(4, 5));
  std::set<std::uint64_t> different;
  for (const RandomKey other :
       {RandomKey{1, 2, 3}, {2, 1, 3}, {1, 3, 2}, {0, 2, 3}, {1, 0, 3}, {1, 2, 0}, {3, 2, 1}})
    for (const std::uint64_t row : {0ULL, 1ULL, 1ULL << 32, (1ULL << 32) + 1})
      for (const std::uint64_t i : {0ULL, 1ULL, 2ULL, 1ULL << 33})
        different.insert(Random(other).bits(row, i));
  CHECK(different.size() == 7 * 4 * 4);
}

TEST_CASE("elements of 64 bits are the words in pairs") {
  const Random random({7, 0, 0});
  const auto words = random.words(3, 1);
  CHECK(random.bits(3, 2) == (std::uint64_t{words[1]} << 32 | words[0]));
  CHECK(random.bits(3, 3) == (std::uint64_t{words[3]} << 32 | words[2]));
  CHECK(random.uniform(3, 2) == static_cast<double>(random.bits(3, 2) >> 11) / 9007199254740992.0);
}

TEST_CASE("uniform draws are uniform: moments, bins, neighbors in row and column") {
  const Random random({42, 1, 9});
  const auto u = draws([&](std::uint64_t row, std::uint64_t i) { return random.uniform(row, i); });
  CHECK(*std::min_element(u.begin(), u.end()) >= 0);
  CHECK(*std::max_element(u.begin(), u.end()) < 1);
  CHECK(std::abs(deviation(u, 0.5, 1.0 / 12, [](double x) { return x; })) < 4);
  CHECK(std::abs(deviation(u, 1.0 / 3, 4.0 / 45, [](double x) { return x * x; })) < 4);

  std::array<double, 256> bins{};
  for (const double x : u) ++bins[static_cast<std::size_t>(x * 256)];
  double chi_squared = 0;
  for (const double count : bins)
    chi_squared += (count - num_draws / 256) * (count - num_draws / 256) / (num_draws / 256);
  CHECK(std::abs(chi_squared - 255) < 4 * std::sqrt(2 * 255.0));

  CHECK(std::abs(correlation(u, 1, 0.5, 1.0 / 12)) < 4);
  CHECK(std::abs(correlation(u, row_elements, 0.5, 1.0 / 12)) < 4);
}

TEST_CASE("the same rows under neighboring seeds, streams and steps are not correlated") {
  const auto of = [](const RandomKey& key) {
    return draws(
        [random = Random(key)](std::uint64_t row, std::uint64_t i) { return random.uniform(row, i) - 0.5; });
  };
  const auto base = of({5, 5, 5});
  for (const RandomKey key : {RandomKey{6, 5, 5}, {5, 6, 5}, {5, 5, 6}}) {
    const auto other = of(key);
    double sum = 0;
    for (std::size_t i = 0; i < base.size(); ++i) sum += base[i] * other[i];
    CHECK(std::abs(sum * 12 / std::sqrt(num_draws)) < 4);
  }
}

TEST_CASE("normal draws are normal: four moments, tails, independent neighbors") {
  const Random random({43, 0, 1});
  const auto z = draws([&](std::uint64_t row, std::uint64_t i) { return random.normal(row, i); });
  const auto power = [](int n) { return [n](double x) { return std::pow(x, n); }; };
  CHECK(std::abs(deviation(z, 0, 1, power(1))) < 4);
  CHECK(std::abs(deviation(z, 1, 2, power(2))) < 4);
  CHECK(std::abs(deviation(z, 0, 15, power(3))) < 4);
  CHECK(std::abs(deviation(z, 3, 96, power(4))) < 4);
  for (const double t : {0.5, 1.0, 2.0, 3.0}) {
    const double p = std::erfc(t / std::sqrt(2.0));
    CHECK(std::abs(deviation(z, p, p * (1 - p), [t](double x) { return std::abs(x) > t ? 1.0 : 0.0; })) < 4);
  }
  CHECK(std::abs(correlation(z, 1, 0, 1)) < 4);
  CHECK(std::abs(correlation(z, row_elements, 0, 1)) < 4);
  // Box and Muller's pairs share their radius: their squares must not be correlated either
  std::vector<double> squares;
  for (const double x : z) squares.push_back(x * x);
  CHECK(std::abs(correlation(squares, 1, 1, 2)) < 4);
}

TEST_CASE("mix is the finaliser of SplitMix64, and each purpose has a stream of its own") {
  CHECK(mix(golden_ratio) == 0xe220a8397b1dcdafu);  // the first number of SplitMix64 for seed 0
  CHECK(mix(0) == 0);
  CHECK(RandomStream::modules + 3 == (std::uint64_t{1} << 32) + 3);
  CHECK(RandomStream::sbm_split + 0 == 0x73626d04u);
}
