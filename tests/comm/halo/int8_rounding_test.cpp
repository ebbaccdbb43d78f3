// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "support/effort.hpp"

#include <sar/comm/halo/wire_format.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace sar;
using namespace sar::SAR_ISA;
using sar::test::full_run;

namespace {

constexpr std::uint32_t draws = 1u << 24;

/// The multiples of x for the draws [first, last).
std::vector<std::int8_t> rounded(float x, float scale, std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> words;
  for (std::uint32_t u = first; u < last; ++u) words.push_back(u << 8 | (u & 0xff));
  const std::vector<real> xs(words.size(), static_cast<real>(x));
  std::vector<std::int8_t> q(words.size());
  int8_rounding::round_columns(xs.data(), std::ssize(xs), scale, words.data(), q.data());
  return q;
}

/// The largest |q s - x| / s for the draws [first, last).
double worst(float x, float scale, std::uint32_t first, std::uint32_t last) {
  double error = 0;
  for (const std::int8_t q : rounded(x, scale, first, last))
    error = std::max(error, std::abs(q * double{scale} - double{x}) / double{scale});
  return error;
}

}  // namespace

TEST_CASE("multiples of the scale are not changed by any draw") {
  constexpr std::uint32_t chunk = 1u << 18;
  for (std::uint32_t first = 0; first < draws; first += full_run() ? chunk : 16 * chunk)
    for (const int k : {-127, -1, 0, 1, 127})
      CHECK(rounded(static_cast<float>(k) * 0.75f, 0.75f, first, first + chunk) ==
            std::vector<std::int8_t>(chunk, static_cast<std::int8_t>(k)));
}

TEST_CASE("the error is below the scale for the draws that round up and down first") {
  std::mt19937 random(3);
  const auto number = [&] { return std::uniform_real_distribution<float>(0, 1)(random); };
  for (int row = 0; row < 300; ++row) {
    // the largest number of the row, and numbers on and beside the multiples of its scale
    const real largest = static_cast<real>(std::ldexp(1 + number(), row % 60 - 30));
    const float scale = int8_rounding::scale_of(&largest, 1);
    std::vector<float> xs{static_cast<float>(largest), -static_cast<float>(largest), number() * scale};
    for (const float k : {-126.f, -64.f, -3.f, -1.f, 0.f, 1.f, 7.f, 100.f, 126.f})
      for (const float to :
           {-std::numeric_limits<float>::infinity(), k * scale, std::numeric_limits<float>::infinity()})
        xs.push_back(to == k * scale ? to : std::nextafter(k * scale, to));
    for (const float x : xs) {
      CAPTURE(x);
      CAPTURE(scale);
      CHECK(worst(x, scale, 0, 256) < 1);
      CHECK(worst(x, scale, draws - 256, draws) < 1);
    }
  }
}

TEST_CASE("of all draws, the fraction x / s - floor(x / s) rounds up") {
  std::vector<float> xs{-100.125f};
  if (full_run()) xs = {0.25f, -0.25f, 3.5f, -100.125f, 0x1p-20f};
  for (const float x : xs) {
    std::int64_t sum = 0;
    for (const std::int8_t q : rounded(x, 1, 0, draws)) sum += q;
    CHECK(std::abs(static_cast<double>(sum) - double{x} * draws) <= 1);
  }
}
