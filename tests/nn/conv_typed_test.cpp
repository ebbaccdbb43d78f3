/// Golden vectors of the convolutions whose matrices depend on the edge, and what the vectors do not show.
#include "conv_cases.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/cf_conv.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/nn_conv.hpp>
#include <sar/nn/rel_graph_conv.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("RelGraphConv: golden vectors") {
  for_each_run({"RelGraphConv__basis", "RelGraphConv__basis_block", "RelGraphConv__basis_edge_norm",
                "RelGraphConv__basis_no_self_loop_no_bias", "RelGraphConv__bdd", "RelGraphConv__none",
                "RelGraphConv__none_layer_norm"},
               [](const Run& run) {
                 const std::string regularizer = run.golden.arg("regularizer");
                 Generator gen(1);
                 RelGraphConv conv(run.width("in.feat"), run.width("out"), run.count("num_rels"), gen,
                                   {.regularizer = regularizer == "basis" ? Regularizer::basis
                                                   : regularizer == "bdd" ? Regularizer::bdd
                                                                          : Regularizer::none,
                                    .num_bases = regularizer == "none" ? 0 : run.count("num_bases"),
                                    .bias = run.flag("bias"),
                                    .self_loop = run.flag("self_loop"),
                                    .layer_norm = run.flag("layer_norm")});
                 run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
                   return conv(graph, in["feat"], in.etype, in["norm"]);
                 });
               });
}

TEST_CASE("RelGraphConv: edge norms do the same to every kind of matrix") {
  const Communicator world = Communicator::world();
  const Case golden("conv/RelGraphConv__none");
  for (const GraphOptions& options : graph_ways()) {
    const GoldenGraph part = golden_graph(world, golden, options);
    const Index nodes = golden.tensor("in.feat").num_rows();
    const Tensor feat = part.src_rows(random_values({nodes, 6}, 3)),
                 upstream = part.dst_rows(random_values({nodes, 4}, 4));
    const Tensor norm = part.edge_rows(random_values({static_cast<Index>(golden.indices("src").size()), 1}));
    std::vector<Index> types, whole_types = golden.indices("etype");
    for (const Index id : part.graph.edge_ids())
      types.push_back(whole_types[static_cast<std::size_t>(id)] % 4);

    // the same matrices, W_r = diag(A_r, B_r), as matrices, as combinations of themselves, and as blocks
    const Tensor blocks = random_values({4, 2 * 3 * 2}, 8);
    Tensor full = Tensor::zeros({4, 6, 4}), identity = Tensor::zeros({4, 4});
    for (Index r = 0; r < 4; ++r) {
      identity.row(r)[r] = 1;
      for (Index b = 0; b < 2; ++b)
        for (Index i = 0; i < 3; ++i)
          for (Index o = 0; o < 2; ++o)
            full.row(r)[(b * 3 + i) * 4 + b * 2 + o] = blocks.row(r)[(b * 3 + i) * 2 + o];
    }
    std::vector<Tensor> results, gradients;
    for (const Regularizer regularizer : {Regularizer::none, Regularizer::basis, Regularizer::bdd}) {
      Generator gen(1);
      RelGraphConv conv(6, 4, 4, gen,
                        {.regularizer = regularizer,
                         .num_bases = regularizer == Regularizer::bdd ? 2 : 0,
                         .bias = false,
                         .self_loop = false});
      conv.set_parameter("linear_r.W", regularizer == Regularizer::bdd ? blocks : full);
      if (regularizer == Regularizer::basis) conv.set_parameter("linear_r.coeff", identity);
      const Variable factors(norm, true);
      Tape tape;
      const Variable y = conv(part.graph, feat, types, factors);
      tape.backward(y, upstream);
      results.push_back(y.value());
      gradients.push_back(factors.grad());
    }
    for (const std::size_t i : {1u, 2u}) {
      CHECK(relative_error(results[i], results[0]) < tolerance());
      CHECK(relative_error(gradients[i], gradients[0]) < tolerance());
    }
  }
}

TEST_CASE("RelGraphConv: dropout and activation come last") {
  const Communicator world = Communicator::world();
  const Case golden("conv/RelGraphConv__none");
  const auto run = [&](const Communicator& comm) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    std::vector<Index> types, whole_types = golden.indices("etype");
    for (const Index id : part.graph.edge_ids()) types.push_back(whole_types[static_cast<std::size_t>(id)]);
    Generator gen(4);
    RelGraphConv conv(golden.tensor("in.feat").row_size(), 5, static_cast<Index>(golden.number("num_rels")),
                      gen, {.dropout = 0.5, .activation = [](Variable x) { return x * real(0) + real(3); }});
    return std::pair(conv(part.graph, part.src_rows(golden.tensor("in.feat")), types).value(), part.my_dst);
  };
  const auto [mine, ids] = run(world);
  const Tensor whole = run(Communicator::self()).first;
  CHECK(same_bits(mine, GoldenGraph::rows(whole, ids)));
  Index dropped = 0;
  for (const real value : whole.values()) {
    CHECK((value == 0 || value == 6));
    dropped += value == 0 ? 1 : 0;
  }
  CHECK(dropped > whole.size() / 4);
  CHECK(dropped < whole.size() * 3 / 4);
}

TEST_CASE("NNConv: golden vectors") {
  for_each_run(
      {"NNConv__max", "NNConv__mean", "NNConv__mean_bipartite_residual_linear", "NNConv__sum",
       "NNConv__sum_residual_identity_no_bias", "NNConv__sum_residual_linear"},
      [](const Run& run) {
        const std::string reduce = run.golden.arg("aggregator_type");
        const std::pair widths = run.bipartite()
                                     ? std::pair(run.width("in.feat_src"), run.width("in.feat_dst"))
                                     : std::pair(run.width("in.feat"), run.width("in.feat"));
        Generator gen(1);
        NNConv conv(widths, run.width("out"),
                    std::make_shared<Linear>(run.width("in.efeat"), widths.first * run.width("out"), gen),
                    gen,
                    {.aggregator = reduce == "sum"    ? Reduce::sum
                                   : reduce == "mean" ? Reduce::mean
                                                      : Reduce::max,
                     .residual = run.flag("residual"),
                     .bias = run.flag("bias")});
        run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
          return run.bipartite() ? conv(graph, std::pair(in["feat_src"], in["feat_dst"]), in["efeat"])
                                 : conv(graph, in["feat"], in["efeat"]);
        });
      });
}

TEST_CASE("CFConv: golden vectors") {
  for_each_run({"CFConv__plain"}, [](const Run& run) {
    Generator gen(1);
    CFConv conv(run.width("in.feat"), run.width("in.efeat"), run.count("hidden_feats"), run.width("out"),
                gen);
    run.check(conv, [&](const GraphShardManager& graph, Inputs& in) {
      return conv(graph, in["feat"], in["efeat"]);
    });
  });
}

TEST_CASE("layers with a matrix for each edge refuse what does not fit, on all ranks") {
  const Communicator world = Communicator::world();
  Generator gen(1);
  const GoldenGraph square = golden_graph(world, Case("conv/SAGEConv__mean"), {});
  const GoldenGraph bipartite = golden_graph(world, Case("conv/SAGEConv__mean_bipartite"), {});
  const Variable feat(Tensor::zeros({square.graph.num_src_nodes(), 6}));
  const Variable edge_feats(Tensor::zeros({square.graph.num_edges(), 3}));
  const std::vector<Index> types(static_cast<std::size_t>(square.graph.num_edges()), 1);
  RelGraphConv rel(6, 4, 2, gen);
  CHECK(rel(square.graph, feat, types).num_rows() == square.graph.num_dst_nodes());
  std::vector<Index> wrong = types;
  if (world.rank() == 0) wrong.at(0) = 2;
  CHECK_THROWS_AS((void)rel(square.graph, feat, wrong), InputError);
  wrong = types;
  if (world.rank() == world.size() - 1) wrong.push_back(0);
  CHECK_THROWS_AS((void)rel(square.graph, feat, wrong), ShapeError);
  CHECK_THROWS_AS((void)rel(square.graph, feat, types, edge_feats), ShapeError);
  CHECK_THROWS_AS((void)rel(square.graph, edge_feats, types), ShapeError);
  CHECK_THROWS_AS((void)rel(bipartite.graph, Tensor::zeros({bipartite.graph.num_src_nodes(), 6}), types),
                  ShapeError);
  CHECK(rel(square.graph, feat, types).num_rows() == square.graph.num_dst_nodes());
  CHECK_THROWS_AS(RelGraphConv(6, 4, 0, gen), InputError);
  CHECK_THROWS_AS(RelGraphConv(6, 4, 2, gen, {.regularizer = Regularizer::bdd, .num_bases = 4}), InputError);

  NNConv conv(6, 4, std::make_shared<Linear>(3, 24, gen), gen);
  CHECK(conv(square.graph, feat, edge_feats).num_rows() == square.graph.num_dst_nodes());
  const Index off = world.rank() + 1 == world.size() ? 1 : 0;  // only the last rank is wrong
  const Variable other_feat(Tensor::zeros({square.graph.num_src_nodes(), 6 + off}));
  const Variable other_edge_feats(Tensor::zeros({square.graph.num_edges() + off, 3}));
  CHECK_THROWS_AS((void)conv(square.graph, other_feat, edge_feats), ShapeError);
  CHECK_THROWS_AS((void)conv(square.graph, feat, other_edge_feats), ShapeError);
  NNConv misfit(6, 4, std::make_shared<Linear>(3, 23, gen), gen);
  CHECK_THROWS_AS((void)misfit(square.graph, feat, edge_feats), ShapeError);
  CHECK_THROWS_AS(NNConv(6, 4, {}, gen), InputError);

  CFConv filter(6, 3, 5, 4, gen);
  CHECK_THROWS_AS((void)filter(square.graph, other_feat, edge_feats), ShapeError);
  CHECK_THROWS_AS((void)filter(square.graph, feat, other_edge_feats), ShapeError);
  CHECK(filter(square.graph, feat, edge_feats).num_rows() == square.graph.num_dst_nodes());
}
