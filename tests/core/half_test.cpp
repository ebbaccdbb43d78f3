// SPDX-License-Identifier: MIT
#include <sar/core/numbers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

/// A format of 16 bits by its definition.
struct Format {
  int fraction_bits;
  int bias;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(double);

  [[nodiscard]] double value(int bits) const {
    const int ones = 0x7fff >> fraction_bits;
    const int exponent = (bits >> fraction_bits) & ones;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == ones)
      return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    const int significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
    return sign * std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
  }
};

const Format half{10, 15, sar::half_to_float, sar::float_to_half};
const Format bfloat16{7, 127, sar::bfloat16_to_float, sar::float_to_bfloat16};

}  // namespace

TEST_CASE("all values of 16 bits come back, and what lies between two goes to the nearer one") {
  for (const Format& format : {half, bfloat16}) {
    const int largest = ((0x7fff >> format.fraction_bits) << format.fraction_bits) - 1;
    for (int bits = 0; bits < 65536; ++bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      const double value = format.value(bits);
      if (std::isnan(value)) {
        REQUIRE(std::isnan(format.widen(stored)));
        REQUIRE(std::isnan(format.value(format.narrow(value))));
        continue;
      }
      REQUIRE(format.widen(stored) == value);
      REQUIRE(std::signbit(format.widen(stored)) == std::signbit(value));
      REQUIRE(format.narrow(value) == stored);
      if ((bits & 0x7fff) >= largest) continue;
      const double next = format.value(bits + 1);
      REQUIRE(format.narrow(value + (next - value) * 0.499) == bits);
      REQUIRE(format.narrow(value + (next - value) * 0.501) == bits + 1);
      REQUIRE(format.narrow((value + next) / 2) == bits + bits % 2);  // a tie: to even
    }
  }
}

TEST_CASE("numbers beyond the largest become infinite from halfway on") {
  CHECK(sar::float_to_half(65519.9) == 0x7bff);
  CHECK(sar::float_to_half(65520) == 0x7c00);
  CHECK(sar::float_to_half(-1e300) == 0xfc00);
  CHECK(sar::float_to_bfloat16(0x1.fefffp127) == 0x7f7f);
  CHECK(sar::float_to_bfloat16(0x1.ffp127) == 0x7f80);
  CHECK(sar::float_to_bfloat16(-1e300) == 0xff80);
}

TEST_CASE("numbers are rounded once, not to a float in between") {
  CHECK(sar::float_to_half(1 + 0x1p-11 + 0x1p-40) == 0x3c01);
  CHECK(sar::float_to_bfloat16(1 + 0x1p-8 + 0x1p-40) == 0x3f81);
}
