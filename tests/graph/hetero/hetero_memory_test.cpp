// SPDX-License-Identifier: MIT

/// What a Graph takes does not depend on the number of its relations, beside their edges.
#include "support/effort.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/tape.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace sar;

namespace {

/// `edges` random edges between `nodes` nodes, dealt out to the relations in turn.
Graph random_relations(const Communicator& comm, Index nodes, Index edges, int relations) {
  const PartitionBook book = PartitionBook::even(nodes, comm.size());
  std::vector<EdgeTypeSpec> specs;
  for (int r = 0; r < relations; ++r)
    specs.push_back({.type = {"v", "r" + std::to_string(r), "v"}, .edges = {}});
  std::mt19937_64 random(1);
  const auto node = [&] { return static_cast<Index>(random() % static_cast<std::uint64_t>(nodes)); };
  for (Index k = 0; k < edges; ++k) {
    const Index src = node(), dst = node();
    if (book.owner(dst) != comm.rank()) continue;
    EdgeList& list = specs[static_cast<std::size_t>(k) % specs.size()].edges;
    list.src.push_back(src);
    list.dst.push_back(dst);
    list.id.push_back(k);
  }
  return {comm, {{.name = "v", .book = book}}, std::move(specs)};
}

/// What the graph keeps after a forward and a backward pass of means over all relations.
std::size_t bytes_of_graph(const Communicator& comm, Index nodes, Index edges, int relations) {
  const std::size_t before = live_bytes();
  const Graph graph = random_relations(comm, nodes, edges, relations);
  {
    const Variable x(Tensor::full({graph.num_nodes("v"), 2}, 1), true);
    std::map<EdgeType, Graph::MessageReduce> messages;
    for (const EdgeType& type : graph.edge_types()) messages.insert({type, {fn::copy_u(x), Reduce::mean}});
    Tape tape;
    const Variable y = graph.multi_update_all(messages, CrossReduce::sum).at("v");
    tape.backward(y, Tensor::full(y.shape(), 1));
    CHECK(x.grad().num_rows() == x.num_rows());
  }
  return live_bytes() - before;
}

}  // namespace

TEST_CASE("the memory of a halo that relations share follows its rows, not the nodes of the graph") {
  const Communicator comm = Communicator::world();
  std::vector<std::size_t> peaks;
  for (const Index n : {Index{100'000}, Index{100'000'000}}) {
    EdgeList edges;
    for (Index k = 0; k < 2000; ++k) edges.src.push_back(k * 7919 % 1000 * (n / 1000));
    const EdgeList* const lists[] = {&edges, &edges};
    const PartitionBook book = PartitionBook::even(n, comm.size());
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    const SharedHalo halo = share_halo(comm, book, lists);
    peaks.push_back(peak_bytes() - before);
    for (int owner = 0; owner < comm.size(); ++owner)
      CHECK(std::ssize(halo.rows[owner]) == (owner == comm.rank() ? 0 : 1000 / comm.size()));
  }
  CAPTURE(peaks[0]);
  CHECK(peaks[1] < peaks[0] + 1000);
}

TEST_CASE("the memory of a graph does not depend on the number of relations of the same edges") {
  const Communicator comm = Communicator::world();
  const Index nodes = (test::sanitized ? 10'000 : 40'000) * comm.size();
  constexpr std::size_t of_relation = 4 << 10;
  for (const Index degree : {4, 20}) {
    CAPTURE(degree);
    const std::size_t two = bytes_of_graph(comm, nodes, degree * nodes, 2);
    const std::size_t forty = bytes_of_graph(comm, nodes, degree * nodes, 40);
    MESSAGE("rank ", comm.rank(), ": ", two, " bytes with 2 relations, ", forty, " with 40");
    CHECK(forty <= two + two / 2 + 40 * of_relation);
  }
}
