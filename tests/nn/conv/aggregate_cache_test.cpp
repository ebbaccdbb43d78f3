// SPDX-License-Identifier: MIT

/// Layers that keep the aggregate of constant features: the same results as without it, what drops it, and
/// what is refused.
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index in = 5;

using Layer = std::function<Variable(const Graph&, const Variable& x, const Variable& weight)>;

/// A layer twice, with the same weights: without and with `cached`.
struct Pair {
  std::string name;
  std::shared_ptr<Module> module[2];
  Layer call[2];
};

template <class Conv, class Make>
Pair make_pair(const std::string& name, const Make& make) {
  Pair pair{name, {}, {}};
  for (const bool cached : {false, true}) {
    Generator gen(3);
    const std::shared_ptr<Conv> conv = make(gen, cached);
    pair.module[cached] = conv;
    pair.call[cached] = [conv](const Graph& graph, const Variable& x, const Variable& weight) {
      return (*conv)(graph, x, weight);
    };
  }
  return pair;
}

/// Layers to `out` features.
std::vector<Pair> pairs(Index out) {
  std::vector<Pair> all;
  for (const SAGEAggregator aggregator : {SAGEAggregator::mean, SAGEAggregator::gcn})
    all.push_back(make_pair<SAGEConv>("SAGEConv", [=](Generator& gen, bool cached) {
      return std::make_shared<SAGEConv>(in, out, gen,
                                        SAGEConvOptions{.aggregator = aggregator, .cached = cached});
    }));
  for (const GraphConvNorm norm : {GraphConvNorm::none, GraphConvNorm::both})
    all.push_back(make_pair<GraphConv>("GraphConv", [=](Generator& gen, bool cached) {
      return std::make_shared<GraphConv>(in, out, gen, GraphConvOptions{.norm = norm, .cached = cached});
    }));
  for (const Reduce reduce : {fn::sum, fn::max})
    all.push_back(make_pair<GINConv>("GINConv", [=](Generator& gen, bool cached) {
      return std::make_shared<GINConv>(
          std::make_shared<Linear>(in, out, gen),
          GINConvOptions{.aggregator = reduce, .learn_eps = true, .cached = cached});
    }));
  all.push_back(make_pair<SGConv>("SGConv", [=](Generator& gen, bool cached) {
    return std::make_shared<SGConv>(in, out, gen, SGConvOptions{.k = 2, .cached = cached});
  }));
  all.push_back(make_pair<TAGConv>("TAGConv", [=](Generator& gen, bool cached) {
    return std::make_shared<TAGConv>(in, out, gen, TAGConvOptions{.k = 2, .cached = cached});
  }));
  all.push_back(make_pair<APPNPConv>("APPNPConv", [=](Generator& gen, bool cached) {
    return std::make_shared<APPNPConv>(3, 0.2, gen, 0, cached);
  }));
  return all;
}

struct Scene {
  const Communicator world = Communicator::world();
  WholeGraph whole;
  Books books;
  Graph graph;

  explicit Scene(const WholeGraph& g, const Books& of, const GraphOptions& options = {})
      : whole(g), books(of), graph(shard(world, g, of, options)) {}
  [[nodiscard]] Tensor features(std::uint64_t stream) const {
    return local_rows(random_values(whole.num_src * in, stream), books.src, world.rank(), in);
  }
  [[nodiscard]] Tensor weights() const {  // positive
    std::vector<double> values = random_values(static_cast<Index>(whole.src.size()), 9);
    for (double& value : values) value = static_cast<double>(static_cast<real>(value + 1.5));
    return edge_rows(values, graph);
  }
};

/// The result and the gradients of all parameters, on a tape.
std::vector<Tensor> run(const Pair& pair, bool cached, const Scene& scene, const Variable& x,
                        const Variable& weight) {
  Module& module = *pair.module[cached];
  module.zero_grad();
  Tape tape;
  const Variable y = pair.call[cached](scene.graph, x, weight);
  std::vector<Tensor> found{y.value().clone()};
  if (module.parameters().empty()) return found;
  tape.backward(y, y.value().clone());
  gather_grads(scene.world, module);
  for (const Variable& parameter : module.parameters()) found.push_back(parameter.grad().clone());
  return found;
}

void check_equal(const Pair& pair, const Scene& scene, const Variable& x, const Variable& weight) {
  const std::vector<Tensor> expected = run(pair, false, scene, x, weight);
  const std::vector<Tensor> found = run(pair, true, scene, x, weight);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_error(found[i], expected[i]) < tolerance());
  }
}

/// Every rank throws an InputError that names the layer.
void check_refused(const Pair& pair, const Scene& scene, const Variable& x, const Variable& weight,
                   const std::string& text) {
  const std::string message =
      thrown_by_all<InputError>(scene.world, [&] { (void)pair.call[1](scene.graph, x, weight); });
  CAPTURE(message);
  CHECK(message.find(pair.name) != std::string::npos);
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("cached layers: results and gradients of several calls on all graphs, in all modes") {
  std::size_t number = 0;
  for (const WholeGraph& whole : square_graphs()) {
    for (const Books& books : test_books(whole, Communicator::world().size()))
      for (const GraphOptions& options : ways_of_case(number++)) {
        if (options.edge_chunk == 3) continue;
        const Scene scene(whole, books, options);
        const Tensor x = scene.features(1);
        for (const Index out : {Index{3}, Index{7}})
          for (const Pair& pair : pairs(out)) {
            CAPTURE(whole.name);
            CAPTURE(pair.name);
            for (int call = 0; call < 2; ++call) check_equal(pair, scene, x, {});
          }
      }
  }
}

TEST_CASE("cached layers: edge weights, and two graphs in turn") {
  const WholeGraph whole = test_graphs()[0], other = test_graphs()[5];
  const int parts = Communicator::world().size();
  const Scene a(whole, test_books(whole, parts)[0]), b(other, test_books(other, parts)[0]);
  const Tensor x = a.features(1), z = b.features(1), w = a.weights();
  for (const Pair& pair : pairs(4)) {
    CAPTURE(pair.name);
    check_equal(pair, a, x, w);
    check_equal(pair, a, x, w);
    check_equal(pair, a, x, {});
    check_equal(pair, b, z, {});
    check_equal(pair, a, x, w);
  }
}

TEST_CASE("cached layers: rows travel in the first call only; the same bits") {
  const WholeGraph whole = test_graphs()[0];
  const Scene scene(whole, test_books(whole, Communicator::world().size())[0]);
  const Tensor x = scene.features(1);
  const std::uint64_t rows = halo_traffic(whole, scene.books, scene.world).sends * in * sizeof(real);
  for (const Pair& pair : pairs(7)) {
    CAPTURE(pair.name);
    std::uint64_t bytes[3] = {comm_bytes(scene.graph)};
    const Tensor first = pair.call[1](scene.graph, x, {}).value();
    bytes[1] = comm_bytes(scene.graph);
    const Tensor second = pair.call[1](scene.graph, x, {}).value();
    bytes[2] = comm_bytes(scene.graph);
    CHECK(bytes[1] - bytes[0] >= rows + (bytes[2] - bytes[1]));
    CHECK(std::ranges::equal(first.values(), second.values()));
  }
}

TEST_CASE("cached layers: another tensor on one rank drops the aggregate on all") {
  const WholeGraph whole = test_graphs()[0];
  const Scene scene(whole, test_books(whole, Communicator::world().size())[0]);
  for (const Pair& pair : pairs(4)) {
    CAPTURE(pair.name);
    const Tensor x = scene.features(1);
    check_equal(pair, scene, x, {});
    const bool last = scene.world.rank() + 1 == scene.world.size();
    check_equal(pair, scene, last ? scene.features(2) : x, {});
  }
}

TEST_CASE("cached layers: other options of the handle drop the aggregate") {
  const WholeGraph whole = test_graphs()[0];
  const Scene scene(whole, test_books(whole, Communicator::world().size())[0]);
  const Tensor x = scene.features(1);
  for (const Pair& pair : pairs(4)) {
    CAPTURE(pair.name);
    Graph graph = scene.graph;
    const auto value = [&](const GraphOptions& options) {
      graph.set_options(options);
      return pair.call[1](graph, x, {}).value().clone();
    };
    (void)value({});
    const Tensor after_single = value({.reproducible = true});
    (void)pair.call[1](shard(scene.world, whole, scene.books, {}), x, {});  // another graph
    CHECK(same_bits(after_single, value({.reproducible = true})));
    CHECK(same_bits(after_single, value({.serial_messages = true, .reproducible = true})));
    const std::uint64_t before = comm_bytes(graph);
    (void)value({.mode = HaloMode::sequential, .reproducible = true});
    if (scene.world.size() > 1 && halo_traffic(whole, scene.books, scene.world).sends > 0)
      CHECK(comm_bytes(graph) - before >=
            halo_traffic(whole, scene.books, scene.world).sends * in * sizeof(real));
  }
}

TEST_CASE("cached layers refuse values that change in place on one rank, and wishes for gradients") {
  const WholeGraph whole = test_graphs()[0];
  const Scene scene(whole, test_books(whole, Communicator::world().size())[0]);
  for (const Pair& pair : pairs(4)) {
    CAPTURE(pair.name);
    Tensor x = scene.features(1), w = scene.weights();
    check_equal(pair, scene, x, w);
    const bool last = scene.world.rank() + 1 == scene.world.size();
    if (last) x.values().back() += 1;
    check_refused(pair, scene, x, w, "values have changed");
    if (last) x.values().back() -= 1;
    const real before = last ? w.values().front() : real{0};
    if (last) w.values().front() = 7;
    check_refused(pair, scene, x, w, "values have changed");
    if (last) w.values().front() = before;
    check_refused(pair, scene, Variable(x, true), {}, "want a gradient");
    check_refused(pair, scene, x, Variable(w, true), "want a gradient");
    check_equal(pair, scene, x.clone(), w);
  }
}

TEST_CASE("APPNPConv refuses to keep a result that drops other edges in every call") {
  Generator gen(1);
  CHECK(thrown<InputError>([&] { APPNPConv(2, 0.1, gen, 0.5, true); }) ==
        "APPNPConv with cached and edge_drop 0.5, which changes the result in every call, expected 0");
}

TEST_CASE("SAGEConv refuses to keep an aggregate that changes in every call") {
  Generator gen(1);
  const auto text = [&](const SAGEConvOptions& options) {
    return thrown<InputError>([&] { SAGEConv(3, 2, gen, options); });
  };
  CHECK(text({.feat_drop = 0.5, .cached = true}).find("SAGEConv with cached and feat_drop 0.5") !=
        std::string::npos);
  for (const SAGEAggregator aggregator : {SAGEAggregator::pool, SAGEAggregator::lstm})
    CHECK(text({.aggregator = aggregator, .cached = true}).find("expected mean or gcn") != std::string::npos);
}

TEST_CASE("a kept aggregate refuses operands with a tangent, on all ranks") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Graph graph = shard(world, whole, test_books(whole, world.size()).front(), {});
  const Tensor x = Tensor::full({graph.num_src_nodes(), 3}, 1);
  Generator gen(1);
  SAGEConv conv(3, 2, gen, {.cached = true});
  const std::string text = thrown_by_all<InputError>(world, [&] { (void)conv(graph, make_dual(x, x)); });
  CHECK(text.find("with a tangent, expected constants") != std::string::npos);
  CHECK_NOTHROW((void)conv(graph, Variable(x)));
}
