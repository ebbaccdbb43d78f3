// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>

#include "support/random_tensor.hpp"

#include <algorithm>
#include <string>

namespace {

using namespace sar;
using sar::test::random_tensor;

/// x * x with a backward pass that forgets the factor 2 in the last element.
Variable wrong_square(const Variable& x) {
  Tensor y = x.value().clone();
  for (real& value : y.values()) value *= value;
  if (!recording({&x})) return y;
  return record(std::move(y), [x](const Tensor& grad) {
    Tensor dx = grad.clone();
    for (Index i = 0; i < dx.size(); ++i) dx.data()[i] *= x.value().data()[i] * (i + 1 == dx.size() ? 1 : 2);
    x.gradient()->add(dx);
  });
}

std::string failure(const std::vector<Variable>& inputs, const GradcheckOptions& options) {
  try {
    gradcheck([](const std::vector<Variable>& in) { return in[0] + wrong_square(in[1]); }, inputs, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a wrong gradient is found and named") {
  const std::vector<Variable> inputs{Variable(random_tensor({3}, 1), true),
                                     Variable(Tensor::from({3}, {1, 2, 3}), true)};
  const std::string message = failure(inputs, {});
  CAPTURE(message);
  CHECK(message.find("input 1 of shape [3], element 2: the tape says ") != std::string::npos);
  CHECK(message.find("central differences say ") != std::string::npos);
  GradcheckOptions directions;
  directions.directions = 2;
  CHECK(failure(inputs, directions).find("random direction 0") != std::string::npos);
}

TEST_CASE("the error is returned, values and gradients are left as they were") {
  const std::vector<Variable> inputs{Variable(random_tensor({4, 3}, 1), true),
                                     Variable(random_tensor({3}, 2), false)};
  const Tensor before = inputs[0].value().clone();
  const double error = gradcheck([](const std::vector<Variable>& in) { return tanh(in[0] * in[1]); }, inputs);
  CHECK(error > 0);
  CHECK(error < (sizeof(real) == 8 ? 1e-8 : 1e-3));
  CHECK(std::ranges::equal(before.values(), inputs[0].value().values()));
  CHECK(!inputs[0].grad().defined());
}

TEST_CASE("parameters that the function captures can be checked as inputs") {
  const Variable weight(random_tensor({3, 3}, 1), true);
  const Tensor x = random_tensor({4, 3}, 2);
  CHECK(gradcheck([&](const std::vector<Variable>&) { return sigmoid(linear(x, weight)); }, {weight}) > 0);
}

TEST_CASE("sums over ranks enter both sides") {
  // Two equal ranks: every sum doubles.
  GradcheckOptions options;
  options.directions = 2;
  options.sum_over_ranks = [](double x) { return 2 * x; };
  const std::vector<Variable> inputs{Variable(random_tensor({4}, 1), true)};
  CHECK(gradcheck([](const std::vector<Variable>& in) { return exp(in[0]); }, inputs, options) > 0);
  options.directions = 0;
  CHECK_THROWS_AS(gradcheck([](const std::vector<Variable>& in) { return exp(in[0]); }, inputs, options),
                  Error);
}

TEST_CASE("functions without a gradient are refused") {
  const std::vector<Variable> inputs{Variable(random_tensor({4}, 1), true)};
  CHECK_THROWS_AS(gradcheck([](const std::vector<Variable>& in) { return exp(in[0].detach()); }, inputs),
                  Error);
}

}  // namespace
