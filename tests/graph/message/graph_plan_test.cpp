// SPDX-License-Identifier: MIT
#include "graph/test_graphs.hpp"

#include <doctest/doctest.h>

#include <sar/graph/message/driver.hpp>

#include <algorithm>

using namespace sar;
using namespace sar::test;

TEST_CASE("every way to build a plan has each edge from another rank in one stage, which pushes divide") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("plan", 90, 90, 700, 3);
  const Graph manager = shard(comm, whole, test_books(whole, comm.size()).front(), {});
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

TEST_CASE("gradients of another number type divide the stages of rows that were kept") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("plan", 400, 400, 3000, 3);
  const Graph manager = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  for (const Index max_halo_bytes : {100, 448, 672, 1000}) {
    const GraphOptions options{.mode = HaloMode::sequential, .max_halo_bytes = max_halo_bytes};
    const auto plan = [&](const GraphPlan::Travels& travels) {
      return GraphPlan(manager.topology(), options, {}, Shape{1, 6}, travels);
    };
    for (const NumberType pushed : {NumberType::reals, NumberType::exact_sums, NumberType::bfloat16}) {
      const auto kept = plan({.fetch = true, .fetched_type = NumberType::bfloat16}).fetch.halo;
      const auto push =
          plan({.push = true, .kept = true, .fetched_type = NumberType::bfloat16, .pushed_type = pushed})
              .push.halo;
      std::size_t next = 0;
      for (const HaloStage& held : kept) {
        Index divided = 0;
        while (divided < held.size()) divided += push.at(next++).size();
        CHECK(divided == held.size());
      }
      CHECK(next == push.size());
    }
  }
}

TEST_CASE("gradients alone may be in flight as a stage of a fetch each way, beside a fetch half of one") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("plan", 90, 90, 700, 3);
  const Graph manager = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  const auto in_flight = [&](Index max_halo_bytes, int pipeline_depth, bool fetch) {
    const GraphOptions options{.pipeline_depth = pipeline_depth, .max_halo_bytes = max_halo_bytes};
    const GraphPlan plan(manager.topology(), options, {}, Shape{1, 4}, {.fetch = fetch, .push = true});
    return plan.push.depth * plan.push.stage_rows;
  };
  constexpr Index row_bytes = 4 * sizeof(real);
  for (const int d : {1, 3}) {
    CHECK(in_flight(16 * row_bytes, d, false) == 16 * d);
    CHECK(in_flight(16 * row_bytes, d, true) == 8 * d);
    CHECK(in_flight(row_bytes, d, false) == d);
    CHECK(in_flight(row_bytes, d, true) == d);
  }
}
