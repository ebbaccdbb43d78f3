// SPDX-License-Identifier: MIT
#include "support/golden_graph.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/node_pairs.hpp>
#include <sar/nn/models/link_predictor.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// A case of predictors on the ranks: its pairs and its nodes are divided in some way.
struct Problem {
  Communicator world = Communicator::world();
  Case golden;
  std::vector<Index> src = golden.indices("src"), dst = golden.indices("dst"),
                     etype = golden.indices("etype");
  Tensor h = golden.tensor("h");

  explicit Problem(const std::string& name) : golden(name) {}

  void load(Module& module) const {
    CHECK(module.named_parameters().size() == golden.arrays("param.").size());
    for (const auto& named : module.named_parameters())
      module.set_parameter(named.name, golden.tensor("param." + named.name));
  }
  void check_gradients(Module& module, const Variable& x, Index first) const {
    CHECK(error_of_rows(x.grad(), golden.tensor("grad_h"), first) < tolerance());
    gather_grads(world, module);
    for (const auto& named : module.named_parameters()) {
      CAPTURE(named.name);
      CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) < tolerance());
      Variable(named.parameter).zero_grad();
    }
  }
};

using PairScore = std::function<Variable(const Variable&, const Variable&, std::vector<Index> rels)>;
using GraphScore = std::function<Variable(const Graph&, const Variable&, std::vector<Index> rels)>;

/// Scores and gradients of pairs anywhere, and of the edges of a graph, are those of the case.
void check_case(const std::string& name, Module& module, const PairScore& score_pairs,
                const GraphScore& score_edges) {
  CAPTURE(name);
  const Problem p(name);
  p.load(module);
  const int rank = p.world.rank();
  for (const PartitionBook& nodes : row_splits(p.h.num_rows(), p.world.size()))
    for (const PartitionBook& of_pairs : row_splits(std::ssize(p.src), p.world.size())) {
      const auto part = [&](const std::vector<Index>& all) {
        return std::vector<Index>(all.begin() + of_pairs.begin(rank), all.begin() + of_pairs.end(rank));
      };
      const NodePairs pairs(p.world, nodes, part(p.src), part(p.dst), {.max_halo_bytes = 100});
      const Variable x(my_rows(p.h, nodes, rank), true);
      Tape tape;
      const Variable scores = score_pairs(pairs.src(x), pairs.dst(x), part(p.etype));
      const Index first = of_pairs.begin(rank);
      CHECK(error_of_rows(scores.value(), p.golden.tensor("out"), first) < tolerance());
      tape.backward(scores, my_rows(p.golden.tensor("seed"), of_pairs, rank));
      p.check_gradients(module, x, nodes.begin(rank));
    }
  const GoldenGraph whole =
      golden_graph(p.world, p.src, p.dst, p.h.num_rows(), p.h.num_rows(), "homogeneous", {});
  std::vector<Index> etype;
  for (const Index id : whole.graph.edge_ids()) etype.push_back(p.etype[static_cast<std::size_t>(id)]);
  const Variable x(whole.src_rows(p.h), true);
  Tape tape;
  const Variable scores = score_edges(whole.graph, x, etype);
  const Tensor expected = p.golden.tensor("out");
  CHECK(error_of_part(scores.value(), whole.edge_rows(expected), expected) < tolerance());
  tape.backward(scores, whole.edge_rows(p.golden.tensor("seed")));
  p.check_gradients(module, x, PartitionBook::even(p.h.num_rows(), p.world.size()).begin(rank));
}

}  // namespace

TEST_CASE("predictors: golden vectors") {
  Generator gen(0);
  DotPredictor dot;
  check_case(
      "link/dot", dot, [&](const auto& u, const auto& v, auto) { return dot(u, v); },
      [&](const auto& graph, const auto& x, auto) { return dot(graph, x); });
  MLPPredictor mlp(6, gen), wide(6, gen, {.hidden = 9, .out = 4});
  check_case(
      "link/mlp", mlp, [&](const auto& u, const auto& v, auto) { return mlp(u, v); },
      [&](const auto& graph, const auto& x, auto) { return mlp(graph, x); });
  check_case(
      "link/mlp_wide", wide, [&](const auto& u, const auto& v, auto) { return wide(u, v); },
      [&](const auto& graph, const auto& x, auto) { return wide(graph, x); });
}

TEST_CASE("predictors of edges with a relation: golden vectors") {
  Generator gen(0);
  const auto check = [](const std::string& name, RelationPredictor& predictor) {
    check_case(
        name, predictor,
        [&](const auto& u, const auto& v, auto rels) { return predictor(u, v, std::move(rels)); },
        [&](const auto& graph, const auto& x, auto rels) { return predictor(graph, x, std::move(rels)); });
  };
  DistMultPredictor dist_mult(3, 6, gen);
  check("link/dist_mult", dist_mult);
  ComplExPredictor compl_ex(3, 6, gen);
  check("relation/complex", compl_ex);
  TransEPredictor l1(3, 6, gen, {.gamma = 5}), l2(3, 6, gen, {.gamma = 5, .norm = 2});
  check("relation/transe_l1", l1);
  check("relation/transe_l2", l2);
  RotatEPredictor rotate(3, 6, gen, 5);
  check("relation/rotate", rotate);
}

TEST_CASE("predictors: finite differences") {
  Generator gen(3);
  const Variable u(random_values({5, 4}, 1), true), v(random_values({5, 4}, 2), true);
  const DotPredictor dot;
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return dot(in[0], in[1]); }, {u, v}));
  const MLPPredictor mlp(4, gen, {.hidden = 3, .out = 2});
  std::vector<Variable> inputs{u, v};
  for (const Variable& parameter : mlp.parameters()) inputs.push_back(parameter);
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return mlp(in[0], in[1]); }, inputs));
}

TEST_CASE("predictors of edges with a relation: finite differences") {
  Generator gen(3);
  const DistMultPredictor dist_mult(2, 4, gen);
  const ComplExPredictor compl_ex(2, 4, gen);
  const TransEPredictor l1(2, 4, gen, {.gamma = 0}), l2(2, 4, gen, {.gamma = 0, .norm = 2});
  const RotatEPredictor rotate(2, 4, gen, 0);
  Tensor far = random_away_from_zero({5, 4}, 1);  // from v and relations, where absolute values are smooth
  for (real& value : far.values()) value *= 5;
  const Variable u(far, true), v(random_tensor({5, 4}, 2, -0.2, 0.2), true);
  for (const RelationPredictor* predictor :
       std::initializer_list<const RelationPredictor*>{&dist_mult, &compl_ex, &l1, &l2, &rotate}) {
    const std::vector<Variable> inputs{u, v, predictor->parameters()[0]};
    CHECK_NOTHROW(gradcheck(
        [&](const auto& in) {
          return (*predictor)(in[0], in[1], {0, 1, 1, 0, 1});
        },
        inputs));
  }
}

TEST_CASE("a distance of 0 has the slope 0") {
  Generator gen(3);
  for (const int norm : {1, 2}) {
    TransEPredictor predictor(1, 2, gen, {.gamma = 3, .norm = norm});
    predictor.set_parameter("w_relation", Tensor::zeros({1, 2}));
    const Variable u(Tensor::from({1, 2}, {1, 2}), true);
    Tape tape;
    const Variable score = predictor(u, u, {0});
    CHECK(score.value().item() == 3);
    tape.backward(score);
    CHECK(relative_error(u.grad(), Tensor::zeros({1, 2})) == 0);
  }
}

TEST_CASE("a query for sources gives the score that one for destinations gives") {
  Generator gen(3);
  const Tensor u = random_values({3, 4}, 1), v = random_values({3, 4}, 2);
  const auto distance = [](const Tensor& a, const Tensor& b, Index i) {
    return std::hypot(std::hypot(a.row(i)[0] - b.row(i)[0], a.row(i)[2] - b.row(i)[2]),
                      std::hypot(a.row(i)[1] - b.row(i)[1], a.row(i)[3] - b.row(i)[3]));
  };
  const auto dot = [](const Tensor& a, const Tensor& b, Index i) {
    double sum = 0;
    for (Index j = 0; j < 4; ++j) sum += static_cast<double>(a.row(i)[j]) * b.row(i)[j];
    return sum;
  };
  const ComplExPredictor compl_ex(2, 4, gen);
  const TransEPredictor trans_e(2, 4, gen, {.norm = 2});
  const RotatEPredictor rotate(2, 4, gen);
  for (const RelationPredictor* predictor :
       std::initializer_list<const RelationPredictor*>{&compl_ex, &trans_e, &rotate}) {
    const Tensor for_dst = predictor->query(EdgeEnd::destination, u, {0, 1, 1}).value();
    const Tensor for_src = predictor->query(EdgeEnd::source, v, {0, 1, 1}).value();
    for (Index i = 0; i < 3; ++i) {
      const bool is_dot = predictor->comparison() == RowComparison::dot;
      const double forth = is_dot ? dot(for_dst, v, i) : distance(for_dst, v, i);
      const double back = is_dot ? dot(for_src, u, i) : distance(for_src, u, i);
      CHECK(forth == doctest::Approx(back).epsilon(1e-5));
    }
  }
}

TEST_CASE("scores of a bipartite graph") {
  const Communicator world = Communicator::world();
  const std::vector<Index> src{0, 3, 4, 4}, dst{2, 0, 1, 2};
  const GoldenGraph whole = golden_graph(world, src, dst, 5, 3, "bipartite", {});
  const Tensor u = random_values({5, 4}, 1), v = random_values({3, 4}, 2);
  const Tensor scores =
      DotPredictor()(whole.graph, {Variable(whole.src_rows(u)), Variable(whole.dst_rows(v))}).value();
  for (Index e = 0; e < whole.graph.num_edges(); ++e) {
    const auto id = static_cast<std::size_t>(whole.graph.edge_ids()[e]);
    double expected = 0;
    for (Index j = 0; j < 4; ++j) expected += static_cast<double>(u.row(src[id])[j]) * v.row(dst[id])[j];
    CHECK(scores.data()[e] == doctest::Approx(expected));
  }
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)DotPredictor()(whole.graph, Variable(whole.src_rows(u)));
        }) == "DotPredictor got features of one node type for a bipartite graph");
}

TEST_CASE("predictors say what does not fit") {
  const Communicator world = Communicator::world();
  Generator gen(0);
  CHECK_THROWS_AS(MLPPredictor(0, gen), InputError);
  CHECK_THROWS_AS(DistMultPredictor(0, 3, gen), InputError);
  const Variable three(Tensor::zeros({2, 3})), four(Tensor::zeros({2, 4}));
  CHECK(thrown<ShapeError>([&] { (void)DotPredictor()(three, four); }) ==
        "DotPredictor: the ends have shapes [2, 3] and [2, 4], expected [pairs, width] for both");
  CHECK(thrown<ShapeError>([&] { (void)MLPPredictor(4, gen)(three, three); }) ==
        "MLPPredictor: the ends have shapes [2, 3] and [2, 3], expected [pairs, 4] for both");
  const DistMultPredictor dist_mult(2, 3, gen);
  CHECK(thrown<ShapeError>([&] { (void)dist_mult(three, three, {0}); }) ==
        "DistMultPredictor: 1 relations for 2 pairs");
  CHECK(thrown<InputError>([&] {
          (void)dist_mult(three, three, {0, 2});
        }) == "DistMultPredictor: relation 2, expected 0 to 1");
  CHECK(thrown<InputError>([&] { (void)RotatEPredictor(2, 3, gen); }) ==
        "RotatEPredictor with 3 features, expected an even number: real and imaginary parts");
  CHECK(thrown<InputError>([&] { (void)TransEPredictor(2, 3, gen, {.norm = 3}); }) ==
        "TransEPredictor: norm is 3, expected 1 or 2");
  CHECK(thrown<ShapeError>([&] {
          (void)dist_mult.query(EdgeEnd::source, four, {0, 1});
        }) == "DistMultPredictor: the ends have shape [2, 4], expected [pairs, 3]");
  const bool last = world.rank() == world.size() - 1;
  const GoldenGraph whole = golden_graph(world, {0, 1}, {1, 0}, 2, 2, "homogeneous", {});
  const Index rows = whole.graph.num_nodes() + (last ? 1 : 0);
  CHECK_THROWS_AS((void)DotPredictor()(whole.graph, Variable(Tensor::zeros({rows, 3}))), ShapeError);
}
