#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace sar::test {
namespace {

/// Ranges of different lengths; with several ranks, rank 1 has none.
PartitionBook uneven_book(int ranks) {
  std::vector<Index> offsets{0};
  for (int p = 0; p < ranks; ++p) offsets.push_back(offsets.back() + (p == 1 ? 0 : 10 + 7 * p));
  return PartitionBook(offsets);
}

}  // namespace

TEST_CASE("every rank gets the rows it asks for, in its order, in any number of rounds") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  // rows of 300 KB: 13 of them fill a round
  for (const Index width : {1, 3, 75000}) {
    DataArray mine(NpyType::int32, {width}, book.num_nodes(comm.rank()));
    for (Index i = 0; i < mine.num_rows; ++i)
      for (Index k = 0; k < width; ++k) {
        const auto value = static_cast<std::int32_t>((book.begin(comm.rank()) + i) * 1000 + k % 1000);
        std::memcpy(mine.row(i) + 4 * k, &value, 4);
      }
    std::vector<Index>
        wanted;  // rank 0 wants nothing, others their number of sweeps, backwards, with repetitions
    for (int sweep = 0; sweep < comm.rank(); ++sweep)
      for (Index row = book.num_nodes() - 1; row >= 0; row -= 1 + sweep) wanted.push_back(row);
    if (comm.size() == 1) wanted = {16 % book.num_nodes(), 3, 3, 0};
    const DataArray got = fetch_rows(comm, book, mine, wanted);
    REQUIRE(got.num_rows == static_cast<Index>(wanted.size()));
    bool equal = true;
    for (Index i = 0; i < got.num_rows; ++i)
      for (Index k = 0; k < width; ++k) {
        std::int32_t value = 0;
        std::memcpy(&value, got.row(i) + 4 * k, 4);
        equal = equal && value == wanted[static_cast<std::size_t>(i)] * 1000 + k % 1000;
      }
    CHECK(equal);
  }
}

TEST_CASE("a row that does not exist is refused on all ranks") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const std::vector<double> mine(static_cast<std::size_t>(book.num_nodes(comm.rank())));
  for (const Index bad : {Index{-1}, book.num_nodes()}) {
    std::vector<Index> wanted{0};
    if (comm.rank() == comm.size() - 1) wanted.push_back(bad);
    CHECK(thrown_by_all<InputError>(comm, [&] { fetch_values<double>(comm, book, mine, wanted); }) ==
          concat("there is no row ", bad, ", expected 0 to ", book.num_nodes() - 1));
  }
}

TEST_CASE("data keep their type, and become tensors, integers and masks") {
  DataArray data(NpyType::int16, {}, 3);
  const std::int16_t values[] = {-1, 0, 300};
  std::memcpy(data.bytes.data(), values, sizeof values);
  CHECK(data.to_tensor().shape() == Shape{3});
  CHECK(data.to_tensor().data()[2] == 300);
  CHECK(data.to_integers("x") == Array<std::int64_t>{-1, 0, 300});
  CHECK(data.to_mask("x") == Array<std::uint8_t>{1, 0, 1});
  CHECK(data.take({2, 2, 0}).to_integers("x") == Array<std::int64_t>{300, 300, -1});
  CHECK(thrown<InputError>([] {
          static_cast<void>(DataArray(NpyType::float32, {}, 1).to_integers("years"));
        }) == "years: dtype is float32, expected integers");
  CHECK(thrown<InputError>([] {
          static_cast<void>(DataArray(NpyType::int64, {2}, 1).to_integers("years"));
        }) == "years: a row has shape (2,), expected one number");
  CHECK(DataArray(NpyType::float64, {2, 3}, 4).to_tensor().shape() == Shape{4, 2, 3});
}

}  // namespace sar::test
