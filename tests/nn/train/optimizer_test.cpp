// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/weight_average.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <utility>

using namespace sar;
using namespace sar::test;

namespace {

std::unique_ptr<Optimizer> make(const Case& golden, std::vector<NamedParameter> parameters) {
  const double lr = golden.number("lr");
  const double weight_decay = golden.number("weight_decay");
  const std::string kind = golden.arg("optimizer");
  if (kind == "SGD")
    return std::make_unique<SGD>(
        std::move(parameters),
        SGDOptions{.lr = lr, .momentum = golden.number("momentum"), .weight_decay = weight_decay});
  const AdamOptions options{.lr = lr,
                            .beta1 = golden.number("beta1"),
                            .beta2 = golden.number("beta2"),
                            .eps = golden.number("eps"),
                            .weight_decay = weight_decay};
  if (kind == "Adam") return std::make_unique<Adam>(std::move(parameters), options);
  return std::make_unique<AdamW>(std::move(parameters), options);
}

std::string numbered(const char* name, int step) {
  char text[32];
  std::snprintf(text, sizeof text, "%s.step_%02d", name, step);
  return text;
}

Variable leaf(double value) {
  return Variable(Tensor::full({1}, static_cast<real>(value)), true);
}

void give(const Variable& parameter, double gradient) {
  parameter.gradient()->add(Tensor::full(parameter.shape(), static_cast<real>(gradient)));
}

}  // namespace

TEST_CASE("optimizers: golden vectors") {
  for (const std::string name : {"optim/adam", "optim/adam_weight_decay", "optim/adamw", "optim/sgd_momentum",
                                 "optim/sgd_momentum_weight_decay"}) {
    CAPTURE(name);
    const Case golden(name);
    Variable parameter(golden.tensor("param.init"), true);
    const auto optimizer = make(golden, {{"p", parameter}});
    for (int step = 0; step < static_cast<int>(golden.number("steps")); ++step) {
      CAPTURE(step);
      parameter.gradient()->add(golden.tensor(numbered("grad", step)));
      optimizer->step();
      optimizer->zero_grad();
      CHECK(relative_error(parameter.value(), golden.values(numbered("param", step))) < tolerance());
    }
  }
}

TEST_CASE("a restored optimizer continues as if it had not stopped") {
  const Case golden("optim/adam_weight_decay");
  Variable through(golden.tensor("param.init"), true);
  const auto first = make(golden, {{"p", through}});
  std::unique_ptr<Optimizer> second;
  Variable restored;
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      restored = Variable(through.value().clone(), true);
      second = make(golden, {{"p", restored}});
      const auto saved = first->named_buffers();
      auto target = second->named_buffers();
      REQUIRE(saved.size() == 2);
      CHECK(saved[0].name == "p.exp_avg");
      CHECK(saved[1].name == "p.exp_avg_sq");
      for (std::size_t k = 0; k < saved.size(); ++k) target[k].tensor.copy_from(saved[k].tensor);
      REQUIRE(first->named_counters()[0].name == "p.step");
      CHECK(*first->named_counters()[0].value == 3);
      *second->named_counters()[0].value = *first->named_counters()[0].value;
    }
    const Tensor gradient = golden.tensor(numbered("grad", step));
    for (Optimizer* optimizer : {first.get(), second.get()}) {
      if (optimizer == nullptr) continue;
      (optimizer == first.get() ? through : restored).gradient()->add(gradient.clone());
      optimizer->step();
      optimizer->zero_grad();
    }
  }
  CHECK(same_bits(through.value(), restored.value()));
}

TEST_CASE("weight decay can be limited to a module or a parameter") {
  Variable a = leaf(1), b = leaf(1), c = leaf(1);
  SGD optimizer({{"layers.0.weight", a}, {"layers.01.weight", b}, {"layers.1.weight", c}},
                {.lr = 1, .weight_decay = 0.25, .decay_only = {"layers.0", "layers.1.weight"}});
  for (const Variable& parameter : {a, b, c}) give(parameter, 0);
  optimizer.step();
  CHECK(a.value().item() == doctest::Approx(0.75));
  CHECK(b.value().item() == doctest::Approx(1));
  CHECK(c.value().item() == doctest::Approx(0.75));
  CHECK_THROWS_AS(SGD({{"layers.0.weight", a}}, {.decay_only = {"layers.2"}}), InputError);
}

TEST_CASE(
    "factors of the learning rate: the longest name that covers a parameter counts, in every optimizer") {
  const auto moved = [](auto make_optimizer) {
    std::vector<Variable> p;
    for (int i = 0; i < 4; ++i) p.push_back(leaf(1));
    const auto optimizer = make_optimizer(std::vector<NamedParameter>{
        {"convs.0.weight", p[0]}, {"convs.0.bias", p[1]}, {"convs.01.weight", p[2]}, {"out.weight", p[3]}});
    std::vector<double> all;
    for (const Variable& each : p) give(each, 0.5);
    optimizer->step();
    for (const Variable& each : p) all.push_back(1 - static_cast<double>(each.value().item()));
    return all;
  };
  const std::map<std::string, double> factors{{"convs.0", 0.5}, {"convs.0.bias", 0}, {"out", 2}};
  const auto sgd = [&](double decay) {
    return moved([&](std::vector<NamedParameter> all) {
      return std::make_unique<SGD>(
          std::move(all),
          SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = decay, .lr_factors = factors});
    });
  };
  const auto adamw = moved([&](std::vector<NamedParameter> all) {
    return std::make_unique<AdamW>(std::move(all),
                                   AdamOptions{.lr = 0.1, .weight_decay = 1, .lr_factors = factors});
  });
  for (const auto& [found, whole] : {std::pair{sgd(0), 0.05}, {sgd(1), 0.15}, {adamw, 0.2}}) {
    CHECK(found[2] == doctest::Approx(whole));
    CHECK(found[0] == doctest::Approx(whole / 2));
    CHECK(found[1] == 0);
    CHECK(found[3] == doctest::Approx(2 * whole));
  }
  const std::vector<NamedParameter> one{{"out.weight", leaf(1)}};
  CHECK_THROWS_WITH_AS(SGD(one, {.lr_factors = {{"ou", 1}}}),
                       "a factor of the learning rate is asked for 'ou', but there is no such parameter",
                       InputError);
  CHECK_THROWS_WITH_AS(SGD(one, {.lr_factors = {{"out", -1}}}),
                       "the factor of the learning rate of 'out' is -1, expected a number of 0 or more",
                       InputError);
}

TEST_CASE("a parameter of several names is stepped and clipped once") {
  const Variable tied = leaf(1), other = leaf(1);
  SGD optimizer({{"encoder.weight", tied}, {"other", other}, {"decoder.weight", tied}},
                {.lr = 0.5, .weight_decay = 2, .decay_only = {"decoder"}});
  give(tied, 1), give(other, 1);
  optimizer.step();
  CHECK(tied.value().data()[0] == real{1 - 0.5 * 3});  // decays by its second name
  CHECK(other.value().data()[0] == real{0.5});

  struct Tied : Module {
    Variable weight = leaf(3);
    Tied() {
      register_parameter("first", weight);
      register_parameter("second", weight);
    }
  } module;
  give(module.weight, 3);
  CHECK(module.parameters().size() == 1);
  CHECK(module.named_parameters().size() == 2);
  CHECK(clip_grad_norm(module, 1) == doctest::Approx(3));
  WeightAverage average(module, 0.5);
  average.update();
  module.weight.value().fill(5);
  average.exchange();
  CHECK(module.weight.value().data()[0] == 3);
  average.exchange();
  CHECK(module.weight.value().data()[0] == 5);

  struct Twice : Module {
    Tied tied;
    Variable same = tied.weight;
    Twice() {
      register_module("tied", tied);
      register_parameter("same", same);
    }
  } twice;
  twice.freeze("tied.second");
  CHECK_FALSE(twice.same.requires_grad());
  CHECK_FALSE(twice.tied.weight.requires_grad());
  twice.unfreeze("same");
  CHECK(twice.same.requires_grad());
  CHECK(twice.tied.weight.gradient() == twice.same.gradient());
  const auto gradient = twice.same.gradient();
  twice.unfreeze("same");
  CHECK(twice.same.gradient() == gradient);
  CHECK_THROWS_AS(twice.unfreeze("other"), InputError);
}

TEST_CASE("a parameter without a gradient stays, and so does its state") {
  Variable a = leaf(1), b = leaf(1);
  Adam optimizer({{"a", a}, {"b", b}}, {.lr = 0.1});
  give(a, 1);
  optimizer.step();
  CHECK(a.value().item() == doctest::Approx(0.9));
  CHECK(b.value().item() == 1);
  CHECK(*optimizer.named_counters()[0].value == 1);
  CHECK(*optimizer.named_counters()[1].value == 0);
  optimizer.set_lr(0.2);
  CHECK(optimizer.lr() == 0.2);
}

TEST_CASE("options that make no sense are refused") {
  Variable a = leaf(1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(SGD({{"a", a}}, {.lr = -1}), InputError);
  CHECK_THROWS_AS(SGD({{"a", a}}, {.momentum = nan}), InputError);
  CHECK_THROWS_AS(Adam({{"a", a}}, {.beta1 = 1}), InputError);
  CHECK_THROWS_AS(AdamW({{"a", a}}, {.weight_decay = -0.1}), InputError);
}
