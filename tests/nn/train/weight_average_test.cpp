// SPDX-License-Identifier: MIT

/// Moving averages of weights: the formula, exchanges, checkpoints.
#include "graph/data/dataset_files.hpp"
#include "nn/train/curve.hpp"
#include "support/thrown.hpp"

#include <sar/nn/modules/linear.hpp>
#include <sar/nn/train/checkpoint.hpp>
#include <sar/nn/train/weight_average.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

void set_weights(Module& module, double value) {
  for (Variable parameter : module.parameters()) parameter.value().fill(static_cast<real>(value));
}

double weight_of(const Module& module) {
  return static_cast<double>(module.parameters().front().value().data()[0]);
}

}  // namespace

TEST_CASE("weight average: the formula, and weights that come back") {
  Generator gen(1);
  Linear net(3, 2, gen);
  WeightAverage average(net, 0.15);
  const double before = weight_of(net);
  average.exchange();
  CHECK(weight_of(net) == before);
  double expected = 0;
  for (int t = 1; t <= 6; ++t) {
    set_weights(net, t * t);
    average.update();
    const double d = std::min(0.15, (t - 1) / (t + 9.));
    expected = d * expected + (1 - d) * t * t;
    average.exchange();
    CHECK(weight_of(net) == doctest::Approx(expected).epsilon(1e-6));
    average.exchange();
    CHECK(weight_of(net) == t * t);
  }
  for (const double decay : {-0.1, 1., std::nan("")})
    CHECK(thrown<InputError>([&] { (void)WeightAverage(net, decay); }).find("WeightAverage: the decay is ") ==
          0);
}

TEST_CASE("weight average: a checkpoint continues it; a failed call leaves it as it was") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Generator gen(1);
  Linear net(3, 2, gen);
  WeightAverage average(net, 0.9);
  SGD optimizer(net.named_parameters(), {.lr = 0});
  Checkpointer checkpoints(comm, directory.path());
  checkpoints.add_state("ema.", average.state());
  for (int t = 1; t <= 3; ++t) {
    set_weights(net, t);
    average.update();
  }
  checkpoints.save(1, net, optimizer);
  const auto next = [&](Linear& of, WeightAverage& its) {
    set_weights(of, 10);
    its.update();
    its.exchange();
    return weight_of(of);
  };
  Linear other(3, 2, gen);
  WeightAverage continued(other, 0.9);
  SGD other_optimizer(other.named_parameters(), {.lr = 0});
  Checkpointer read(comm, directory.path());
  read.add_state("ema.", continued.state());
  read.load(read.latest(), other, other_optimizer);
  (void)thrown<InputError>([&] {
    comm.agree([&] {
      continued.update();
      throw InputError("a failure");
    });
  });
  CHECK(next(other, continued) == next(net, average));
}
