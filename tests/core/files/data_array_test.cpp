// SPDX-License-Identifier: MIT
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

template <class T>
DataArray rows_of(NpyType type, std::vector<Index> row_shape, const std::vector<T>& values) {
  Index size = 1;
  for (const Index extent : row_shape) size *= extent;
  DataArray data(type, std::move(row_shape), std::ssize(values) / size);
  std::memcpy(data.bytes.data(), values.data(), values.size() * sizeof(T));
  return data;
}

}  // namespace

TEST_CASE("a field has rows of a shape, in the type of its file") {
  const DataArray data =
      rows_of<std::int16_t>(NpyType::int16, {2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(data.num_rows == 2);
  CHECK(data.row_size() == 6);
  CHECK(data.row_bytes() == 12);
  const Tensor tensor = data.to_tensor();
  CHECK(tensor.shape() == Shape{2, 2, 3});
  for (Index i = 0; i < 12; ++i) CHECK(tensor.data()[i] == static_cast<real>(i));
  const Tensor taken = data.take({1, 0, 1}).to_tensor();
  CHECK(taken.shape() == Shape{3, 2, 3});
  for (Index i = 0; i < 6; ++i) {
    CHECK(taken.row(0)[i] == static_cast<real>(6 + i));
    CHECK(taken.row(1)[i] == static_cast<real>(i));
    CHECK(taken.row(2)[i] == static_cast<real>(6 + i));
  }
  const DataColumns columns{{"x", data}};
  CHECK(fields_of(columns) == std::vector<DataField>{{"x", NpyType::int16, {2, 3}}});
  CHECK(fields_of(columns)[0].row_bytes() == 12);
}

TEST_CASE("integers and masks: one whole number a row") {
  const DataArray data = rows_of<std::int32_t>(NpyType::int32, {1}, {-3, 0, 7});
  CHECK(data.to_integers("x") == Array<std::int64_t>{-3, 0, 7});
  const DataArray numbers = rows_of<float>(NpyType::float32, {}, {1, 2, 0.5});
  CHECK(rows_of<double>(NpyType::float64, {}, {1, 0}).to_mask("x") == Array<std::uint8_t>{1, 0});
  CHECK(thrown<InputError>([&] { static_cast<void>(data.to_mask("x")); }) ==
        "x: row 0 is -3, expected 0 or 1, one for each row");
  CHECK(thrown<InputError>([&] {
          static_cast<void>(numbers.to_integers("x", std::vector<Index>{7, 8, 9}));
        }) == "x: row 9 is 0.5, expected a whole number from -9223372036854775808 to 9223372036854775807");
  const DataArray pairs = rows_of<std::int64_t>(NpyType::int64, {2}, {1, 2});
  CHECK(thrown<InputError>([&] { static_cast<void>(pairs.to_mask("x")); }) ==
        "x: a row has shape (2,), expected one number");
}
