// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/memory/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <vector>

using namespace sar;

namespace {

TEST_CASE("ids are replaced by a table that is spread over the ranks") {
  const Communicator comm = Communicator::world();
  const Index n = 1000;
  const PartitionBook slices = PartitionBook::even(n, comm.size());
  std::vector<Index> table;
  for (Index i = slices.begin(comm.rank()); i < slices.end(comm.rank()); ++i) table.push_back(3 * i + 1);
  std::vector<Index> ids;
  for (Index k = 0; k < 100 * comm.rank(); ++k)
    ids.push_back((k * k + 17 * comm.rank()) % n);  // rank 0: none
  std::vector<Index> expected = ids;
  for (Index& id : expected) id = 3 * id + 1;
  replace_ids(comm, slices, table, ids);
  CHECK(ids == expected);
}

TEST_CASE("the memory of a replacement follows the rank's ids, whatever the length of the table") {
  const Communicator comm = Communicator::world();
  std::vector<std::size_t> peaks;
  for (const Index n : {Index{100'000}, Index{10'000'000}}) {
    const PartitionBook slices = PartitionBook::even(n, comm.size());
    const std::vector<Index> table(static_cast<std::size_t>(slices.num_nodes(comm.rank())), 5);
    std::vector<Index> ids;
    for (Index k = 0; k < 2000; ++k) ids.push_back(k * 7919 % 1000 * (n / 1000));
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    replace_ids(comm, slices, table, ids);
    peaks.push_back(peak_bytes() - before);
    CHECK(ids == std::vector<Index>(2000, 5));
  }
  CAPTURE(peaks[0]);
  CHECK(peaks[1] < peaks[0] + 1000);
}

TEST_CASE("ids have numbers in their order, equal ones in that of the ranks") {
  const Communicator comm = Communicator::world();
  for (const Index spread : {Index{1}, Index{1} << 50}) {
    const auto ids_of = [&](int rank) {
      std::vector<Index> ids;
      for (Index k = 0; k < 20 * rank; ++k) ids.push_back(4 + (k * k + 3 * rank) % 60 * spread);
      if (comm.size() == 1) ids = {9, 0, 9, 4};
      return ids;
    };
    std::vector<Index> mine = ids_of(comm.rank()), before, all;
    for (int rank = 0; rank < comm.size(); ++rank) {
      const std::vector<Index> ids = ids_of(rank);
      if (rank < comm.rank()) before.insert(before.end(), ids.begin(), ids.end());
      all.insert(all.end(), ids.begin(), ids.end());
    }
    const Array<Index> numbers = numbers_of_ids(comm, mine);
    REQUIRE(numbers.size() == mine.size());
    for (Index i = 0; i < std::ssize(mine); ++i) {
      const Index id = mine[static_cast<std::size_t>(i)];
      const auto smaller = std::count_if(all.begin(), all.end(), [&](Index other) { return other < id; });
      CHECK(numbers[i] == smaller + std::count(before.begin(), before.end(), id));
      before.push_back(id);
    }
  }
  CHECK(numbers_of_ids(comm, {}).empty());
}

TEST_CASE("all ranks share the sorting of ids, whatever their values") {
  const Communicator comm = Communicator::world();
  const Index n = 50'000;
  const auto peak = [&](const std::function<Index(Index)>& id_of) {
    std::vector<Index> ids;
    for (Index k = 0; k < n; ++k) ids.push_back(id_of(k * comm.size() + comm.rank()));
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    const Array<Index> numbers = numbers_of_ids(comm, ids);
    const std::size_t bytes = peak_bytes() - before;
    Index wrong = 0;
    for (Index k = 0; k < n; ++k) wrong += numbers[k] != k * comm.size() + comm.rank();
    CHECK(wrong == 0);
    return comm.all_reduce(static_cast<std::int64_t>(bytes), ReduceOp::max);
  };
  const Index last = n * comm.size() - 1;
  const auto even = peak([](Index i) { return 1000 * i; });
  CHECK(peak([=](Index i) { return i == last ? Index{1} << 60 : i; }) < 1.2 * static_cast<double>(even));
  // most of the range has no ids, as with Morton keys
  CHECK(peak([=](Index i) { return i < last / 20 ? i : (Index{1} << 58) + i; }) <
        1.2 * static_cast<double>(even));

  const std::vector<Index> equal(static_cast<std::size_t>(n), 7);
  reset_peak_bytes();
  const std::size_t before = live_bytes();
  const Array<Index> numbers = numbers_of_ids(comm, equal);
  CHECK(static_cast<double>(peak_bytes() - before) < 1.2 * static_cast<double>(even));
  CHECK(numbers.front() == n * comm.rank());
  CHECK(numbers.back() == n * comm.rank() + n - 1);
}

}  // namespace
