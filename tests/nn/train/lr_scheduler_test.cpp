// SPDX-License-Identifier: MIT

/// Schedules of the learning rate and clipped gradients: torch's numbers, and what is refused.
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/train/lr_scheduler.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Make = std::function<std::unique_ptr<LRScheduler>(Optimizer&)>;
using Plateau = ReduceLROnPlateauOptions;

template <class Schedule, class Options>
Make make(const Options& options) {
  return [=](Optimizer& optimizer) { return std::make_unique<Schedule>(optimizer, options); };
}

/// The schedules of the golden cases.
std::vector<std::pair<std::string, Make>> schedules() {
  const LinearLROptions warm_up{.start_factor = 0.1, .total_iters = 8};
  return {{"step_lr", make<StepLR>(StepLROptions{.step_size = 7, .gamma = 0.3})},
          {"cosine_annealing_lr",
           make<CosineAnnealingLR>(CosineAnnealingLROptions{.T_max = 30, .eta_min = 0.002})},
          {"linear_lr", make<LinearLR>(warm_up)},
          {"warm_up_cosine", make<CosineAnnealingLR>(CosineAnnealingLROptions{
                                 .T_max = 22, .eta_min = 0.002, .warm_up = warm_up})},
          {"reduce_lr_on_plateau",
           make<ReduceLROnPlateau>(
               Plateau{.factor = 0.5, .patience = 3, .threshold = 1e-2, .cooldown = 2, .min_lr = 0.004})},
          {"reduce_lr_on_plateau_max",
           make<ReduceLROnPlateau>(Plateau{.mode = Plateau::Mode::max,
                                           .factor = 0.5,
                                           .patience = 2,
                                           .threshold = 1e-2,
                                           .threshold_mode = Plateau::Threshold::abs})}};
}

struct Training {
  Variable parameter{Tensor::zeros({1}), true};
  SGD optimizer{{{"p", parameter}}, {.lr = 0.05}};
};

struct Two : Module {
  Variable a, b, without;
  Two(const Tensor& of_a, const Tensor& of_b)
      : a(Tensor::zeros(of_a.shape()), true),
        b(Tensor::zeros(of_b.shape()), true),
        without(Tensor::zeros({2}), true) {
    register_parameter("a", a);
    register_parameter("without", without);
    register_parameter("b", b);
    a.gradient()->add(of_a);
    b.gradient()->add(of_b.clone());
  }
};

}  // namespace

TEST_CASE("the rates are torch's, also when the state is saved and loaded on the way") {
  for (const auto& [name, make_schedule] : schedules()) {
    CAPTURE(name);
    const Case golden("torch/" + name);
    const std::vector<double> lr = golden.values("lr");
    const std::vector<double> metrics =
        golden.has("metrics") ? golden.values("metrics") : std::vector<double>{};
    Training training;
    auto schedule = make_schedule(training.optimizer);
    CHECK(training.optimizer.lr() == doctest::Approx(lr[0]).epsilon(1e-12));
    std::vector<std::unique_ptr<Training>> later;
    for (std::size_t epoch = 0; epoch + 1 < lr.size(); ++epoch) {
      CAPTURE(epoch);
      schedule->step(metrics.empty() ? std::numeric_limits<double>::quiet_NaN() : metrics[epoch]);
      CHECK(training.optimizer.lr() == doctest::Approx(lr[epoch + 1]).epsilon(1e-9));
      if (epoch % 5 != 3) continue;
      const auto state = schedule->state();
      const double rate = training.optimizer.lr();
      training.optimizer.set_lr(0.05);
      schedule = make_schedule(training.optimizer);
      schedule->load_state(state);
      training.optimizer.set_lr(rate);
      CHECK(schedule->state() == state);
    }
  }
}

TEST_CASE("a schedule goes on with another base rate") {
  Training training;
  StepLR schedule(training.optimizer, {.step_size = 2, .gamma = 0.5, .warm_up = {}});
  for (int epoch = 0; epoch < 3; ++epoch) schedule.step();
  schedule.set_base_lr(0.4);
  CHECK(training.optimizer.lr() == doctest::Approx(0.2));
  schedule.step();
  CHECK(training.optimizer.lr() == doctest::Approx(0.1));
  CHECK_THROWS_AS(schedule.set_base_lr(-1), InputError);
  CHECK(training.optimizer.lr() == doctest::Approx(0.1));
}

TEST_CASE("schedules refuse what makes no sense") {
  Training t;
  CHECK(thrown<InputError>([&] { StepLR(t.optimizer, {.step_size = 0, .warm_up = {}}); }) ==
        "StepLR with a step_size of 0 and a gamma of 0.1, expected 1 or more, and 0 or more");
  CHECK_THROWS_AS(CosineAnnealingLR(t.optimizer, {.T_max = 0, .warm_up = {}}), InputError);
  CHECK_THROWS_AS(LinearLR(t.optimizer, {.start_factor = 0}), InputError);
  CHECK_THROWS_AS(StepLR(t.optimizer, {.warm_up = LinearLROptions{.total_iters = 0}}), InputError);
  CHECK_THROWS_AS(ReduceLROnPlateau(t.optimizer, {.factor = 1}), InputError);
  CHECK_THROWS_AS(ReduceLROnPlateau(t.optimizer, {.patience = -1}), InputError);
  CHECK(t.optimizer.lr() == 0.05);
  ReduceLROnPlateau plateau(t.optimizer);
  CHECK(thrown<InputError>([&] { plateau.step(); }) ==
        "ReduceLROnPlateau: the metric of the epoch is NaN, expected a number, such as the loss");
  CHECK(thrown<InputError>([&] {
          plateau.load_state({{"best", "1"}});
        }) == "the state of the schedule has no 'num_bad_epochs'");
  CHECK(thrown<InputError>([&] {
          plateau.load_state({{"best", "1"}, {"num_bad_epochs", "x"}, {"cooldown_counter", "0"}});
        }) == "the state of the schedule has 'num_bad_epochs' of 'x', expected a number");
  for (const auto& [best, bad, counter] : {std::tuple{"nan", "0", "0"}, {"1", "-1", "0"}, {"1", "0", "-1"}})
    CHECK(thrown<InputError>([&] {
            plateau.load_state({{"best", best}, {"num_bad_epochs", bad}, {"cooldown_counter", counter}});
          }).ends_with(", expected numbers, the counts of 0 or more"));
  StepLR steps(t.optimizer, {.warm_up = {}});
  for (const char* base : {"inf", "nan", "-1"})
    CHECK(thrown<InputError>([&] {
            steps.load_state({{"base_lr", base}, {"epoch", "3"}});
          }).ends_with(", expected a finite number of 0 or more"));
  CHECK(t.optimizer.lr() == 0.05);
}

TEST_CASE("clipped gradients are torch's") {
  const Case by_norm("torch/clip_norm"), by_value("torch/clip_value");
  {
    const Tensor shared = by_norm.tensor("a");
    Two module(shared, by_norm.tensor("b"));
    const double norm = clip_grad_norm(module, 1.5);
    CHECK(norm == doctest::Approx(by_norm.values("norm")[0]).epsilon(tolerance()));
    CHECK(relative_error(module.a.grad(), by_norm.values("clipped_a")) < tolerance());
    CHECK(relative_error(module.b.grad(), by_norm.values("clipped_b")) < tolerance());
    CHECK(relative_error(shared, by_norm.values("a")) == 0);  // the handle of another is left alone
    CHECK_FALSE(module.without.grad().defined());
    const Tensor clipped = module.a.grad().clone();
    CHECK(clip_grad_norm(module, 10) == doctest::Approx(1.5).epsilon(1e-4));
    CHECK(same_bits(module.a.grad(), clipped));
  }
  Two module(by_value.tensor("a"), by_value.tensor("b"));
  clip_grad_value(module, 0.4);
  CHECK(relative_error(module.a.grad(), by_value.values("clipped_a")) < tolerance());
  CHECK(relative_error(module.b.grad(), by_value.values("clipped_b")) < tolerance());
}

TEST_CASE("clipping passes NaN on, leaves zeros alone, and refuses negative limits") {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  Two module(Tensor::from({2}, {3, nan}), Tensor::zeros({3}));
  clip_grad_value(module, 1);
  CHECK(module.a.grad().data()[0] == 1);
  CHECK(std::isnan(module.a.grad().data()[1]));
  CHECK(std::isnan(clip_grad_norm(module, 1)));
  CHECK(std::isnan(module.b.grad().data()[0]));
  Two zeros(Tensor::zeros({2}), Tensor::zeros({3}));
  CHECK(clip_grad_norm(zeros, 1) == 0);
  CHECK(zeros.a.grad().data()[0] == 0);
  CHECK(thrown<InputError>([&] { (void)clip_grad_norm(zeros, -1); }) ==
        "clip_grad_norm: max_norm is -1, expected 0 or more");
  CHECK_THROWS_AS(clip_grad_value(zeros, nan), InputError);
}
