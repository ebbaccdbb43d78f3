// SPDX-License-Identifier: MIT
#include "conv_cases.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace sar;
using namespace sar::test;

TEST_CASE("SAGEConv: golden vectors in the three modes") {
  for_each_run(
      {"SAGEConv__mean", "SAGEConv__mean_bipartite", "SAGEConv__mean_block", "SAGEConv__mean_edge_weight",
       "SAGEConv__mean_no_bias", "SAGEConv__gcn", "SAGEConv__gcn_bipartite", "SAGEConv__gcn_block"},
      [](const Run& run) {
        Generator gen(1);
        const std::pair widths = run.bipartite()
                                     ? std::pair(run.width("in.feat_src"), run.width("in.feat_dst"))
                                     : std::pair(run.width("in.feat"), run.width("in.feat"));
        SAGEConv conv(widths, run.width("out"), gen,
                      {.aggregator = run.golden.arg("aggregator_type") == "gcn" ? SAGEAggregator::gcn
                                                                                : SAGEAggregator::mean,
                       .bias = run.flag("bias")});
        run.check(conv, [&](const Graph& graph, Inputs& in) {
          return run.bipartite() ? conv(graph, {in["feat_src"], in["feat_dst"]}, in["edge_weight"])
                                 : conv(graph, in["feat"], in["edge_weight"]);
        });
      });
}

TEST_CASE("GraphConv: golden vectors in the three modes") {
  for_each_run({"GraphConv__norm_none", "GraphConv__norm_left", "GraphConv__norm_right",
                "GraphConv__norm_both", "GraphConv__norm_both_wide", "GraphConv__norm_both_bipartite",
                "GraphConv__norm_both_no_bias", "GraphConv__norm_both_no_weight_no_bias",
                "GraphConv__norm_both_edge_weight", "GraphConv__norm_right_edge_weight"},
               [](const Run& run) {
                 const std::string norm = run.golden.arg("norm");
                 Generator gen(1);
                 GraphConv conv(run.count("in_feats"), run.count("out_feats"), gen,
                                {.norm = norm == "none"    ? GraphConvNorm::none
                                         : norm == "left"  ? GraphConvNorm::left
                                         : norm == "right" ? GraphConvNorm::right
                                                           : GraphConvNorm::both,
                                 .weight = run.flag("weight"),
                                 .bias = run.flag("bias")});
                 run.check(conv, [&](const Graph& graph, Inputs& in) {
                   return conv(graph, in[run.bipartite() ? "feat_src" : "feat"], in["edge_weight"]);
                 });
               });
}

namespace {

/// A layer that goes from wide to narrow, and one with equal weights and inputs from narrow to wide, both by
/// the formula over the whole graph: y_v = W_self x_v + W_neigh mean x_u (mean), or W (x_v + sum x_u) / (d +
/// 1) (gcn).
std::vector<double> sage_formula(const Case& golden, const Tensor& x, const Tensor& w_neigh,
                                 const Tensor& w_self) {
  const auto src = golden.indices("src"), dst = golden.indices("dst");
  const Index in = x.row_size(), out = w_neigh.shape()[0], nodes = x.num_rows();
  std::vector<double> sum(static_cast<std::size_t>(nodes * in)), degree(static_cast<std::size_t>(nodes));
  for (std::size_t k = 0; k < src.size(); ++k) {
    ++degree[static_cast<std::size_t>(dst[k])];
    for (Index j = 0; j < in; ++j) sum[static_cast<std::size_t>(dst[k] * in + j)] += x.row(src[k])[j];
  }
  std::vector<double> y(static_cast<std::size_t>(nodes * out));
  for (Index v = 0; v < nodes; ++v)
    for (Index o = 0; o < out; ++o)
      for (Index j = 0; j < in; ++j) {
        const double s = sum[static_cast<std::size_t>(v * in + j)], d = degree[static_cast<std::size_t>(v)];
        y[static_cast<std::size_t>(v * out + o)] +=
            w_self.defined() ? w_self.row(o)[j] * x.row(v)[j] + w_neigh.row(o)[j] * (d > 0 ? s / d : 0)
                             : w_neigh.row(o)[j] * (s + x.row(v)[j]) / (d + 1);
      }
  return y;
}

}  // namespace

TEST_CASE("SAGEConv aggregates before or after the product: the same result") {
  const Communicator world = Communicator::world();
  const Case golden("conv/SAGEConv__mean");
  const GoldenGraph part = golden_graph(world, golden, {});
  const Tensor x = random_values({static_cast<Index>(golden.number("num_nodes")), 6});
  for (const SAGEAggregator aggregator : {SAGEAggregator::mean, SAGEAggregator::gcn})
    for (const Index out_feats : {4, 6, 9})
      for (const bool wants_feat : {true, false}) {
        CAPTURE(out_feats);
        Generator gen(2);
        SAGEConv conv(6, out_feats, gen, {.aggregator = aggregator, .bias = false});
        const auto parameters = conv.named_parameters();
        const Tensor w_self = parameters.size() > 1 ? parameters[1].parameter.value() : Tensor();
        const std::vector<double> values = sage_formula(golden, x, parameters[0].parameter.value(), w_self);
        const Tensor whole =
            Tensor::from({x.num_rows(), out_feats}, std::vector<real>(values.begin(), values.end()));
        Tape tape;
        const Variable y = conv(part.graph, Variable(part.src_rows(x), wants_feat));
        CHECK(error_of_part(y.value(), part.dst_rows(whole), whole) < tolerance());
      }
}

TEST_CASE("feature dropout hits the same elements on every number of ranks, and others at the next call") {
  const Communicator world = Communicator::world();
  const Case golden("conv/SAGEConv__mean");
  const auto run = [&](const Communicator& comm, int calls) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    Generator gen(4);
    SAGEConv conv(golden.tensor("in.feat").row_size(), 5, gen, {.feat_drop = 0.5});
    Tensor y;
    for (int k = 0; k < calls; ++k) y = conv(part.graph, part.src_rows(golden.tensor("in.feat"))).value();
    return std::pair(y, part.my_dst);
  };
  const auto [mine, ids] = run(world, 1);
  const Tensor whole = run(Communicator::self(), 1).first;
  CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
  CHECK_FALSE(same_bits(whole, run(Communicator::self(), 2).first));
}

TEST_CASE("convolutions refuse features that do not fit the graph, on all ranks") {
  const Communicator world = Communicator::world();
  Generator gen(1);
  const GoldenGraph square = golden_graph(world, Case("conv/SAGEConv__mean"), {});
  const GoldenGraph bipartite = golden_graph(world, Case("conv/SAGEConv__mean_bipartite"), {});
  SAGEConv sage(6, 4, gen);
  GraphConv conv(6, 4, gen);
  const Index off = world.rank() + 1 == world.size() ? 1 : 0;  // only the last rank is wrong
  const Index nodes = square.graph.num_src_nodes();
  CHECK_THROWS_AS((void)sage(square.graph, Tensor::zeros({nodes, 6 - off})), ShapeError);
  CHECK_THROWS_AS((void)sage(square.graph, Tensor::zeros({nodes + off, 6})), ShapeError);
  CHECK_THROWS_AS((void)sage(bipartite.graph, Tensor::zeros({bipartite.graph.num_src_nodes(), 6})),
                  ShapeError);
  CHECK_THROWS_AS((void)conv(square.graph, Tensor::zeros({nodes, 6 - off})), ShapeError);
  CHECK(sage(square.graph, Tensor::zeros({nodes, 6})).num_rows() == square.graph.num_dst_nodes());
}
