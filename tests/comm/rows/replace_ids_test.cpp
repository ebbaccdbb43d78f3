#include <sar/comm/rows/replace_ids.hpp>
#include <sar/core/memory/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace sar::test {

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

}  // namespace sar::test
