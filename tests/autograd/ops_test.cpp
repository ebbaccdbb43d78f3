// SPDX-License-Identifier: MIT

/// Every operation: values against naive loops, gradients against central differences.
#include <doctest/doctest.h>

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_away_from_zero;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

using Inputs = std::vector<Variable>;

Variable input(const Shape& shape, std::uint64_t stream) {
  return {random_away_from_zero(shape, stream), true};
}

/// Checks element by element, in random directions, and with each input alone wanting a gradient.
void check(const std::string& name, const std::function<Variable(const Inputs&)>& fn, const Inputs& inputs) {
  CAPTURE(name);
  const auto passes = [&](const Inputs& variables, const GradcheckOptions& options) {
    std::string failure;
    try {
      gradcheck(fn, variables, options);
    } catch (const Error& error) {
      failure = error.what();
    }
    CHECK(failure == "");
  };
  passes(inputs, {});
  GradcheckOptions directions;
  directions.directions = 3;
  passes(inputs, directions);
  if (inputs.size() == 1) return;
  for (std::size_t alone = 0; alone < inputs.size(); ++alone) {
    Inputs some;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      some.push_back(k == alone ? inputs[k] : inputs[k].detach());
    passes(some, {});
  }
}

TEST_CASE("products with a matrix for each type, or for each row") {
  const auto expected = [](const Tensor& x, const Tensor& w, const std::vector<Index>& types) {
    std::vector<double> y;
    for (Index i = 0; i < x.num_rows(); ++i)
      for (Index o = 0; o < w.shape()[2]; ++o) {
        double sum = 0;
        for (Index k = 0; k < x.row_size(); ++k)
          sum += x.row(i)[k] * w.row(types[static_cast<std::size_t>(i)])[k * w.shape()[2] + o];
        y.push_back(sum);
      }
    return y;
  };
  const std::vector<Index> types{2, 0, 0, 4, 2, 2, 0}, sorted{0, 0, 1, 1, 1, 3, 4}, each{0, 1, 2, 3, 4, 5, 6};
  for (const auto& chosen : {types, sorted}) {
    check("gather_mm", [&](const Inputs& in) { return gather_mm(in[0], in[1], chosen); },
          {input({7, 3}, 1), input({5, 3, 4}, 2)});
    const Variable x = input({7, 3}, 1), w = input({5, 3, 4}, 2);
    CHECK(relative_error(gather_mm(x, w, chosen).value(), expected(x.value(), w.value(), chosen)) <
          tolerance() / 10);
  }
  check("gather_mm of blocks", [&](const Inputs& in) { return gather_mm(in[0], in[1], types); },
        {input({7, 6}, 1), input({5, 2, 3, 4}, 2)});
  {
    const Variable x = input({7, 6}, 1), w = input({5, 2, 3, 4}, 2);
    Tensor whole = Tensor::zeros({5, 6, 8});
    for (Index k = 0; k < 5 * 2 * 3 * 4; ++k) {
      const Index type = k / 24, block = k / 12 % 2, i = k / 4 % 3, o = k % 4;
      whole.row(type)[(block * 3 + i) * 8 + block * 4 + o] = w.value().data()[k];
    }
    CHECK(relative_error(gather_mm(x, w, types).value(), expected(x.value(), whole, types)) <
          tolerance() / 10);
  }
  check("bmm", [](const Inputs& in) { return bmm(in[0], in[1]); }, {input({7, 3}, 1), input({7, 3, 4}, 2)});
  const Variable x = input({7, 3}, 1), w = input({7, 3, 4}, 2);
  CHECK(relative_error(bmm(x, w).value(), expected(x.value(), w.value(), each)) < tolerance() / 10);
  CHECK(gather_mm(Tensor({0, 3}), w, {}).shape() == Shape{0, 4});
  const std::vector<Index> nine{0, 1, 1, 1, 1, 1, 1, 1, 1};
  CHECK(gather_mm(Tensor::zeros({9, 3}), Tensor({2, 3, 0}), nine).shape() == Shape{9, 0});

  // more rows than a block, types without rows, sums on top of others
  std::vector<Index> many;
  for (Index i = 0; i < 2000; ++i) many.push_back(i * i % 7 == 3 ? 2 : i * 31 % 11);
  const Variable rows(random_tensor({2000, 35}, 3), true), matrices(random_tensor({13, 35, 9}, 4), true);
  Tape tape;
  const Variable y = gather_mm(rows, matrices, many);
  CHECK(relative_error(y.value(), expected(rows.value(), matrices.value(), many)) < tolerance() / 10);
  const Variable sum = y + gather_mm(rows, matrices, many);
  const Tensor seed = random_tensor({2000, 9}, 5);
  tape.backward(sum, seed);
  std::vector<double> to_matrices(13 * 35 * 9), to_rows(2000 * 35);
  for (Index i = 0; i < 2000; ++i)
    for (Index k = 0; k < 35; ++k)
      for (Index o = 0; o < 9; ++o) {
        const Index at = (many[static_cast<std::size_t>(i)] * 35 + k) * 9 + o;
        to_matrices[static_cast<std::size_t>(at)] += 2 * rows.value().row(i)[k] * seed.row(i)[o];
        to_rows[static_cast<std::size_t>(i * 35 + k)] += 2 * matrices.value().data()[at] * seed.row(i)[o];
      }
  CHECK(relative_error(matrices.grad(), to_matrices) < tolerance() / 10);
  CHECK(relative_error(rows.grad(), to_rows) < tolerance() / 10);

  CHECK_THROWS_AS(gather_mm(x, w, std::vector<Index>{0, 1, 2, 3, 4, 5, 7}), ShapeError);
  CHECK_THROWS_AS(gather_mm(x, w, std::vector<Index>{0, 1, 2, -1, 4, 5, 6}), ShapeError);
  CHECK_THROWS_AS(gather_mm(x, w, std::vector<Index>{0, 1}), ShapeError);
  CHECK_THROWS_AS(bmm(x, input({6, 3, 4}, 2)), ShapeError);
}

TEST_CASE("gradients of products") {
  check("matmul", [](const Inputs& in) { return matmul(in[0], in[1]); },
        {input({5, 4}, 1), input({4, 3}, 2)});
  check("linear", [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
        {input({5, 4}, 1), input({3, 4}, 2), input({3}, 3)});
  check("linear without bias", [](const Inputs& in) { return linear(in[0], in[1]); },
        {input({5, 4}, 1), input({3, 4}, 2)});
  check("linear of a vector", [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
        {input({4}, 1), input({2, 4}, 2), input({2}, 3)});
  CHECK(linear(input({2}, 1), input({5, 2}, 2)).shape() == Shape{5});
  check("linear, 3 dimensions", [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
        {input({2, 5, 4}, 1), input({3, 4}, 2), input({3}, 3)});
  check("affine", [](const Inputs& in) { return affine(in[0], in[1], in[2]); },
        {input({5, 4}, 1), input({4, 3}, 2), input({3}, 3)});
  check("a weight used twice", [](const Inputs& in) { return linear(linear(in[0], in[1]), in[1]); },
        {input({5, 4}, 1), input({4, 4}, 2)});
  check("matmul, operands used twice",
        [](const Inputs& in) { return matmul(matmul(in[0], in[1]), matmul(in[0], in[1])); },
        {input({4, 4}, 1), input({4, 4}, 2)});
  check("linear, operands used twice",
        [](const Inputs& in) {
          return linear(linear(in[0], in[1], in[2]), in[1], in[2]) + linear(in[0], in[1], in[2]);
        },
        {input({5, 4}, 1), input({4, 4}, 2), input({4}, 3)});
  check("affine, operands used twice",
        [](const Inputs& in) {
          return affine(affine(in[0], in[1], in[2]), in[1], in[2]) + affine(in[0], in[1], in[2]);
        },
        {input({5, 4}, 1), input({4, 4}, 2), input({4}, 3)});
}

TEST_CASE("values of products") {
  const Tensor x = random_tensor({6, 4}, 1);
  const Tensor w = random_tensor({4, 3}, 2);
  const Tensor b = random_tensor({3}, 3);
  Tensor w_transposed({3, 4});
  std::vector<double> expected, without_bias;
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j < 3; ++j) {
      double sum = 0;
      for (Index k = 0; k < 4; ++k) {
        sum += static_cast<double>(x.row(i)[k]) * w.row(k)[j];
        w_transposed.row(j)[k] = w.row(k)[j];
      }
      without_bias.push_back(sum);
      expected.push_back(sum + b.data()[j]);
    }
  CHECK(relative_error(matmul(x, w).value(), without_bias) < tolerance() / 10);
  CHECK(relative_error(affine(x, w, b).value(), expected) < tolerance() / 10);
  CHECK(relative_error(linear(x, w_transposed, b).value(), expected) < tolerance() / 10);
  CHECK(linear(x.reshape({2, 3, 4}), w_transposed, b).shape() == Shape{2, 3, 3});
}

TEST_CASE("gradients of arithmetic, broadcast in every way") {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{5, 3}, {5, 3}},       {{5, 3}, {3}},          {{5, 3}, {1, 3}}, {{5, 3}, {5, 1}},
      {{5, 3}, {1}},          {{3}, {5, 3}},          {{5, 1}, {1, 3}}, {{4, 3, 2}, {3, 1}},
      {{4, 3, 2}, {4, 1, 2}}, {{4, 3, 2}, {4, 3, 1}}, {{1}, {5, 3}},    {{2, 1, 4, 1}, {3, 1, 5}}};
  for (const auto& [a, b] : shapes) {
    const Inputs inputs{input(a, 1), {random_tensor(b, 2, 0.7, 2), true}};
    const std::string which = a.to_string() + " and " + b.to_string();
    check(
        "add " + which, [](const Inputs& in) { return in[0] + in[1]; }, inputs);
    check(
        "sub " + which, [](const Inputs& in) { return in[0] - in[1]; }, inputs);
    check(
        "mul " + which, [](const Inputs& in) { return in[0] * in[1]; }, inputs);
    check(
        "div " + which, [](const Inputs& in) { return in[0] / in[1]; }, inputs);
  }
}

TEST_CASE("gradients of arithmetic with constants and with itself") {
  const Inputs x{Variable(random_tensor({5, 3}, 1, 0.7, 2), true)};
  check(
      "constants", [](const Inputs& in) { return 2 - (in[0] + 1) * 3 / 4 + real(0.5) * (1 + -in[0]) - 7; },
      x);
  check(
      "1 / x", [](const Inputs& in) { return 1 / in[0]; }, x);
  check(
      "x + x", [](const Inputs& in) { return in[0] + in[0]; }, x);
  check(
      "x - x", [](const Inputs& in) { return in[0] - in[0]; }, x);
  check(
      "x * x", [](const Inputs& in) { return in[0] * in[0]; }, x);
  check(
      "x / x", [](const Inputs& in) { return in[0] / in[0]; }, x);
  check(
      "x^2 (x + exp x) + x", [](const Inputs& in) { return in[0] * in[0] * (in[0] + exp(in[0])) + in[0]; },
      x);
  const Tensor column = random_tensor({5}, 2);
  check(
      "scale_rows [N]", [&](const Inputs& in) { return scale_rows(in[0], column); }, x);
  check(
      "scale_rows [N, 1]",
      [&](const Inputs& in) {
        return scale_rows(reshape(in[0], {5, 3, 1}), column.reshape({5, 1}));
      },
      x);
}

TEST_CASE("values of arithmetic with constants") {
  const Variable x(Tensor::from({2}, {1, 4}));
  CHECK((x + 1).value().data()[1] == 5);
  CHECK((3 - x).value().data()[1] == -1);
  CHECK((x - 3).value().data()[1] == 1);
  CHECK((2 * x).value().data()[1] == 8);
  CHECK((x / 2).value().data()[1] == 2);
  CHECK((2 / x).value().data()[1] == real(0.5));
  CHECK((-x).value().data()[1] == -4);
  CHECK(x.value().data()[1] == 4);
}

TEST_CASE("gradients of activations") {
  const Inputs x{input({6, 5}, 1)};
  check(
      "relu", [](const Inputs& in) { return relu(in[0]); }, x);
  check(
      "leaky_relu", [](const Inputs& in) { return leaky_relu(in[0], real(0.2)); }, x);
  check(
      "leaky_relu with slope 0", [](const Inputs& in) { return leaky_relu(in[0], 0); }, x);
  check(
      "elu", [](const Inputs& in) { return elu(in[0], real(1.5)); }, x);
  check(
      "sigmoid", [](const Inputs& in) { return sigmoid(in[0]); }, x);
  check(
      "softplus", [](const Inputs& in) { return softplus(in[0]); }, x);
  {
    const Variable far(Tensor::from({4}, {-1000, -80, 80, 1000}), true);
    Tape tape;
    const Variable y = softplus(far);
    CHECK(relative_error(y.value(), Tensor::from({4}, {0, 0, 80, 1000})) < tolerance());
    tape.backward(y, Tensor::full({4}, 1));
    CHECK(relative_error(far.grad(), Tensor::from({4}, {0, 0, 1, 1})) < tolerance());
  }
  check(
      "tanh", [](const Inputs& in) { return tanh(in[0]); }, x);
  check(
      "exp", [](const Inputs& in) { return exp(in[0]); }, x);
  check("log", [](const Inputs& in) { return log(in[0]); },
        {Variable(random_tensor({6, 5}, 2, 0.5, 2), true)});
  check("sqrt", [](const Inputs& in) { return sqrt(in[0]); },
        {Variable(random_tensor({6, 5}, 2, 0.5, 2), true)});
  check(
      "abs", [](const Inputs& in) { return abs(in[0]); }, x);
  check(
      "silu", [](const Inputs& in) { return silu(in[0]); }, x);
  check(
      "gelu", [](const Inputs& in) { return gelu(in[0]); }, x);
  check(
      "gelu, approximated", [](const Inputs& in) { return gelu(in[0], GeluApproximation::tanh); }, x);
  check(
      "clamp", [](const Inputs& in) { return clamp(in[0], real(-0.1), real(0.1)) + clamp(in[0], -2, 0); }, x);
  check(
      "pow",
      [](const Inputs& in) {
        return pow(in[0], 3) + pow(in[0], 0) + pow(abs(in[0]) + real(0.5), real(-1.7));
      },
      x);
  check(
      "a chain of functions that keep their argument",
      [](const Inputs& in) { return gelu(silu(abs(in[0] * 2)) - 1); }, x);
  check(
      "softmax", [](const Inputs& in) { return softmax(in[0]); }, x);
  check(
      "softmax, 3 dimensions",
      [](const Inputs& in) {
        return softmax(reshape(in[0], {2, 5, 3}));
      },
      x);
  check(
      "log_softmax", [](const Inputs& in) { return log_softmax(in[0]); }, x);
  check(
      "a chain that works in one tensor",
      [](const Inputs& in) { return tanh(scale_shift(relu(in[0] * 2), 3, 1)); }, x);
  check(
      "dropout",
      [](const Inputs& in) {
        return dropout(in[0], 0.4, {1, 2, 3}, {5, 3, 9, 100, 2, 7});
      },
      x);
  check(
      "dropout of a sum",
      [](const Inputs& in) {
        return dropout(in[0] + in[0], 0.4, {1, 2, 3}, {5, 3, 9, 100, 2, 7}) * in[0];
      },
      x);
}

TEST_CASE("where: gradients of what is chosen, broadcast, and no NaN from the rest") {
  const Tensor condition = Tensor::from({3, 2}, {1, 0, 0, 2, -1, 0}),
               column = Tensor::from({3, 1}, {1, 0, 1});
  check("where", [&](const Inputs& in) { return where(condition, in[0], in[1]); },
        {input({3, 2}, 1), input({3, 2}, 2)});
  check("where, broadcast", [&](const Inputs& in) { return where(column, in[0], in[1]); },
        {input({3, 2}, 1), input({2}, 2)});
  check("where of one variable", [&](const Inputs& in) { return where(condition, in[0], in[0] * in[0]); },
        {input({3, 2}, 1)});
  const Variable x(Tensor::from({2}, {-1, 4}), true);
  Tape tape;
  const Variable y = where(Tensor::from({2}, {0, 1}), sqrt(clamp(x, 0, 9)), Tensor::full({1}, 7));
  CHECK(relative_error(y.value(), Tensor::from({2}, {7, 2})) == 0);
  tape.backward(y, Tensor::full({2}, 1));
  CHECK(x.grad().data()[1] == real(0.25));
  CHECK_THROWS_AS(where(Tensor::zeros({3}), x, x), ShapeError);
  CHECK_THROWS_AS(clamp(x, std::numeric_limits<real>::quiet_NaN(), 1), Error);
}

TEST_CASE("torch's values and gradients") {
  const std::vector<std::pair<std::string, std::function<Variable(Variable)>>> functions = {
      {"sqrt", [](Variable x) { return sqrt(x); }},
      {"abs", [](Variable x) { return abs(x); }},
      {"tanh", [](Variable x) { return tanh(x); }},
      {"softplus", [](Variable x) { return softplus(x); }},
      {"silu", [](Variable x) { return silu(x); }},
      {"gelu", [](Variable x) { return gelu(x); }},
      {"gelu_tanh", [](Variable x) { return gelu(x, GeluApproximation::tanh); }},
      {"clamp", [](Variable x) { return clamp(x, real(-0.5), real(0.75)); }},
      {"where", [](Variable x) {
         return where(test::Case("torch/where").tensor("condition"), x, sum(x, ReduceDim::rows));
       }}};
  for (const auto& [name, function] : functions) {
    CAPTURE(name);
    const test::Case golden("torch/" + name);
    const Variable x(golden.tensor("x"), true);
    Tape tape;
    const Variable y = function(x);
    CHECK(relative_error(y.value(), golden.values("out")) < tolerance() / 10);
    tape.backward(y, golden.tensor("seed"));
    CHECK(relative_error(x.grad(), golden.values("grad_x")) < tolerance() / 10);
  }
}

TEST_CASE("gradients of rows, columns, shapes") {
  const Inputs ab{input({4, 3}, 1), input({4, 2}, 2)};
  check(
      "concat_columns",
      [](const Inputs& in) {
        return concat_columns({in[0], in[1], in[0]});
      },
      ab);
  check(
      "concat_columns, 3 dimensions",
      [](const Inputs& in) {
        return concat_columns({reshape(in[0], {2, 2, 3}), reshape(in[1], {2, 2, 2})});
      },
      ab);
  check("concat_rows",
        [](const Inputs& in) {
          return concat_rows({in[0], in[1], in[0]});
        },
        {input({4, 3}, 1), input({2, 3}, 2)});
  check("concat_rows of results",
        [](const Inputs& in) {
          return concat_rows({exp(in[0]), tanh(in[1]), relu(in[0])});
        },
        {input({4, 3}, 1), input({2, 3}, 2)});
  const Inputs x{input({5, 4}, 1)};
  check(
      "slice_columns", [](const Inputs& in) { return slice_columns(in[0], 1, 3); }, x);
  check(
      "slice_columns, split",
      [](const Inputs& in) { return slice_columns(in[0], 0, 3) * slice_columns(in[0], 1, 4); }, x);
  check(
      "slice_rows", [](const Inputs& in) { return slice_rows(in[0], 1, 3); }, x);
  check(
      "slice_rows, split",
      [](const Inputs& in) { return slice_rows(exp(in[0]), 0, 3) * slice_rows(in[0], 2, 5); }, x);
  check(
      "empty slices",
      [](const Inputs& in) {
        return concat_rows({slice_rows(in[0], 2, 2), slice_rows(in[0], 1, 2)});
      },
      x);
  check(
      "reshape",
      [](const Inputs& in) {
        return reshape(exp(in[0]), {2, 10});
      },
      x);
  check(
      "gather_rows",
      [](const Inputs& in) {
        return gather_rows(in[0], {3, 0, 3, 3, 1});
      },
      x);
  check(
      "gather_rows twice",
      [](const Inputs& in) {
        return gather_rows(in[0], {3, 0}) * gather_rows(in[0], {0, 2});
      },
      x);
  check(
      "scatter_add_rows",
      [](const Inputs& in) {
        return scatter_add_rows(in[0], {3, 0, 3, 3, 1}, 6);
      },
      x);
  // Every operation here must add to a gradient that has arrived before.
  check(
      "all of one variable",
      [](const Inputs& in) {
        const Variable& u = in[0];
        const Variable rows =
            scatter_add_rows(u, {1, 0, 1, 4, 4}, 5) * scatter_add_rows(u, {0, 0, 2, 4, 1}, 5);
        const Variable columns =
            concat_columns({slice_columns(u, 0, 1), slice_columns(u, 1, 4)}) * reshape(u, {5, 4});
        const Variable both = concat_rows({slice_rows(u, 3, 5), slice_rows(u, 0, 3)});
        return rows + columns + both + scale_rows(u, Tensor::full({5}, 3)) +
               dropout(u, 0.5, {1, 2, 3}, {1, 2, 3, 4, 5}) + softmax(u) + log_softmax(u) + tanh(u) +
               gather_rows(u, {0, 0, 1, 2, 3}) - u;
      },
      x);
}

TEST_CASE("gradients of sums") {
  for (const Shape& shape : {Shape{5, 3}, Shape{6}, Shape{2, 3, 4}})
    for (const ReduceDim over : {ReduceDim::all, ReduceDim::rows, ReduceDim::columns}) {
      const Inputs x{input(shape, 1)};
      check(
          "sum " + shape.to_string(), [&](const Inputs& in) { return sum(in[0], over); }, x);
      check(
          "mean " + shape.to_string(), [&](const Inputs& in) { return mean(in[0], over) * sum(in[0], over); },
          x);
    }
  check("layer norm",
        [](const Inputs& in) {
          const Variable centred = in[0] - mean(in[0], ReduceDim::columns);
          return centred / (mean(centred * centred, ReduceDim::columns) + real(0.1));
        },
        {input({5, 3}, 1)});
}

TEST_CASE("gradients and values of rows that are cut into heads") {
  check("head_dots", [](const Inputs& in) { return head_dots(in[0], in[1]); },
        {input({5, 3, 4}, 1), input({1, 3, 4}, 2)});
  check("head_dots, added to what has arrived before",
        [](const Inputs& in) { return head_dots(in[0], in[1]) * head_dots(in[0] + in[1], in[1]); },
        {input({5, 2, 3}, 1), input({1, 2, 3}, 2)});
  check("head_mean", [](const Inputs& in) { return head_mean(in[0]) * head_mean(tanh(in[0])); },
        {input({5, 3, 4}, 1)});
  const Tensor x = random_tensor({700, 3, 40}, 1), a = random_tensor({1, 3, 40}, 2);
  std::vector<double> dots(2100), means(28000);
  for (std::size_t i = 0; i < 700; ++i)
    for (std::size_t h = 0; h < 3; ++h)
      for (std::size_t d = 0; d < 40; ++d) {
        const double value = x.data()[(i * 3 + h) * 40 + d];
        dots[i * 3 + h] += value * a.data()[h * 40 + d];
        means[i * 40 + d] += value / 3;
      }
  CHECK(head_dots(x, a).shape() == Shape{700, 3});
  CHECK(relative_error(head_dots(x, a).value(), dots) < tolerance() / 10);
  CHECK(head_mean(x).shape() == Shape{700, 40});
  CHECK(relative_error(head_mean(x).value(), means) < tolerance() / 10);
  CHECK(head_dots(Tensor({0, 3, 40}), a).shape() == Shape{0, 3});
  CHECK_THROWS_AS(head_dots(x, a.reshape({3, 40})), ShapeError);
  CHECK_THROWS_AS(head_mean(a.reshape({3, 40})), ShapeError);
}

TEST_CASE("every operation works on no rows") {
  const Variable w{random_tensor({2, 3}, 1), true}, b{random_tensor({2}, 2), true};
  const Variable w_io{random_tensor({3, 2}, 3), true}, row{random_tensor({3}, 4), true};
  struct Operation {
    std::string name;
    std::function<Variable(const Variable& x, const Variable& y)> run;  // of two tensors [0, 3]
    Shape shape;
  };
  const std::vector<Operation> operations{
      {"matmul", [&](auto& x, auto&) { return matmul(x, w_io); }, {0, 2}},
      {"linear", [&](auto& x, auto&) { return linear(x, w, b); }, {0, 2}},
      {"linear, 3 dimensions",
       [&](auto& x, auto&) {
         return linear(reshape(x, {0, 4, 3}), w, b);
       },
       {0, 4, 2}},
      {"affine", [&](auto& x, auto&) { return affine(x, w_io, b); }, {0, 2}},
      {"add", [](auto& x, auto& y) { return x + y; }, {0, 3}},
      {"sub", [](auto& x, auto& y) { return x - y; }, {0, 3}},
      {"mul", [](auto& x, auto& y) { return x * y; }, {0, 3}},
      {"div", [](auto& x, auto& y) { return x / y; }, {0, 3}},
      {"add row", [&](auto& x, auto&) { return x + row; }, {0, 3}},
      {"sub row", [&](auto& x, auto&) { return x - row; }, {0, 3}},
      {"row minus", [&](auto& x, auto&) { return row - x; }, {0, 3}},
      {"mul row", [&](auto& x, auto&) { return x * row; }, {0, 3}},
      {"div row", [&](auto& x, auto&) { return x / row; }, {0, 3}},
      {"row over", [&](auto& x, auto&) { return row / x; }, {0, 3}},
      {"mul column", [](auto& x, auto& y) { return x * slice_columns(y, 0, 1); }, {0, 3}},
      {"mul column, 3 dimensions",
       [](auto& x, auto& y) {
         return reshape(x, {0, 3, 1}) * reshape(y, {0, 1, 3});
       },
       {0, 3, 3}},
      {"constants", [](auto& x, auto&) { return 1 - (x * 2 + 1) / 3; }, {0, 3}},
      {"scale_rows", [](auto& x, auto&) { return scale_rows(x, Tensor(Shape{0})); }, {0, 3}},
      {"relu", [](auto& x, auto&) { return relu(x); }, {0, 3}},
      {"leaky_relu", [](auto& x, auto&) { return leaky_relu(x); }, {0, 3}},
      {"elu", [](auto& x, auto&) { return elu(x); }, {0, 3}},
      {"sigmoid", [](auto& x, auto&) { return sigmoid(x); }, {0, 3}},
      {"tanh", [](auto& x, auto&) { return tanh(x); }, {0, 3}},
      {"exp", [](auto& x, auto&) { return exp(x); }, {0, 3}},
      {"log", [](auto& x, auto&) { return log(x); }, {0, 3}},
      {"softmax", [](auto& x, auto&) { return softmax(x); }, {0, 3}},
      {"log_softmax", [](auto& x, auto&) { return log_softmax(x); }, {0, 3}},
      {"dropout",
       [](auto& x, auto&) {
         return dropout(x, 0.5, {1, 2, 3}, {});
       },
       {0, 3}},
      {"concat_columns",
       [](auto& x, auto& y) {
         return concat_columns({x, y, x});
       },
       {0, 9}},
      {"concat_rows",
       [](auto& x, auto& y) {
         return concat_rows({x, y});
       },
       {0, 3}},
      {"slice_columns", [](auto& x, auto&) { return slice_columns(x, 1, 3); }, {0, 2}},
      {"slice_rows", [](auto& x, auto&) { return slice_rows(x, 0, 0); }, {0, 3}},
      {"reshape",
       [](auto& x, auto&) {
         return reshape(x, {0, 1, 3});
       },
       {0, 1, 3}},
      {"gather_rows", [](auto& x, auto&) { return gather_rows(x, {}); }, {0, 3}},
      {"gather_rows of a parameter", [&](auto& x, auto&) { return gather_rows(w, {}) * x; }, {0, 3}},
      {"scatter_add_rows", [](auto& x, auto&) { return scatter_add_rows(x, {}, 4); }, {4, 3}},
      {"sum", [](auto& x, auto&) { return sum(x); }, {1}},
      {"sum of rows", [](auto& x, auto&) { return sum(x, ReduceDim::rows); }, {3}},
      {"sum of columns", [](auto& x, auto&) { return sum(x, ReduceDim::columns); }, {0, 1}},
      {"mean of columns", [](auto& x, auto&) { return mean(x, ReduceDim::columns); }, {0, 1}},
      {"layer norm",
       [](auto& x, auto&) {
         const Variable centred = x - mean(x, ReduceDim::columns);
         return centred / (mean(centred * centred, ReduceDim::columns) + real(0.1));
       },
       {0, 3}},
  };
  for (const Operation& operation : operations) {
    CAPTURE(operation.name);
    const Variable x(Tensor(Shape{0, 3}), true), y(Tensor(Shape{0, 3}), true);
    Tape tape;
    const Variable z = operation.run(x, y);
    CHECK(z.shape() == operation.shape);
    REQUIRE(z.requires_grad());
    tape.backward(z, Tensor::full(z.shape(), 1));
    CHECK(x.grad().shape() == x.shape());
  }
  for (const Variable& parameter : {w, b, w_io, row}) {
    REQUIRE(parameter.grad().shape() == parameter.shape());
    for (const real g : parameter.grad().values()) CHECK(g == 0);
  }
}

TEST_CASE("values and shapes of sums") {
  const Tensor x = Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(sum(x).shape() == Shape{1});
  CHECK(sum(x).value().item() == 21);
  CHECK(mean(x).value().item() == real(3.5));
  CHECK(sum(x, ReduceDim::rows).shape() == Shape{3});
  CHECK(sum(x, ReduceDim::rows).value().data()[2] == 9);
  CHECK(mean(x, ReduceDim::rows).value().data()[2] == real(4.5));
  CHECK(sum(x, ReduceDim::columns).shape() == Shape{2, 1});
  CHECK(mean(x, ReduceDim::columns).value().data()[1] == 5);
  CHECK(sum(x.reshape({1, 2, 3}), ReduceDim::rows).shape() == Shape{2, 3});
}

TEST_CASE("values of concat, slice, gather and scatter") {
  const Tensor x = Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = Tensor::from({2, 1}, {7, 8});
  const auto equals = [](const Variable& a, const Shape& shape, std::initializer_list<real> values) {
    return relative_error(a.value(), Tensor::from(shape, values)) == 0;
  };
  CHECK(equals(concat_columns({x, y}), {2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}));
  CHECK(equals(concat_rows({y, y}), {4, 1}, {7, 8, 7, 8}));
  CHECK(equals(slice_columns(x, 1, 3), {2, 2}, {2, 3, 5, 6}));
  CHECK(equals(slice_rows(x, 1, 2), {1, 3}, {4, 5, 6}));
  CHECK(equals(gather_rows(x, {1, 1, 0}), {3, 3}, {4, 5, 6, 4, 5, 6, 1, 2, 3}));
  CHECK(equals(scatter_add_rows(x, {2, 2}, 3), {3, 3}, {0, 0, 0, 0, 0, 0, 5, 7, 9}));
}

TEST_CASE("operations accept tensors without rows") {
  Tape tape;
  const Variable x(Tensor::zeros({0, 3}), true);
  const Variable w(random_tensor({3, 2}, 1), true);
  const Variable b(random_tensor({2}, 2), true);
  Variable h = relu(affine(x, w, b));
  h = log_softmax(dropout(h * b, 0.5, {1, 1, 1}, std::vector<Index>{}));
  h = concat_columns({h, softmax(h)});
  h = concat_rows({h, gather_rows(h, std::vector<Index>{})});
  h = scatter_add_rows(scale_rows(h, Tensor::zeros({0})), std::vector<Index>{}, 4);
  CHECK(h.shape() == Shape{4, 4});
  tape.backward(sum(h) + sum(sum(x, ReduceDim::rows)) + sum(slice_rows(h, 2, 2)));
  CHECK(w.grad().shape() == Shape{3, 2});
  CHECK(w.grad().data()[3] == 0);
  CHECK(b.grad().data()[1] == 0);
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("dropout gives a row the same draw wherever it lies, and p = 0 is the identity") {
  const Tensor x = Tensor::full({6, 40}, 1);
  const RandomKey key{1, 2, 3};
  const Tensor whole = dropout(x, 0.5, key, {5, 3, 9, 100, 2, 7}).value();
  const Tensor part = dropout(x.slice_rows(0, 2).clone(), 0.5, key, {100, 3}).value();
  for (Index j = 0; j < 40; ++j) {
    CHECK(part.row(0)[j] == whole.row(3)[j]);
    CHECK(part.row(1)[j] == whole.row(1)[j]);
  }
  CHECK(relative_error(dropout(x, 0.5, {1, 2, 4}, {5, 3, 9, 100, 2, 7}).value(), whole) > 0);
  CHECK(dropout(x, 0, key, {5, 3, 9, 100, 2, 7}).value().data() == x.data());
}

TEST_CASE("operations on shapes that do not fit") {
  const Variable x(Tensor::zeros({4, 3}));
  CHECK_THROWS_WITH_AS(matmul(x, x), "matmul: operands of shapes [4, 3] and [4, 3]", ShapeError);
  CHECK_THROWS_WITH_AS(linear(x, Tensor::zeros({2, 4})),
                       "linear: input of shape [4, 3] for a weight of shape [2, 4] ([out, in])", ShapeError);
  CHECK_THROWS_AS(linear(x, Tensor::zeros({2, 3}), Tensor::zeros({3})), ShapeError);
  CHECK_THROWS_AS(linear(x, Variable()), ShapeError);
  CHECK_THROWS_AS(linear(Variable(), Tensor::zeros({2, 3})), ShapeError);
  CHECK_THROWS_AS(x + Tensor::zeros({4}), ShapeError);
  CHECK_THROWS_AS(x * Tensor::zeros({4, 2}), ShapeError);
  CHECK_THROWS_AS(x * Variable(), ShapeError);
  CHECK_THROWS_AS(relu(Variable()), ShapeError);
  CHECK_THROWS_AS(scale_rows(x, Tensor::zeros({3})), ShapeError);
  CHECK_THROWS_AS(scale_rows(x, Tensor::zeros({4, 3})), ShapeError);
  CHECK_THROWS_AS(dropout(x, 0.5, {}, {1, 2, 3}), ShapeError);
  CHECK_THROWS_AS(dropout(x, 1, {}, {1, 2, 3, 4}), Error);
  CHECK_THROWS_AS(concat_columns({x, Tensor::zeros({3, 3})}), ShapeError);
  CHECK_THROWS_AS(concat_rows({x, Tensor::zeros({4, 2})}), ShapeError);
  CHECK_THROWS_AS(concat_rows(std::vector<Variable>{}), ShapeError);
  CHECK_THROWS_AS(slice_columns(x, 2, 4), ShapeError);
  CHECK_THROWS_AS(slice_rows(x, 3, 2), ShapeError);
  CHECK_THROWS_AS(reshape(x, {5, 3}), ShapeError);
  CHECK_THROWS_AS(gather_rows(x, {4}), ShapeError);
  CHECK_THROWS_AS(scatter_add_rows(x, {0, 1}, 4), ShapeError);
  CHECK_THROWS_AS(mean(Tensor::zeros({0, 3})), ShapeError);
  CHECK_THROWS_AS(sum(Variable()), ShapeError);
}

}  // namespace
