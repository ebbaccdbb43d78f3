// SPDX-License-Identifier: MIT

/// Rows of several types: conversions are exact or rounded to nearest even, sums are rounded once.
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include "support/random_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

using namespace sar;
using namespace sar::test;

namespace {

/// Ties, carries into the exponent, subnormal numbers, both zeros, infinities, NaN.
Tensor special_numbers(Index repeated) {
  std::vector<real> numbers;
  for (const std::uint32_t upper :
       {0x0000u, 0x0001u, 0x007fu, 0x0080u, 0x3f80u, 0x3f81u, 0x40ffu, 0x7f7fu, 0x7f80u})
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      for (const std::uint32_t sign : {0u, 0x80000000u})
        numbers.push_back(static_cast<real>(std::bit_cast<float>(sign | upper << 16 | lower)));
  Tensor all({static_cast<Index>(numbers.size()), repeated});
  for (Index i = 0; i < all.num_rows(); ++i) std::fill_n(all.row(i), repeated, numbers[i]);
  return all;
}

bool same_number(real a, real b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

real rounded(double x) {
  return static_cast<real>(bfloat16_to_float(float_to_bfloat16(x)));
}

}  // namespace

TEST_CASE("rows in bfloat16 are rounded as single numbers are, and widened exactly") {
  for (const Index width : {1, 7, 16, 33}) {
    const Tensor x = special_numbers(width);
    const TypedRows rows(x, NumberType::bfloat16);
    const Tensor back = rows.to_tensor();
    CHECK(back.shape() == x.shape());
    bool same = true;
    for (Index i = 0; i < x.size(); ++i) same &= same_number(back.data()[i], rounded(x.data()[i]));
    CHECK(same);
    const Tensor again = TypedRows(back, NumberType::bfloat16).to_tensor();
    for (Index i = 0; i < x.size(); ++i) same &= same_number(again.data()[i], back.data()[i]);
    CHECK(same);
  }
}

TEST_CASE("rows that are given up are rounded in their memory, of which the rest is freed") {
  for (const Index rows : {1, 1023, 1024, 1025, 2048, 3000, 30'000}) {
    CAPTURE(rows);
    Tensor x = random_tensor({rows, 32}, 5);
    const Tensor special = special_numbers(1);
    for (Index i = 0; i < std::min(special.size(), x.size()); ++i)
      x.data()[x.size() - 1 - i] = special.data()[i];
    const Tensor copy = x.clone();
    const TypedRows want(copy, NumberType::bfloat16);
    const real* const memory = x.data();
    const std::size_t before = live_bytes(), bytes = x.bytes();
    const bool in_place = rows > 1024 && can_shrink(memory, static_cast<std::size_t>(2 * x.size()));
    reset_peak_bytes();
    const TypedRows found = TypedRows(std::move(x)).as(NumberType::bfloat16);
    REQUIRE(found.is_bfloat16());
    CHECK(found.shape() == copy.shape());
    CHECK(found.unique());
    CHECK(std::memcmp(found.at(0), want.at(0), static_cast<std::size_t>(2 * found.size())) == 0);
    CHECK((found.at(0) == memory) == in_place);
    if (in_place) CHECK(peak_bytes() <= before + (1 << 17));
    CHECK(live_bytes() == before - bytes + static_cast<std::size_t>(2 * found.size()));
  }
}

TEST_CASE("rows that others hold, borrowed rows and slices are not overwritten when they are rounded") {
  const Tensor x = random_tensor({5000, 32}, 5), copy = x.clone();
  std::vector<real> array(copy.values().begin(), copy.values().end());
  Tensor part = x.clone().slice_rows(10, 4000);
  for (Tensor rows : {x, Tensor::borrow(array, x.shape()), part}) {
    const TypedRows want(rows, NumberType::bfloat16),
        found = TypedRows(std::move(rows)).as(NumberType::bfloat16);
    CHECK(std::memcmp(found.at(0), want.at(0), static_cast<std::size_t>(2 * found.size())) == 0);
  }
  CHECK(std::ranges::equal(x.values(), copy.values()));
  CHECK(std::ranges::equal(array, copy.values()));
  TypedRows same(x.clone());
  const void* const memory = same.at(0);
  same = std::move(same).as(NumberType::reals);
  CHECK(same.at(0) == memory);
}

TEST_CASE("sums of rows of two types are rounded once") {
  const Tensor a = random_tensor({13, 37}, 1), b = random_tensor({13, 37}, 2);
  for (const NumberType from : {NumberType::reals, NumberType::bfloat16})
    for (const NumberType to : {NumberType::reals, NumberType::bfloat16})
      for (const bool accumulate : {false, true}) {
        const TypedRows addend(a, from);
        TypedRows sum = TypedRows(b, to).clone();
        const Tensor x = addend.to_tensor(), y = sum.to_tensor().clone();
        add_rows(addend, sum, accumulate);
        const Tensor found = sum.to_tensor();
        bool same = true;
        for (Index i = 0; i < a.size(); ++i) {
          const real exact = accumulate ? y.data()[i] + x.data()[i] : x.data()[i];
          same &= found.data()[i] == (to == NumberType::bfloat16 ? rounded(exact) : exact);
        }
        CHECK(same);
      }
  TypedRows other(Shape{12, 37}, NumberType::bfloat16);
  CHECK_THROWS_AS(add_rows(TypedRows(a), other), ShapeError);
}

TEST_CASE("handles of rows share memory, which is in the byte account") {
  const std::size_t before = live_bytes();
  TypedRows rows(random_tensor({100, 64}, 3), NumberType::bfloat16);
  CHECK(live_bytes() - before == 100 * 64 * 2);
  CHECK(rows.unique());
  TypedRows part = rows.slice_rows(10, 20);
  CHECK_FALSE(rows.unique());
  CHECK(part.bfloat16() == rows.bfloat16() + 10 * 64);
  part.set_zero();
  const Tensor values = rows.to_tensor();
  CHECK(std::all_of(values.row(10), values.row(20), [](real x) { return x == 0; }));
  CHECK(values.row(9)[0] != 0);
  CHECK(rows.reshape({50, 128}).bfloat16() == rows.bfloat16());
  CHECK(rows.clone().bfloat16() != rows.bfloat16());
  CHECK_THROWS_AS((void)rows.slice_rows(90, 101), ShapeError);
  CHECK_THROWS_AS((void)rows.reshape({50, 127}), ShapeError);
  const Tensor reals = random_tensor({3, 2}, 4);
  CHECK(TypedRows(reals).reals().data() == reals.data());
}

TEST_CASE("deferred rows are stored in their type") {
  const Tensor x = random_tensor({70, 9}, 5);
  const TypedRows rows(x, NumberType::bfloat16);
  const Bfloat16Rows stored(rows);
  CHECK(stored.computed().bfloat16() == rows.bfloat16());
  const Tensor wide = rows.to_tensor();
  CHECK(std::ranges::equal(stored.all().values(), wide.values()));
  CHECK(stored.all().data() == stored.all().data());  // widened once
  std::vector<real> some(4 * 9);
  stored.compute(50, 4, some.data());
  CHECK(std::equal(some.begin(), some.end(), wide.row(50)));
}

TEST_CASE("numbers of rows are read and written in their type, from any number on") {
  Tensor x = Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6});
  TypedRows rounded(x, NumberType::bfloat16), sums(Shape{2, 3}, NumberType::exact_sums);
  const TypedRows reals(x);
  const ConstTypedNumbers second = reals.numbers(1);
  CHECK(second.type() == NumberType::reals);
  CHECK(second.reals() == x.row(1));
  CHECK(second.bfloat16() == nullptr);
  CHECK(second.exact_sums() == nullptr);
  CHECK(second.from(2).reals()[0] == 6);

  const TypedNumbers halves = rounded.numbers(1);
  CHECK(halves.is_bfloat16());
  CHECK(halves.reals() == nullptr);
  CHECK(bfloat16_to_float(halves.bfloat16()[1].bits) == 5);
  CHECK(bfloat16_to_float(ConstTypedNumbers(halves).from(2).bfloat16()->bits) == 6);

  sums.set_zero();
  sums.numbers(1).from(1).exact_sums()->add(2.5);
  CHECK(sums.exact_sums()[4].value() == 2.5);

  const auto size_of = [](const auto* first) { return sizeof *first; };
  CHECK(with_type(second, size_of) == sizeof(real));
  CHECK(with_type(ConstTypedNumbers(halves), size_of) == sizeof(Bfloat16));
  CHECK(!TypedRows().numbers().defined());
  CHECK(!TypedNumbers(nullptr).from(7).defined());
  CHECK(TypedNumbers().type() == NumberType::reals);
}
