// SPDX-License-Identifier: MIT
#include "support/random_tensor.hpp"

#include <doctest/doctest.h>

#include <sar/comm/halo/halo_format.hpp>
#include <sar/comm/halo/wire_format.hpp>
#include <sar/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Rows 1 and 3 of [[0, 1, 2], [3, 4, 5], ...]; their values are 3, 4, 5, 9, 10, 11.
struct Some {
  Tensor tensor{Shape{4, 3}};
  Array<std::int32_t> rows{1, 3};

  Some() {
    for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<real>(i);
  }
};

}  // namespace

TEST_CASE("values of rows in full precision") {
  const WireFormat& format = *stored_format(NumberType::reals);
  CHECK(format.bytes(5) == 5 * sizeof(real));
  CHECK(format.as_stored(NumberType::reals));
  Some some;
  Array<std::byte> packed(format.bytes(4));
  format.pack(some.tensor, some.rows, 1, 5, packed.data());  // begins and ends inside of rows
  std::vector<real> values(4);
  format.unpack(packed.data(), 4, values.data());
  CHECK(values == std::vector<real>{4, 5, 9, 10});

  const std::vector<real> news{10, 1, 1, 10};
  format.pack(news.data(), 0, 4, packed.data());
  const auto combined = [&](ReduceOp op) {
    Some into;
    format.combine(into.tensor, into.rows, 1, 5, packed.data(), op);
    const real* row = std::as_const(into.tensor).row(1);
    CHECK(row[0] == 3);
    CHECK(into.tensor.row(2)[0] == 6);
    CHECK(into.tensor.row(3)[2] == 11);
    return std::vector<real>{row[1], row[2], into.tensor.row(3)[0], into.tensor.row(3)[1]};
  };
  CHECK(combined(ReduceOp::sum) == std::vector<real>{14, 6, 10, 20});
  CHECK(combined(ReduceOp::max) == std::vector<real>{10, 5, 9, 10});
  CHECK(combined(ReduceOp::min) == std::vector<real>{4, 1, 1, 10});
}

TEST_CASE("rows in bfloat16 travel as they are stored") {
  const WireFormat& format = *stored_format(NumberType::bfloat16);
  CHECK(format.as_stored(NumberType::bfloat16));
  CHECK_FALSE(format.as_stored(NumberType::reals));
  CHECK_FALSE(stored_format(NumberType::reals)->as_stored(NumberType::bfloat16));
  const Some some;
  const TypedRows rows(some.tensor, NumberType::bfloat16);
  Array<std::byte> packed(format.bytes(4));
  format.pack(rows, some.rows, 1, 5, packed.data());  // begins and ends inside of rows
  std::vector<real> values(4);
  format.unpack(packed.data(), 4, values.data());
  CHECK(values == std::vector<real>{4, 5, 9, 10});
}

namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();
constexpr real not_a_number = std::numeric_limits<real>::quiet_NaN();

std::vector<real> random_numbers(Index n, std::uint64_t stream, double size = 1) {
  const Random random({.seed = 3, .stream = stream});
  std::vector<real> values;
  for (Index i = 0; i < n; ++i)
    values.push_back(static_cast<real>(size * random.normal(static_cast<std::uint64_t>(i))));
  return values;
}

/// Halo rows that were packed and unpacked again.
std::vector<real> arrived(const WireFormat& format, const std::vector<real>& values, Index begin = 0) {
  const Index n = std::ssize(values);
  Array<std::byte> packed(format.bytes(n));
  format.pack(values.data(), begin, begin + n, packed.data());
  std::vector<real> result(values.size());
  format.unpack(packed.data(), n, result.data());
  return result;
}

Array<Index> ids_from(Index first, Index n) {
  Array<Index> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

RowDraws draws(std::uint64_t step, std::span<const Index> owned_ids = {}) {
  return {.key = Random({.seed = 7, .stream = 1, .step = step}).key(), .owned_ids = owned_ids};
}

double scale_of(std::span<const real> row) {
  double largest = 0;
  for (const real x : row) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return largest / 127;
}

}  // namespace

TEST_CASE("bfloat16: half the bytes, rounded to the nearest, ties to even") {
  const WireFormat& format = *stored_format(NumberType::bfloat16);
  CHECK(format.bytes(5) == 10);
  CHECK(wire_bytes(HaloFormat::bf16, 5) == 10);
  CHECK_FALSE(format.as_stored(NumberType::reals));
  const std::vector<real> exact{0, 1, -2.5, real(0x1.fep100), -infinity};
  CHECK(arrived(format, exact) == exact);
  CHECK(std::signbit(arrived(format, {-real(0)})[0]));
  // neighbors of 1 are 2^-7 apart
  const real tie = real(1) + real(0x1p-8), odd_tie = real(1) + 3 * real(0x1p-8);
  CHECK(arrived(format, {tie, odd_tie, tie + real(0x1p-20)}) ==
        std::vector<real>{1, 1 + 4 * real(0x1p-8), 1 + 2 * real(0x1p-8)});
  CHECK(arrived(format, {real(3.4e38), -real(3.4e38)}) == std::vector<real>{infinity, -infinity});
  CHECK(std::isnan(arrived(format, {not_a_number})[0]));
  const std::vector<real> values = random_numbers(10000, 1);
  const std::vector<real> rounded = arrived(format, values);
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    worst = std::max(worst, std::abs(double{rounded[i]} / double{values[i]} - 1));
  CHECK(worst <= 0x1p-8);
  CHECK(worst > 0x1p-9);
}

TEST_CASE("bfloat16: rows are packed from inside of rows, and added in full precision") {
  const WireFormat& format = *stored_format(NumberType::bfloat16);
  Some some;
  Array<std::byte> packed(format.bytes(4));
  format.pack(some.tensor, some.rows, 1, 5, packed.data());
  std::vector<real> values(4);
  format.unpack(packed.data(), 4, values.data());
  CHECK(values == std::vector<real>{4, 5, 9, 10});
  some.tensor.row(1)[1] = real(0x1p-20);
  format.combine(some.tensor, some.rows, 1, 5, packed.data(), ReduceOp::sum);
  CHECK(some.tensor.row(1)[1] == 4 + real(0x1p-20));
  CHECK(some.tensor.row(3)[1] == 20);
  format.combine(some.tensor, some.rows, 1, 5, packed.data(), ReduceOp::min);
  CHECK(some.tensor.row(3)[1] == 10);
}

TEST_CASE("each format sends the bytes and keeps the error that it states") {
  const Index width = 33, rows = 70;
  for (const HaloFormatTraits& traits : halo_format_traits) {
    if (!traits.in_double && sizeof(real) == sizeof(double)) continue;
    CAPTURE(std::string(traits.name));
    const WireFormatPtr format = make_wire_format(traits.value, width, draws(0));
    const Index packed_bytes = format->bytes(rows * width);
    CHECK(packed_bytes == rows * wire_bytes(traits.value, width));
    const Tensor sent = random_tensor({rows, width}, 5);
    Tensor arrived(sent.shape());
    Array<std::byte> packed(packed_bytes);
    format->pack(sent.data(), 0, sent.size(), packed.data());
    format->unpack(packed.data(), sent.size(), arrived.data());
    double worst = 0;
    for (Index i = 0; i < rows; ++i) {
      const auto largest = std::abs(*std::max_element(
          sent.row(i), sent.row(i) + width, [](real a, real b) { return std::abs(a) < std::abs(b); }));
      for (Index j = 0; j < width; ++j)
        worst = std::max(worst, static_cast<double>(std::abs(arrived.row(i)[j] - sent.row(i)[j]) / largest));
    }
    CHECK(worst <= 1.001 * traits.max_error);
    CHECK((worst > 0) == (traits.max_error > 0));
  }
}

TEST_CASE("int8: a byte a number, an error below the scale of the row") {
  for (const Index width : {1, 3, 7, 31, 32, 33, 100, 5000}) {
    CAPTURE(width);
    const Index rows = 70;
    const auto format = make_int8_format(width, draws(0));
    CHECK(format->group() == width);
    CHECK(format->bytes(rows * width) == rows * wire_bytes(HaloFormat::int8, width));
    const std::vector<real> values = random_numbers(rows * width, 2, 1e3);
    const std::vector<real> rounded = arrived(*format, values);
    double worst = 0;
    for (Index i = 0; i < rows; ++i) {
      const double scale = scale_of(std::span(values).subspan(i * width, width));
      for (Index j = i * width; j < (i + 1) * width; ++j)
        worst = std::max(worst, std::abs(double{rounded[j]} - double{values[j]}) / scale);
    }
    CHECK(worst < 1 + 1e-5);  // of the product q s
    if (width > 7) CHECK(worst > 0.9);
  }
}

TEST_CASE("int8: the expected value is the number") {
  const Index width = 33, draws_of_each = 4000;
  std::vector<real> row = random_numbers(width, 3);
  row[4] = real(1e-3);
  row[5] = 0;
  const double scale = scale_of(row);
  std::vector<double> sums(row.size());
  for (Index k = 0; k < draws_of_each; ++k) {
    const auto format = make_int8_format(width, draws(static_cast<std::uint64_t>(k)));
    const std::vector<real> rounded = arrived(*format, row);
    for (std::size_t j = 0; j < row.size(); ++j) sums[j] += double{rounded[j]};
  }
  // a draw deviates by at most half a scale on average, a mean of n of them by that over the root of n
  const double bound = 5 * scale / 2 / std::sqrt(static_cast<double>(draws_of_each));
  for (std::size_t j = 0; j < row.size(); ++j) {
    CAPTURE(j);
    CHECK(std::abs(sums[j] / draws_of_each - double{row[j]}) < bound);
  }
  CHECK(sums[5] == 0);
}

TEST_CASE(
    "int8: a row of an id is rounded alike wherever it stands, another id and another step differently") {
  const Index width = 40;
  const std::vector<real> row = random_numbers(width, 4);
  Tensor tensor(Shape{50, width});
  for (Index i = 0; i < 50; ++i) std::copy(row.begin(), row.end(), tensor.row(i));
  const Array<Index> ids = ids_from(1000, 50), others = ids_from(980, 50);
  const auto packed_row = [&](std::uint64_t step, const Array<Index>& of_rows, std::int32_t place,
                              Index first) {
    const auto format = make_int8_format(width, draws(step, {of_rows.data(), of_rows.size()}));
    Array<std::int32_t> rows;
    for (std::int32_t i = 0; i <= place; ++i) rows.push_back(i);
    Array<std::byte> packed(format->bytes((place + 1 - first) * width));
    format->pack(tensor, rows, first * width, (place + 1) * width, packed.data());
    return std::vector<std::byte>(packed.end() - format->bytes(width), packed.end());
  };
  const auto of_1020 = packed_row(1, ids, 20, 0);
  CHECK(packed_row(1, ids, 20, 20) == of_1020);
  CHECK(packed_row(1, others, 40, 3) == of_1020);
  CHECK(packed_row(1, ids, 21, 0) != of_1020);
  CHECK(packed_row(2, ids, 20, 0) != of_1020);
}

TEST_CASE("int8: rows of zeros, of tiny numbers, and such that are not finite") {
  const Index width = 33;
  const auto format = make_int8_format(width, draws(0));
  const auto with = [&](real x, real rest) {
    std::vector<real> row(width, rest);
    row[17] = x;
    return row;
  };
  CHECK(arrived(*format, with(0, 0)) == with(0, 0));
  for (const real bad : {not_a_number, infinity, -infinity})
    for (const real x : arrived(*format, with(bad, 1))) CHECK(std::isnan(x));
  const real tiny = std::numeric_limits<float>::denorm_min() * 1000;
  for (const real x : arrived(*format, with(-tiny, tiny)))
    CHECK(std::abs(x) <= real(std::numeric_limits<float>::min()));
  const real large = std::numeric_limits<float>::max();
  const std::vector<real> rounded = arrived(*format, with(-large, large));
  for (const real x : rounded) CHECK(std::abs(double{x} / double{large}) == doctest::Approx(1).epsilon(1e-6));
  CHECK(rounded[17] < 0);
}

TEST_CASE("int8: rows are added") {
  const Index width = 5;
  const auto format = make_int8_format(width, draws(0));
  const std::vector<real> values{127, 0, -127, 1, 2, 254, -254, 0, 2, 4};  // whole multiples of 1 and of 2
  CHECK(arrived(*format, values) == values);
  Array<std::byte> packed(format->bytes(10));
  format->pack(values.data(), 0, 10, packed.data());
  Tensor sum = Tensor::full(Shape{4, width}, 1);
  const Array<std::int32_t> rows{0, 1, 3};
  format->combine(sum, rows, width, 3 * width, packed.data(), ReduceOp::sum);
  CHECK(std::vector<real>(sum.row(1), sum.row(2)) == std::vector<real>{128, 1, -126, 2, 3});
  CHECK(std::vector<real>(sum.row(3), sum.row(3) + width) == std::vector<real>{255, -253, 1, 3, 5});
  CHECK(sum.row(0)[0] == 1);
  CHECK(sum.row(2)[0] == 1);
  format->combine(sum, rows, width, 2 * width, packed.data(), ReduceOp::max);
  CHECK(std::vector<real>(sum.row(1), sum.row(2)) == std::vector<real>{128, 1, -126, 2, 3});
}
