// SPDX-License-Identifier: MIT

/// GraphConv with weights that are normalized by their sums: golden vectors of PyG's GCNConv and DGL's
/// EdgeWeightNorm, and what a graph keeps.
#include "conv_cases.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/graph_conv.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

Graph weighted_graph(const Communicator& comm, const WholeGraph& whole, const Books& books) {
  return renamed_shard(comm, whole, books.dst, {}, /*weighted=*/true);
}

GraphConv layer_with(GraphConvNorm norm) {
  Generator gen(4);
  return GraphConv(3, 2, gen, {.norm = norm});
}

}  // namespace

TEST_CASE("GraphConv on edge weights: golden vectors of PyG's GCNConv and DGL's EdgeWeightNorm") {
  for_each_run({"gcn_norm/pyg_1_6_GCNConv", "gcn_norm/pyg_1_7_GCNConv", "gcn_norm/pyg_2_0_GCNConv",
                "gcn_norm/pyg_2_3_GCNConv", "gcn_norm/pyg_2_6_GCNConv", "gcn_norm/pyg_2_8_GCNConv",
                "gcn_norm/pyg_1_6_GCNConv_without_loops", "gcn_norm/pyg_1_7_GCNConv_without_loops",
                "gcn_norm/pyg_2_0_GCNConv_without_loops", "gcn_norm/pyg_2_3_GCNConv_without_loops",
                "gcn_norm/pyg_2_6_GCNConv_without_loops", "gcn_norm/pyg_2_8_GCNConv_without_loops",
                "gcn_norm/dgl_1_1_EdgeWeightNorm", "gcn_norm/dgl_2_1_EdgeWeightNorm"},
               [](const Run& run) {
                 if (run.mfg) return;
                 Generator gen(1);
                 const bool is_pyg = run.golden.arg("norm") == "in_weights";
                 GraphConv conv(run.count("in_feats"), run.count("out_feats"), gen,
                                {.norm = is_pyg ? GraphConvNorm::in_weights : GraphConvNorm::weights});
                 run.check(conv, [&](const Graph& graph, Inputs& in) {
                   return conv(graph, in["feat"], in["edge_weight"]);
                 });
               });
}

TEST_CASE("GraphConv keeps the normalized weights of the graph, and message flow graphs have them") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, world.size()))
      for (const GraphConvNorm norm : {GraphConvNorm::weights, GraphConvNorm::in_weights}) {
        CAPTURE(whole.name);
        const Graph graph = weighted_graph(world, whole, books);
        GraphConv conv = layer_with(norm);
        const Tensor x = my_rows(random_values(Shape{whole.num_src, 3}, 1), books.src, world.rank());
        const Tensor own = graph.edge_weight();
        if (!own.defined()) continue;  // no edges
        const Tensor expected = conv(graph, x, own.clone()).value();
        CHECK(relative_error(conv(graph, x, own).value(), expected) < tolerance());
        const EdgeNorm kept = norm == GraphConvNorm::weights ? EdgeNorm::both : EdgeNorm::in_weights;
        CHECK(kept_edge_weight_norm(graph, kept).data() == kept_edge_weight_norm(graph, kept).data());

        std::vector<Index> seeds;
        for (Index v = books.dst.begin(world.rank()); v < books.dst.end(world.rank()); v += 2)
          seeds.push_back(v);
        const std::vector<MessageFlowGraph> mfgs = construct_mfgs(graph, seeds, 1);
        const MessageFlowGraph& mfg = mfgs.front();
        const Variable y = conv(mfg, gather_rows(Variable(x), mfg.src_rows()), mfg.edge_weight());
        CHECK(error_of_part(y.value(), gather_rows(Variable(expected), mfg.dst_rows()).value(), expected) <
              tolerance());
      }
}

TEST_CASE("GraphConv in_weights without weights: degrees of in-edges at both ends") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, world.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(world, whole, books, {});
      GraphConv conv = layer_with(GraphConvNorm::in_weights);
      const Tensor x = my_rows(random_values(Shape{whole.num_src, 3}, 1), books.src, world.rank());
      const Tensor ones = Tensor::full({graph.num_edges()}, 1);
      CHECK(relative_error(conv(graph, x).value(), conv(graph, x, ones).value()) < tolerance());
      GraphConv both = layer_with(GraphConvNorm::both), weights = layer_with(GraphConvNorm::weights);
      CHECK(same_bits(both(graph, x).value(), weights(graph, x).value()));
    }
}

TEST_CASE("weights that cannot be normalized are the same error on all ranks") {
  const Communicator world = Communicator::world();
  const WholeGraph whole{"pair", 6, 6, true, {0, 1, 2}, {1, 0, 5}};
  const Books books = test_books(whole, world.size()).front();
  const Graph graph = weighted_graph(world, whole, books);
  GraphConv conv = layer_with(GraphConvNorm::in_weights);
  const Tensor x = Tensor::full({graph.num_nodes(), 3}, 1);
  Tensor negative = Tensor::full({graph.num_edges()}, 1);
  for (Index e = 0; e < graph.num_edges(); ++e)
    if (graph.edge_ids()[e] == 2) negative.data()[e] = -3;
  CHECK(thrown_by_all<InputError>(world, [&] { (void)conv(graph, x, negative); }) ==
        concat("the weights of the in-edges of node ", original_id(5),
               " add up to -3, expected no negative sum where they are normalized"));
  Tensor zeros = Tensor::full({graph.num_edges()}, 0);
  const Tensor y = conv(graph, x, zeros).value();
  CHECK(std::ranges::all_of(y.values(), [](real value) { return value == 0; }));

  const std::vector<Index> none;
  const std::vector<MessageFlowGraph> early = construct_mfgs(graph, none, 1);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)conv(early[0], Tensor(Shape{0, 3}), early[0].edge_weight());
        }).starts_with("edge weights of a message flow graph are normalized in the whole graph, expected "));
  const WholeGraph two{"two types", 4, 3, false, {0, 3}, {1, 2}};
  const Books of_two = test_books(two, world.size()).front();
  const Graph bipartite = shard(world, two, of_two, {});
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)edge_weight_norm(bipartite, Tensor::full({bipartite.num_edges()}, 1), EdgeNorm::in_weights);
        }).find("expected a graph whose sources and destinations are the same nodes") != std::string::npos);
}
