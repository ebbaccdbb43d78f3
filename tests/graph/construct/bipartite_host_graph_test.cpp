// SPDX-License-Identifier: MIT

/// A bipartite graph from a host's arrays is the same graph with all of its nodes in one set.
#include "graph/construct/host_arrays.hpp"

#include <support/reference.hpp>
#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/train/distributed.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// What this rank has of a graph with two sets of nodes, whose ids overlap.
struct TwoSets {
  HostArrays sources, destinations;  // the edges are in `sources`
  [[nodiscard]] GlobalEnds nodes() const { return {sources.node_ids, destinations.node_ids}; }
};

TwoSets two_sets(const Communicator& comm, const WholeGraph& g, Ownership of_src, Ownership of_dst) {
  const WholeGraph dst_nodes{"destinations", g.num_dst, g.num_dst, true, {}, {}};
  return {host_arrays(comm, g, of_src, 4), host_arrays(comm, dst_nodes, of_dst, 9)};
}

/// Empty ranks among the owners of sources, of destinations, and of both.
const std::vector<std::pair<Ownership, Ownership>> ownerships{{Ownership::scattered, Ownership::scattered},
                                                              {Ownership::halves, Ownership::scattered},
                                                              {Ownership::scattered, Ownership::one_rank},
                                                              {Ownership::halves, Ownership::one_rank}};

std::vector<WholeGraph> bipartite_graphs() {
  return {random_graph("coarse to fine", 23, 70, 150, 3, false),
          random_graph("many to few", 90, 11, 400, 5, false),
          {"no edges", 5, 7, false, {}, {}},
          {"one edge", 1, 1, false, {0}, {0}}};
}

/// All nodes in one set, the destinations after the sources, on this rank alone.
Graph one_set(const WholeGraph& g) {
  WholeGraph all{g.name, g.num_src + g.num_dst, g.num_src + g.num_dst, true, g.src, g.dst};
  for (Index& v : all.dst) v += g.num_src;
  return whole_graph(all);
}

/// A layer's result, and its gradients of the inputs and then of the parameters, for the gradient cos(y) of
/// the rows from `first` on. Collective over `comm`.
struct Pass {
  Tensor y;
  std::vector<Tensor> grads;
};

template <class Layer>
Pass run(const Communicator& comm, Module& module, const std::vector<Tensor>& inputs, Index first,
         const Layer& layer) {
  std::vector<Variable> variables;
  for (const Tensor& input : inputs) variables.emplace_back(input, true);
  for (const Variable& parameter : module.parameters()) variables.push_back(parameter);
  Tape tape;
  const Variable y = layer(variables);
  Tensor grad = Tensor::zeros(y.shape());
  const Index width = grad.row_size();
  for (Index i = first * width; i < grad.size(); ++i) grad.data()[i] = std::cos(y.value().data()[i]);
  tape.backward(y, grad);
  gather_grads(comm, module);
  Pass pass{y.value(), {}};
  for (Variable& v : variables) {
    pass.grads.push_back(v.grad().defined() ? v.grad() : Tensor::zeros(v.shape()));
    v.zero_grad();
  }
  return pass;
}

void check_part(const Tensor& mine, const Tensor& expected_part, const Tensor& expected) {
  REQUIRE(mine.shape() == expected_part.shape());
  CHECK(error_of_part(mine, expected_part, expected) < tolerance());
}

}  // namespace

TEST_CASE("SAGE on two sets of nodes is SAGE on one set that has both") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : bipartite_graphs()) {
    CAPTURE(g.name);
    const Tensor x = random_values(Shape{g.num_src + g.num_dst, 5}, 1);
    Generator gen(3);
    SAGEConv sage(5, 4, gen);
    const Graph all = one_set(g);
    const Pass expected =
        run(all.comm(), sage, {x}, g.num_src, [&](const auto& in) { return sage(all, in[0]); });
    const auto destinations = [&](const Tensor& rows) { return rows.slice_rows(g.num_src, rows.num_rows()); };
    for (const auto& [of_src, of_dst] : ownerships)
      for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
        const TwoSets host = two_sets(comm, g, of_src, of_dst);
        const HostGraph graph(comm, host.nodes(), host.sources.edges(), {.graph = {.mode = mode}});
        CHECK(graph.num_global_src_nodes() == g.num_src);
        CHECK(graph.num_global_dst_nodes() == g.num_dst);
        CHECK(graph.src_book().num_nodes(comm.rank()) == graph.num_src_nodes());
        CHECK(graph.dst_book().num_nodes(comm.rank()) == graph.num_dst_nodes());
        CHECK(std::ranges::equal(graph.src_ids(), host.sources.node_ids));
        CHECK(std::ranges::equal(graph.dst_ids(), host.destinations.node_ids));
        const std::vector<Tensor> inputs{host.sources.node_rows(x.slice_rows(0, g.num_src)),
                                         host.destinations.node_rows(destinations(x))};
        const Pass mine =
            run(comm, sage, inputs, 0, [&](const auto& in) { return sage(graph, std::pair(in[0], in[1])); });
        check_part(mine.y, host.destinations.node_rows(destinations(expected.y)), expected.y);
        check_part(mine.grads[0], host.sources.node_rows(expected.grads[0]), expected.grads[0]);
        check_part(mine.grads[1], host.destinations.node_rows(destinations(expected.grads[0])),
                   expected.grads[0]);
        for (std::size_t i = 2; i < mine.grads.size(); ++i)
          check_part(mine.grads[i], expected.grads[i - 1], expected.grads[i - 1]);
      }
  }
}

TEST_CASE("GAT with edge data there and back is that of one rank, in global and in local numbers") {
  const Communicator comm = Communicator::world(), alone = Communicator::self();
  for (const WholeGraph& g : bipartite_graphs()) {
    CAPTURE(g.name);
    const Index edges = static_cast<Index>(g.src.size());
    const Tensor x = random_values(Shape{g.num_src, 5}, 1), y = random_values(Shape{g.num_dst, 3}, 2);
    const Tensor w = random_values(Shape{edges, 1}, 3);
    Generator gen(3);
    GATConv gat(InFeatures(5, 3), 4, 2, gen);
    // operations take w in edge order, edge k of the host is row k of `w`
    const auto layer = [&](const Graph& graph) {
      return [&](const auto& in) {
        return gat(graph, std::pair(in[0], in[1]), reshape(in[2], {graph.num_edges()}));
      };
    };
    const auto by_id = [&](const Graph& graph, const Tensor& rows) {
      Tensor result(rows.shape());
      for (Index e = 0; e < rows.num_rows(); ++e)
        std::copy_n(rows.row(e), rows.row_size(), result.row(graph.edge_ids()[static_cast<std::size_t>(e)]));
      return result;
    };
    EdgeList list;
    list.src.assign(g.src.begin(), g.src.end());
    list.dst.assign(g.dst.begin(), g.dst.end());
    for (Index e = 0; e < edges; ++e) list.id.push_back(e);
    const Graph whole(alone, PartitionBook({0, g.num_src}), PartitionBook({0, g.num_dst}), list, false);
    const Pass expected = run(alone, gat, {x, y, whole.local_edge_rows(w)}, 0, layer(whole));
    const Tensor expected_grad_w = by_id(whole, expected.grads[2]);

    for (const auto& [of_src, of_dst] : ownerships) {
      const TwoSets host = two_sets(comm, g, of_src, of_dst);
      const HostGraph graph(comm, host.nodes(), host.sources.edges());
      const Tensor my_w = host.sources.edge_rows(w);
      CHECK(same_bits(graph.to_host_order(graph.to_graph_order(my_w)), my_w));
      const Pass mine = run(
          comm, gat, {host.sources.node_rows(x), host.destinations.node_rows(y), graph.to_graph_order(my_w)},
          0, layer(graph));
      check_part(mine.y, host.destinations.node_rows(expected.y), expected.y);
      check_part(mine.grads[0], host.sources.node_rows(expected.grads[0]), expected.grads[0]);
      check_part(mine.grads[1], host.destinations.node_rows(expected.grads[1]), expected.grads[1]);
      check_part(graph.to_host_order(mine.grads[2]), host.sources.edge_rows(expected_grad_w),
                 expected_grad_w);
      for (std::size_t i = 3; i < mine.grads.size(); ++i)
        check_part(mine.grads[i], expected.grads[i], expected.grads[i]);

      HostArrays from = host.sources, to = host.destinations;
      from.dst = {};  // the numbering of the sources has no destinations
      to.src = {};
      to.dst = host.sources.dst;
      const LocalArrays src = local_arrays(from), dst = local_arrays(to);
      const LocalEnds ends{{.num_owned = graph.num_src_nodes(), .global_ids = src.global_ids},
                           {.num_owned = graph.num_dst_nodes(), .global_ids = dst.global_ids}};
      const HostGraph local(comm, ends,
                            LocalEdges{.src = src.src, .dst = dst.dst, .ids = host.sources.edge_ids});
      CHECK(local.edge_ids() == graph.edge_ids());
      CHECK(same_bits(
          layer(local)(std::vector<Variable>{host.sources.node_rows(x), host.destinations.node_rows(y),
                                             local.to_graph_order(my_w)})
              .value(),
          mine.y));
    }
  }
}

TEST_CASE("what cannot be a bipartite graph is the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const int last = comm.size() - 1;
  const bool me = comm.rank() == last;
  const std::int64_t own = 100 + comm.rank();
  struct Input {
    std::vector<std::int64_t> sources, destinations, src, dst;
    HostGraphOptions options;
  };
  const auto error = [&](const auto& change) {
    Input in{{own}, {own, own + 1000}, {own}, {own + 1000}, {}};
    change(in);
    return thrown_by_all<InputError>(comm, [&comm, in] {
      HostGraph(comm, GlobalEnds{in.sources, in.destinations}, {.src = in.src, .dst = in.dst}, in.options);
    });
  };
  CHECK(error([](Input&) {}) == "nothing");
  CHECK(error([&](Input& in) {
          if (me) in.src[0] = own + 1000;
        }) == concat("HostGraph: edge 0 of rank ", last, " goes from node ", 1100 + last, " to node ",
                     1100 + last, ", but no rank gives source ", 1100 + last));
  CHECK(error([&](Input& in) {
          if (me) in.dst[0] = -3;
        }) == concat("HostGraph: edge 0 of rank ", last, " goes from node ", 100 + last,
                     " to node -3, but no rank gives destination -3"));
  CHECK(error([&](Input& in) {
          if (me) in.destinations.push_back(own);
        }) == concat("HostGraph: destination ", 100 + last, " is given twice by rank ", last,
                     " (its nodes 0 and 2), expected once"));
  CHECK(error([](Input& in) { in.sources = in.src = in.dst = {}; }) ==
        concat("HostGraph: none of the ", comm.size(), " ranks gives a source, expected one at least"));
  CHECK(error([](Input& in) { in.options.add_reverse_edges = true; }) ==
        "HostGraph: add_reverse_edges is set for a set of sources and a set of destinations, expected one "
        "set of nodes");
  const auto local_error = [&] {
    const std::vector<std::int64_t> one{own};
    const std::vector<std::int32_t> number{0};
    HostGraph(comm,
              LocalEnds{{.num_owned = 1, .global_ids = one}, {.num_owned = me ? 2 : 1, .global_ids = one}},
              {.src = number, .dst = number});
  };
  CHECK(thrown_by_all<ShapeError>(comm, local_error) ==
        concat("HostGraph: rank ", last,
               " owns 2 destinations (num_owned) and gives 1 global_ids, expected one for each ",
               "destination and each ghost"));
}
