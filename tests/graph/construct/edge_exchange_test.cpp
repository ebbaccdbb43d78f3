// SPDX-License-Identifier: MIT
#include <sar/graph/construct/edge_exchange.hpp>

#include <doctest/doctest.h>

#include <tuple>

using namespace sar;

namespace {

TEST_CASE("every edge arrives once at the owner of its destination, behind those that are there") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(40 * comm.size(), comm.size());
  const Index per_rank = 1000;
  for (const bool weighted : {false, true}) {
    EdgeList edges, mine;
    const auto add = [&](EdgeList& list, Index id) {
      list.src.push_back(id * 7 % book.num_nodes());
      list.dst.push_back(id * id % book.num_nodes());
      list.id.push_back(id);
      if (weighted) list.weight.push_back(static_cast<real>(id) / 8);
    };
    for (Index k = 0; k < (comm.rank() == 1 ? 0 : per_rank); ++k) add(edges, comm.rank() * per_rank + k);
    add(mine, comm.rank() * 1'000'000);
    const EdgeList first = mine;
    exchange_edges(comm, book, std::move(edges), weighted, mine);
    CHECK(mine.src.front() == first.src.front());
    CHECK(mine.id.front() == first.id.front());
    Index wrong = 0;
    for (Index e = 1; e < mine.size(); ++e) {
      const Index id = mine.id[e];
      wrong += mine.dst[e] != id * id % book.num_nodes() || mine.src[e] != id * 7 % book.num_nodes() ||
               book.owner(mine.dst[e]) != comm.rank() ||
               (weighted && mine.weight[e] != static_cast<real>(id) / 8);
    }
    CHECK(wrong == 0);
    CHECK(comm.all_reduce(mine.size() - 1) == per_rank * (comm.size() - (comm.size() > 1 ? 1 : 0)));
  }
}

TEST_CASE("sorted edges keep their weights") {
  EdgeList edges;
  for (Index e = 0; e < 500; ++e) {
    edges.src.push_back(e * 31 % 13);
    edges.dst.push_back(10 + e * 17 % 7);
    edges.id.push_back(499 - e);
    edges.weight.push_back(static_cast<real>(499 - e));
  }
  sort_edges(10, 17, edges);
  for (std::size_t e = 0; e < 500; ++e) {
    const Index k = 499 - edges.id[e];
    CHECK((edges.src[e] == k * 31 % 13 && edges.dst[e] == 10 + k * 17 % 7));
    CHECK(edges.weight[e] == static_cast<real>(edges.id[e]));
    if (e > 0)
      CHECK(std::tie(edges.dst[e - 1], edges.src[e - 1], edges.id[e - 1]) <
            std::tie(edges.dst[e], edges.src[e], edges.id[e]));
  }
}

}  // namespace
