// SPDX-License-Identifier: MIT
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>

#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("every rank gets the rows it asks for, in its order, in any number of rounds") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  // rows of 300 KB: 13 of them fill a round
  for (const Index width : {0, 1, 3, 75000}) {
    Array<std::int32_t> mine(book.num_nodes(comm.rank()) * width);
    for (Index i = 0; i < static_cast<Index>(mine.size()); ++i)
      mine[i] = static_cast<std::int32_t>((book.begin(comm.rank()) + i / width) * 1000 + i % width % 1000);
    // rank 0 wants nothing, others their number of sweeps, backwards, with repetitions
    std::vector<Index> wanted;
    for (int sweep = 0; sweep < comm.rank(); ++sweep)
      for (Index row = book.num_nodes() - 1; row >= 0; row -= 1 + sweep) wanted.push_back(row);
    if (comm.size() == 1) wanted = {16 % book.num_nodes(), 3, 3, 0};
    Array<std::int32_t> got(static_cast<Index>(wanted.size()) * width);
    fetch_row_bytes(comm, book, reinterpret_cast<const std::byte*>(mine.data()), width * Index{4}, wanted,
                    reinterpret_cast<std::byte*>(got.data()));
    bool equal = true;
    for (Index i = 0; i < static_cast<Index>(got.size()); ++i)
      equal = equal && got[i] == wanted[i / width] * 1000 + i % width % 1000;
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

}  // namespace
