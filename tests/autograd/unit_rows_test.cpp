// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/autograd/activations.hpp>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/tape.hpp>

#include "support/random_tensor.hpp"

using namespace sar;
using sar::test::random_tensor;

TEST_CASE("rows become as long as the scale; zeros stay zeros") {
  const Variable y = scaled_unit_rows(Tensor::from({2, 2}, {3, 4, 0, 0}), Tensor::from({1}, {10}));
  CHECK(y.value().row(0)[0] == doctest::Approx(6));
  CHECK(y.value().row(0)[1] == doctest::Approx(8));
  CHECK(y.value().row(1)[0] == 0);
}

TEST_CASE("gradients of rows and scale") {
  gradcheck([](const std::vector<Variable>& in) { return scaled_unit_rows(in[0], in[1]); },
            {Variable(random_tensor({5, 7}, 1), true), Variable(random_tensor({1}, 2), true)});
}

TEST_CASE("rows without columns") {
  const Variable x(Tensor({3, 0}), true), scale(Tensor::from({1}, {2}), true);
  Tape tape;
  const Variable y = scaled_unit_rows(x, scale);
  CHECK(y.shape() == Shape{3, 0});
  tape.backward(y, Tensor({3, 0}));
  CHECK(scale.grad().item() == 0);
}
