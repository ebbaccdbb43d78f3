// SPDX-License-Identifier: MIT

/// Golden vectors of the convolutions that need no attention, and what the vectors do not show.
#include "conv_cases.hpp"
#include "graph/test_graphs.hpp"
#include "support/rows.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The features as a layer takes them: one variable for both ends, or a pair.
template <class Conv, class... Args>
Variable call(Conv& conv, const Run& run, const Graph& graph, Inputs& in, const Args&... args) {
  return run.bipartite() ? conv(graph, std::pair(in["feat_src"], in["feat_dst"]), args...)
                         : conv(graph, in["feat"], args...);
}

}  // namespace

TEST_CASE("SAGEConv pool: golden vectors") {
  for_each_run({"SAGEConv__pool", "SAGEConv__pool_bipartite"}, [](const Run& run) {
    Generator gen(1);
    const std::pair widths = run.bipartite() ? std::pair(run.width("in.feat_src"), run.width("in.feat_dst"))
                                             : std::pair(run.width("in.feat"), run.width("in.feat"));
    SAGEConv conv(widths, run.width("out"), gen, {.aggregator = SAGEAggregator::pool});
    run.check(conv, [&](const Graph& graph, Inputs& in) { return call(conv, run, graph, in); });
  });
}

TEST_CASE("SAGEConv lstm: golden vectors") {
  for_each_run({"SAGEConv__lstm"}, [](const Run& run) {
    Generator gen(1);
    SAGEConv conv(run.width("in.feat"), run.width("out"), gen, {.aggregator = SAGEAggregator::lstm});
    run.check(conv, [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"]); });
  });
}

TEST_CASE("SAGEConv lstm: empty ranks, nodes without in-edges, parallel edges; edge weights") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, world.size())) {
      CAPTURE(whole.name);
      const auto run = [&](const Communicator& comm, const Books& own, bool reproducible) {
        const Graph graph = shard(comm, whole, own, {.reproducible = reproducible});
        const ReproducibleScope scope(comm, reproducible);
        const int rank = comm.rank();
        Generator gen(2);
        SAGEConv conv(std::pair<Index, Index>(3, 2), 4, gen, {.aggregator = SAGEAggregator::lstm});
        const Variable src(my_rows(random_values(Shape{whole.num_src, 3}, 1), own.src, rank), true);
        const Variable dst(my_rows(random_values(Shape{whole.num_dst, 2}, 2), own.dst, rank), true);
        const Variable weight(
            edge_rows(random_values(static_cast<Index>(whole.src.size()), std::uint64_t{3}), graph), true);
        Tape tape;
        const Variable y = conv(graph, std::pair(src, dst), weight);
        tape.backward(y, my_rows(random_values(Shape{whole.num_dst, 4}, 4), own.dst, rank));
        gather_grads(comm, conv);
        return std::tuple(y.value(), src.grad(), conv.parameters());
      };
      const Communicator self = Communicator::self();
      const auto exact = run(self, test_books(whole, 1)[0], true), my_exact = run(world, books, true);
      for (std::size_t i = 0; i < std::get<2>(exact).size(); ++i) {
        const Tensor expected = std::get<2>(exact)[i].grad();
        REQUIRE(std::get<2>(my_exact)[i].grad().defined() == expected.defined());
        if (expected.defined()) CHECK(same_bits(std::get<2>(my_exact)[i].grad(), expected));
      }
      const auto [y, grad, parameters] = run(self, test_books(whole, 1)[0], false);
      const auto [my_y, my_grad, my_parameters] = run(world, books, false);
      CHECK(error_of_rows(my_y, y, books.dst.begin(world.rank())) < tolerance());
      REQUIRE(my_grad.defined());
      CHECK(error_of_rows(my_grad, grad, books.src.begin(world.rank())) < tolerance());
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        REQUIRE(my_parameters[i].grad().defined() == parameters[i].grad().defined());
        if (parameters[i].grad().defined())
          CHECK(relative_error(my_parameters[i].grad(), parameters[i].grad()) < tolerance());
      }
    }
}

TEST_CASE("edge_weight_norm: sums to one, by the formula, with gradients") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, world.size()))
      for (const EdgeNorm norm : {EdgeNorm::right, EdgeNorm::both, EdgeNorm::in_weights}) {
        if (norm == EdgeNorm::in_weights && !whole.square) continue;
        CAPTURE(whole.name);
        const Graph graph = shard(world, whole, books, {});
        std::vector<double> w = random_values(static_cast<Index>(whole.src.size()), std::uint64_t{3});
        std::vector<double> out(static_cast<std::size_t>(whole.num_src)),
            in(static_cast<std::size_t>(whole.num_dst));
        for (std::size_t k = 0; k < w.size(); ++k) {
          w[k] = 0.2 + std::abs(w[k]);
          out[static_cast<std::size_t>(whole.src[k])] += w[k];
          in[static_cast<std::size_t>(whole.dst[k])] += w[k];
        }
        const Variable weight(edge_rows(w, graph), true);
        std::vector<double> expected;
        for (const Index id : graph.edge_ids()) {
          const auto k = static_cast<std::size_t>(id);
          const double to = in[static_cast<std::size_t>(whole.dst[k])];
          const double from = norm == EdgeNorm::in_weights ? in[static_cast<std::size_t>(whole.src[k])]
                                                           : out[static_cast<std::size_t>(whole.src[k])];
          expected.push_back(norm == EdgeNorm::right ? w[k] / to
                             : from > 0              ? w[k] / std::sqrt(to * from)
                                                     : 0);
        }
        CHECK(relative_error(edge_weight_norm(graph, weight, norm).value(), expected) < tolerance());
        const Graph rounding = shard(world, whole, books, {.halo_format = HaloFormat::bf16});
        CHECK(relative_error(edge_weight_norm(rounding, weight, norm).value(), expected) < tolerance());
        const auto gradient = [&](const Graph& of) {
          const Variable leaf(weight.value(), true);
          Tape tape;
          const Variable y = edge_weight_norm(of, leaf, norm);
          tape.backward(y, random_values(y.shape(), std::uint64_t{4}));
          return leaf.grad();
        };
        CHECK(same_bits(gradient(rounding), gradient(graph)));
        GradcheckOptions options;
        options.directions = 2;
        options.sum_over_ranks = [&](double x) { return world.all_reduce(x); };
        CHECK(gradcheck([&](const auto& vars) { return edge_weight_norm(graph, vars[0], norm); }, {weight},
                        options) >= 0);
      }
}

TEST_CASE("positions of neighbors are not rounded with halo rows") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("places", 60, 60, 400, 1);
  const Books books = test_books(whole, world.size()).front();
  const Variable x =
      scale_shift(Variable(my_rows(random_values(Shape{60, 3}, 1), books.dst, world.rank())), 100);
  const std::vector<double> box(3, 100.0);
  const Graph graph = shard(world, whole, books, {});
  const Graph rounding = shard(world, whole, books, {.halo_format = HaloFormat::bf16});
  CHECK(same_bits(relative_positions(rounding, x).value(), relative_positions(graph, x).value()));
  CHECK(same_bits(minimum_image_shifts(rounding, x, box), minimum_image_shifts(graph, x, box)));
}

TEST_CASE("GINConv: golden vectors") {
  for_each_run(
      {"GINConv__max_linear", "GINConv__mean_linear", "GINConv__sum_linear", "GINConv__sum_linear_bipartite",
       "GINConv__sum_linear_edge_weight", "GINConv__sum_mlp", "GINConv__sum_no_func_fixed_eps"},
      [](const Run& run) {
        Generator gen(1);
        const std::string func = run.golden.arg("apply_func"), reduce = run.golden.arg("aggregator_type");
        const Index in_feats = run.width(run.bipartite() ? "in.feat_src" : "in.feat");
        RowFunction apply;
        if (func == "linear") apply = std::make_shared<Linear>(in_feats, run.width("out"), gen);
        if (func == "mlp") {
          const auto mlp = std::make_shared<Sequential>();
          mlp->emplace_back<Linear>(in_feats, run.count("hidden_feats"), gen);
          mlp->push_back(relu);
          mlp->emplace_back<Linear>(run.count("hidden_feats"), run.width("out"), gen);
          apply = mlp;
        }
        GINConv conv(apply, {.aggregator = reduce == "sum"    ? Reduce::sum
                                           : reduce == "mean" ? Reduce::mean
                                                              : Reduce::max,
                             .init_eps = run.golden.number("eps"),
                             .learn_eps = run.flag("learn_eps")});
        run.check(conv, [&](const Graph& graph, Inputs& in) {
          return call(conv, run, graph, in, in["edge_weight"]);
        });
      });
}

TEST_CASE("EdgeConv: golden vectors") {
  for_each_run({"EdgeConv__plain", "EdgeConv__bipartite"}, [](const Run& run) {
    Generator gen(1);
    EdgeConv conv(run.width(run.bipartite() ? "in.feat_src" : "in.feat"), run.width("out"), gen);
    run.check(conv, [&](const Graph& graph, Inputs& in) { return call(conv, run, graph, in); });
  });
}

// y_v = (1 + eps) x_v + sum relu(x_u + e_uv), edge by edge.
TEST_CASE("GINEConv: by the formula, with a given and a learnable eps") {
  const Communicator world = Communicator::world();
  constexpr Index width = 3;
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, world.size()))
      for (const bool learn_eps : {false, true}) {
        CAPTURE(whole.name);
        const auto num_edges = static_cast<Index>(whole.src.size());
        const Tensor x = random_values(Shape{whole.num_src, width}, 1),
                     own = whole.square ? x : random_values(Shape{whole.num_dst, width}, 2),
                     e = random_values(Shape{num_edges, width}, 3);
        Tensor want = Tensor::zeros({whole.num_dst, width});
        for (Index i = 0; i < want.size(); ++i) want.data()[i] = real(1.25) * own.data()[i];
        for (Index k = 0; k < num_edges; ++k)
          for (Index j = 0; j < width; ++j)
            want.row(whole.dst[static_cast<std::size_t>(k)])[j] +=
                std::max(real{0}, x.row(whole.src[static_cast<std::size_t>(k)])[j] + e.row(k)[j]);
        const Graph graph = shard(world, whole, books, {});
        const Variable src(my_rows(x, books.src, world.rank()), true);
        const Variable dst = whole.square ? src : Variable(my_rows(own, books.dst, world.rank()), true);
        Tensor of_edges({graph.num_edges(), width});
        for (Index i = 0; i < graph.num_edges(); ++i)
          std::copy_n(e.row(graph.edge_ids()[i]), width, of_edges.row(i));
        const Variable edges(of_edges, true);
        const GINEConv conv({}, {.init_eps = 0.25, .learn_eps = learn_eps});
        CHECK(conv.parameters().size() == (learn_eps ? 1 : 0));
        const Variable y = whole.square ? conv(graph, src, edges) : conv(graph, std::pair(src, dst), edges);
        CHECK(error_of_rows(y.value(), want, books.dst.begin(world.rank())) < tolerance());
      }
}

TEST_CASE("APPNPConv: golden vectors") {
  for_each_run({"APPNPConv__plain", "APPNPConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    APPNPConv conv(static_cast<int>(run.count("k")), run.golden.number("alpha"), gen);
    run.check(conv,
              [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"], in["edge_weight"]); });
  });
}

TEST_CASE("TAGConv: golden vectors") {
  for_each_run({"TAGConv__plain", "TAGConv__no_bias", "TAGConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    TAGConv conv(run.width("in.feat"), run.width("out"), gen,
                 {.k = static_cast<int>(run.count("k")), .bias = run.flag("bias")});
    run.check(conv,
              [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"], in["edge_weight"]); });
  });
}

TEST_CASE("SGConv: golden vectors") {
  for_each_run({"SGConv__plain", "SGConv__edge_weight"}, [](const Run& run) {
    Generator gen(1);
    SGConv conv(run.width("in.feat"), run.width("out"), gen,
                {.k = static_cast<int>(run.count("k")), .bias = run.flag("bias")});
    run.check(conv,
              [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"], in["edge_weight"]); });
  });
}

TEST_CASE("HeteroGraphConv: golden vectors") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"HeteroGraphConv__sum", "HeteroGraphConv__mean"})
    for (const GraphOptions& options : graph_ways()) {
      CAPTURE(name);
      const Case golden("conv/" + name);
      const auto count = [&](const std::string& key) { return static_cast<Index>(golden.number(key)); };
      const Index users = count("num_nodes.user"), items = count("num_nodes.item");
      const auto relation = [&](const std::string& r, Index sources, const char* kind) {
        return golden_graph(world, golden.indices("src." + r), golden.indices("dst." + r), sources, users,
                            kind, options);
      };
      const GoldenGraph r0 = relation("r0", users, "homogeneous"), r1 = relation("r1", items, "bipartite");
      const Variable user(r0.src_rows(golden.tensor("in.user")), true),
          item(r1.src_rows(golden.tensor("in.item")), true);

      Generator gen(1);
      HeteroGraphConv conv(golden.arg("aggregate") == "sum" ? RelationAggregate::sum
                                                            : RelationAggregate::mean);
      const auto norm = [&](const std::string& r) {
        return golden.arg("norm." + r) == "both" ? GraphConvNorm::both : GraphConvNorm::right;
      };
      conv.emplace_back<GraphConv>({"user", "r0", "user"}, count("in_feats.user"), count("out_feats"), gen,
                                   GraphConvOptions{.norm = norm("r0")});
      conv.emplace_back<GraphConv>({"item", "r1", "user"}, count("in_feats.item"), count("out_feats"), gen,
                                   GraphConvOptions{.norm = norm("r1")});
      CHECK(conv.named_parameters().size() == golden.arrays("param.").size());
      load_parameters(conv, golden);

      Tape tape;
      const auto y = conv({{"r0", r0.graph}, {"r1", r1.graph}}, {{"user", user}, {"item", item}});
      REQUIRE(y.size() == 1);
      const auto check_part = [&](const Tensor& mine, const std::string& file,
                                  const std::vector<Index>& ids) {
        CAPTURE(file);
        const Tensor whole = golden.tensor(file);
        CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
      };
      check_part(y.at("user").value(), "out.user", r0.my_dst);
      tape.backward(y.at("user"), r0.dst_rows(golden.tensor("grad_out.user")));
      check_part(user.grad(), "grad_in.user", r0.my_src);
      check_part(item.grad(), "grad_in.item", r1.my_src);
      gather_grads(world, conv);
      for (const auto& named : conv.named_parameters())
        CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) <
              tolerance());
    }
}

TEST_CASE("HeteroGraphConv passes pairs on, and leaves out relations without a graph") {
  const Communicator world = Communicator::world();
  const GoldenGraph part = golden_graph(world, Case("conv/SAGEConv__mean_bipartite"), {});
  const auto num_src = part.graph.num_src_nodes(), num_dst = part.graph.num_dst_nodes();
  const Variable src = random_values({num_src, 6}, 1), dst = random_values({num_dst, 5}, 2);
  Generator gen(1);
  HeteroGraphConv conv;
  SAGEConv& sage = conv.emplace_back<SAGEConv>({"item", "to", "user"}, std::pair(6, 5), 4, gen);
  conv.emplace_back<GraphConv>({"user", "from", "item"}, 5, 4, gen);
  const auto y = conv({{"to", part.graph}}, {{"item", src}, {"user", dst}});
  CHECK(y.size() == 1);
  CHECK(same_bits(y.at("user").value(), sage(part.graph, std::pair(src, dst)).value()));
  CHECK_THROWS_AS((void)conv({{"to", part.graph}}, {{"item", src}}), InputError);
  CHECK_THROWS_AS((void)conv({{"to", part.graph}},
                             {{"item", src}, {world.rank() + 1 == world.size() ? "other" : "user", dst}}),
                  InputError);
  CHECK_THROWS_AS((void)conv({{"other", part.graph}}, {{"item", src}, {"user", dst}}), InputError);
  CHECK_THROWS_AS(conv.emplace_back<GraphConv>({"user", "to", "item"}, 5, 4, gen), InputError);
}

TEST_CASE("TAGConv and SGConv before or after the product, cached or not: the same result") {
  const Communicator world = Communicator::world();
  const Case golden("conv/TAGConv__plain");
  const GoldenGraph part = golden_graph(world, golden, {});
  const Tensor x = part.src_rows(random_values({golden.tensor("in.feat").num_rows(), 5}));
  Generator gen(3);
  const auto hops = [&](int k) {  // S^k x
    SGConv conv(5, 5, gen, {.k = k, .bias = false});
    Tensor identity = Tensor::zeros({5, 5});
    for (Index i = 0; i < 5; ++i) identity.row(i)[i] = 1;
    conv.set_parameter("fc.weight", identity);
    return conv(part.graph, x);
  };
  const Variable all = concat_columns({hops(0), hops(1), hops(2)});
  for (const Index out_feats : {3, 5, 9})
    for (const bool wants_feat : {true, false}) {
      CAPTURE(out_feats);
      TAGConv tag(5, out_feats, gen);
      SGConv sg(5, out_feats, gen, {.k = 2}), cached(5, out_feats, gen, {.k = 2, .cached = true});
      const auto parameter = [](const Module& module, std::size_t i) { return module.parameters()[i]; };
      CHECK(relative_error(tag(part.graph, Variable(x, wants_feat)).value(),
                           linear(all, parameter(tag, 0), parameter(tag, 1)).value()) < tolerance());
      CHECK(relative_error(sg(part.graph, Variable(x, wants_feat)).value(),
                           linear(hops(2), parameter(sg, 0), parameter(sg, 1)).value()) < tolerance());
      for (int call = 0; call < 2; ++call) {
        const Variable y = cached(part.graph, x);
        CHECK(relative_error(y.value(), linear(hops(2), parameter(cached, 0), parameter(cached, 1)).value()) <
              tolerance());
      }
      CHECK_THROWS_AS((void)cached(part.graph, Variable(x, true)), InputError);
    }
}

TEST_CASE("APPNPConv drops the same edges on every number of ranks, and others at the next call") {
  const Communicator world = Communicator::world();
  const Case golden("conv/APPNPConv__plain");
  const auto run = [&](const Communicator& comm, int calls) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    Generator gen(4);
    APPNPConv conv(3, 0.2, gen, 0.5);
    Tensor y;
    for (int k = 0; k < calls; ++k) y = conv(part.graph, part.src_rows(golden.tensor("in.feat"))).value();
    return std::pair(y, part.my_dst);
  };
  const auto [mine, ids] = run(world, 1);
  const Tensor whole = run(Communicator::self(), 1).first;
  CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
  CHECK_FALSE(same_bits(whole, run(Communicator::self(), 2).first));
}

TEST_CASE("layers refuse what does not fit the graph, on all ranks") {
  const Communicator world = Communicator::world();
  Generator gen(1);
  const GoldenGraph square = golden_graph(world, Case("conv/SAGEConv__mean"), {});
  const GoldenGraph bipartite = golden_graph(world, Case("conv/SAGEConv__mean_bipartite"), {});
  const GoldenGraph block = golden_graph(world, Case("conv/SAGEConv__mean_block"), {});
  // only the last rank is wrong
  const Index off = world.rank() + 1 == world.size() ? 1 : 0;
  const auto src = [](const GoldenGraph& part, Index width, Index more = 0) {
    return Variable(Tensor::zeros({part.graph.num_src_nodes() + more, width}));
  };
  const auto dst = [](const GoldenGraph& part, Index width) {
    return Variable(Tensor::zeros({part.graph.num_dst_nodes(), width}));
  };
  SAGEConv pool(6, 4, gen, {.aggregator = SAGEAggregator::pool});
  GINConv gin;
  EdgeConv edge(6, 4, gen);
  APPNPConv appnp(2, 0.1, gen);
  TAGConv tag(6, 4, gen);
  SGConv sg(6, 4, gen);
  CHECK_THROWS_AS((void)pool(square.graph, src(square, 6 - off)), ShapeError);
  CHECK_THROWS_AS((void)pool(bipartite.graph, src(bipartite, 6)), ShapeError);
  CHECK_THROWS_AS((void)gin(square.graph, src(square, 6, off)), ShapeError);
  CHECK_THROWS_AS((void)gin(bipartite.graph, src(bipartite, 6)), ShapeError);
  CHECK_THROWS_AS((void)gin(bipartite.graph, std::pair(src(bipartite, 6), dst(bipartite, 6 - off))),
                  ShapeError);
  CHECK_THROWS_AS((void)edge(square.graph, src(square, 6 - off)), ShapeError);
  CHECK_THROWS_AS((void)edge(bipartite.graph, src(bipartite, 6)), ShapeError);
  CHECK_THROWS_AS((void)edge(bipartite.graph, std::pair(src(bipartite, 6), dst(bipartite, 6 - off))),
                  ShapeError);
  CHECK_THROWS_AS((void)appnp(block.graph, src(block, 6)), ShapeError);
  CHECK_THROWS_AS((void)tag(block.graph, src(block, 6)), ShapeError);
  CHECK_THROWS_AS((void)appnp(square.graph, src(square, 6, off)), ShapeError);
  CHECK_THROWS_AS((void)tag(square.graph, src(square, 6 - off)), ShapeError);
  CHECK_THROWS_AS((void)sg(block.graph, src(block, 6)), ShapeError);
  CHECK_THROWS_AS((void)sg(square.graph, src(square, 6 - off)), ShapeError);

  // one negative weight on one rank: refused on all
  Tensor weight = Tensor::full({square.graph.num_edges()}, 1);
  if (world.rank() == world.size() - 1 && weight.size() > 0) weight.data()[0] = -1;
  CHECK_THROWS_AS((void)appnp(square.graph, src(square, 6), weight), InputError);
  CHECK(sg(square.graph, src(square, 6)).num_rows() == square.graph.num_dst_nodes());

  CHECK_THROWS_AS(APPNPConv(-1, 0.1, gen), InputError);
  CHECK_THROWS_AS(APPNPConv(2, 1.5, gen), InputError);
  CHECK_THROWS_AS(TAGConv(6, 4, gen, {.k = -1}), InputError);
  CHECK_THROWS_AS(SGConv(6, 4, gen, {.k = -1}), InputError);
  CHECK_THROWS_AS(EdgeConv(0, 4, gen), InputError);
}

TEST_CASE("layers of several hops on message flow graphs give what the whole graph gives") {
  const Communicator world = Communicator::world();
  const Case golden("conv/TAGConv__plain");
  for (const GraphOptions& options : graph_ways()) {
    const GoldenGraph part = golden_graph(world, golden, options);
    const auto& graph = part.graph;
    std::vector<Index> seeds, rows;
    for (Index v = 0; v < graph.num_nodes(); v += 3) {
      seeds.push_back(part.my_dst[static_cast<std::size_t>(v)]);
      rows.push_back(v);
    }
    const std::vector<MessageFlowGraph> hops = construct_mfgs(graph, seeds, 2);
    const Tensor x = part.src_rows(golden.tensor("in.feat"));
    Generator gen(3);
    APPNPConv appnp(2, 0.3, gen);
    const Index width = x.row_size();
    TAGConv tag(width, 2, gen), wide_tag(width, 2 * width, gen);
    SGConv sg(width, 2, gen, {.k = 2});
    const auto check = [&](auto& conv) {
      const auto run = [&](const auto& on, const Variable& feat, const auto& pick) {
        const Variable y = pick(conv(on, feat));
        Tape::current()->backward(y, random_values(y.shape()));
        return y.value();
      };
      const Variable whole(x, true), mine(x, true);
      Tensor expected, result;
      {
        const Tape tape;
        expected = run(graph, whole, [&](const Variable& y) { return gather_rows(y, rows); });
      }
      {
        const Tape tape;
        result = run(std::span<const MessageFlowGraph>(hops), gather_rows(mine, hops.front().src_rows()),
                     [](const Variable& y) { return y; });
      }
      CHECK(relative_error(result, expected) < tolerance());
      CHECK(relative_error(mine.grad(), whole.grad()) < tolerance());
      CHECK_THROWS_AS((void)conv(std::span<const MessageFlowGraph>(hops).first(1), mine), InputError);
      const Index off = world.rank() + 1 == world.size() ? 1 : 0;  // only the last rank is wrong
      const Tensor misfit({hops.front().num_src_nodes() + off, width});
      CHECK_THROWS_AS((void)conv(std::span<const MessageFlowGraph>(hops), misfit), ShapeError);
    };
    check(appnp);
    check(tag);
    check(wide_tag);
    check(sg);
  }
}

TEST_CASE("on one rank, what a reproducible step takes more than another does not grow with the nodes") {
  const Communicator self = Communicator::self();
  const ThreadLimit threads(1);  // each thread has sums of its own
  constexpr Index width = 64;
  const auto peak = [&](Index nodes, bool reproducible) {
    const PartitionBook book = PartitionBook::even(nodes, 1);
    const WholeGraph whole = random_graph("random", nodes, nodes, 3 * nodes, 1);
    const Graph graph(self, book, book, edges_of_rank(self, whole, book), true,
                      {.reproducible = reproducible});
    std::optional<ReproducibleScope> scope;
    if (reproducible) scope.emplace(self);
    Generator gen(1);
    SAGEConv first(width, width, gen), second(width, width, gen);
    DistributedBN1D norm(width, self);
    Dropout drop(0.5, gen);
    const Variable x(random_tensor({nodes, width}, 2));
    std::size_t before = 0;
    for (int step = 0; step < 2; ++step) {  // the first one makes what graph and parameters keep
      before = live_bytes();
      reset_peak_bytes();
      Tape tape;
      const Variable y = second(graph, batch_norm_relu_dropout(first(graph, x), norm, drop, graph.dst_ids()));
      tape.backward(y, Tensor::full(y.shape(), 1));
    }
    return static_cast<double>(peak_bytes() - before);
  };
  const auto more = [&](Index nodes) { return peak(nodes, true) - peak(nodes, false); };
  constexpr Index nodes = 4000;
  CHECK(more(2 * nodes) - more(nodes) < 0.5 * static_cast<double>(nodes * width * sizeof(real)));
}
