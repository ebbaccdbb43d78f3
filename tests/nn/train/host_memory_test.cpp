// SPDX-License-Identifier: MIT

/// A host's arrays as operands: read where they are, never written.
#include "curve.hpp"
#include "graph/construct/host_arrays.hpp"

#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>
#include <sar/core/tensor/columns.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// An array of the host, and a copy that tells whether somebody wrote into it.
struct Watched {
  Tensor array, copy;

  explicit Watched(const Tensor& values) : array(values.clone()), copy(values.clone()) {}
  /// With no other handle to it, as it would look to an operation that takes over what nobody else needs.
  [[nodiscard]] Tensor borrow() { return Tensor::borrow(array.data(), array.shape()); }
  [[nodiscard]] bool untouched() const { return same_bits(array, copy); }
};

Watched positive(const Shape& shape, std::uint64_t key) {
  Tensor x = random_values(shape, key);
  for (real& value : x.values()) value = std::abs(value) + real(0.1);
  return Watched(x);
}

}  // namespace

TEST_CASE("no operation writes into a borrowed operand, a borrowed base or a borrowed gradient") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("host", 40, 40, 200, 3);
  const HostArrays host = host_arrays(comm, g, Ownership::scattered);
  const HostGraph graph(comm, host.node_ids, host.edges());
  const Shape nodes{graph.num_nodes(), 6};
  Watched x_array = positive(nodes, 1), base_array = positive(nodes, 2),
          w_array = positive({graph.num_edges(), 1}, 3), grad_array = positive(nodes, 4);
  Generator gen(1);
  DistributedBN1D bn(6, comm);
  LayerNorm ln(6);
  Dropout drop(0.5, gen);
  const std::vector<std::pair<std::string, std::function<Variable(Variable, Variable, Variable)>>> cases{
      {"relu", [](Variable x, Variable, Variable) { return relu(std::move(x)); }},
      {"leaky_relu", [](Variable x, Variable, Variable) { return leaky_relu(std::move(x)); }},
      {"elu", [](Variable x, Variable, Variable) { return elu(std::move(x)); }},
      {"exp", [](Variable x, Variable, Variable) { return exp(std::move(x)); }},
      {"log", [](Variable x, Variable, Variable) { return log(std::move(x)); }},
      {"softmax", [](Variable x, Variable, Variable) { return softmax(std::move(x)); }},
      {"scale", [](Variable x, Variable, Variable) { return std::move(x) * real(2); }},
      {"add", [](Variable x, Variable b, Variable) { return std::move(x) + std::move(b); }},
      {"mul", [](Variable x, Variable b, Variable) { return std::move(x) * std::move(b); }},
      {"dropout", [&](Variable x, Variable, Variable) { return drop(std::move(x), graph.src_ids()); }},
      {"batch norm", [&](Variable x, Variable, Variable) { return bn(std::move(x)); }},
      {"fused", [&](Variable x, Variable,
                    Variable) { return batch_norm_relu_dropout(std::move(x), bn, drop, graph.dst_ids()); }},
      {"layer norm", [&](Variable x, Variable, Variable) { return ln(std::move(x)); }},
      {"sum with base",
       [&](Variable x, Variable b, Variable) {
         return graph.update_all(fn::copy_u(std::move(x)), fn::sum, std::move(b));
       }},
      {"base made later",
       [&](Variable x, Variable b, Variable) {
         StartedSum sum = graph.start_update_all(fn::copy_u(std::move(x)), fn::mean);
         return sum.finish(std::move(b));
       }},
      {"mean",
       [&](Variable x, Variable, Variable) { return graph.update_all(fn::copy_u(std::move(x)), fn::mean); }},
      {"max",
       [&](Variable x, Variable, Variable) { return graph.update_all(fn::copy_u(std::move(x)), fn::max); }},
      {"u_mul_e",
       [&](Variable x, Variable, Variable w) {
         return graph.update_all(fn::u_mul_e(std::move(x), std::move(w)), fn::sum);
       }},
      {"v - u", [&](Variable x, Variable b,
                    Variable) { return graph.update_all(fn::v_sub_u(std::move(b), std::move(x)), fn::sum); }},
      {"own message",
       [&](Variable x, Variable b, Variable w) {
         return graph.update_all(
             [x, b, w](const EdgeBatch& edges) { return relu(edges.src(x) - edges.dst(b)) * edges.edata(w); },
             fn::sum);
       }},
      {"softmax of edges",
       [&](Variable x, Variable, Variable w) {
         return graph.update_all(fn::u_mul_e(std::move(x), edge_softmax(graph, std::move(w))), fn::sum);
       }},
  };
  for (const bool records : {true, false}) {
    for (const auto& [name, run] : cases) {
      CAPTURE(name);
      CAPTURE(records);
      Variable x(x_array.borrow(), records), b(base_array.borrow(), records), w(w_array.borrow(), records);
      Tape tape;
      {
        Variable y = run(Variable(x), Variable(b), Variable(w));
        if (!records)
          y = run(Variable(x_array.borrow()), Variable(base_array.borrow()), Variable(w_array.borrow()));
        CHECK(y.value().data() != x_array.array.data());
        if (records) {
          tape.backward(y, grad_array.borrow());
          CHECK(x.grad().defined());
        }
      }
      CHECK(x_array.untouched());
      CHECK(base_array.untouched());
      CHECK(w_array.untouched());
      CHECK(grad_array.untouched());
    }
  }
}

TEST_CASE("a training on borrowed features and targets copies neither and writes results where asked") {
  const Communicator comm = Communicator::world();
  const WholeGraph g = random_graph("host", 60, 60, 300, 4);
  const HostArrays host = host_arrays(comm, g, Ownership::scattered);
  const HostGraph graph(comm, host.node_ids, host.edges());
  const std::size_t rows = host.node_ids.size();
  const std::vector<real> features(rows * 3, real(0.5)), target(rows * 2, real(1));
  std::vector<real> prediction(rows * 2, -1);
  std::vector<double> u(rows), v(rows);

  // the graph makes some of its arrays when they are first needed
  const auto bytes = [&] { return live_bytes() - graph.index_bytes(); };
  const std::size_t before = bytes();
  const Tensor x = Tensor::borrow(features, {graph.num_nodes(), 3});
  const Tensor t = Tensor::borrow(target, {graph.num_nodes(), 2});
  CHECK(bytes() == before);
  CHECK(x.data() == features.data());
  {
    Net model({3, 8, 2}, 0.2, comm, 0);
    Adam optimizer(model.named_parameters(), {.lr = 0.01});
    double first = 0, loss_value = 0;
    for (int step = 0; step < 20; ++step) {
      Tape tape;
      const Variable loss = mse(model(graph, x), t, comm);
      tape.backward(loss);
      gather_grads(comm, model);
      optimizer.step();
      optimizer.zero_grad();
      loss_value = loss.value().item();
      if (step == 0) first = loss_value;
    }
    CHECK(loss_value < first);
    const Variable y = model(graph, x);
    y.value().copy_to(prediction);
    Tensor out = Tensor::borrow(prediction, {graph.num_nodes(), 2});
    CHECK(same_bits(out, y.value()));
    copy_to_columns(y.value(), {u, v});
    CHECK(same_bits(from_columns({u, v}), y.value()));
    out.copy_from(t);
    CHECK(prediction == target);
  }
  CHECK(bytes() == before);
  CHECK(features == std::vector<real>(rows * 3, real(0.5)));
  CHECK(target == std::vector<real>(rows * 2, real(1)));
}

TEST_CASE("an optimizer and a gradient check do not write into what was borrowed for reading") {
  const std::vector<real> mine{1, 2};
  const Variable parameter(Tensor::borrow(mine, {2}), true);
  CHECK(thrown<InputError>([&] {
          SGD({{"w", parameter}}, {.lr = 0.1});
        }) ==
        "the parameter 'w' is in memory that was borrowed for reading, expected memory that can be written");
  CHECK_THROWS_AS(gradcheck([](const std::vector<Variable>& in) { return in[0] * in[0]; }, {parameter}),
                  InputError);
}
