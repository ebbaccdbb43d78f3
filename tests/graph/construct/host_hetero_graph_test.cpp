// SPDX-License-Identifier: MIT

/// HostGraph: two meshes and their coupling, given by any rank in global ids or local numberings.
#include "graph/hetero/typed_test_graph.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/host_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

const EdgeType flows{"fluid", "flows", "fluid"}, pushes{"fluid", "pushes", "solid"},
    bends{"solid", "bends", "fluid"};

/// Whole meshes: nodes are numbers, of which the host's ids are others.
struct Meshes {
  Index num_fluid = 30, num_solid = 11;
  WholeGraph flows = random_graph("flows", 30, 30, 90, 1),
             pushes = random_graph("pushes", 30, 11, 40, 2, false),
             bends = random_graph("bends", 11, 30, 40, 3, false);
};

std::int64_t fluid_id(Index v) {
  return 900 - 7 * v;
}
std::int64_t solid_id(Index v) {
  return 5 + 11 * v;  // some are ids of fluid nodes, too
}

struct GlobalArrays {
  std::vector<std::int64_t> fluid, solid;
  struct Edges {
    std::vector<std::int64_t> src, dst;
  } flows, pushes, bends;
};

/// Nodes by books; edges by turns, whoever owns their ends.
GlobalArrays arrays(const Communicator& comm, const Meshes& meshes, const PartitionBook& fluid,
                    const PartitionBook& solid) {
  GlobalArrays mine;
  const int p = comm.rank();
  for (Index v = fluid.end(p); v-- > fluid.begin(p);) mine.fluid.push_back(fluid_id(v));
  for (Index v = solid.begin(p); v < solid.end(p); ++v) mine.solid.push_back(solid_id(v));
  const auto take = [&](const WholeGraph& whole, auto src_id, auto dst_id, GlobalArrays::Edges& edges) {
    for (std::size_t k = 0; k < whole.src.size(); ++k) {
      if (static_cast<int>(k % static_cast<std::size_t>(comm.size())) != p) continue;
      edges.src.push_back(src_id(whole.src[k]));
      edges.dst.push_back(dst_id(whole.dst[k]));
    }
  };
  take(meshes.flows, fluid_id, fluid_id, mine.flows);
  take(meshes.pushes, fluid_id, solid_id, mine.pushes);
  take(meshes.bends, solid_id, fluid_id, mine.bends);
  return mine;
}

HostGraph graph_of(const Communicator& comm, const GlobalArrays& a, bool reverse,
                   const GraphOptions& options = {}) {
  return {comm,
          {{"fluid", a.fluid}, {"solid", a.solid}},
          {{flows, {.src = a.flows.src, .dst = a.flows.dst}, reverse},
           {pushes, {.src = a.pushes.src, .dst = a.pushes.dst}},
           {bends, {.src = a.bends.src, .dst = a.bends.dst}}},
          options};
}

double value_of(std::int64_t id) {
  return static_cast<double>(id % 97) / 50;
}

/// A column of values of the ids.
Tensor column(const Array<Index>& ids) {
  Tensor x({std::ssize(ids), 1});
  std::transform(ids.begin(), ids.end(), x.data(), [](Index id) { return static_cast<real>(value_of(id)); });
  return x;
}

/// Sums over the in-edges of each destination of the source's value, by id of the destination.
std::map<std::int64_t, double> sums(const WholeGraph& whole, std::int64_t (*src_id)(Index),
                                    std::int64_t (*dst_id)(Index), bool reverse) {
  std::map<std::int64_t, double> result;
  for (std::size_t k = 0; k < whole.src.size(); ++k) {
    result[dst_id(whole.dst[k])] += value_of(src_id(whole.src[k]));
    if (reverse) result[src_id(whole.src[k])] += value_of(dst_id(whole.dst[k]));
  }
  return result;
}

void check_sums(const Graph& graph, const EdgeType& type, std::map<std::int64_t, double> want) {
  CAPTURE(type.relation);
  const Variable x(column(graph.node_ids(type.source)));
  const Tensor y = graph[type].update_all(fn::copy_u(x), fn::sum).value();
  const Array<Index>& ids = graph.node_ids(type.destination);
  REQUIRE(y.num_rows() == std::ssize(ids));
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(y.data()[i] == doctest::Approx(want[ids[i]]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("meshes and their coupling are a graph of the host's ids, whoever gives nodes and edges") {
  const Communicator comm = Communicator::world();
  const Meshes meshes;
  for (const PartitionBook& fluid : row_splits(meshes.num_fluid, comm.size()))
    for (const PartitionBook& solid : row_splits(meshes.num_solid, comm.size()))
      for (const bool reverse : {false, true}) {
        const GlobalArrays mine = arrays(comm, meshes, fluid, solid);
        const HostGraph graph = graph_of(comm, mine, reverse);
        CHECK(std::equal(mine.fluid.begin(), mine.fluid.end(), graph.node_ids("fluid").begin()));
        CHECK(graph.num_global_nodes("solid") == meshes.num_solid);
        CHECK(graph[flows].num_global_edges() == (reverse ? 2 : 1) * std::ssize(meshes.flows.src));
        check_sums(graph, flows, sums(meshes.flows, fluid_id, fluid_id, reverse));
        check_sums(graph, pushes, sums(meshes.pushes, fluid_id, solid_id, false));
        check_sums(graph, bends, sums(meshes.bends, solid_id, fluid_id, false));
      }
}

TEST_CASE("rows of edges go to the graph's order and back") {
  const Communicator comm = Communicator::world();
  const Meshes meshes;
  const GlobalArrays mine =
      arrays(comm, meshes, PartitionBook::even(30, comm.size()), PartitionBook::even(11, comm.size()));
  const HostGraph graph = graph_of(comm, mine, true);
  const auto ends = [](const GlobalArrays::Edges& edges) {
    Tensor rows({std::ssize(edges.src), 2});
    for (Index k = 0; k < rows.num_rows(); ++k) {
      rows.row(k)[0] = static_cast<real>(edges.src[static_cast<std::size_t>(k)]);
      rows.row(k)[1] = static_cast<real>(edges.dst[static_cast<std::size_t>(k)]);
    }
    return rows;
  };
  for (const auto& [type, given] : {std::pair(flows, mine.flows), std::pair(bends, mine.bends)}) {
    const Tensor rows = ends(given);
    const Tensor ordered = graph.to_graph_order(type, rows);
    REQUIRE(ordered.num_rows() == graph[type].num_edges());
    const Tensor back = graph.to_host_order(type, ordered);
    CHECK(std::equal(back.values().begin(), back.values().end(), rows.values().begin()));
  }
  // the destination of each edge is its own
  const Tensor ordered = graph.to_graph_order(bends, ends(mine.bends));
  const Variable v(column(graph.node_ids("fluid")));
  const Tensor at_edges =
      graph[bends].apply_edges([&](const EdgeBatch& edges) { return edges.dst(v); }).value();
  for (Index e = 0; e < ordered.num_rows(); ++e)
    CHECK(at_edges.data()[e] == static_cast<real>(value_of(static_cast<std::int64_t>(ordered.row(e)[1]))));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)graph.to_host_order(bends, ordered, true);
        }).starts_with("to_host_order: reverse rows are asked for"));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)graph.to_graph_order({"fluid", "bends", "solid"}, ordered);
        }).starts_with("there is no edge type 'fluid:bends:solid'"));
}

TEST_CASE("local numberings give the graph of global ids") {
  const Communicator comm = Communicator::world();
  const Meshes meshes;
  const PartitionBook fluid = PartitionBook::even(30, comm.size()),
                      solid = PartitionBook::even(11, comm.size());
  const GlobalArrays mine = arrays(comm, meshes, fluid, solid);
  const HostGraph want = graph_of(comm, mine, true);
  std::vector<std::int64_t> fluid_ids = mine.fluid, solid_ids = mine.solid;
  const auto local = [](std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& ends) {
    std::vector<std::int32_t> numbers;
    for (const std::int64_t id : ends) {
      const auto found = std::find(ids.begin(), ids.end(), id);
      numbers.push_back(static_cast<std::int32_t>(found - ids.begin()));
      if (found == ids.end()) ids.push_back(id);  // a ghost
    }
    return numbers;
  };
  const auto flows_src = local(fluid_ids, mine.flows.src), flows_dst = local(fluid_ids, mine.flows.dst);
  const auto pushes_src = local(fluid_ids, mine.pushes.src), pushes_dst = local(solid_ids, mine.pushes.dst);
  const auto bends_src = local(solid_ids, mine.bends.src), bends_dst = local(fluid_ids, mine.bends.dst);
  const HostGraph found(comm,
                        {{"fluid", {.num_owned = std::ssize(mine.fluid), .global_ids = fluid_ids}},
                         {"solid", {.num_owned = std::ssize(mine.solid), .global_ids = solid_ids}}},
                        std::vector<LocalEdgeType>{{flows, {.src = flows_src, .dst = flows_dst}, true},
                                                   {pushes, {.src = pushes_src, .dst = pushes_dst}},
                                                   {bends, {.src = bends_src, .dst = bends_dst}}});
  for (const EdgeType& type : {flows, pushes, bends}) {
    CHECK(found[type].edge_ids() == want[type].edge_ids());
    CHECK(found[type].in_degrees() == want[type].in_degrees());
    CHECK(found[type].out_degrees() == want[type].out_degrees());
  }
}

TEST_CASE("what a host gives wrong is refused on all ranks, with the type") {
  const Communicator comm = Communicator::world();
  const Meshes meshes;
  const PartitionBook fluid = PartitionBook::even(30, comm.size()),
                      solid = PartitionBook::even(11, comm.size());
  const GlobalArrays right = arrays(comm, meshes, fluid, solid);
  const bool bad = comm.rank() == comm.size() - 1;
  const auto refused = [&](const GlobalArrays& given) {
    return thrown_by_all<Error>(comm, [&] { (void)graph_of(comm, given, false); });
  };
  GlobalArrays wrong = right;
  if (bad) wrong.bends.src.front() = fluid_id(1);  // a fluid node, not one of the structure
  CHECK(refused(wrong).starts_with("edge type 'solid:bends:fluid': HostGraph: edge 0 of rank "));
  wrong = right;
  if (bad) wrong.pushes.dst.pop_back();
  CHECK(refused(wrong).starts_with("edge type 'fluid:pushes:solid': HostGraph: rank "));
  wrong = right;
  if (bad) wrong.fluid.push_back(fluid_id(0));
  CHECK(refused(wrong).find("node 900") != std::string::npos);
  const auto make = [&](const std::vector<GlobalEdgeType>& edges) {
    return thrown_by_all<InputError>(comm, [&] {
      (void)HostGraph(comm, {{"fluid", right.fluid}, {"solid", right.solid}}, edges);
    });
  };
  CHECK(make({{{"fluid", "pushes", "sold"}, {}}}) ==
        "edge type 'fluid:pushes:sold': there is no node type 'sold'; the node types are 'fluid', 'solid'");
  CHECK(make({{pushes, {}, true}}) ==
        "edge type 'fluid:pushes:solid': add_reverse_edges is set, expected one type of sources and "
        "destinations");
  CHECK(make({{pushes, {}}, {pushes, {}}}) == "Graph: the edge type 'fluid:pushes:solid' is given twice");
  CHECK(refused(right) == "nothing");
}

TEST_CASE("a type may have no nodes") {
  const Communicator comm = Communicator::world();
  const GlobalArrays mine =
      arrays(comm, {}, PartitionBook::even(30, comm.size()), PartitionBook::even(11, comm.size()));
  const HostGraph graph(
      comm, {{"fluid", mine.fluid}, {"solid", {}}},
      std::vector<GlobalEdgeType>{{flows, {.src = mine.flows.src, .dst = mine.flows.dst}}, {bends, {}}});
  CHECK(graph.num_global_nodes("solid") == 0);
  CHECK(graph[bends].num_dst_nodes() == graph.num_nodes("fluid"));
}
