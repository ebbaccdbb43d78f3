// SPDX-License-Identifier: MIT

/// What relational convolutions know of edges.

#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The sum of the norms of each node's in-edges.
std::vector<double> sums_of_norms(const Graph& graph) {
  const Variable sums = graph.update_all(fn::copy_e(Variable(relation_norm(graph))), fn::sum);
  return {sums.value().values().begin(), sums.value().values().end()};
}

void check_averages(const Graph& graph) {
  const std::vector<double> sums = sums_of_norms(graph);
  REQUIRE(std::ssize(sums) == graph.num_dst_nodes());
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(std::abs(sums[static_cast<std::size_t>(v)] - (graph.in_degrees()[v] > 0 ? 1 : 0)) < tolerance());
}

}  // namespace

TEST_CASE("norms of the in-edges of each type add up to 1") {
  const Communicator comm = Communicator::world();
  const Index num_types = 3;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(comm, whole, books, {});
      std::vector<Index> types;
      for (const Index id : graph.edge_ids()) types.push_back(id * id % num_types);
      const Variable norm(relation_norm(graph, types));
      for (Index type = 0; type < num_types; ++type) {
        Tensor is_type({graph.num_edges(), 1});
        for (Index e = 0; e < graph.num_edges(); ++e) is_type.data()[e] = types[e] == type ? 1 : 0;
        const Tensor counts = graph.update_all(fn::copy_e(Variable(is_type)), fn::sum).value();
        const Tensor sums = graph.update_all(fn::copy_e(norm * Variable(is_type)), fn::sum).value();
        for (Index v = 0; v < graph.num_dst_nodes(); ++v)
          CHECK(std::abs(sums.data()[v] - (counts.data()[v] > 0 ? 1 : 0)) < tolerance());
      }
      CHECK(thrown<ShapeError>([&] {
              (void)relation_norm(graph, std::vector<Index>(types.size() + 1, 0));
            }) == concat("relation_norm got ", types.size() + 1, " edge types for ", types.size(), " edges"));
    }
}

TEST_CASE("norms of a node's in-edges add up to 1, in the whole graph and in sampled blocks") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(comm, whole, books, {});
      check_averages(graph);
      std::vector<Index> seeds(static_cast<std::size_t>(books.src.num_nodes(comm.rank())));
      std::iota(seeds.begin(), seeds.end(), books.src.begin(comm.rank()));
      for (const bool replace : {false, true})
        for (const MessageFlowGraph& block :
             NeighborSampler(graph, {3, 2}, {.replace = replace}).sample_blocks(seeds))
          check_averages(block);
    }
}
