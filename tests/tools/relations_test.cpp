/// What relational convolutions know of edges.
#include <tools/relations.hpp>

#include "graph/test_graphs.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The sum of the norms of each node's in-edges.
std::vector<double> sums_of_norms(const GraphShardManager& graph) {
  const Variable sums = graph.update_all(fn::copy_e(Variable(tools::averaging_norm(graph))), fn::sum);
  return {sums.value().values().begin(), sums.value().values().end()};
}

void check_averages(const GraphShardManager& graph) {
  const std::vector<double> sums = sums_of_norms(graph);
  REQUIRE(std::ssize(sums) == graph.num_dst_nodes());
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(std::abs(sums[static_cast<std::size_t>(v)] - (graph.in_degrees()[v] > 0 ? 1 : 0)) < tolerance());
}

}  // namespace

TEST_CASE("norms of a node's in-edges add up to 1, in the whole graph and in sampled blocks") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const GraphShardManager graph = shard(comm, whole, books, {});
      check_averages(graph);
      std::vector<Index> seeds(static_cast<std::size_t>(books.src.num_nodes(comm.rank())));
      std::iota(seeds.begin(), seeds.end(), books.src.begin(comm.rank()));
      for (const bool replace : {false, true})
        for (const MessageFlowGraph& block :
             NeighborSampler(graph, {3, 2}, {.replace = replace}).sample_blocks(seeds))
          check_averages(block);
    }
}
