// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/dropout.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

std::vector<Index> some_ids(Index n) {
  std::vector<Index> ids;
  for (Index i = 0; i < n; ++i) ids.push_back((7919 * i + 5) % 100003);
  return ids;
}

struct Pass {
  Tensor y, dx;
};

/// In one operation or in two; x may be read by another operation, which then has it for itself.
Pass run(bool fused, const Tensor& x0, const Tensor& grad, double p, bool training, bool shared) {
  Generator gen(4);
  Dropout dropout(p, gen);
  dropout.train(training);
  const std::vector<Index> ids = some_ids(x0.num_rows());
  const Variable leaf(x0.clone(), true);
  Tape tape;
  Variable x = scale_shift(leaf, 2, 0);
  const Variable other = shared ? x * x : Variable();
  Variable y = fused ? relu_dropout(std::move(x), dropout, ids) : dropout(relu(std::move(x)), ids);
  const Tensor value = y.value().clone();
  if (shared) y = y + other;
  tape.backward(y, grad.clone());
  return {value, leaf.grad()};
}

}  // namespace

TEST_CASE("relu_dropout is ReLU, then dropout, for every width and number of threads") {
  for (const Index width : {1, 3, 7, 64, 100, 4101})
    for (const double p : {0.0, 0.5})
      for (const bool training : {true, false})
        for (const bool shared : {false, true}) {
          CAPTURE(width);
          CAPTURE(p);
          CAPTURE(training);
          CAPTURE(shared);
          const Tensor x = random_values({70, width}), grad = random_values({70, width}, 1);
          const Pass want = run(false, x, grad, p, training, shared);
          for (const int threads : {1, 2}) {
            const ThreadLimit limit(threads);
            const Pass got = run(true, x, grad, p, training, shared);
            CHECK(same_bits(got.y, want.y));
            CHECK(relative_error(got.dx, want.dx) < tolerance());
          }
        }
}

TEST_CASE("relu_dropout: central differences, NaN, and other numbers of ids") {
  Generator gen(3);
  Dropout dropout(0.4, gen);
  Tensor x = random_values({30, 5}, 3);
  for (real& value : x.values()) value += value < 0 ? real(-0.1) : real(0.1);  // no step crosses 0
  const std::vector<Index> ids = some_ids(30);
  const auto forward = [&](const std::vector<Variable>& in) {
    Generator equal(3);  // the same draws in every call
    Dropout drop(0.4, equal);
    return relu_dropout(in[0], drop, ids);
  };
  CHECK(gradcheck(forward, {Variable(x, true)}) < 1);
  Tensor nan = Tensor::full({30, 5}, std::numeric_limits<real>::quiet_NaN());
  CHECK(std::isnan(relu_dropout(nan, dropout, ids).value().data()[0]));
  CHECK(thrown<ShapeError>([&] { (void)relu_dropout(x, dropout, some_ids(29)); }) ==
        "dropout of a tensor of shape [30, 5] with 29 row ids into one of shape [30, 5]");
  CHECK(relu_dropout(Tensor::zeros({30, 0}), dropout, ids).value().size() == 0);
}
