// SPDX-License-Identifier: MIT

/// MeshGraphNet, its blocks and its networks against plain loops in double precision; gradients, ranks,
/// errors.
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

Rows rows_of(const Tensor& x) {
  Rows rows;
  for (Index i = 0; i < x.num_rows(); ++i) rows.emplace_back(x.row(i), x.row(i) + x.row_size());
  return rows;
}

Tensor tensor_of(const Rows& rows, Index width) {
  Tensor x({static_cast<Index>(rows.size()), width});
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (Index j = 0; j < width; ++j) x.row(static_cast<Index>(i))[j] = static_cast<real>(rows[i][j]);
  return x;
}

Row joined(std::initializer_list<Row> parts) {
  Row all;
  for (const Row& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The network by its formulas, row by row, with the parameters of a module by name.
class Reference {
 public:
  explicit Reference(const Module& module) {
    for (const auto& [name, parameter] : module.named_parameters()) {
      const Tensor& value = parameter.value();
      weights_[name] = rows_of(value.shape().dims() == 1 ? value.reshape({1, value.size()}) : value);
    }
  }

  [[nodiscard]] Row mlp(const std::string& name, int hidden_layers, bool relu, Row x) const {
    for (int i = 0; i <= hidden_layers; ++i) {
      x = linear(name + "." + std::to_string(2 * i), x);
      if (i == hidden_layers) break;
      for (double& value : x) value = relu ? std::max(value, 0.) : value / (1 + std::exp(-value));
    }
    const std::string norm = name + "." + std::to_string(2 * hidden_layers + 1);
    return weights_.contains(norm + ".weight") ? layer_norm(norm, x) : x;
  }

  /// One block, in place.
  void block(const std::string& name, int hidden_layers, bool relu, const WholeGraph& graph, Rows& h,
             Rows& e) const {
    Rows sums(h.size(), Row(h.empty() ? 0 : h[0].size()));
    for (std::size_t k = 0; k < e.size(); ++k) {
      const std::size_t u = graph.src[k], v = graph.dst[k];
      add(e[k], mlp(name + "edge_mlp", hidden_layers, relu, joined({e[k], h[u], h[v]})));
      add(sums[v], e[k]);
    }
    for (std::size_t v = 0; v < h.size(); ++v)
      add(h[v], mlp(name + "node_mlp", hidden_layers, relu, joined({h[v], sums[v]})));
  }

  [[nodiscard]] Rows net(const MeshGraphNetOptions& options, bool relu, const WholeGraph& graph, Rows h,
                         Rows e) const {
    for (Row& row : h) row = mlp("node_encoder", options.mlp_layers, relu, row);
    for (Row& row : e) row = mlp("edge_encoder", options.mlp_layers, relu, row);
    for (int i = 0; i < options.blocks; ++i)
      block("processor." + std::to_string(i) + ".", options.mlp_layers, relu, graph, h, e);
    for (Row& row : h) row = mlp("decoder", options.mlp_layers, relu, row);
    return h;
  }

 private:
  [[nodiscard]] Row linear(const std::string& name, const Row& x) const {
    const Rows& weight = weights_.at(name + ".weight");
    Row y = weights_.at(name + ".bias")[0];
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight[i].at(j) * x[j];
    return y;
  }
  [[nodiscard]] Row layer_norm(const std::string& name, Row x) const {
    const double n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) variance += (value - mean) * (value - mean) / n;
    for (std::size_t j = 0; j < x.size(); ++j)
      x[j] = (x[j] - mean) / std::sqrt(variance + 1e-5) * weights_.at(name + ".weight")[0][j] +
             weights_.at(name + ".bias")[0][j];
    return x;
  }
  static void add(Row& to, const Row& x) {
    for (std::size_t j = 0; j < x.size(); ++j) to[j] += x[j];
  }

  std::map<std::string, Rows> weights_;
};

/// Parameters that are all different from their start, LayerNorm's above all.
void shake(Module& module) {
  std::uint64_t key = 100;
  for (const auto& [name, parameter] : module.named_parameters()) {
    Tensor value = parameter.value().clone();
    const Tensor noise = random_values(value.shape(), ++key);
    for (Index i = 0; i < value.size(); ++i) value.data()[i] += static_cast<real>(0.1) * noise.data()[i];
    module.set_parameter(name, value);
  }
}

/// The rows of all edges by id, those of this rank's in the graph's order.
Tensor my_edge_rows(const Tensor& whole, const Graph& graph) {
  Tensor mine({graph.num_edges(), whole.row_size()});
  for (Index e = 0; e < graph.num_edges(); ++e)
    std::copy_n(whole.row(graph.edge_ids()[e]), whole.row_size(), mine.row(e));
  return mine;
}

/// Small widths; with SiLU, whose slope has no jumps, for difference quotients.
MeshGraphNetOptions small_options(bool relu) {
  MeshGraphNetOptions options;
  options.node_feats = 3;
  options.edge_feats = options.out_feats = 2;
  options.hidden = 5;
  options.blocks = 2;
  options.mlp_layers = relu ? 2 : 1;
  if (!relu) options.activation = [](Variable x) { return silu(std::move(x)); };
  return options;
}

struct Whole {
  Tensor x, e, grad;  ///< of all nodes, of all edges by id, of the result
  explicit Whole(const WholeGraph& graph)
      : x(random_values({graph.num_src, 3}, 1)),
        e(random_values({static_cast<Index>(graph.src.size()), 2}, 2)),
        grad(random_values({graph.num_src, 2}, 3)) {}
};

}  // namespace

TEST_CASE("MLP: names and formula") {
  Generator gen(3);
  MLP mlp(3, 4, 2, gen, {.hidden_layers = 2, .layer_norm = true});
  std::vector<std::string> names;
  for (const NamedParameter& named : mlp.named_parameters()) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias",
                                          "5.weight", "5.bias"});
  shake(mlp);
  struct Named : Module {
    explicit Named(MLP& mlp) { register_module("mlp", mlp); }
  } const named(mlp);
  const Tensor x = random_values({7, 3}, 4);
  Rows expected;
  for (const Row& row : rows_of(x)) expected.push_back(Reference(named).mlp("mlp", 2, true, row));
  CHECK(relative_error(mlp(x).value(), tensor_of(expected, 2)) < tolerance());
  CHECK(relative_error(mlp.rest(mlp.first()(x)).value(), tensor_of(expected, 2)) < tolerance());

  CHECK_THROWS_AS(MLP(3, 4, 2, gen, {.hidden_layers = 0}), InputError);
  CHECK_THROWS_AS(MLP(3, 4, 2, gen, {.activation = {}}), InputError);
  CHECK_THROWS_AS(MLP(3, 0, 2, gen), InputError);
  CHECK_THROWS_AS((void)mlp(Tensor::zeros({2, 4})), ShapeError);
}

TEST_CASE("MeshGraphNetBlock: by the formula, in all modes") {
  const Communicator world = Communicator::world();
  std::size_t number = 0;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, world.size()))
      for (const GraphOptions& options : ways_of_case(number++)) {
        CAPTURE(whole.name);
        const Graph graph = shard(world, whole, books, options);
        Generator gen(1);
        MeshGraphNetBlock block(4, gen);
        shake(block);
        const Tensor h = random_values({whole.num_src, 4}, 1);
        const Tensor e = random_values({static_cast<Index>(whole.src.size()), 4}, 2);
        Rows expected_h = rows_of(h), expected_e = rows_of(e);
        Reference(block).block("", 2, true, whole, expected_h, expected_e);
        const MeshLatents found =
            block(graph, {.nodes = my_rows(h, books.src, world.rank()), .edges = my_edge_rows(e, graph)});
        CHECK(error_of_rows(found.nodes.value(), tensor_of(expected_h, 4), books.src.begin(world.rank())) <
              tolerance());
        const Tensor whole_e = tensor_of(expected_e, 4);
        CHECK(error_of_part(found.edges.value(), my_edge_rows(whole_e, graph), whole_e) < tolerance());
      }
}

TEST_CASE("MeshGraphNet: by the formula; gradients are those of one rank") {
  const Communicator world = Communicator::world();
  const MeshGraphNetOptions net_options = small_options(true);
  const auto run = [&](const Communicator& comm, const WholeGraph& whole, const Books& books,
                       const GraphOptions& options) {
    const Graph graph = shard(comm, whole, books, options);
    Generator gen(1);
    MeshGraphNet net(net_options, gen);
    shake(net);
    const Whole data(whole);
    const Variable x(my_rows(data.x, books.src, comm.rank()), true), e(my_edge_rows(data.e, graph), true);
    Tape tape;
    const Variable y = net(graph, x, e);
    const Rows expected = Reference(net).net(net_options, true, whole, rows_of(data.x), rows_of(data.e));
    CHECK(error_of_rows(y.value(), tensor_of(expected, 2), books.src.begin(comm.rank())) < tolerance());
    tape.backward(y, my_rows(data.grad, books.src, comm.rank()));
    gather_grads(comm, net);
    return std::tuple(x.grad(), e.grad(), net.named_parameters(), graph);
  };
  std::size_t number = 0;
  for (const WholeGraph& whole : square_graphs()) {
    CAPTURE(whole.name);
    const auto [x, e, parameters, whole_graph] =
        run(Communicator::self(), whole, test_books(whole, 1)[0], {.mode = HaloMode::one_shot});
    Tensor e_by_id(e.shape());
    for (Index i = 0; i < e.num_rows(); ++i)
      std::copy_n(e.row(i), e.row_size(), e_by_id.row(whole_graph.edge_ids()[i]));
    for (const Books& books : test_books(whole, world.size()))
      for (const GraphOptions& options : ways_of_case(number++)) {
        const auto [my_x, my_e, my_parameters, graph] = run(world, whole, books, options);
        CHECK(error_of_rows(my_x, x, books.src.begin(world.rank())) < tolerance());
        CHECK(error_of_part(my_e, my_edge_rows(e_by_id, graph), e_by_id) < tolerance());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          CAPTURE(parameters[i].name);
          const Tensor mine = my_parameters[i].parameter.grad(), one = parameters[i].parameter.grad();
          REQUIRE(mine.defined());
          REQUIRE(one.defined());
          CHECK(error_of_part(mine, one, one) < 10 * tolerance());
        }
      }
  }
}

TEST_CASE("MeshGraphNet and relative_positions: gradients against differences") {
  if (sizeof(real) < 8) return;  // differences need the digits
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole :
       {random_graph("random", 20, 20, 70, 1), random_graph("sparse", 12, 12, 9, 2)})
    for (const Books& books : test_books(whole, world.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(world, whole, books, {});
      Generator gen(1);
      MeshGraphNetOptions net_options = small_options(false);
      net_options.edge_feats = 4;
      MeshGraphNet net(net_options, gen);
      shake(net);
      std::vector<Variable> inputs = net.parameters();
      inputs.emplace_back(my_rows(random_values({whole.num_src, 3}, 1), books.src, world.rank()), true);
      GradcheckOptions options;
      options.directions = 3;
      options.sum_over_ranks = [&](double x) { return world.all_reduce(x); };
      CHECK(gradcheck(
                [&](const auto& vars) {
                  return net(graph, vars.back(), relative_positions(graph, vars.back()));
                },
                inputs, options) >= 0);
    }
}

TEST_CASE("relative_positions: differences and lengths, of length 0 without NaN") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, world.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(world, whole, books, {});
      const Tensor x = random_values({whole.num_src, 2}, 1);
      const Tensor y = whole.square ? x : random_values({whole.num_dst, 2}, 2);
      Tensor expected({static_cast<Index>(whole.src.size()), 3});
      for (std::size_t k = 0; k < whole.src.size(); ++k) {
        real* row = expected.row(static_cast<Index>(k));
        for (Index j = 0; j < 2; ++j) row[j] = x.row(whole.src[k])[j] - y.row(whole.dst[k])[j];
        row[2] = std::hypot(row[0], row[1]);
      }
      const Variable mine(my_rows(x, books.src, world.rank()), true);
      const Variable other(my_rows(y, books.dst, world.rank()), true);
      Tape tape;
      const Variable found =
          whole.square ? relative_positions(graph, mine) : relative_positions(graph, {mine, other});
      const Tensor seed = Tensor::full(found.shape(), 1);
      CHECK(error_of_part(found.value(), my_edge_rows(expected, graph), expected) < tolerance());
      tape.backward(found, seed);
      REQUIRE(mine.grad().defined());
      for (const real value : mine.grad().values()) CHECK(std::isfinite(value));
    }
}

TEST_CASE("relative_positions with shifts: the nearest images in a periodic box, gradients") {
  const Communicator world = Communicator::world();
  const std::vector<double> box{0.75, 0.5};
  for (const WholeGraph& whole : test_graphs())
    for (const Books& books : test_books(whole, world.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(world, whole, books, {});
      const Tensor x = random_values({whole.num_src, 2}, 1);  // many sides apart
      const Tensor y = whole.square ? x : random_values({whole.num_dst, 2}, 2);
      Tensor expected({static_cast<Index>(whole.src.size()), 3});
      for (std::size_t k = 0; k < whole.src.size(); ++k) {
        real* row = expected.row(static_cast<Index>(k));
        for (std::size_t j = 0; j < 2; ++j) {
          double nearest = std::numeric_limits<double>::infinity();
          for (int image = -30; image <= 30; ++image) {
            const double d = static_cast<double>(x.row(whole.src[k])[j]) + image * box[j] -
                             static_cast<double>(y.row(whole.dst[k])[j]);
            if (std::abs(d) < std::abs(nearest)) nearest = d;
          }
          row[j] = static_cast<real>(nearest);
        }
        row[2] = std::hypot(row[0], row[1]);
      }
      const Variable mine(my_rows(x, books.src, world.rank()), true);
      const Variable other(my_rows(y, books.dst, world.rank()), true);
      const NodeFeatures positions = whole.square ? NodeFeatures(mine) : NodeFeatures(mine, other);
      Tape tape;
      const Tensor nearest = minimum_image_shifts(graph, positions, box);
      CHECK(nearest.shape() == Shape{graph.num_edges(), 2});
      const Variable shifts(nearest, true);
      const Variable found = relative_positions(graph, positions, shifts);
      CHECK(error_of_part(found.value(), my_edge_rows(expected, graph), expected) < tolerance());
      const Tensor seed = random_values(found.shape(), 3);
      tape.backward(found, seed);
      Tensor slope({graph.num_edges(), 2});  // of the differences and of the length
      for (Index e = 0; e < slope.num_rows(); ++e)
        for (Index j = 0; j < 2; ++j) {
          const real length = found.value().row(e)[2];
          slope.row(e)[j] =
              seed.row(e)[j] + (length > 0 ? seed.row(e)[2] * found.value().row(e)[j] / length : 0);
        }
      CHECK(error_of_part(shifts.grad(), slope, slope) < 10 * tolerance());
    }
}

TEST_CASE("MeshGraphNet with normalize: statistics of all ranks, a loss that falls") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  MeshGraphNetOptions net_options = small_options(true);
  net_options.normalize = true;
  for (const Books& books : test_books(whole, world.size())) {
    const Graph graph = shard(world, whole, books, {});
    Generator gen(1);
    MeshGraphNet net(net_options, world, gen);
    Whole data(whole);
    for (Index i = 0; i < data.x.size(); ++i) data.x.data()[i] = 40 + 7 * data.x.data()[i];
    for (Index i = 0; i < data.grad.size(); ++i) data.grad.data()[i] = 300 * data.grad.data()[i] - 900;
    const Tensor x = my_rows(data.x, books.src, world.rank()), e = my_edge_rows(data.e, graph);
    const Tensor target = my_rows(data.grad, books.src, world.rank());
    net.update_statistics(x, e, target);

    // the same network without normalization, on rows that are normalized by hand
    Normalizer of_x(3, Communicator::self()), of_e(2, Communicator::self()), of_y(2, Communicator::self());
    of_x.update(data.x);
    of_e.update(data.e);
    of_y.update(data.grad);
    Generator again(1);
    net_options.normalize = false;
    const MeshGraphNet plain(net_options, again);
    net_options.normalize = true;
    const Variable y = plain(graph, of_x(x), of_e(e));
    CHECK(error_of_part(net.normalized(graph, x, e).value(), y.value(), y.value()) < 10 * tolerance());
    const Tensor physical = of_y.inverse(y).value();
    CHECK(error_of_part(net(graph, x, e).value(), physical, physical) < 10 * tolerance());
    const Tensor scaled = of_y(target).value();
    CHECK(error_of_part(net.normalized_target(target).value(), scaled, scaled) < 10 * tolerance());

    Adam optimizer(net.named_parameters(), {.lr = 0.01});
    double first = 0, last = 0;
    for (int step = 0; step < 30; ++step) {
      Tape tape;
      const Variable loss = mse(net.normalized(graph, x, e), net.normalized_target(target).value(), world);
      last = static_cast<double>(loss.value().item());
      if (step == 0) first = last;
      tape.backward(loss);
      gather_grads(world, net);
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(last < 0.9 * first);
  }
}

TEST_CASE("MeshGraphNet: names of parameters and buffers, errors") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = shard(world, whole, test_books(whole, world.size())[0], {});
  Generator gen(1);
  MeshGraphNetOptions options = small_options(true);
  options.normalize = true;
  MeshGraphNet net(options, world, gen);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, parameter] : net.named_parameters()) shapes.emplace(name, parameter.shape());
  CHECK(shapes.at("node_encoder.0.weight") == Shape{5, 3});
  CHECK(shapes.at("edge_encoder.5.bias") == Shape{5});
  CHECK(shapes.at("processor.1.edge_mlp.0.weight") == Shape{5, 15});
  CHECK(shapes.at("processor.0.node_mlp.0.weight") == Shape{5, 10});
  CHECK(shapes.at("decoder.4.weight") == Shape{2, 5});
  CHECK_FALSE(shapes.contains("decoder.5.weight"));
  CHECK(net.named_buffers().front().name == "node_normalizer.mean");

  CHECK(thrown<InputError>([&] { MeshGraphNet(options, gen); }) ==
        "MeshGraphNet with normalize, but without a communicator");
  options.normalize = false;
  options.blocks = -1;
  CHECK(thrown<InputError>([&] { MeshGraphNet(options, gen); }) ==
        "MeshGraphNet of -1 blocks, expected 0 or more");
  options.blocks = 0;
  options.edge_feats = 0;
  CHECK_THROWS_AS(MeshGraphNet(options, gen), InputError);
  options.edge_feats = 2;
  MeshGraphNet plain(options, gen);
  CHECK(thrown<InputError>([&] {
          plain.update_statistics(Tensor::zeros({0, 3}), Tensor::zeros({0, 2}), Tensor::zeros({0, 2}));
        }) == "statistics of a MeshGraphNet that was made without normalize");

  const bool last = world.rank() == world.size() - 1;
  const Index n = graph.num_nodes(), m = graph.num_edges();
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)net(graph, Tensor::zeros({n, last ? 4 : 3}), Tensor::zeros({m, 2}));
        }).starts_with("MeshGraphNet, features have shape ["));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)net(graph, Tensor::zeros({n, 3}), Tensor::zeros({m + (last ? 1 : 0), 2}));
        }).starts_with("MeshGraphNet, edge features have shape ["));
  const MeshGraphNetBlock block(4, gen);
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)block(graph, {.nodes = Tensor::zeros({n, 4}), .edges = Tensor::zeros({m, last ? 5 : 4})});
        }).starts_with("MeshGraphNetBlock, rows of edges have shape ["));
  CHECK_THROWS_AS((void)net.normalized_target(Tensor::zeros({n, 3})), ShapeError);
  const WholeGraph pair = random_graph("bipartite", 50, 23, 150, 3, false);
  const Graph two = shard(world, pair, test_books(pair, world.size())[0], {});
  CHECK_THROWS_AS((void)block(two, {.nodes = Tensor::zeros({two.num_src_nodes(), 4}),
                                    .edges = Tensor::zeros({two.num_edges(), 4})}),
                  ShapeError);
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)relative_positions(graph, Tensor::zeros({n + (last ? 1 : 0), 2}));
        }).starts_with("relative_positions"));
}
