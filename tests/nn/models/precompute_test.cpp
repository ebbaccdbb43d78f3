// SPDX-License-Identifier: MIT

/// SIGN, label propagation, correct-and-smooth.
#include "support/golden_graph.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/propagation.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

const std::vector<GraphOptions> modes = {{}, {.mode = HaloMode::one_shot}, {.max_halo_bytes = 40}};

/// A case of the group "precompute" on the ranks.
struct Problem {
  Communicator world = Communicator::world();
  Case golden;
  GoldenGraph whole;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;

  Problem(const std::string& name, const GraphOptions& options, Index nodes)
      : golden("precompute/" + name),
        whole(golden_graph(world, golden.indices("src"), golden.indices("dst"), nodes, nodes, "homogeneous",
                           options)) {
    if (!golden.has("labels")) return;
    const std::vector<Index> all = golden.indices("labels");
    const std::vector<std::uint8_t> known = golden.mask("mask");
    for (const Index v : whole.my_src) {
      mask.push_back(known[static_cast<std::size_t>(v)]);
      labels.push_back(mask.back() != 0 ? all[static_cast<std::size_t>(v)] : -1);
    }
  }
  void check(const Tensor& mine, const std::string& array) const {
    CAPTURE(array);
    const Tensor expected = golden.tensor(array);
    CHECK(error_of_part(mine, whole.src_rows(expected), expected) < tolerance());
  }
};

constexpr Index nodes = 29, classes = 4;

}  // namespace

TEST_CASE("hops of features: golden vectors") {
  for (const GraphOptions& options : modes)
    for (const auto& [name, norm] :
         {std::pair{"hops_symmetric", HopNorm::symmetric}, std::pair{"hops_mean", HopNorm::mean}}) {
      CAPTURE(name);
      const Problem p(name, options, nodes);
      p.check(sign_features(p.whole.graph, p.whole.src_rows(p.golden.tensor("x")), 3, norm), "out");
    }
}

TEST_CASE("a hop: finite differences") {
  const Communicator world = Communicator::world();
  const Problem p("hops_symmetric", {}, nodes);
  const Variable x(p.whole.src_rows(p.golden.tensor("x")), true);
  for (const HopNorm norm : {HopNorm::symmetric, HopNorm::mean})
    CHECK_NOTHROW(
        gradcheck([&](const auto& in) { return propagate(p.whole.graph, in[0], norm); }, {x},
                  {.directions = 4, .sum_over_ranks = [&](double v) { return world.all_reduce(v); }}));
}

TEST_CASE("SIGN's network: golden vectors, names and dropout") {
  const Communicator world = Communicator::world();
  for (const auto& [name, layers] : {std::pair{"sign", 2}, std::pair{"sign_one_layer", 1}}) {
    CAPTURE(name);
    const Case golden(std::string("precompute/") + name);
    Generator gen(0);
    SIGN net(5, 6, classes, gen, {.hops = 2, .layers = layers});
    CHECK(net.named_parameters().size() == golden.arrays("param.").size());
    for (const auto& named : net.named_parameters())
      net.set_parameter(named.name, golden.tensor("param." + named.name));
    const Tensor whole = golden.tensor("x");
    for (const PartitionBook& book : row_splits(whole.num_rows(), world.size())) {
      std::vector<Index> ids(static_cast<std::size_t>(book.num_nodes(world.rank())));
      std::iota(ids.begin(), ids.end(), book.begin(world.rank()));
      const Variable x(my_rows(whole, book, world.rank()), true);
      net.eval();
      Tape tape;
      const Variable y = net(x, ids);
      const Index first = book.begin(world.rank());
      CHECK(error_of_rows(y.value(), golden.tensor("out"), first) < tolerance());
      tape.backward(y, my_rows(golden.tensor("seed"), book, world.rank()));
      CHECK(error_of_rows(x.grad(), golden.tensor("grad_x"), first) < tolerance());
      gather_grads(world, net);
      for (const auto& named : net.named_parameters()) {
        CAPTURE(named.name);
        CHECK(relative_error(named.parameter.grad(), golden.values("grad_param." + named.name)) <
              tolerance());
      }
      net.zero_grad();
    }
    // the same draws for a row wherever it is
    net.train();
    Generator again(0);
    SIGN other(5, 6, classes, again, {.hops = 2, .layers = layers});
    for (const auto& named : net.named_parameters()) other.set_parameter(named.name, named.parameter.value());
    std::vector<Index> all(static_cast<std::size_t>(whole.num_rows()));
    std::iota(all.begin(), all.end(), Index{0});
    const PartitionBook book = PartitionBook::even(whole.num_rows(), world.size());
    const std::vector<Index> mine(all.begin() + book.begin(world.rank()),
                                  all.begin() + book.end(world.rank()));
    CHECK(error_of_rows(net(my_rows(whole, book, world.rank()), mine).value(), other(whole, all).value(),
                        book.begin(world.rank())) < tolerance());
  }
}

TEST_CASE("SIGN's PReLU has its weight as the slope at 0") {
  Generator gen(0);
  SIGN net(1, 1, 1, gen, {.hops = 0, .layers = 1});
  net.set_parameter("inception_ffs.0.layers.0.weight", Tensor::from({1, 1}, {2}));
  net.set_parameter("project.layers.0.weight", Tensor::from({1, 1}, {3}));
  net.set_parameter("prelu.weight", Tensor::from({1}, {0.5}));
  net.eval();
  const Variable x(Tensor::from({3, 1}, {-1, 0, 1}), true);
  Tape tape;
  const Variable y = net(x, {0, 1, 2});
  CHECK(same_bits(y.value(), Tensor::from({3, 1}, {-3, 0, 6})));
  tape.backward(y, Tensor::full({3, 1}, 1));
  CHECK(same_bits(x.grad(), Tensor::from({3, 1}, {3, 3, 6})));
}

TEST_CASE("label propagation: golden vectors") {
  const std::vector<std::pair<std::string, LabelPropagationOptions>> cases = {
      {"labels", {.layers = 10, .alpha = 0.9}},
      {"labels_row", {.layers = 5, .alpha = 0.5, .norm = HopNorm::mean}},
      {"labels_normalize", {.layers = 7, .alpha = 0.8, .clamp = false, .normalize = true}},
      {"labels_reset", {.layers = 7, .alpha = 0.8, .reset = true}}};
  for (const GraphOptions& graph_options : modes)
    for (const auto& [name, options] : cases) {
      CAPTURE(name);
      const Problem p(name, graph_options, nodes);
      p.check(label_propagation(p.whole.graph, p.labels, p.mask, classes, options), "out");
    }
}

TEST_CASE("correct and smooth: golden vectors") {
  const CorrectAndSmoothOptions base{.correction_layers = 6,
                                     .correction_alpha = 0.9,
                                     .smoothing_layers = 4,
                                     .smoothing_alpha = 0.8,
                                     .scale = 0.7};
  for (const GraphOptions& graph_options : modes)
    for (const std::string name : {"correct_autoscale", "correct_fixed", "correct_mean"}) {
      CAPTURE(name);
      const Problem p(name, graph_options, nodes);
      CorrectAndSmoothOptions options = base;
      options.autoscale = name != "correct_fixed";
      options.norm = name == "correct_mean" ? HopNorm::mean : HopNorm::symmetric;
      const Tensor y = p.whole.src_rows(p.golden.tensor("y"));
      p.check(correct_predictions(p.whole.graph, y, p.labels, p.mask, options), "corrected");
      p.check(smooth_predictions(p.whole.graph, y, p.labels, p.mask, options), "smoothed");
      p.check(correct_and_smooth(p.whole.graph, y, p.labels, p.mask, options), "out");
    }
}

TEST_CASE("precompute: what is wrong on one rank is an error on all") {
  Problem p("labels", {}, nodes);
  const Communicator& world = p.world;
  const Graph& graph = p.whole.graph;
  const bool last = world.rank() == world.size() - 1;
  const auto text = [&](const std::function<void()>& action) {
    return thrown_by_all<InputError>(world, action);
  };
  Generator gen(0);
  CHECK_THROWS_AS(SIGN(3, 4, 2, gen, {.hops = -1}), InputError);
  CHECK_THROWS_AS(SIGN(3, 4, 2, gen, {.layers = 0}), InputError);
  const Tensor x = Tensor::zeros({graph.num_nodes(), 3});
  SIGN net(3, 4, 2, gen, {.hops = 1});
  CHECK(thrown<ShapeError>([&] { (void)net(Tensor::zeros({2, 3}), {0, 1}); }) ==
        "SIGN, features have shape [2, 3], expected [2, 6]");
  CHECK(text([&] { (void)sign_features(graph, x, last ? -1 : 1); }) ==
        "sign_features: -1 hops, expected 0 or more");
  CHECK_THROWS_AS((void)sign_features(graph, last ? Tensor::zeros({graph.num_nodes() + 1, 3}) : x, 1),
                  ShapeError);
  CHECK_THROWS_AS((void)sign_features(graph, last ? Tensor::zeros({graph.num_nodes() + 1, 3}) : x, 0),
                  ShapeError);
  const PartitionBook book = PartitionBook::even(4, world.size());
  const Graph bipartite(world, book, PartitionBook::even(5, world.size()), {}, false);
  const Tensor of_sources = Tensor::zeros({bipartite.num_src_nodes(), 3});
  const std::vector<std::int64_t> unknown(static_cast<std::size_t>(bipartite.num_nodes()), -1);
  const std::vector<std::uint8_t> no_mask(unknown.size(), 0);
  const std::vector<std::function<void()>> calls = {
      [&] { (void)sign_features(bipartite, of_sources, 0); },
      [&] { (void)label_propagation(bipartite, unknown, no_mask, 2, {.layers = 0}); }};
  for (const auto& call : calls)
    CHECK(
        thrown_by_all<ShapeError>(world, call) ==
        "propagate needs a graph whose sources and destinations are the same nodes; this one goes from 4 to "
        "5 nodes");
  CHECK(
      text([&] { (void)label_propagation(graph, p.labels, p.mask, classes, {.alpha = last ? 1.5 : 0.5}); }) ==
      "label propagation: 10 layers with alpha 1.5, expected 0 layers or more and a number from 0 to 1");
  const std::vector<std::uint8_t> none(p.mask.size(), 0), all(p.mask.size(), 1);
  CHECK(text([&] { (void)correct_predictions(graph, x, p.labels, none); }) ==
        "correct_predictions: no row of any rank has a known label");
  std::vector<std::int64_t> some(p.labels.begin(), p.labels.end());  // an unlabelled row is outside the mask
  std::vector<std::uint8_t> smaller(p.mask.begin(), p.mask.end());
  for (std::size_t v = 0; v < some.size(); v += 2) some[v] = -1, smaller[v] = 0;
  const Tensor y = label_propagation(graph, some, p.mask, classes),
               expected = label_propagation(graph, p.labels, smaller, classes);
  CHECK(std::ranges::equal(y.values(), expected.values()));
  std::vector<std::int64_t> bad(p.labels.size(), 1);
  if (last) bad[0] = 7;
  CHECK(text([&] { (void)smooth_predictions(graph, x, bad, all); }) ==
        "label propagation: label 7 of row 0, which is in the mask, is not one of the 3 classes");
  if (last) bad.pop_back();
  CHECK_THROWS_AS((void)correct_and_smooth(graph, x, bad, all), ShapeError);
  CHECK_THROWS_AS((void)correct_and_smooth(graph, last ? Tensor::zeros({2, 3}) : x, p.labels, none),
                  ShapeError);
}
