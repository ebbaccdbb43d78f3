// SPDX-License-Identifier: MIT

/// Golden vectors of the convolutions whose matrices depend on the edge, and what the vectors do not show.
#include "conv_cases.hpp"
#include "graph/hetero/typed_test_graph.hpp"
#include "graph/test_graphs.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

Regularizer regularizer_of(const std::string& name) {
  return name == "basis" ? Regularizer::basis : name == "bdd" ? Regularizer::bdd : Regularizer::none;
}

/// The network of a training of golden/rgcn_cases.py.
struct RelationalNet : Module {
  ModuleList<RelGraphConv> convs;
  explicit RelationalNet(const Case& golden) {
    Generator gen(1);
    register_module("convs", convs);
    const Index in = golden.tensor("in.feat").row_size(), out = golden.tensor("out.logits").row_size();
    const auto relations = static_cast<Index>(golden.number("num_rels"));
    RelGraphConvOptions options{.regularizer = regularizer_of(golden.arg("regularizer")),
                                .num_bases = static_cast<Index>(golden.number("num_bases")),
                                .activation = [](Variable y) { return relu(std::move(y)); }};
    convs.emplace_back(in, hidden, relations, gen, options);
    options.activation = {};
    options.layer_norm = options.regularizer == Regularizer::none;
    convs.emplace_back(hidden, out, relations, gen, options);
  }
  static constexpr Index hidden = 8;
};

}  // namespace

TEST_CASE("RelGraphConv: golden vectors") {
  for_each_run({"RelGraphConv__basis", "RelGraphConv__basis_block", "RelGraphConv__basis_edge_norm",
                "RelGraphConv__basis_no_self_loop_no_bias", "RelGraphConv__bdd", "RelGraphConv__none",
                "RelGraphConv__none_layer_norm"},
               [](const Run& run) {
                 const std::string regularizer = run.golden.arg("regularizer");
                 Generator gen(1);
                 RelGraphConv conv(run.width("in.feat"), run.width("out"), run.count("num_rels"), gen,
                                   {.regularizer = regularizer_of(regularizer),
                                    .num_bases = regularizer == "none" ? 0 : run.count("num_bases"),
                                    .bias = run.flag("bias"),
                                    .self_loop = run.flag("self_loop"),
                                    .layer_norm = run.flag("layer_norm")});
                 run.check(conv, [&](const Graph& graph, Inputs& in) {
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

TEST_CASE("RelGraphConv: five steps of Adam as in DGL, from DGL's weights, in every mode") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"train_none", "train_basis", "train_bdd", "train_many_types"}) {
    CAPTURE(name);
    const Case golden("rgcn/" + name);
    for (const GraphOptions& options : graph_ways()) {
      const GoldenGraph part = golden_graph(world, golden, options);
      std::vector<Index> etypes, labels;
      std::vector<std::uint8_t> mask;
      for (const Index id : part.graph.edge_ids())
        etypes.push_back(golden.indices("etype")[static_cast<std::size_t>(id)]);
      for (const Index node : part.my_src) {
        labels.push_back(golden.indices("labels")[static_cast<std::size_t>(node)]);
        mask.push_back(golden.mask("mask")[static_cast<std::size_t>(node)]);
      }
      const Variable x(part.src_rows(golden.tensor("in.feat"))), norm(part.edge_rows(golden.tensor("norm")));
      RelationalNet net(golden);
      const auto logits_of = [&] {
        return net.convs[1](part.graph, net.convs[0](part.graph, x, etypes, norm), etypes, norm);
      };
      REQUIRE(net.named_parameters().size() == golden.arrays("param.").size());
      load_parameters(net, golden);
      Adam optimizer(net.named_parameters(),
                     {.lr = golden.number("lr"), .weight_decay = golden.number("weight_decay")});
      for (const double expected : golden.values("losses")) {
        Tape tape;
        const Variable loss = cross_entropy(logits_of(), labels, mask, world);
        CHECK(std::abs(loss.value().item() / expected - 1) < tolerance());
        tape.backward(loss);
        gather_grads(world, net);
        optimizer.step();
        optimizer.zero_grad();
      }
      const Tensor logits = golden.tensor("out.logits");
      CHECK(error_of_part(logits_of().value(), part.dst_rows(logits), logits) < 10 * tolerance());
      for (const auto& named : net.named_parameters()) {
        CAPTURE(named.name);
        CHECK(relative_error(named.parameter.value(), golden.values("param_after." + named.name)) <
              tolerance());
      }
    }
  }
}

TEST_CASE("RelGraphConv: sums by basis, where there are many types, are those of composed matrices") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("random", 30, 30, 700, 5);
  constexpr Index in = 3, out = 70, bases = 2, relations = 940;  // more matrices than sums
  for (const GraphOptions& options : graph_ways()) {
    const Graph graph = shard(world, whole, test_books(whole, world.size()).front(), options);
    std::vector<Index> types;
    for (const Index id : graph.edge_ids()) types.push_back(id * 7 % relations);
    const Tensor norm = graph.local_edge_rows(random_values(Shape{std::ssize(whole.src), 1}));
    const auto rows = [&](Index width, std::uint64_t stream) {
      return my_rows(random_values(Shape{30, width}, stream), test_books(whole, world.size()).front().src,
                     world.rank());
    };
    const Tensor bases_of_w = random_values(Shape{bases, in, out}, 8),
                 coeff = random_values({relations, bases}, 9);
    Tensor composed = Tensor::zeros({relations, in, out});
    for (Index r = 0; r < relations; ++r)
      for (Index b = 0; b < bases; ++b)
        for (Index i = 0; i < in * out; ++i) composed.row(r)[i] += coeff.row(r)[b] * bases_of_w.row(b)[i];
    std::vector<Tensor> results;
    for (const bool basis : {true, false}) {
      Generator gen(1);
      RelGraphConv conv(in, out, relations, gen,
                        {.regularizer = basis ? Regularizer::basis : Regularizer::none,
                         .num_bases = basis ? bases : 0});
      conv.set_parameter("linear_r.W", basis ? bases_of_w : composed);
      if (basis) conv.set_parameter("linear_r.coeff", coeff);
      conv.set_parameter("loop_weight", random_values({in, out}, 10));
      conv.set_parameter("h_bias", random_values(Shape{out}, 11));
      const Variable feat(rows(in, 3), true), factors(norm, true);
      Tape tape;
      const Variable y = conv(graph, feat, types, factors);
      tape.backward(y, rows(out, 4));
      gather_grads(world, conv);
      Tensor of_bases, of_coeff;  // from those of the composed matrices
      for (const auto& named : conv.named_parameters()) {
        if (named.name == "linear_r.W") of_bases = named.parameter.grad();
        if (named.name == "linear_r.coeff") of_coeff = named.parameter.grad();
      }
      if (!basis) {
        const Tensor of_w = of_bases;
        of_bases = Tensor::zeros(bases_of_w.shape());
        of_coeff = Tensor::zeros(coeff.shape());
        for (Index r = 0; r < relations; ++r)
          for (Index b = 0; b < bases; ++b)
            for (Index i = 0; i < in * out; ++i) {
              of_bases.row(b)[i] += coeff.row(r)[b] * of_w.row(r)[i];
              of_coeff.row(r)[b] += bases_of_w.row(b)[i] * of_w.row(r)[i];
            }
      }
      const std::vector<Tensor> now{y.value(), feat.grad(), factors.grad(), of_bases, of_coeff};
      for (std::size_t i = 0; i < results.size(); ++i)
        CHECK(error_of_part(now[i], results[i], results[i]) < tolerance());
      results = now;
    }
  }
}

TEST_CASE("RelGraphConv on the homogeneous form is a GraphConv for each relation") {
  const Communicator world = Communicator::world();
  const TypedGraph typed = typed_graph();
  constexpr Index in = 5, out = 3;
  const Tensor weights = random_values({std::ssize(typed.relations), in, out}, 20);
  for (const auto& books : typed_books(typed, world.size())) {
    const Graph graph = shard(world, typed, books);
    const auto rows_of = [&](const std::string& type, Index width, std::uint64_t stream) {
      return my_rows(random_values(Shape{typed.size(type), width}, stream), books.at(type), world.rank());
    };
    Generator gen(1);
    RelGraphConv relational(in, out, std::ssize(typed.relations), gen, {.bias = false, .self_loop = false});
    relational.set_parameter("linear_r.W", weights);
    HeteroGraphConv separate;
    for (std::size_t r = 0; r < typed.relations.size(); ++r) {
      const EdgeType& type = typed.relations[r].first;
      separate
          .emplace_back<GraphConv>({type.source, type.relation, type.destination}, in, out, gen,
                                   GraphConvOptions{.norm = GraphConvNorm::none, .bias = false})
          .set_parameter("weight", weights.slice_rows(static_cast<Index>(r), static_cast<Index>(r) + 1)
                                       .reshape({in, out}));
    }
    std::map<std::string, Tensor> results[2], gradients[2];
    for (const bool homogeneous : {true, false}) {
      std::map<std::string, Variable> x;
      for (const auto& [type, size] : typed.nodes) x[type] = Variable(rows_of(type, in, 21), true);
      Tape tape;
      HeteroGraphConv::Rows y;
      if (homogeneous) {
        const HomogeneousForm& form = graph.to_homogeneous();
        const Variable all = relational(form.graph, form.concat(x), form.etypes);
        for (const auto& [type, size] : typed.nodes) y[type] = form.rows_of(all, type);
      } else {
        y = separate(graph, x);
      }
      Variable total;
      for (const auto& [type, size] : typed.nodes) {
        results[homogeneous][type] = y.at(type).value();
        const Variable part = sar::sum(mul(y.at(type), Variable(rows_of(type, out, 22))));
        total = total.defined() ? add(total, part) : part;
      }
      tape.backward(total);
      for (const auto& [type, size] : typed.nodes) gradients[homogeneous][type] = x.at(type).grad();
    }
    for (const auto& [type, size] : typed.nodes) {
      CAPTURE(type);
      CHECK(error_of_part(results[0][type], results[1][type], results[1][type]) < tolerance());
      CHECK(error_of_part(gradients[0][type], gradients[1][type], gradients[1][type]) < tolerance());
    }
    gather_grads(world, relational);
    gather_grads(world, separate);
    const Tensor of_all = relational.parameters()[0].grad();
    for (const auto& named : separate.named_parameters()) {
      const Index r = std::find_if(typed.relations.begin(), typed.relations.end(),
                                   [&](const auto& relation) {
                                     return named.name == "mods." + relation.first.relation + ".weight";
                                   }) -
                      typed.relations.begin();
      REQUIRE(r < of_all.num_rows());
      CHECK(error_of_part(named.parameter.grad().reshape({1, in, out}), of_all.slice_rows(r, r + 1), of_all) <
            tolerance());
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
        run.check(conv, [&](const Graph& graph, Inputs& in) {
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
    run.check(conv, [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"], in["efeat"]); });
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
