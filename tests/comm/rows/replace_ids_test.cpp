#include <sar/comm/rows/replace_ids.hpp>

#include <doctest/doctest.h>

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

}  // namespace sar::test
