// SPDX-License-Identifier: MIT

/// Graphs from a host's arrays are the graphs that a dataset would have given.
#include "graph/construct/host_arrays.hpp"

#include <support/reference.hpp>
#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>

#include <cmath>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// y = sum over in-edges of w_e dropout(x)_u, and its gradients for the gradient cos(y).
struct Pass {
  Tensor y, grad_x, grad_w;
};

Pass run(const Graph& graph, const Tensor& x_rows, const Tensor& w_rows) {
  const Variable x(x_rows, true), w(w_rows, true);
  Tape tape;
  const Variable y = graph.update_all(fn::u_mul_e(dropout(x, 0.3, {.seed = 4}, graph.src_ids()), w), fn::sum);
  Tensor grad(y.shape());
  for (Index i = 0; i < grad.size(); ++i) grad.data()[i] = std::cos(y.value().data()[i]);
  tape.backward(y, grad);
  const auto or_zero = [](const Variable& v) {
    return v.grad().defined() ? v.grad() : Tensor::zeros(v.shape());
  };
  return {y.value(), or_zero(x), or_zero(w)};
}

}  // namespace

TEST_CASE("the graph of a host's arrays computes what the whole graph does") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : square_graphs()) {
    const Tensor x = random_values(Shape{g.num_src, 5}, 1);
    const Tensor w = random_values(Shape{static_cast<Index>(g.src.size()), 1}, 2);
    const Graph whole = whole_graph(g);
    const Pass expected = run(whole, x, whole.local_edge_rows(w));
    Tensor expected_grad_w(w.shape());
    for (Index e = 0; e < w.num_rows(); ++e)
      expected_grad_w.row(whole.edge_ids()[static_cast<std::size_t>(e)])[0] = expected.grad_w.row(e)[0];

    for (const Ownership how : {Ownership::scattered, Ownership::one_rank, Ownership::halves})
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
        CAPTURE(g.name);
        CAPTURE(static_cast<int>(how));
        const HostArrays host = host_arrays(comm, g, how);
        const HostGraph graph(comm, host.node_ids, host.edges(), {.graph = {.mode = mode}});
        CHECK(graph.num_global_nodes() == g.num_src);
        CHECK(graph.num_global_edges() == static_cast<Index>(g.src.size()));
        CHECK(graph.num_nodes() == static_cast<Index>(host.node_ids.size()));
        CHECK(graph.num_given_edges() == static_cast<Index>(host.src.size()));
        CHECK(std::equal(graph.src_ids().begin(), graph.src_ids().end(), host.node_ids.begin(),
                         host.node_ids.end()));
        const Tensor host_w = host.edge_rows(w);
        const Pass mine = run(graph, host.node_rows(x), graph.to_graph_order(host_w));
        CHECK(error_of_part(mine.y, host.node_rows(expected.y), expected.y) < tolerance());
        CHECK(error_of_part(mine.grad_x, host.node_rows(expected.grad_x), expected.grad_x) < tolerance());
        CHECK(error_of_part(graph.to_host_order(mine.grad_w), host.edge_rows(expected_grad_w),
                            expected_grad_w) < tolerance());
      }
  }
}

TEST_CASE("a host's own numbering gives the same graph") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : square_graphs()) {
    const Tensor x = random_values(Shape{g.num_src, 3}, 1);
    const Tensor w = random_values(Shape{static_cast<Index>(g.src.size())}, 2);
    for (const Ownership how : {Ownership::scattered, Ownership::halves}) {
      CAPTURE(g.name);
      const HostArrays host = host_arrays(comm, g, how, 7);
      const LocalArrays local = local_arrays(host);
      const HostGraph a(comm, host.node_ids, host.edges(host.edge_rows(w)));
      const HostGraph b(
          comm, {.num_owned = a.num_nodes(), .global_ids = local.global_ids},
          {.src = local.src, .dst = local.dst, .ids = host.edge_ids, .weight = host.edge_rows(w)});
      CHECK(a.book() == b.book());
      CHECK(a.src_ids() == b.src_ids());
      CHECK(a.edge_ids() == b.edge_ids());
      const Tensor weight = a.to_graph_order(host.edge_rows(w));
      CHECK(a.edge_weight().defined() == !g.src.empty());
      if (!g.src.empty()) CHECK(same_bits(a.edge_weight(), weight));
      if (!g.src.empty()) CHECK(same_bits(b.edge_weight(), weight));
      const Tensor rows = host.node_rows(x), column = weight.reshape({a.num_edges(), 1});
      CHECK(same_bits(run(a, rows, column).y, run(b, rows, column).y));
    }
  }
}

TEST_CASE("edges without ids are numbered by rank and position, their reverse after all of them") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("mesh", 40, 40, 120, 9);
  const HostArrays host = host_arrays(comm, g, Ownership::scattered, 3);
  const Index given = static_cast<Index>(host.src.size());
  const std::vector<Index> counts = comm.all_gather(given);
  const Index first = std::accumulate(counts.begin(), counts.begin() + comm.rank(), Index{0});
  const Index all = std::accumulate(counts.begin(), counts.end(), Index{0});
  const HostGraph graph(comm, host.node_ids, {.src = host.src, .dst = host.dst}, {.add_reverse_edges = true});
  CHECK(graph.num_global_edges() == 2 * all);

  // where the edges lie: rows that name their edge, its source, its destination
  Tensor rows({given, 3}), reverse({given, 3});
  for (Index k = 0; k < given; ++k) {
    const auto node_of = [&](const std::vector<Index>& ends) {
      return static_cast<real>(ends[static_cast<std::size_t>(host.my_edges[static_cast<std::size_t>(k)])]);
    };
    const real edge = static_cast<real>(first + k), src = node_of(g.src), dst = node_of(g.dst);
    std::copy_n(std::initializer_list<real>{edge, src, dst}.begin(), 3, rows.row(k));
    std::copy_n(std::initializer_list<real>{edge + static_cast<real>(all), dst, src}.begin(), 3,
                reverse.row(k));
  }
  const Tensor mine = graph.to_graph_order(rows, reverse);
  Tensor number({graph.num_nodes(), 1});
  for (Index i = 0; i < graph.num_nodes(); ++i)
    number.row(i)[0] = static_cast<real>(host.my_nodes[static_cast<std::size_t>(i)]);
  const Tensor src = graph.apply_edges(fn::copy_u(Variable(number))).value();
  const Tensor dst =
      graph.apply_edges(fn::v_add_e(Variable(number), Tensor::zeros({graph.num_edges(), 1}))).value();
  bool equal = mine.shape() == Shape{graph.num_edges(), 3};
  for (Index e = 0; equal && e < graph.num_edges(); ++e)
    equal = mine.row(e)[0] == static_cast<real>(graph.edge_ids()[static_cast<std::size_t>(e)]) &&
            mine.row(e)[1] == src.row(e)[0] && mine.row(e)[2] == dst.row(e)[0];
  CHECK(equal);
  CHECK(same_bits(graph.to_host_order(mine), rows));
  CHECK(same_bits(graph.to_host_order(mine, true), reverse));
  CHECK(same_bits(graph.to_host_order(graph.to_graph_order(rows), true), rows));

  const std::vector<real> ones(static_cast<std::size_t>(given), 1);
  const HostGraph weighted(
      comm, host.node_ids,
      {.src = host.src, .dst = host.dst, .weight = Tensor::from({given}, std::span<const real>(ones))},
      {.add_reverse_edges = true});
  CHECK(weighted.edge_weight().num_rows() == weighted.num_edges());
}

TEST_CASE("after a refinement the same call gives the new graph, and nothing of the old one stays") {
  const Communicator comm = Communicator::world();
  const std::size_t before = live_bytes();
  {
    std::optional<HostGraph> graph;
    for (int level = 0; level < 3; ++level) {  // other owners, more nodes and edges, other ids of edges
      const WholeGraph g = random_graph("refined", 50 + 30 * level, 50 + 30 * level, 200 << level, 5);
      const Tensor x = random_values(Shape{g.num_src, 4}, 1);
      const HostArrays host = host_arrays(comm, g, Ownership::scattered, static_cast<std::uint64_t>(level));
      graph.emplace(comm, host.node_ids, host.edges());
      const Tensor y = graph->update_all(fn::copy_u(Variable(host.node_rows(x))), fn::mean).value();
      const Tensor expected = whole_graph(g).update_all(fn::copy_u(Variable(x)), fn::mean).value();
      CHECK(error_of_part(y, host.node_rows(expected), expected) < tolerance());
    }
    CHECK(live_bytes() > before);
  }
  CHECK(live_bytes() == before);
}

TEST_CASE("edge data finds its edges where a rank owns few of the many that another gave") {
  const Communicator comm = Communicator::world();
  // A chain of rank 0, all of whose edges rank 0 gives; each hundredth ends in a node of another rank.
  const Index n = 3000;
  std::vector<std::int64_t> nodes, src, dst;
  const auto owner = [&](Index v) { return v % 100 == 0 ? static_cast<int>(v / 100) % comm.size() : 0; };
  for (Index v = 0; v < n; ++v)
    if (owner(v) == comm.rank()) nodes.push_back(v);
  if (comm.rank() == 0)
    for (Index e = 0; e < n; ++e) {
      src.push_back((7 * e + 1) % n);
      dst.push_back(7 * e % n);
    }
  const HostGraph graph(comm, nodes, GlobalEdges{.src = src, .dst = dst});
  Tensor rows({static_cast<Index>(src.size()), 1});  // what an edge says is where it ends
  for (std::size_t e = 0; e < src.size(); ++e) rows.data()[e] = static_cast<real>(dst[e]);
  const Tensor mine = graph.to_graph_order(rows);
  const Tensor ends = graph.update_all(fn::copy_e(mine), fn::sum).value();
  for (std::size_t i = 0; i < nodes.size(); ++i) CHECK(ends.data()[i] == static_cast<real>(nodes[i]));
  const Tensor back = graph.to_host_order(mine);
  CHECK(std::equal(back.values().begin(), back.values().end(), rows.values().begin(), rows.values().end()));
}

TEST_CASE("what cannot be a graph is the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const int last = comm.size() - 1;
  const bool me = comm.rank() == last;
  const std::int64_t own = 100 + comm.rank();
  struct Input {
    std::vector<std::int64_t> nodes, src, dst, ids;
    Tensor weight;
    HostGraphOptions options;
  };
  const auto with = [&](const auto& change) {  // a ring of a node for each rank; the last rank has it wrong
    Input input{
        {own, own + 1000}, {own, own}, {100 + (comm.rank() + 1) % comm.size(), own + 1000}, {}, {}, {}};
    change(input);
    return input;
  };
  const auto error = [&](const Input& in) {
    return [&comm, in] {
      HostGraph(comm, in.nodes, {.src = in.src, .dst = in.dst, .ids = in.ids, .weight = in.weight},
                in.options);
    };
  };
  const auto input_error = [&](const auto& change) {
    return thrown_by_all<InputError>(comm, error(with(change)));
  };
  const auto shape_error = [&](const auto& change) {
    return thrown_by_all<ShapeError>(comm, error(with(change)));
  };
  const std::string rank = std::to_string(last);

  CHECK(input_error([](Input&) {}) == "nothing");
  CHECK(input_error([&](Input& in) {
          if (me) in.nodes.push_back(own);
        }) == concat("HostGraph: node ", 100 + last, " is given twice by rank ", last,
                     " (its nodes 0 and 2), expected once"));
  CHECK(input_error([&](Input& in) {
          if (me) in.dst[1] = -5;
        }) == concat("HostGraph: edge 1 of rank ", last, " goes from node ", 100 + last,
                     " to node -5, but no rank gives node -5"));
  CHECK(input_error([&](Input& in) {
          if (me) in.src[0] = 7;
        }) == concat("HostGraph: edge 0 of rank ", last,
                     " goes from node 7 to node 100, but no rank gives node 7"));
  CHECK(shape_error([&](Input& in) {
          if (me) in.dst.pop_back();
        }) == "HostGraph: rank " + rank +
                  " gives 2 sources of edges (src) and 1 destinations (dst), expected as many");
  CHECK(shape_error([&](Input& in) {
          if (me) in.ids = {1, 2, 3};
        }) == "HostGraph: rank " + rank + " gives 2 edges (src, dst) and 3 ids, expected as many or none");
  CHECK(shape_error([&](Input& in) { in.weight = Tensor::zeros({me ? 1 : 2}); }) ==
        "HostGraph: rank " + rank +
            " gives 2 edges (src, dst) and weights of shape [1], expected [2] or none");
  CHECK(input_error([](Input& in) { in.nodes = in.src = in.dst = {}; }) ==
        concat("HostGraph: none of the ", comm.size(), " ranks gives a node, expected one at least"));
  const std::vector<std::int64_t> good_ids{2 * comm.rank(), 2 * comm.rank() + 1};
  CHECK(input_error([&](Input& in) { in.ids = good_ids; }) == "nothing");
  CHECK(input_error([&](Input& in) {
          in.ids = {0, 2 * comm.rank() + 1};
          if (me) in.ids[1] = 0;
        }) == "HostGraph: ids of edges: 0 occurs twice, expected each id once");
  CHECK(input_error([&](Input& in) {
          in.ids = good_ids;
          if (me) in.ids[0] = -1;
        }) == "HostGraph: edge 0 of rank " + rank + " has the id -1, expected 0 to 2^61 - 1");
  if (comm.size() == 1) return;
  // not the rank that has found it, which is neither of the two
  CHECK(thrown<InputError>(error(with([&](Input& in) {
          if (me) in.nodes.push_back(100);
        }))) == "HostGraph: node 100 is given by rank 0 (its node 0) and by rank " + rank +
                    " (its node 2), expected one owner");
  CHECK(input_error([&](Input& in) {
          if (!me) in.ids = good_ids;
        }) == "HostGraph: rank " + rank + " gives 2 edges without ids, other ranks give ids");
  CHECK(input_error([&](Input& in) {
          if (!me) in.weight = Tensor::zeros({2});
        }) == "HostGraph: rank " + rank + " gives 2 edges without weights, other ranks give weights");
  CHECK(input_error([&](Input& in) { in.options.add_reverse_edges = me; }) ==
        "HostGraph is called with a different add_reverse_edges on different ranks: 0 on rank 0, 1 on rank " +
            rank);
}

TEST_CASE("a local numbering that does not fit is the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const int last = comm.size() - 1;
  const bool me = comm.rank() == last;
  const auto error = [&](Index owned, std::int64_t ghost, std::int32_t src) {
    return [=] {
      const std::vector<std::int64_t> ids{comm.rank(), me ? ghost : 0};
      const std::vector<std::int32_t> from{me ? src : 1}, to{0};
      HostGraph(comm, {.num_owned = me ? owned : 1, .global_ids = ids}, {.src = from, .dst = to});
    };
  };
  CHECK(thrown_by_all<InputError>(comm, error(1, 0, 1)) == "nothing");
  for (const std::int32_t src : {-1, 2})
    CHECK(thrown_by_all<InputError>(comm, error(1, 0, src)) ==
          concat("HostGraph: edge 0 of rank ", last, " comes from node ", src,
                 " of the local numbering, expected 0 to 1 (1 nodes and 1 ghosts)"));
  CHECK(thrown_by_all<InputError>(comm, error(1, 77, 1)) ==
        concat("HostGraph: ghost 0 of rank ", last, " is node 77, but no rank gives this node"));
  for (const Index owned : {-1, 3})
    CHECK(thrown_by_all<ShapeError>(comm, error(owned, 0, 1)) ==
          concat("HostGraph: rank ", last, " owns ", owned,
                 " nodes (num_owned) and gives 2 global_ids, expected one for each node and each ghost"));
}

TEST_CASE("edge rows that do not fit are the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const bool me = comm.rank() == comm.size() - 1;
  const std::vector<std::int64_t> node{comm.rank()};
  const HostGraph graph(comm, node, {.src = node, .dst = node});
  const auto rows = [&](Index count, Index width) { return Tensor::zeros({count, width}); };
  const auto starts_with = [](const std::string& text, const std::string& start) {
    CHECK(text.substr(0, start.size()) == start);
  };
  starts_with(thrown_by_all<ShapeError>(comm, [&] { (void)graph.to_graph_order(rows(me ? 2 : 1, 3)); }),
              "to_graph_order: rows of shape [2, 3] on rank ");
  starts_with(thrown_by_all<ShapeError>(comm, [&] { (void)graph.to_host_order(rows(me ? 2 : 1, 3)); }),
              "to_host_order: rows of shape [2, 3] on rank ");
  starts_with(thrown_by_all<ShapeError>(comm, [&] { (void)graph.to_graph_order(rows(1, 3), rows(1, 3)); }),
              "to_graph_order: rows of shape [1, 3] and reverse rows of shape [1, 3] on rank ");
  starts_with(thrown_by_all<InputError>(comm, [&] { (void)graph.to_host_order(rows(1, 3), true); }),
              "to_host_order: reverse rows are asked for");
  if (comm.size() > 1)
    starts_with(thrown_by_all<InputError>(comm, [&] { (void)graph.to_graph_order(rows(1, me ? 2 : 3)); }),
                "to_graph_order is called with a different shape of a row on different ranks");
  CHECK(graph.to_graph_order(rows(1, 0)).shape() == Shape{1, 0});
}
