// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace sar;

namespace {

TEST_CASE("halo rows are numbered in memory for the rows read, whatever their owner has") {
  const Communicator comm = Communicator::world();
  const Index many = 2'000'000, few = 10;
  std::vector<Index> offsets{0};  // rank 0 has many nodes, others have few
  for (int q = 0; q < comm.size(); ++q) offsets.push_back(offsets.back() + (q == 0 ? many : few));
  const PartitionBook book(std::move(offsets));
  const std::vector<Index> sources{many - 1, 5, 70'000, 5};
  EdgeList edges;
  for (Index k = 0; comm.rank() > 0 && k < std::ssize(sources); ++k) {
    edges.src.push_back(sources[static_cast<std::size_t>(k)]);
    edges.dst.push_back(book.begin(comm.rank()));
    edges.id.push_back(k);
  }
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  const auto made = make_topology(comm, book, book, std::move(edges), true, nullptr, nullptr);
  const GraphTopology& graph = *made;
  if (comm.rank() == 0) {
    CHECK(std::ssize(graph.rounds()) > 0);
    for (const HaloRound& round : graph.rounds())
      CHECK(std::vector<Index>(round.send_rows.begin(), round.send_rows.end()) ==
            std::vector<Index>{5, 70'000, many - 1});
    return;
  }
  CHECK(peak_bytes() - before < 100'000);
  CHECK(graph.remote.num_src_rows == 3);
  CHECK(std::vector<Index>(graph.remote.src.begin(), graph.remote.src.end()) ==
        std::vector<Index>{0, 0, 1, 2});
}

}  // namespace
