// SPDX-License-Identifier: MIT
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("rows of any rank keep their type and their shape") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(11, comm.size());
  DataArray mine(NpyType::int16, {2}, book.num_nodes(comm.rank()));
  for (Index i = 0; i < mine.num_rows; ++i) {
    const auto row = static_cast<std::int16_t>(book.begin(comm.rank()) + i);
    const std::int16_t values[] = {row, static_cast<std::int16_t>(-row)};
    std::memcpy(mine.row(i), values, sizeof values);
  }
  const std::vector<Index> wanted{10, comm.rank() % 11, 10, 0};
  const DataArray got = fetch_rows(comm, book, mine, wanted);
  CHECK(got.type == NpyType::int16);
  CHECK(got.row_shape == std::vector<Index>{2});
  REQUIRE(got.num_rows == 4);
  for (Index i = 0; i < got.num_rows; ++i) {
    std::int16_t values[2];
    std::memcpy(values, got.row(i), sizeof values);
    CHECK(values[0] == wanted[static_cast<std::size_t>(i)]);
    CHECK(values[1] == -values[0]);
  }
  const std::vector<Index> wrong{0, comm.rank() == 0 ? Index{11} : 0};
  CHECK(thrown_by_all<InputError>(comm, [&] { static_cast<void>(fetch_rows(comm, book, mine, wrong)); }) ==
        "there is no row 11, expected 0 to 10");
}

TEST_CASE("data keep their type, and become tensors, integers and masks") {
  DataArray data(NpyType::int16, {}, 3);
  const std::int16_t values[] = {-1, 0, 300};
  std::memcpy(data.bytes.data(), values, sizeof values);
  CHECK(data.to_tensor().shape() == Shape{3});
  CHECK(data.to_tensor().data()[2] == 300);
  CHECK(data.to_integers("x") == Array<std::int64_t>{-1, 0, 300});
  CHECK(data.take({2, 2, 0}).to_integers("x") == Array<std::int64_t>{300, 300, -1});
  CHECK(thrown<InputError>([] {
          static_cast<void>(DataArray(NpyType::int64, {2}, 1).to_integers("years"));
        }) == "years: a row has shape (2,), expected one number");
  CHECK(DataArray(NpyType::float64, {2, 3}, 4).to_tensor().shape() == Shape{4, 2, 3});
}

}  // namespace
