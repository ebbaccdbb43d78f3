#include "graph/test_graphs.hpp"

#include <doctest/doctest.h>

#include <sar/graph/message/graph_plan.hpp>

#include <algorithm>

using namespace sar;
using namespace sar::test;

TEST_CASE("every way to build a plan has each edge from another rank in one stage, which pushes divide") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("plan", 90, 90, 700, 3);
  const GraphShardManager manager = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  const GraphTopology& graph = manager.topology();
  const Shape rows{1, 4};
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
    for (const Index max_halo_bytes : {Index{0}, Index{100}, Index{1}})
      for (const bool fetch_and_push : {false, true}) {
        const GraphOptions options{.mode = mode, .max_halo_bytes = max_halo_bytes};
        const GraphPlan plan(graph, options, {}, rows, {.fetch = true, .push = fetch_and_push});
        const GraphPlan push_alone(graph, options, {}, rows, {.push = true});
        const HaloPlan& push = fetch_and_push ? plan.push : push_alone.push;
        CHECK(push_alone.fetch.halo.empty());
        for (const HaloPlan* halo : {&plan.fetch, &push}) {
          Index edges = 0;
          for (const HaloStage& held : halo->halo) {
            edges += std::ranges::count_if(graph.remote.src,
                                           [&](Index u) { return held.begin <= u && u < held.end; });
          }
          CHECK(edges == manager.num_edges() - graph.local.num_edges());
        }
        std::size_t next = 0;
        for (const HaloStage& held : plan.fetch.halo) {
          Index divided = 0;
          while (divided < held.size()) divided += push.halo[next++].size();
          CHECK(divided == held.size());
        }
        CHECK(next == push.halo.size());
      }
}
