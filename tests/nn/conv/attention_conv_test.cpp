// SPDX-License-Identifier: MIT

/// The layers with attention: golden vectors, and what those do not cover.
#include "conv_cases.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/dot_gat_conv.hpp>
#include <sar/nn/conv/gat_conv.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

InFeatures widths(const Run& run) {
  return run.bipartite() ? InFeatures(run.width("in.feat_src"), run.width("in.feat_dst"))
                         : InFeatures(run.width("in.feat"));
}

NodeFeatures features(const Run& run, const Inputs& in) {
  return run.bipartite() ? NodeFeatures(in["feat_src"], in["feat_dst"]) : NodeFeatures(in["feat"]);
}

real slope(const Run& run) {
  return static_cast<real>(run.golden.number("negative_slope"));
}

}  // namespace

TEST_CASE("GATConv: golden vectors") {
  for_each_run(
      {"GATConv__plain", "GATConv__no_bias", "GATConv__slope_0", "GATConv__residual_identity",
       "GATConv__residual_linear", "GATConv__residual_linear_no_bias", "GATConv__residual_linear_slope_0",
       "GATConv__edge_weight", "GATConv__bipartite", "GATConv__bipartite_residual_linear",
       "GATConv__block_residual_linear"},
      [](const Run& run) {
        Generator gen(1);
        GATConv conv(
            widths(run), run.count("out_feats"), run.count("num_heads"), gen,
            {.negative_slope = slope(run), .residual = run.flag("residual"), .bias = run.flag("bias")});
        run.check(conv, [&](const Graph& graph, Inputs& in) {
          in.edge_outputs["attention"] = conv.attention(graph, features(run, in), in["edge_weight"]).value();
          return conv(graph, features(run, in), in["edge_weight"]);
        });
      });
}

TEST_CASE("GATv2Conv: golden vectors") {
  for_each_run({"GATv2Conv__plain", "GATv2Conv__no_bias", "GATv2Conv__residual_identity",
                "GATv2Conv__residual_linear", "GATv2Conv__share_weights", "GATv2Conv__bipartite"},
               [](const Run& run) {
                 Generator gen(1);
                 GATv2Conv conv(widths(run), run.count("out_feats"), run.count("num_heads"), gen,
                                {.negative_slope = slope(run),
                                 .residual = run.flag("residual"),
                                 .bias = run.flag("bias"),
                                 .share_weights = run.flag("share_weights")});
                 run.check(conv, [&](const Graph& graph, Inputs& in) {
                   in.edge_outputs["attention"] = conv.attention(graph, features(run, in)).value();
                   return conv(graph, features(run, in));
                 });
               });
}

TEST_CASE("DotGatConv: golden vectors") {
  for_each_run({"DotGatConv__plain", "DotGatConv__bipartite"}, [](const Run& run) {
    Generator gen(1);
    DotGatConv conv(widths(run), run.count("out_feats"), run.count("num_heads"), gen);
    run.check(conv, [&](const Graph& graph, Inputs& in) {
      in.edge_outputs["attention"] = conv.attention(graph, features(run, in)).value();
      return conv(graph, features(run, in));
    });
  });
}

TEST_CASE("AGNNConv: golden vectors") {
  for_each_run({"AGNNConv__learn_beta", "AGNNConv__fixed_beta", "AGNNConv__bipartite"}, [](const Run& run) {
    AGNNConv conv(static_cast<real>(run.golden.number("init_beta")), run.flag("learn_beta"));
    REQUIRE(conv.named_parameters().size() + conv.named_buffers().size() == 1);
    CHECK(conv.named_parameters().empty() == !run.flag("learn_beta"));
    run.check(conv, [&](const Graph& graph, Inputs& in) { return conv(graph, features(run, in)); });
  });
}

TEST_CASE("EdgeGATConv: golden vectors") {
  for_each_run(
      {"EdgeGATConv__residual", "EdgeGATConv__no_residual", "EdgeGATConv__no_residual_no_bias",
       "EdgeGATConv__bipartite"},
      [](const Run& run) {
        Generator gen(1);
        EdgeGATConv conv(
            widths(run), run.count("edge_feats"), run.count("out_feats"), run.count("num_heads"), gen,
            {.negative_slope = slope(run), .residual = run.flag("residual"), .bias = run.flag("bias")});
        run.check(conv, [&](const Graph& graph, Inputs& in) {
          in.edge_outputs["attention"] = conv.attention(graph, features(run, in), in["efeat"]).value();
          return conv(graph, features(run, in), in["efeat"]);
        });
      });
}

TEST_CASE("attention with data of edges reads their ids only where it drops coefficients") {
  const Communicator comm = Communicator::world();
  constexpr Index nodes = 12;
  const PartitionBook book = PartitionBook::even(nodes, comm.size());
  EdgeList edges;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v)
    for (const Index u : {v, (v + 1) % nodes, (v + 5) % nodes}) {
      edges.src.push_back(u);
      edges.dst.push_back(v);
      edges.id.push_back(3 * v + std::ssize(edges.id) % 3);
    }
  Graph graph(comm, book, book, std::move(edges), true);
  graph.drop_edge_ids();
  const Variable x(Tensor::full({graph.num_src_nodes(), 4}, real(0.5)));
  const Variable e(Tensor::full({graph.num_edges(), 2}, real(0.25)));
  for (const double p : {0.0, 0.5}) {
    Generator gen(1);
    EdgeGATConv gat(4, 2, 3, 2, gen, {.attn_drop = p});
    TransformerConv transformer(4, 3, 2, gen, {.dropout = p, .edge_dim = 2});
    for (const bool training : {true, false}) {
      CAPTURE(p);
      CAPTURE(training);
      gat.train(training);
      transformer.train(training);
      const auto check = [&](auto& layer) {
        if (p > 0 && training) {
          const std::string text = thrown_by_all<InputError>(comm, [&] { (void)layer(graph, x, e); });
          CHECK(text.ends_with("drop_edge_ids() has dropped"));
        } else {
          CHECK(layer(graph, x, e).num_rows() == graph.num_dst_nodes());
        }
      };
      check(gat);
      check(transformer);
    }
  }
}

namespace {

constexpr Index heads = 3, columns = 4, src_width = 5, edge_width = 2;

struct TransformerCase {
  TransformerConvOptions options;
  bool pair;  ///< features for each end, of different widths
};

std::vector<TransformerCase> transformer_cases(bool square) {
  std::vector<TransformerCase> cases;
  const std::vector<TransformerConvOptions> all{{},
                                                {.concat = false},
                                                {.beta = true},
                                                {.concat = false, .beta = true, .edge_dim = edge_width},
                                                {.edge_dim = edge_width},
                                                {.edge_dim = edge_width, .bias = false},
                                                {.edge_dim = edge_width, .root_weight = false}};
  for (const TransformerConvOptions& options : all)
    for (const bool pair : {false, true})
      if (pair || square) cases.push_back({options, pair});
  return cases;
}

using Matrix = std::vector<std::vector<double>>;

/// x W^T + b with the parameters `name`.weight and `name`.bias, if there is such a bias.
Matrix linear_rows(const Module& module, const std::string& name, const std::vector<double>& x, Index rows) {
  Tensor w, b;
  for (const auto& named : module.named_parameters()) {
    if (named.name == name + ".weight") w = named.parameter.value();
    if (named.name == name + ".bias") b = named.parameter.value();
  }
  const Index out = w.shape()[0], in = w.shape()[1];
  Matrix y(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(out)));
  for (Index i = 0; i < rows; ++i)
    for (Index o = 0; o < out; ++o) {
      double sum = b.defined() ? b.data()[o] : 0;
      for (Index j = 0; j < in; ++j) sum += w.row(o)[j] * x[static_cast<std::size_t>(i * in + j)];
      y[static_cast<std::size_t>(i)][static_cast<std::size_t>(o)] = sum;
    }
  return y;
}

/// The formula of TransformerConv, node by node, edge by edge.
std::vector<double> transformer_formula(const TransformerConv& conv, const TransformerConvOptions& options,
                                        const WholeGraph& g, const std::vector<double>& x_src,
                                        const std::vector<double>& x_dst, const std::vector<double>& e) {
  const Matrix key = linear_rows(conv, "lin_key", x_src, g.num_src);
  const Matrix value = linear_rows(conv, "lin_value", x_src, g.num_src);
  const Matrix query = linear_rows(conv, "lin_query", x_dst, g.num_dst);
  const auto edges = static_cast<Index>(g.src.size());
  const Matrix edge =
      options.edge_dim > 0
          ? linear_rows(conv, "lin_edge", e, edges)
          : Matrix(g.src.size(), std::vector<double>(static_cast<std::size_t>(heads * columns)));
  const Matrix skip = options.root_weight ? linear_rows(conv, "lin_skip", x_dst, g.num_dst) : Matrix();
  const std::size_t width = options.concat ? heads * columns : columns;
  std::vector<double> result;
  for (Index v = 0; v < g.num_dst; ++v) {
    const auto row = static_cast<std::size_t>(v);
    std::vector<double> a(width);
    for (std::size_t h = 0; h < heads; ++h) {
      std::vector<double> weight(g.src.size());
      double total = 0;
      for (std::size_t k = 0; k < g.src.size(); ++k) {
        if (g.dst[k] != v) continue;
        double score = 0;
        for (std::size_t d = h * columns; d < (h + 1) * columns; ++d)
          score += query[row][d] * (key[static_cast<std::size_t>(g.src[k])][d] + edge[k][d]);
        total += weight[k] = std::exp(score / std::sqrt(static_cast<double>(columns)));
      }
      for (std::size_t k = 0; k < g.src.size(); ++k)
        for (std::size_t d = 0; g.dst[k] == v && d < columns; ++d) {
          const double message =
              value[static_cast<std::size_t>(g.src[k])][h * columns + d] + edge[k][h * columns + d];
          a[options.concat ? h * columns + d : d] +=
              weight[k] / total * message / (options.concat ? 1 : heads);
        }
    }
    if (options.root_weight && options.beta) {
      std::vector<double> all(a);
      all.insert(all.end(), skip[row].begin(), skip[row].end());
      for (std::size_t d = 0; d < width; ++d) all.push_back(a[d] - skip[row][d]);
      const double gate = 1 / (1 + std::exp(-linear_rows(conv, "lin_beta", all, 1)[0][0]));
      for (std::size_t d = 0; d < width; ++d) a[d] = gate * skip[row][d] + (1 - gate) * a[d];
    } else if (options.root_weight) {
      for (std::size_t d = 0; d < width; ++d) a[d] += skip[row][d];
    }
    result.insert(result.end(), a.begin(), a.end());
  }
  return result;
}

}  // namespace

TEST_CASE("TransformerConv: golden vectors of PyG") {
  for_each_run({"pyg/TransformerConv__plain", "pyg/TransformerConv__no_bias",
                "pyg/TransformerConv__no_root_weight", "pyg/TransformerConv__beta_mean",
                "pyg/TransformerConv__beta_no_bias_edge", "pyg/TransformerConv__edge"},
               [](const Run& run) {
                 Generator gen(1);
                 TransformerConv conv(widths(run), run.count("out_feats"), run.count("heads"), gen,
                                      {.concat = run.flag("concat"),
                                       .beta = run.flag("beta"),
                                       .edge_dim = run.count("edge_dim"),
                                       .bias = run.flag("bias"),
                                       .root_weight = run.flag("root_weight")});
                 run.check(conv, [&](const Graph& graph, Inputs& in) {
                   return conv(graph, in["feat"], in["efeat"]);
                 });
               });
}

TEST_CASE("TransformerConv: parameters as in PyG 2.8.1") {
  Generator gen(1);
  const auto names = [&](const TransformerConvOptions& options) {
    std::string text;
    for (const auto& named : TransformerConv(3, 4, 2, gen, options).named_parameters())
      text += (text.empty() ? "" : " ") + named.name + named.parameter.shape().to_string();
    return text;
  };
  const std::string weights =
      "lin_key.weight[8, 3] lin_query.weight[8, 3] lin_value.weight[8, 3] lin_skip.weight[8, 3]";
  const std::string biased =
      "lin_key.weight[8, 3] lin_key.bias[8] lin_query.weight[8, 3] lin_query.bias[8] lin_value.weight[8, 3] "
      "lin_value.bias[8] lin_skip.weight[8, 3] lin_skip.bias[8]";
  CHECK(names({.bias = false}) == weights);
  CHECK(names({.beta = true, .bias = false}) == weights + " lin_beta.weight[1, 24]");
  CHECK(names({}) == biased);
  CHECK(names({.beta = true, .root_weight = false}) == biased);
  CHECK(names({.concat = false, .beta = true, .bias = false}) ==
        "lin_key.weight[8, 3] lin_query.weight[8, 3] lin_value.weight[8, 3] lin_skip.weight[4, 3] "
        "lin_beta.weight[1, 12]");
}

TEST_CASE("TransformerConv: the formula, and finite differences") {
  const Communicator world = Communicator::world();
  const int me = world.rank();
  std::size_t number = 0;
  for (const WholeGraph& g : test_graphs())
    for (const Books& books : test_books(g, world.size()))
      for (const TransformerCase& c : transformer_cases(g.square)) {
        const Index dst_width = c.pair ? 3 : src_width;
        const auto x_src = random_values(g.num_src * src_width, 1);
        const auto x_dst = c.pair ? random_values(g.num_dst * dst_width, 2) : x_src;
        const auto e = random_values(static_cast<Index>(g.src.size()) * edge_width, 3);
        Generator gen(7);
        TransformerConv conv(c.pair ? InFeatures(src_width, dst_width) : InFeatures(src_width), columns,
                             heads, gen, c.options);
        const auto expected = transformer_formula(conv, c.options, g, x_src, x_dst, e);
        const Index width = c.options.concat ? heads * columns : columns;
        const Tensor whole = to_tensor(expected, {g.num_dst, width});

        const auto ways = ways_of_case(number++);
        for (std::size_t way = 0; way < ways.size(); ++way) {
          CAPTURE(g.name);
          CAPTURE(way);
          CAPTURE(c.pair);
          CAPTURE(c.options.edge_dim);
          CAPTURE(c.options.beta);
          CAPTURE(c.options.concat);
          const Graph graph = shard(world, g, books, ways[way]);
          Tensor edge_rows({graph.num_edges(), edge_width});
          for (Index i = 0; i < graph.num_edges(); ++i)
            for (Index j = 0; j < edge_width; ++j)
              edge_rows.row(i)[j] = static_cast<real>(e[static_cast<std::size_t>(
                  graph.edge_ids()[static_cast<std::size_t>(i)] * edge_width + j)]);
          std::vector<Variable> inputs{Variable(local_rows(x_src, books.src, me, src_width), true),
                                       Variable(local_rows(x_dst, books.dst, me, dst_width), true),
                                       Variable(edge_rows, true)};
          const auto layer = [&](const std::vector<Variable>& in) {
            const Variable efeat = c.options.edge_dim > 0 ? in[2] : Variable();
            return c.pair ? conv(graph, {in[0], in[1]}, efeat) : conv(graph, in[0], efeat);
          };
          CHECK(error_of_rows(layer(inputs).value(), whole, books.dst.begin(me)) < tolerance());
          // One way in each mode; all modes share what is left.
          if (way % 2 != 0 || g.num_src > 60) continue;
          for (const Variable& parameter : conv.parameters()) inputs.push_back(parameter);
          CHECK_NOTHROW(gradcheck(layer, inputs, {.directions = 2, .sum_over_ranks = [&](double value) {
                                                    return world.all_reduce(value, ReduceOp::sum);
                                                  }}));
        }
      }
}

namespace {

/// Runs both layers with the same parameters and dropouts, forward and backward, and compares.
void check_same(const Communicator& world, const GoldenGraph& part, Module& a, Module& b, const Tensor& x,
                const std::function<Variable(const Variable&)>& run_a,
                const std::function<Variable(const Variable&)>& run_b) {
  for (const auto& named : a.named_parameters()) b.set_parameter(named.name, named.parameter.value());
  const auto run = [&](Module& module, const std::function<Variable(const Variable&)>& layer) {
    const Variable feat(part.src_rows(x), true);
    Tape tape;
    const Variable y = layer(feat);
    tape.backward(sum(y * y));
    gather_grads(world, module);
    std::map<std::string, Tensor> result{{"y", y.value()}, {"feat", feat.grad()}};
    for (const auto& named : module.named_parameters()) result[named.name] = named.parameter.grad();
    return result;
  };
  auto in_a = run(a, run_a), in_b = run(b, run_b);
  for (const auto& [name, tensor] : in_a) {
    if (name == "lin_key.bias") continue;  // 0 but for rounding: softmax does not feel it
    CAPTURE(name);
    CHECK(error_of_part(in_b[name], tensor, tensor) < tolerance());
  }
}

}  // namespace

TEST_CASE("fused attention and coefficients in memory are the same, dropout included") {
  const Communicator world = Communicator::world();
  const Case golden("conv/GATConv__plain");
  const Tensor x = golden.tensor("in.feat");
  for (const GraphOptions& options : graph_ways()) {
    const GoldenGraph part = golden_graph(world, golden, options);
    const Tensor no_features = Tensor::zeros({part.graph.num_edges(), edge_width});
    {
      Generator gen_a(3), gen_b(3);
      GATConv a(x.row_size(), columns, heads, gen_a, {.feat_drop = 0.3, .attn_drop = 0.5});
      EdgeGATConv b(x.row_size(), edge_width, columns, heads, gen_b,
                    {.feat_drop = 0.3, .attn_drop = 0.5, .residual = false});
      check_same(
          world, part, a, b, x, [&](const Variable& feat) { return a(part.graph, feat); },
          [&](const Variable& feat) { return b(part.graph, feat, no_features); });
    }
    {
      Generator gen_a(3), gen_b(3);
      TransformerConv a(x.row_size(), columns, heads, gen_a, {.beta = true, .dropout = 0.5});
      TransformerConv b(x.row_size(), columns, heads, gen_b,
                        {.beta = true, .dropout = 0.5, .edge_dim = edge_width});
      check_same(
          world, part, a, b, x, [&](const Variable& feat) { return a(part.graph, feat); },
          [&](const Variable& feat) { return b(part.graph, feat, no_features); });
    }
  }
}

TEST_CASE(
    "attention layers: the same draws on every number of ranks, others at the next call, none in eval") {
  const Communicator world = Communicator::world();
  const Case golden("conv/GATConv__plain");
  const auto run = [&](const Communicator& comm, int calls, bool training) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    Generator gen(4);
    GATConv conv(golden.tensor("in.feat").row_size(), 5, 2, gen,
                 {.feat_drop = 0.2, .attn_drop = 0.5, .residual = true, .activation = [](Variable y) {
                    return elu(std::move(y));
                  }});
    conv.train(training);
    Tensor y;
    for (int k = 0; k < calls; ++k) y = conv(part.graph, part.src_rows(golden.tensor("in.feat"))).value();
    return std::pair(y, part.my_dst);
  };
  const auto [mine, ids] = run(world, 1, true);
  const Tensor whole = run(Communicator::self(), 1, true).first;
  CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
  CHECK_FALSE(same_bits(whole, run(Communicator::self(), 2, true).first));
  CHECK_FALSE(same_bits(whole, run(Communicator::self(), 1, false).first));
  CHECK(same_bits(run(Communicator::self(), 1, false).first, run(Communicator::self(), 2, false).first));
  // elu(y) > -1
  CHECK(*std::min_element(whole.values().begin(), whole.values().end()) > -1);
}

TEST_CASE("attention layers refuse what does not fit, on all ranks") {
  const Communicator world = Communicator::world();
  Generator gen(1);
  const GoldenGraph part = golden_graph(world, Case("conv/GATConv__plain"), {});
  const Graph& graph = part.graph;
  const Graph bipartite = golden_graph(world, Case("conv/GATConv__bipartite"), {}).graph;
  const auto zeros = [](Index rows, Index width) { return Variable(Tensor::zeros({rows, width})); };
  GATConv gat(6, 4, 3, gen), pair({6, 5}, 4, 3, gen);
  GATv2Conv gatv2(6, 4, 3, gen);
  DotGatConv dot(6, 4, 3, gen);
  AGNNConv agnn;
  EdgeGATConv edge_gat(6, 2, 4, 3, gen);
  TransformerConv transformer(6, 4, 3, gen), with_edges(6, 4, 3, gen, {.edge_dim = 2});
  const Index nodes = graph.num_src_nodes(), edges = graph.num_edges();
  // only the last rank is wrong
  const Index off = world.rank() + 1 == world.size() ? 1 : 0;
  CHECK_THROWS_AS((void)gat(graph, zeros(nodes, 6 + off)), ShapeError);
  CHECK_THROWS_AS((void)gat(graph, zeros(nodes + off, 6)), ShapeError);
  CHECK_THROWS_AS((void)gat(graph, zeros(nodes, 6), Variable(Tensor::zeros({edges + off}))), ShapeError);
  CHECK_THROWS_AS((void)gat.attention(graph, zeros(nodes, 6), zeros(edges + off, 1)), ShapeError);
  CHECK_THROWS_AS((void)gat(bipartite, zeros(bipartite.num_src_nodes(), 6)), ShapeError);
  CHECK_THROWS_AS((void)pair(graph, zeros(nodes, 6)), ShapeError);
  CHECK_THROWS_AS((void)pair(graph, {zeros(nodes, 6), zeros(nodes, 5 + off)}), ShapeError);
  CHECK_THROWS_AS((void)gatv2(graph, zeros(nodes + off, 6)), ShapeError);
  CHECK_THROWS_AS((void)dot(graph, zeros(nodes + off, 6)), ShapeError);
  CHECK_THROWS_AS((void)agnn(graph, zeros(nodes + off, 6)), ShapeError);
  CHECK_THROWS_AS((void)agnn(bipartite, zeros(bipartite.num_src_nodes(), 6)), ShapeError);
  CHECK_THROWS_AS((void)edge_gat(graph, zeros(nodes, 6), zeros(edges, 2 + off)), ShapeError);
  CHECK_THROWS_AS((void)transformer(graph, zeros(nodes, 6 + off)), ShapeError);
  CHECK_THROWS_AS((void)with_edges(graph, zeros(nodes, 6)), ShapeError);
  CHECK_THROWS_AS((void)transformer(graph, zeros(nodes, 6), zeros(edges, 2)), ShapeError);
  CHECK_THROWS_AS(GATConv(6, 4, 0, gen), InputError);
  CHECK_THROWS_AS(GATConv(6, 4, 3, gen, {.attn_drop = 1}), InputError);
  CHECK_THROWS_AS(GATv2Conv({6, 5}, 4, 3, gen, {.share_weights = true}), InputError);
  CHECK(gat(graph, zeros(nodes, 6)).shape() == Shape{graph.num_dst_nodes(), 3, 4});
}
