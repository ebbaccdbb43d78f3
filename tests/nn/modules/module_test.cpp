// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace sar;

namespace {

struct Net : Module {
  ModuleList<Linear> layers;
  Dropout drop;
  Variable scale{Tensor::full({1}, 2), true};
  Tensor seen = Tensor::zeros({3});

  explicit Net(Generator& gen) : drop(0.5, gen) {
    register_module("layers", layers);
    register_module("drop", drop);
    register_parameter("scale", scale);
    register_buffer("seen", seen);
    layers.emplace_back(4, 3, gen);
    layers.emplace_back(3, 2, gen, false);
  }
  using Module::register_buffer;
};

std::vector<std::string> parameter_names(const Module& module) {
  std::vector<std::string> names;
  for (const auto& named : module.named_parameters()) names.push_back(named.name);
  return names;
}

}  // namespace

TEST_CASE(
    "names are those of torch's state_dict: own entries first, then the children's, in registration order") {
  Generator gen(0);
  Net net(gen);
  CHECK(parameter_names(net) ==
        std::vector<std::string>{"scale", "layers.0.weight", "layers.0.bias", "layers.1.weight"});
  REQUIRE(net.named_buffers().size() == 1);
  CHECK(net.named_buffers()[0].name == "seen");
  REQUIRE(net.named_counters().size() == 1);
  CHECK(net.named_counters()[0].name == "drop.calls");
  CHECK(net.parameters()[1].shape() == Shape{3, 4});
}

TEST_CASE("train and eval reach every module") {
  Generator gen(0);
  Net net(gen);
  CHECK(net.drop.is_training());
  net.eval();
  CHECK_FALSE(net.is_training());
  CHECK_FALSE(net.drop.is_training());
  CHECK_FALSE(net.layers[1].is_training());
  net.train();
  CHECK(net.layers[1].is_training());
}

TEST_CASE("parameters and buffers are set by name, in place") {
  Generator gen(0);
  Net net(gen);
  const real* memory = net.layers[0].bias().value().data();
  net.set_parameter("layers.0.bias", Tensor::from({3}, {1, 2, 3}));
  CHECK(net.layers[0].bias().value().data() == memory);
  CHECK(net.layers[0].bias().value().data()[2] == 3);
  net.set_buffer("seen", Tensor::from({3}, {4, 5, 6}));
  CHECK(net.seen.data()[1] == 5);
  CHECK_THROWS_AS(net.set_parameter("layers.0.bias", Tensor::zeros({4})), ShapeError);
  CHECK_THROWS_AS(net.set_parameter("layers.1.bias", Tensor::zeros({2})), InputError);
  CHECK_THROWS_AS(net.set_buffer("scale", Tensor::zeros({1})), InputError);
}

TEST_CASE("names that would be ambiguous are refused") {
  Generator gen(0);
  Net net(gen);
  Tensor other = Tensor::zeros({1});
  CHECK_THROWS_AS(net.register_buffer("scale", other), InputError);
  CHECK_THROWS_AS(net.register_buffer("a.b", other), InputError);
  CHECK_THROWS_AS(net.register_buffer("", other), InputError);
  CHECK_THROWS_AS((void)net.layers[2], InputError);
  CHECK(&net.layers.back() == &net.layers[1]);
  ModuleList<Linear> none;
  CHECK_THROWS_AS((void)none.back(), InputError);
}

TEST_CASE("a part that is taken out leaves its name free") {
  struct Open : Module {
    using Module::register_module;
    using Module::register_parameter;
    using Module::unregister;
  } net;
  Generator gen(1);
  Linear linear(2, 2, gen);
  Variable scale(Tensor::full({1}, 2), true);
  net.register_module("part", linear);
  net.register_parameter("scale", scale);
  CHECK(net.parameters().size() == 3);
  net.unregister("part");
  net.unregister("nothing");
  CHECK(net.named_parameters().size() == 1);
  net.unregister("scale");
  CHECK(net.parameters().empty());
  net.register_parameter("part", scale);
  CHECK(net.named_parameters()[0].name == "part");
}

TEST_CASE("zero_grad forgets every gradient") {
  Generator gen(0);
  Net net(gen);
  for (const Variable& parameter : net.parameters())
    parameter.gradient()->add(Tensor::full(parameter.shape(), 1));
  CHECK(net.scale.grad().defined());
  net.zero_grad();
  for (const Variable& parameter : net.parameters()) CHECK_FALSE(parameter.grad().defined());
}

TEST_CASE("a frozen parameter gets no gradient, and optimizers leave it as it is") {
  Generator gen(0);
  Net net(gen);
  net.freeze("layers.0.bias");
  CHECK(parameter_names(net).size() == 4);
  CHECK_FALSE(net.layers[0].bias().requires_grad());
  CHECK_THROWS_AS(net.freeze("layers.1.bias"), InputError);
  CHECK_THROWS_AS(net.freeze("layer"), InputError);
  const Tensor before = net.layers[0].bias().value().clone();
  SGD optimizer(net.named_parameters(), {.lr = 1, .weight_decay = 0.5});
  Tape tape;
  tape.backward(sum(net.layers[0](Tensor::full({2, 4}, 1))));
  CHECK(net.layers[0].weight().grad().defined());
  CHECK_FALSE(net.layers[0].bias().grad().defined());
  optimizer.step();
  CHECK(std::ranges::equal(net.layers[0].bias().value().values(), before.values()));
}
