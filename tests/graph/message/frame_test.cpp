// SPDX-License-Identifier: MIT

/// Frames: named fields, scopes, messages on frames, and a layer ported from DGL line by line.
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <functional>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

Variable rows_of(const Communicator& comm, const PartitionBook& book, Index width, std::uint64_t key) {
  return {my_rows(random_values(Shape{book.num_nodes(), width}, key), book, comm.rank()), true};
}

/// dgl.nn.SAGEConv with the mean aggregator, the lines of its forward one by one.
struct PortedSage : Module {
  Linear fc_neigh, fc_self;

  PortedSage(Index in_feats, Index out_feats, Generator& gen)
      : fc_neigh(in_feats, out_feats, gen, false), fc_self(in_feats, out_feats, gen) {
    register_module("fc_neigh", fc_neigh);
    register_module("fc_self", fc_self);
  }

  Variable operator()(const Graph& graph, const Variable& feat) {
    const auto scope = graph.local_scope();              // with graph.local_scope():
    const Variable feat_src = feat;                      //   feat_src = feat_dst = feat
    const Variable feat_dst =                            //   if graph.is_block:
        slice_rows(feat_src, 0, graph.num_dst_nodes());  //     feat_dst = feat_src[:num_dst_nodes]
    const Variable h_self = feat_dst;                    //   h_self = feat_dst
    graph.srcdata()["h"] = feat_src;                     //   graph.srcdata["h"] = feat_src
    graph.update_all(fn::copy_u("h", "m"),               //   graph.update_all(fn.copy_u("h", "m"),
                     fn::mean("m", "neigh"));            //                    fn.mean("m", "neigh"))
    Variable h_neigh = graph.dstdata().at("neigh");      //   h_neigh = graph.dstdata["neigh"]
    h_neigh = fc_neigh(h_neigh);                         //   h_neigh = self.fc_neigh(h_neigh)
    return fc_self(h_self) + h_neigh;                    //   rst = self.fc_self(h_self) + h_neigh
  }
};

}  // namespace

TEST_CASE("one node type has one frame, two types have two; copies share them") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    const Books books = test_books(g, comm.size()).front();
    const Graph graph = shard(comm, g, books, {});
    const Graph copy = graph;
    const Graph block = graph.get_full_partition_graph();
    graph.srcdata()["h"] = Tensor::full({graph.num_src_nodes()}, 1);
    graph.edata()["w"] = Tensor::full({graph.num_edges()}, 1);
    CHECK(copy.srcdata().contains("h"));
    CHECK(block.srcdata().contains("h"));
    CHECK(block.edata().keys() == std::vector<std::string>{"w"});
    CHECK(graph.dstdata().contains("h") == g.square);
    if (g.square) {
      CHECK(&graph.ndata() == &graph.srcdata());
      CHECK(&graph.ndata() == &graph.dstdata());
    } else {
      CHECK(thrown_by_all<InputError>(comm, [&] {
              (void)graph.ndata();
            }).find("use srcdata() and dstdata()") != std::string::npos);
    }
    copy.srcdata().erase("h");
    CHECK(!graph.srcdata().contains("h"));
    CHECK_THROWS_AS((void)graph.srcdata().at("h"), InputError);
    // Nodes of two kinds that are equally many on every rank are two kinds all the same.
    WholeGraph two = g;
    two.square = false;
    if (g.square) CHECK_THROWS_AS((void)shard(comm, two, books, {}).ndata(), InputError);
  }
}

TEST_CASE("a local scope undoes changes of all frames") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("bipartite", 50, 23, 150, 3, false);
  const Graph graph = shard(comm, g, test_books(g, comm.size()).front(), {});
  const Graph copy = graph;
  const Variable before = Tensor::full({graph.num_src_nodes()}, 1);
  Frame& src = graph.srcdata();
  src["kept"] = before;
  graph.dstdata()["d"] = Tensor::full({graph.num_dst_nodes()}, 1);
  {
    const auto scope = copy.local_scope();
    graph.srcdata()["kept"] = Tensor::full({graph.num_src_nodes()}, 2);
    graph.srcdata()["new"] = before;
    graph.dstdata().erase("d");
    graph.edata()["e"] = Tensor::full({graph.num_edges()}, 1);
    {
      const auto inner = graph.local_scope();
      graph.srcdata().erase("new");
    }
    CHECK(src.contains("new"));
  }
  CHECK(src.keys() == std::vector<std::string>{"kept"});
  CHECK(src.at("kept").value().data() == before.value().data());
  CHECK(graph.dstdata().contains("d"));
  CHECK(graph.edata().keys().empty());
  CHECK_THROWS_AS(
      [&] {
        const auto scope = graph.local_scope();
        graph.srcdata()["new"] = before;
        (void)graph.srcdata().at("other");
      }(),
      InputError);
  CHECK(!src.contains("new"));
}

TEST_CASE("messages on frames are those on variables") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    for (const Books& books : test_books(g, comm.size())) {
      const Graph graph = shard(comm, g, books, {});
      const Variable u = rows_of(comm, books.src, 3, 1), v = rows_of(comm, books.dst, 3, 2);
      const Variable e(random_values(Shape{graph.num_edges(), 1}, 3), true);
      graph.srcdata()["u"] = u;
      graph.dstdata()["v"] = v;
      graph.edata()["e"] = e;
      const auto equal = [&](const Variable& x, const Variable& y) {
        CHECK(same_bits(x.value(), y.value()));
      };
      graph.update_all(fn::copy_u("u", "m"), fn::max("m", "out"));
      equal(graph.dstdata().at("out"), graph.update_all(fn::copy_u(u), fn::max));
      graph.update_all(fn::u_mul_e("u", "e", "m"), fn::mean("m", "out"));
      equal(graph.dstdata().at("out"), graph.update_all(fn::u_mul_e(u, e), fn::mean));
      graph.update_all(fn::v_sub_u("v", "u", "m"), fn::sum("m", "out"));
      equal(graph.dstdata().at("out"), graph.update_all(fn::v_sub_u(v, u), fn::sum));
      graph.apply_edges(fn::u_dot_v("u", "v", "score"));
      equal(graph.edata().at("score"), graph.apply_edges(fn::u_dot_v(u, v)));

      const MessageFunction by_name = [](const EdgeBatch& edges) {
        return edges.src("u") * edges.dst("v") + edges.edata("e");
      };
      const MessageFunction direct = [=](const EdgeBatch& edges) {
        return edges.src(u) * edges.dst(v) + edges.edata(e);
      };
      graph.update_all(by_name, fn::sum("m", "out"));
      equal(graph.dstdata().at("out"), graph.update_all(direct, fn::sum));
      graph.apply_edges(by_name, "score");
      equal(graph.edata().at("score"), graph.apply_edges(direct));
    }
  }
}

TEST_CASE("the way back reads the fields as they were") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(g, comm.size()).back();
  const Graph graph = shard(comm, g, books, {});
  const Variable h = rows_of(comm, books.src, 3, 1), same = Variable(h.value(), true);
  Tape tape;
  Variable out;
  {
    const auto scope = graph.local_scope();
    graph.ndata()["h"] = h;
    graph.update_all([](const EdgeBatch& edges) { return edges.src("h") * edges.dst("h"); },
                     fn::sum("m", "out"));
    out = graph.dstdata().at("out");
  }
  graph.ndata()["h"] = Tensor::zeros(h.shape());
  tape.backward(out, Tensor::full(out.shape(), 1));
  Tape direct;
  const Variable y =
      graph.update_all([=](const EdgeBatch& edges) { return edges.src(same) * edges.dst(same); }, fn::sum);
  direct.backward(y, Tensor::full(y.shape(), 1));
  CHECK(same_bits(h.grad(), same.grad()));
}

TEST_CASE("fields that do not exist and names that do not match are told on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(g, comm.size()).front();
  const Graph graph = shard(comm, g, books, {});
  graph.ndata()["h"] = rows_of(comm, books.src, 3, 1);
  graph.ndata()["x"] = rows_of(comm, books.src, 3, 1);
  CHECK(thrown_by_all<InputError>(comm, [&] { graph.update_all(fn::copy_u("g", "m"), fn::sum("m", "y")); }) ==
        "ndata has no field \"g\"; its fields are \"h\", \"x\"");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          graph.update_all(fn::u_mul_e("h", "w", "m"), fn::sum("m", "y"));
        }) == "edata has no field \"w\"; it is empty");
  CHECK(thrown_by_all<InputError>(comm, [&] { graph.apply_edges(fn::copy_e("w", "m")); }) ==
        "edata has no field \"w\"; it is empty");
  CHECK(thrown_by_all<InputError>(comm, [&] { graph.update_all(fn::copy_u("h", "m"), fn::sum("n", "y")); }) ==
        "update_all: the message is called \"m\", the reduction wants \"n\"");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          graph.update_all([](const EdgeBatch& edges) { return edges.dst("g"); }, fn::sum("m", "y"));
        }) == "ndata has no field \"g\"; its fields are \"h\", \"x\"");
  if (comm.rank() == comm.size() - 1) graph.ndata().erase("x");  // on one rank only
  CHECK(thrown_by_all<InputError>(comm, [&] { graph.update_all(fn::copy_u("x", "m"), fn::sum("m", "y")); }) ==
        "ndata has no field \"x\"; its fields are \"h\"");
  graph.ndata()["empty"];
  CHECK(thrown_by_all<InputError>(comm, [&] {
          graph.update_all(fn::copy_u("empty", "m"), fn::sum("m", "y"));
        }).find("ndata has no value in field \"empty\"") == 0);
  CHECK(!graph.ndata().contains("y"));
  graph.update_all(fn::copy_u("h", "m"), fn::sum("m", "y"));
  CHECK(graph.ndata().contains("y"));
}

TEST_CASE("a layer of DGL's, ported line by line") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    if (!g.square) continue;
    for (const Books& books : test_books(g, comm.size())) {
      const Graph graph = shard(comm, g, books, {});
      Generator gen(3);
      SAGEConv conv(6, 4, gen);
      PortedSage ported(6, 4, gen);
      for (const NamedParameter& p : conv.named_parameters())
        ported.set_parameter(p.name, p.parameter.value());
      const Variable x = rows_of(comm, books.src, 6, 1), same(x.value(), true);
      const Tensor grad = my_rows(random_values(Shape{g.num_dst, 4}, 2), books.dst, comm.rank());
      Tape tape;
      const Variable want = conv(graph, x);
      tape.backward(want, grad.clone());
      Tape other;
      const Variable out = ported(graph, same);
      other.backward(out, grad.clone());
      CHECK(graph.ndata().keys().empty());
      CHECK(relative_error(out.value(), want.value()) < tolerance());
      CHECK(relative_error(same.grad(), x.grad()) < tolerance());
      for (const NamedParameter& p : conv.named_parameters())
        for (const NamedParameter& q : ported.named_parameters())
          if (p.name == q.name)
            CHECK(relative_error(sum_over_ranks(comm, q.parameter.grad()),
                                 sum_over_ranks(comm, p.parameter.grad())) < tolerance());
    }
  }
}
