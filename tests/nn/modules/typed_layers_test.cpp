// SPDX-License-Identifier: MIT

/// Golden vectors of the layers of typed nodes and edges, a training, and what the vectors do not show.
#include "nn/conv/conv_cases.hpp"
#include "support/random_tensor.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/nn/conv/hgt_conv.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/hetero_embedding.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("TypedLinear: golden vectors") {
  for (const std::string name : {"basis", "bdd", "none", "none_sorted"}) {
    CAPTURE(name);
    const Case golden("typed/TypedLinear__" + name);
    const std::string regularizer = golden.arg("regularizer");
    Generator gen(1);
    TypedLinear layer(golden.tensor("x").row_size(), golden.tensor("out").row_size(),
                      static_cast<Index>(golden.number("num_types")), gen,
                      {.regularizer = regularizer == "basis" ? Regularizer::basis
                                      : regularizer == "bdd" ? Regularizer::bdd
                                                             : Regularizer::none,
                       .num_bases = static_cast<Index>(golden.number("num_bases"))});
    CHECK(layer.named_parameters().size() == golden.arrays("param.").size());
    load_parameters(layer, golden);
    const Variable x(golden.tensor("x"), true);
    Tape tape;
    const Variable y = layer(x, golden.indices("types"));
    CHECK(relative_error(y.value(), golden.values("out")) < tolerance());
    tape.backward(y, golden.tensor("grad_out"));
    CHECK(relative_error(x.grad(), golden.values("grad_x")) < tolerance());
    for (const auto& named : layer.named_parameters())
      CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) < tolerance());
  }
}

TEST_CASE("TypedLinear: many rows in the order of their types, and the same rows in another order") {
  const Index rows = 3 * 4096 + 5;  // so many that each type is one product; type 1 has none
  Generator gen(1);
  const TypedLinear layer(6, 5, 3, gen);
  const Tensor x = random_tensor({rows, 6}, 1), upstream = random_tensor({rows, 5}, 2);
  const auto run = [&](bool reversed) {
    std::vector<Index> order(static_cast<std::size_t>(rows)), types;
    for (Index i = 0; i < rows; ++i) order[static_cast<std::size_t>(i)] = reversed ? rows - 1 - i : i;
    for (const Index i : order) types.push_back(i < 5000 ? 0 : 2);
    Variable weight = layer.weight();
    weight.zero_grad();
    Tensor out, grad;
    for (int pass = 0; pass < 2; ++pass) {  // the second adds to the gradient of the first
      Tape tape;
      const Variable y = layer(Variable(GoldenGraph::rows(x, order)), types);
      tape.backward(y, GoldenGraph::rows(upstream, order));
      out = GoldenGraph::rows(y.value(), order);
      grad = weight.grad().clone();
    }
    return std::pair(out, grad);
  };
  const auto [out, grad] = run(false);
  const auto [other_out, other_grad] = run(true);
  CHECK(same_bits(out, other_out));
  CHECK(relative_error(grad, other_grad) < tolerance());
  for (Index j = 0; j < 30; ++j) CHECK(grad.row(1)[j] == 0);
  CHECK(std::abs(other_grad.row(2)[0]) > 0);
}

TEST_CASE("TypedLinear: wrong sizes and types") {
  Generator gen(1);
  CHECK_THROWS_AS(TypedLinear(4, 0, 2, gen), InputError);
  CHECK_THROWS_AS(TypedLinear(4, 4, 0, gen), InputError);
  CHECK(thrown<InputError>([&] {
          TypedLinear(4, 6, 2, gen, {.regularizer = Regularizer::bdd, .num_bases = 4});
        }) == "TypedLinear from 4 to 6 features in 4 blocks");
  TypedLinear layer(4, 3, 2, gen);
  const Variable x(random_tensor({3, 4}, 1));
  CHECK_THROWS_AS((void)layer(x, std::vector<Index>{0, 1, 2}), ShapeError);
  CHECK_THROWS_AS((void)layer(x, std::vector<Index>{0, 1}), ShapeError);
}

TEST_CASE("HeteroLinear: golden vectors") {
  for (const bool bias : {true, false}) {
    const Case golden(bias ? "typed/HeteroLinear__bias" : "typed/HeteroLinear__no_bias");
    Generator gen(1);
    HeteroLinear layer({{"item", 5}, {"user", 3}}, 4, gen, bias);
    CHECK(layer.named_parameters().size() == golden.arrays("param.").size());
    load_parameters(layer, golden);
    HeteroLinear::Rows x;
    for (const std::string& type : golden.arrays("in."))
      x.emplace(type, Variable(golden.tensor("in." + type), true));
    Tape tape;
    HeteroLinear::Rows y = layer(x);
    REQUIRE(y.size() == 2);
    std::vector<Variable> weighted;
    for (const auto& [type, rows] : y) {
      CHECK(relative_error(rows.value(), golden.values("out." + type)) < tolerance());
      weighted.push_back(sum(rows * Variable(golden.tensor("grad_out." + type))));
    }
    tape.backward(weighted[0] + weighted[1]);
    for (const auto& [type, rows] : x)
      CHECK(relative_error(rows.grad(), golden.values("grad_in." + type)) < tolerance());
    for (const auto& named : layer.named_parameters())
      CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) < tolerance());
    CHECK(thrown<InputError>([&] {
            (void)layer({{"tag", x.at("user")}});
          }) == "HeteroLinear got rows of the type 'tag', for which it has no linear map");
    CHECK_THROWS_AS((void)layer({{"user", x.at("item")}}), ShapeError);
  }
  Generator gen(1);
  const HeteroLinear of_relation({{"user:follows:user", 2}}, 4, gen, false);
  CHECK(of_relation.named_parameters()[0].name == "linears.('user', 'follows', 'user').weight");
}

namespace {

/// `nodes` of two types, those of rank 1 none, with original ids that do not follow the order of the rows.
Graph users_and_items(const Communicator& comm, Index users, Index items) {
  const auto type = [&](const std::string& name, Index n) {
    std::vector<Index> offsets{0};
    for (int p = 0; p < comm.size(); ++p)
      offsets.push_back(p == 1 ? offsets.back() : n * (p + 1) / comm.size());
    offsets.back() = n;
    const PartitionBook book(offsets);
    NodeTypeSpec spec{name, book, {}};
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) spec.ids.push_back(n - 1 - v);
    return spec;
  };
  return {comm, {type("user", users), type("item", items)}, {{{"user", "buys", "item"}, {}}}};
}

}  // namespace

TEST_CASE("HeteroEmbedding: golden vectors, as rows by id and as all rows of a rank") {
  const Communicator world = Communicator::world();
  const Case golden("typed/HeteroEmbedding__rows");
  const Graph graph = users_and_items(world, 9, 4);
  Generator gen(1);
  HeteroEmbedding embedding(graph, {"user", "item"}, 3, gen);
  const auto check_gradient = [&](const std::string& type) {
    const Tensor whole = golden.tensor("grad_param.embeds." + type + ".weight");
    const SparseRows found = embedding[type].gradient();
    Tensor mine = Tensor::zeros({graph.num_nodes(type), 3});
    for (Index i = 0; i < std::ssize(found.ids); ++i)
      std::copy_n(found.rows.row(i), 3, mine.row(found.ids[i] - graph.book(type).begin(world.rank())));
    CHECK(error_of_part(mine, GoldenGraph::rows(whole, graph.node_ids(type)), whole) < tolerance());
    embedding[type].zero_grad();
  };
  for (const std::string type : {"user", "item"}) {
    const Tensor whole = golden.tensor("param.embeds." + type + ".weight");
    embedding[type].mine().copy_from(GoldenGraph::rows(whole, graph.node_ids(type)));
    embedding[type].rows().barrier();
  }

  // rank 0 asks for the rows of the case, the others for none
  std::map<std::string, std::vector<Index>> ids;
  std::map<std::string, std::span<const Index>> spans;
  for (const std::string type : {"user", "item"}) {
    if (world.rank() == 0)
      for (const Index id : golden.indices("ids." + type))
        ids[type].push_back(graph.num_global_nodes(type) - 1 - id);
    spans[type] = ids[type];
  }
  {
    Tape tape;
    const HeteroEmbedding::Rows rows = embedding(spans);
    if (world.rank() == 0)
      for (const auto& [type, of_type] : rows) {
        CHECK(relative_error(of_type.value(), golden.values("out." + type)) < tolerance());
        tape.backward(of_type, golden.tensor("grad_out." + type));
      }
    for (const std::string type : {"user", "item"}) check_gradient(type);
  }

  // all rows, of which those of the case get their gradients
  Tape tape;
  HeteroEmbedding::Rows all = embedding();
  for (const std::string type : {"user", "item"}) {
    const Tensor table = golden.tensor("param.embeds." + type + ".weight");
    CHECK(error_of_part(all[type].value(), GoldenGraph::rows(table, graph.node_ids(type)), table) <
          tolerance());
    const Tensor whole = golden.tensor("grad_param.embeds." + type + ".weight");
    tape.backward(all[type], GoldenGraph::rows(whole, graph.node_ids(type)));
    check_gradient(type);
  }
}

TEST_CASE("HeteroEmbedding: the same rows for every number of ranks, and a step of them") {
  const Communicator world = Communicator::world();
  const auto after_step = [](const Communicator& comm) {
    const Graph graph = users_and_items(comm, 23, 5);
    Generator gen(7);
    HeteroEmbedding embedding(graph, {"item", "user"}, 4, gen, 0.5);
    SparseAdam adam(embedding.refs(), {.lr = 0.1});
    Tape tape;
    const Variable rows = embedding()["user"];
    tape.backward(rows, Tensor::full(rows.shape(), real(0.25)));
    adam.step();
    adam.zero_grad();
    return std::pair(embedding["user"].mine().clone(), graph.node_ids("user"));
  };
  const auto [mine, ids] = after_step(world);
  const auto [whole, whole_ids] = after_step(Communicator::self());
  for (Index i = 0; i < mine.num_rows(); ++i)
    for (Index k = 0; k < whole.num_rows(); ++k)
      if (ids[i] == whole_ids[k]) CHECK(std::equal(mine.row(i), mine.row(i) + 4, whole.row(k)));
  for (const real x : mine.values()) CHECK(std::abs(x) < real(0.61));
}

TEST_CASE("HeteroEmbedding: errors") {
  const Communicator world = Communicator::world();
  const Graph graph = users_and_items(world, 9, 4);
  Generator gen(1);
  CHECK(thrown_by_all<InputError>(world, [&] { HeteroEmbedding(graph, {"tag"}, 3, gen); }).find("tag") !=
        std::string::npos);
  CHECK(thrown_by_all<InputError>(world, [&] {
          HeteroEmbedding(graph, {"user", "user"}, 3, gen);
        }) == "HeteroEmbedding got the type 'user' twice");
  CHECK_THROWS_AS(HeteroEmbedding(graph, {"user"}, 0, gen), InputError);
  HeteroEmbedding embedding(graph, {"user"}, 3, gen);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)embedding({{"item", {}}});
        }) == "HeteroEmbedding has no rows of the type 'item'");
}

TEST_CASE("HGTConv: golden vectors") {
  for_each_run(
      {"typed/HGTConv__norm", "typed/HGTConv__residual", "typed/HGTConv__same_width", "typed/HGTConv__wide"},
      [](const Run& run) {
        Generator gen(1);
        HGTConv conv(run.width("in.feat"), run.count("head_size"), run.count("num_heads"),
                     run.count("num_ntypes"), run.count("num_etypes"), gen,
                     {.dropout = 0, .use_norm = run.flag("use_norm")});
        run.check(conv, [&](const Graph& graph, Inputs& in) {
          return conv(graph, in["feat"], in.ntype, in.etype);
        });
      });
}

namespace {

struct Net : Module {
  ModuleList<HGTConv> convs;
  Net(Index ntypes, Index etypes, Generator& gen) {
    register_module("convs", convs);
    convs.emplace_back(6, 4, 2, ntypes, etypes, gen, HGTConvOptions{.dropout = 0});
    convs.emplace_back(8, 3, 2, ntypes, etypes, gen, HGTConvOptions{.dropout = 0, .use_norm = true});
  }
  Variable operator()(const Graph& graph, const Variable& x, const RowIds& ntypes, const EdgeTypes& etypes) {
    return convs[1](graph, relu(convs[0](graph, x, ntypes, etypes)), ntypes, etypes);
  }
};

}  // namespace

TEST_CASE("HGTConv: five steps of Adam as in DGL, from DGL's weights, in every mode") {
  const Communicator world = Communicator::world();
  const Case golden("typed/hgt_train");
  for (const GraphOptions& options : graph_ways()) {
    const GoldenGraph part = golden_graph(world, golden, options);
    std::vector<Index> ntypes, etypes, labels;
    std::vector<std::uint8_t> mask;
    for (const Index node : part.my_src) {
      ntypes.push_back(golden.indices("ntype")[static_cast<std::size_t>(node)]);
      labels.push_back(golden.indices("labels")[static_cast<std::size_t>(node)]);
      mask.push_back(golden.mask("mask")[static_cast<std::size_t>(node)]);
    }
    for (const Index id : part.graph.edge_ids())
      etypes.push_back(golden.indices("etype")[static_cast<std::size_t>(id)]);
    const Variable x(part.src_rows(golden.tensor("in.feat")));
    Generator gen(1);
    Net net(static_cast<Index>(golden.number("num_ntypes")), static_cast<Index>(golden.number("num_etypes")),
            gen);
    REQUIRE(net.named_parameters().size() == golden.arrays("param.").size());
    load_parameters(net, golden);
    Adam optimizer(net.named_parameters(),
                   {.lr = golden.number("lr"), .weight_decay = golden.number("weight_decay")});
    for (const double expected : golden.values("losses")) {
      Tape tape;
      const Variable loss = cross_entropy(net(part.graph, x, ntypes, etypes), labels, mask, world);
      CHECK(std::abs(loss.value().item() / expected - 1) < tolerance());
      tape.backward(loss);
      gather_grads(world, net);
      optimizer.step();
      optimizer.zero_grad();
    }
    const Tensor logits = golden.tensor("out.logits");
    CHECK(error_of_part(net(part.graph, x, ntypes, etypes).value(), part.dst_rows(logits), logits) <
          10 * tolerance());
    for (const auto& named : net.named_parameters()) {
      CAPTURE(named.name);
      CHECK(relative_error(named.parameter.value(), golden.values("param_after." + named.name)) <
            tolerance());
    }
  }
}

TEST_CASE("HGTConv: dropout is drawn for original ids, and nothing is dropped in evaluation") {
  const Communicator world = Communicator::world();
  const Case golden("typed/HGTConv__same_width");
  const auto run = [&](const Communicator& comm, bool training) {
    const GoldenGraph part = golden_graph(comm, golden, {});
    std::vector<Index> ntypes, etypes;
    for (const Index node : part.my_src)
      ntypes.push_back(golden.indices("ntype")[static_cast<std::size_t>(node)]);
    for (const Index id : part.graph.edge_ids())
      etypes.push_back(golden.indices("etype")[static_cast<std::size_t>(id)]);
    Generator gen(4);
    HGTConv conv(8, 4, 2, 3, 5, gen, {.dropout = 0.5});
    conv.train(training);
    return std::pair(conv(part.graph, part.src_rows(golden.tensor("in.feat")), ntypes, etypes).value(),
                     part.my_dst);
  };
  for (const bool training : {true, false}) {
    const auto [mine, ids] = run(world, training);
    const Tensor whole = run(Communicator::self(), training).first;
    CHECK(error_of_part(mine, GoldenGraph::rows(whole, ids), whole) < tolerance());
  }
  CHECK(relative_error(run(world, true).first, run(world, false).first) > 0.1);
}

TEST_CASE("HGTConv: wrong operands of one rank are the same error on all") {
  const Communicator world = Communicator::world();
  const Case golden("typed/HGTConv__same_width");
  const GoldenGraph part = golden_graph(world, golden, {});
  const bool bad = world.rank() == world.size() - 1;
  const auto nodes = static_cast<std::size_t>(part.graph.num_src_nodes());
  const auto edges = static_cast<std::size_t>(part.graph.num_edges());
  Generator gen(4);
  HGTConv conv(8, 4, 2, 3, 5, gen);
  const auto text_of = [&](Index width, std::size_t ntypes, Index ntype, std::size_t etypes, Index etype) {
    return thrown_by_all<Error>(world, [&] {
      (void)conv(part.graph, Variable(Tensor::full({static_cast<Index>(nodes), width}, 1)),
                 std::vector<Index>(ntypes, ntype), std::vector<Index>(etypes, etype));
    });
  };
  CHECK(text_of(bad ? 7 : 8, nodes, 0, edges, 0).find("HGTConv, features have shape") == 0);
  CHECK(text_of(8, nodes + (bad ? 1 : 0), 0, edges, 0).find(" node types for ") != std::string::npos);
  CHECK(text_of(8, nodes, bad ? 3 : 2, edges, 0) == "HGTConv got the node type 3, there are 3");
  CHECK(text_of(8, nodes, 0, edges, bad ? 5 : 4) == "HGTConv got the edge type 5, there are 5");
  CHECK_THROWS_AS(HGTConv(8, 4, 0, 3, 5, gen), InputError);
  CHECK_THROWS_AS(HGTConv(8, 4, 2, 3, 0, gen), InputError);
  CHECK_THROWS_AS(HGTConv(8, 4, 2, 3, 5, gen, {.dropout = 1}), InputError);
}

TEST_CASE("SimpleHGNConv: golden vectors") {
  for_each_run({"typed/SimpleHGNConv__plain", "typed/SimpleHGNConv__residual"}, [](const Run& run) {
    Generator gen(1);
    SimpleHGNConv conv(run.width("in.feat"), run.count("edge_size"), run.count("head_size"),
                       run.count("num_heads"), run.count("num_etypes"), gen,
                       {.residual = run.flag("residual")});
    run.check(conv, [&](const Graph& graph, Inputs& in) { return conv(graph, in["feat"], in.etype); });
  });
}

TEST_CASE("SimpleHGNConv: coefficients, and their mixture with those of the layer below") {
  const Communicator world = Communicator::world();
  const Case golden("typed/SimpleHGNConv__plain");
  const GoldenGraph part = golden_graph(world, golden, {});
  std::vector<Index> etypes;
  for (const Index id : part.graph.edge_ids())
    etypes.push_back(golden.indices("etype")[static_cast<std::size_t>(id)]);
  const Variable x(part.src_rows(golden.tensor("in.feat")));
  Generator gen(3);
  SimpleHGNConv below(6, 3, 4, 2, 5, gen, {.residual = false});
  SimpleHGNConv conv(6, 3, 4, 2, 5, gen, {.residual = false, .beta = 0.3});
  // y from the coefficients
  const auto from = [&](SimpleHGNConv& layer, const Variable& alpha) {
    const Variable z = reshape(matmul(x, layer.named_parameters()[1].parameter), {x.num_rows(), 2, 4});
    return reshape(part.graph.update_all(fn::u_mul_e(z, alpha), fn::sum), {part.graph.num_dst_nodes(), 8})
        .value();
  };
  const Variable previous = below.attention(part.graph, x, etypes);
  CHECK(relative_error(below(part.graph, x, etypes).value(), from(below, previous)) < tolerance());
  const Variable mixed = conv.attention(part.graph, x, etypes, previous);
  CHECK(relative_error(conv(part.graph, x, etypes, previous).value(), from(conv, mixed)) < tolerance());
  const Variable own = conv.attention(part.graph, x, etypes);
  CHECK(relative_error(mixed.value(), (own * real(0.7) + previous * real(0.3)).value()) < tolerance());
  CHECK(relative_error(conv(part.graph, x, etypes).value(), from(conv, own)) < tolerance());
}

TEST_CASE("SimpleHGNConv: wrong operands of one rank are the same error on all") {
  const Communicator world = Communicator::world();
  const GoldenGraph part = golden_graph(world, Case("typed/SimpleHGNConv__plain"), {});
  const bool bad = world.rank() == world.size() - 1;
  const auto edges = static_cast<std::size_t>(part.graph.num_edges());
  Generator gen(4);
  SimpleHGNConv conv(6, 3, 4, 2, 5, gen, {.beta = 0.5});
  const auto text_of = [&](Index width, Index etype, const Variable& previous) {
    return thrown_by_all<Error>(world, [&] {
      (void)conv(part.graph, Variable(Tensor::full({part.graph.num_src_nodes(), width}, 1)),
                 std::vector<Index>(edges, etype), previous);
    });
  };
  CHECK(text_of(bad ? 7 : 6, 0, {}).find("SimpleHGNConv") == 0);
  CHECK(text_of(6, bad ? 5 : 4, {}) == "SimpleHGNConv got the edge type 5, there are 5");
  const Variable previous(Tensor::full({part.graph.num_edges(), 2, 1}, real(0.5)));
  CHECK(text_of(6, 0, bad ? Variable(Tensor({part.graph.num_edges() + 1, 2, 1})) : previous)
            .find("SimpleHGNConv, coefficients of the layer below have shape") == 0);
  CHECK_THROWS_AS(SimpleHGNConv(6, 0, 4, 2, 5, gen), InputError);
  CHECK_THROWS_AS(SimpleHGNConv(6, 3, 4, 2, 0, gen), InputError);
  CHECK_THROWS_AS(SimpleHGNConv(6, 3, 4, 2, 5, gen, {.beta = 1}), InputError);
}
