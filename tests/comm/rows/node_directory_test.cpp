// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("a table finds the numbers of its ids, and grows") {
  IdTable table;
  const auto id_of = [](Index k) { return k % 2 == 0 ? k * 1'000'003 : -k; };
  CHECK(table.find(5) == IdTable::none);
  for (Index k = 0; k < 3000; ++k) CHECK(table.insert(id_of(k), k) == k);
  for (Index k = 0; k < 3000; ++k) CHECK(table.find(id_of(k)) == k);
  CHECK(table.insert(id_of(17), 4000) == 17);
  CHECK(table.find(1) == IdTable::none);
}

TEST_CASE("all ranks find the nodes of all ranks") {
  const Communicator comm = Communicator::world();
  std::vector<Index> offsets{0};  // with several ranks, rank 1 has no nodes
  for (int p = 0; p < comm.size(); ++p) offsets.push_back(offsets.back() + (p == 1 ? 0 : 50 + 10 * p));
  const PartitionBook book(offsets);
  const auto id_of = [](Index node) { return (node % 2 == 0 ? 1 : -1) * node * 1'000'000'007; };
  std::vector<Index> ids;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) ids.push_back(id_of(v));
  const NodeDirectory directory(comm, book, ids);

  std::vector<Index> asked, expected;
  for (Index v = 0; v < (comm.rank() == 0 ? 0 : book.num_nodes()); v += comm.rank()) {
    asked.insert(asked.end(), {id_of(v), id_of(v) + 1, id_of(v)});
    expected.insert(expected.end(), {v, -1, v});
  }
  const Array<Index> found = directory.find(asked);
  CHECK(std::vector<Index>(found.begin(), found.end()) == expected);

  ids.push_back(id_of(0));
  offsets = {0};
  for (const Index count : comm.all_gather(static_cast<Index>(ids.size())))
    offsets.push_back(offsets.back() + count);
  const std::string text =
      thrown_by_all<InputError>(comm, [&] { const NodeDirectory twice(comm, PartitionBook(offsets), ids); });
  CHECK(text.find("HostGraph: node 0 is given ") == 0);
}

}  // namespace
