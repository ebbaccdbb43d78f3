#include <sar/comm/rows/replace_ids.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace sar::test {

TEST_CASE("a set of numbers numbers its members in increasing order") {
  for (const Index n : {Index{1}, Index{64}, Index{65}, Index{513}, Index{2000}}) {
    IndexSet set(n);
    std::vector<Index> expected;
    for (Index i = 0; i < n; i += 1 + i % 7) {
      set.insert(i);
      expected.push_back(i);
    }
    set.insert(n - 1);
    if (expected.back() != n - 1) expected.push_back(n - 1);
    set.make_numbers();
    const Array<Index> members = set.members();
    CHECK(std::vector<Index>(members.begin(), members.end()) == expected);
    CHECK(set.size() == static_cast<Index>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(set.number(expected[i]) == static_cast<Index>(i));
    for (Index i = 0; i < n; ++i)
      CHECK(set.contains(i) == std::binary_search(expected.begin(), expected.end(), i));
  }
}

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

}  // namespace sar::test
