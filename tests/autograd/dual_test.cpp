// SPDX-License-Identifier: MIT

/// Dual variables: the tangent of every operation against central differences of its value, and gradients of
/// value and tangent against central differences of both.
#include <doctest/doctest.h>

#include <sar/autograd/activations.hpp>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/edge_rows.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_away_from_zero;
using sar::test::random_tensor;

using Inputs = std::vector<Variable>;
using Function = std::function<Variable(const Inputs&)>;

constexpr bool is_double = sizeof(real) == 8;

Variable input(const Shape& shape, std::uint64_t stream) {
  return {random_away_from_zero(shape, stream), true};
}

Variable positive(const Shape& shape, std::uint64_t stream) {
  const Tensor x = random_away_from_zero(shape, stream);
  Tensor out(shape);
  for (Index i = 0; i < x.size(); ++i) out.data()[i] = std::abs(x.data()[i]) + real{0.5};
  return {out, true};
}

/// Returns the inputs with those in `duals` as dual variables. The last inputs are their tangents.
Inputs with_tangents(const Inputs& all, const std::vector<bool>& duals) {
  Inputs inputs;
  for (std::size_t k = 0; k < duals.size(); ++k)
    inputs.push_back(duals[k] ? make_dual(all[k], all[duals.size() + k]) : all[k]);
  return inputs;
}

void check_tangent(const Function& fn, const Inputs& all, const std::vector<bool>& duals) {
  const double h = is_double ? 1e-5 : 1e-2;
  const auto moved = [&](double step) {
    Inputs inputs;
    for (std::size_t k = 0; k < duals.size(); ++k) {
      Tensor x = all[k].value().clone();
      const Tensor t = all[duals.size() + k].value();
      for (Index i = 0; duals[k] && i < x.size(); ++i) x.data()[i] += static_cast<real>(step) * t.data()[i];
      inputs.emplace_back(x);
    }
    return fn(inputs).value();
  };
  const Variable y = fn(with_tangents(all, duals));
  REQUIRE(y.is_dual());
  const Tensor value =
      fn(Inputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(duals.size()))).value();
  const Tensor above = moved(h), below = moved(-h), tangent = y.tangent().value();
  REQUIRE(y.shape() == tangent.shape());
  for (Index i = 0; i < tangent.size(); ++i) {
    CHECK(y.value().data()[i] == value.data()[i]);
    const double slope =
        (static_cast<double>(above.data()[i]) - static_cast<double>(below.data()[i])) / (2 * h);
    CHECK(std::abs(static_cast<double>(tangent.data()[i]) - slope) <=
          (is_double ? 1e-7 : 1e-2) * std::max(1.0, std::abs(slope)));
  }
}

/// Checks with all inputs dual, and with each alone.
void check(const std::string& name, const Function& fn, const Inputs& inputs) {
  CAPTURE(name);
  Inputs all = inputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) all.push_back(input(inputs[k].shape(), 100 + k));
  for (std::size_t alone = 0; alone <= inputs.size(); ++alone) {
    if (inputs.size() == 1 && alone == 1) break;
    std::vector<bool> duals(inputs.size(), alone == 0);
    if (alone > 0) duals[alone - 1] = true;
    check_tangent(fn, all, duals);
    const auto value_and_tangent = [&](const Inputs& given) {
      const Variable y = fn(with_tangents(given, duals));
      const Index n = y.value().size();
      return concat_columns({reshape(y.primal(), {n, 1}), reshape(y.tangent(), {n, 1})});
    };
    std::string failure;
    try {
      GradcheckOptions options;
      if (!is_double) options.step = options.tolerance = 2e-2;
      gradcheck(value_and_tangent, all, options);
    } catch (const Error& error) {
      failure = error.what();
    }
    CHECK(failure == "");
  }
}

void check_unary(const std::string& name, Variable (*f)(Variable)) {
  check(name, [f](const Inputs& x) { return f(x[0]); }, {input({3, 4}, 1)});
}

std::vector<RadialFunctions> all_radial_functions(double cutoff, Index num_basis) {
  std::vector<RadialFunctions> all;
  for (const RadialBasis basis : {RadialBasis::sinc, RadialBasis::gaussian, RadialBasis::bessel})
    for (const CutoffFunction function : {CutoffFunction::cosine, CutoffFunction::polynomial})
      all.push_back({cutoff, num_basis, basis, function});
  return all;
}

}  // namespace

TEST_CASE("dual: activations") {
  check_unary("relu", relu);
  check_unary("sigmoid", sigmoid);
  check_unary("softplus", softplus);
  check_unary("tanh", sar::tanh);
  check_unary("exp", sar::exp);
  check_unary("abs", sar::abs);
  check_unary("silu", silu);
  check_unary("softmax", softmax);
  check_unary("log_softmax", log_softmax);
  check("leaky_relu", [](const Inputs& x) { return leaky_relu(x[0], real{0.2}); }, {input({3, 4}, 1)});
  check("elu", [](const Inputs& x) { return elu(x[0], real{0.7}); }, {input({3, 4}, 1)});
  check("clamp", [](const Inputs& x) { return clamp(x[0], real{-0.55}, real{0.65}) * x[0]; },
        {Variable(Tensor::from({2, 3}, {real(-1.1), real(-0.9), real(-0.2), real(0.3), real(0.9), real(1.2)}),
                  true)});
  check("pow", [](const Inputs& x) { return pow(x[0], real{-1.5}) + pow(x[0], 2) + pow(x[0], 0); },
        {positive({3, 4}, 2)});
  check("log", [](const Inputs& x) { return sar::log(x[0]); }, {positive({3, 4}, 2)});
  check("sqrt", [](const Inputs& x) { return sar::sqrt(x[0]); }, {positive({3, 4}, 3)});
  check("dropout",
        [](const Inputs& x) {
          Array<Index> ids(6);
          for (Index i = 0; i < 6; ++i) ids[static_cast<std::size_t>(i)] = i;
          return dropout(x[0] * x[0], 0.4, RandomKey{1, 2, 3}, RowIds(std::move(ids)));
        },
        {input({6, 3}, 4)});
}

TEST_CASE("dual: arithmetic with broadcasting") {
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3, 4}, {3, 4}},       {{3, 4}, {4}},
                                                       {{3, 1}, {3, 4}},       {{3, 4}, {1}},
                                                       {{2, 3, 1}, {2, 1, 4}}, {{1, 4}, {3, 1}}};
  for (const auto& [a, b] : shapes) {
    check("add", [](const Inputs& x) { return x[0] + x[1]; }, {input(a, 1), input(b, 2)});
    check("sub", [](const Inputs& x) { return x[0] - x[1]; }, {input(a, 1), input(b, 2)});
    check("mul", [](const Inputs& x) { return x[0] * x[1]; }, {input(a, 1), input(b, 2)});
    check("div", [](const Inputs& x) { return x[0] / x[1]; }, {input(a, 1), positive(b, 2)});
  }
  check("square", [](const Inputs& x) { return x[0] * x[0]; }, {input({3, 4}, 1)});
  check("scale_shift", [](const Inputs& x) { return scale_shift(x[0] * x[0], real{0.5}, real{0.25}); },
        {input({3, 4}, 1)});
  check("1 / x", [](const Inputs& x) { return real{1} / x[0]; }, {positive({3, 4}, 1)});
  const Tensor condition = Tensor::from({3, 1}, {1, 0, 1});
  check("where", [&](const Inputs& x) { return where(condition, x[0], x[1] * x[1]); },
        {input({3, 4}, 1), input({4}, 2)});
  check("scale_rows", [&](const Inputs& x) { return scale_rows(x[0] * x[0], condition); },
        {input({3, 4}, 1)});
}

TEST_CASE("dual: sums, rows, columns, shapes") {
  check("sum", [](const Inputs& x) { return sum(x[0] * x[0]); }, {input({3, 4}, 1)});
  check("sum of rows", [](const Inputs& x) { return sum(x[0] * x[0], ReduceDim::rows); }, {input({3, 4}, 1)});
  check("mean of columns", [](const Inputs& x) { return mean(x[0] * x[0], ReduceDim::columns); },
        {input({3, 4}, 1)});
  check("head_mean", [](const Inputs& x) { return head_mean(x[0] * x[0]); }, {input({3, 2, 4}, 1)});
  check("concat_columns",
        [](const Inputs& x) {
          return concat_columns({x[0], x[1] * x[1]});
        },
        {input({3, 4}, 1), input({3, 2}, 2)});
  check("concat_rows",
        [](const Inputs& x) {
          return concat_rows({x[0], x[1] * x[1]});
        },
        {input({3, 4}, 1), input({2, 4}, 2)});
  check("slices", [](const Inputs& x) { return slice_rows(slice_columns(x[0] * x[0], 1, 3), 1, 3); },
        {input({3, 4}, 1)});
  check("reshape", [](const Inputs& x) { return reshape(x[0] * x[0], {2, 6}); }, {input({3, 4}, 1)});
  const std::vector<Index> ids = {2, 0, 2, 1};
  check("gather_rows", [&](const Inputs& x) { return gather_rows(x[0] * x[0], ids); }, {input({3, 4}, 1)});
  check("scatter_add_rows", [&](const Inputs& x) { return scatter_add_rows(x[0] * x[0], ids, 3); },
        {input({4, 2}, 1)});
}

TEST_CASE("dual: products and layer_norm") {
  check("matmul", [](const Inputs& x) { return matmul(x[0], x[1]); }, {input({3, 4}, 1), input({4, 2}, 2)});
  check("linear", [](const Inputs& x) { return linear(x[0], x[1], x[2]); },
        {input({3, 4}, 1), input({2, 4}, 2), input({2}, 3)});
  check("linear of 3 dimensions", [](const Inputs& x) { return linear(x[0], x[1]); },
        {input({3, 2, 4}, 1), input({2, 4}, 2)});
  check("linear of a vector", [](const Inputs& x) { return linear(x[0], x[1], x[2]); },
        {input({4}, 1), input({2, 4}, 2), input({2}, 3)});
  check("affine", [](const Inputs& x) { return affine(x[0], x[1], x[2]); },
        {input({3, 4}, 1), input({4, 2}, 2), input({2}, 3)});
  check("add_linear", [](const Inputs& x) { return add_linear(x[0], x[1], x[2]); },
        {input({3, 2}, 1), input({3, 4}, 2), input({2, 4}, 3)});
  const std::vector<Index> types = {1, 0, 1};
  check("gather_mm", [&](const Inputs& x) { return gather_mm(x[0], x[1], types); },
        {input({3, 4}, 1), input({2, 4, 3}, 2)});
  check("head_dots", [](const Inputs& x) { return head_dots(x[0], x[1]); },
        {input({3, 2, 4}, 1), input({1, 2, 4}, 2)});
  check("layer_norm", [](const Inputs& x) { return layer_norm(x[0], x[1], x[2]); },
        {input({3, 5}, 1), input({5}, 2), input({5}, 3)});
  check("layer_norm without weight", [](const Inputs& x) { return layer_norm(x[0]); }, {input({3, 5}, 1)});
}

TEST_CASE("dual: distances and angles") {
  check("row_distance", [](const Inputs& x) { return row_distance(x[0], x[1], RowComparison::l2); },
        {input({4, 3}, 1), input({4, 3}, 2)});
  check("unit_complex", [](const Inputs& x) { return unit_complex(x[0]); }, {input({4, 3}, 1)});
  const Variable at = random_tensor({1, 3}, 5), moving = make_dual(at, Variable(random_tensor({1, 3}, 6)));
  CHECK(row_distance(moving, at, RowComparison::l2).tangent().value().item() == 0);
}

TEST_CASE("dual: rows of the edges between atoms") {
  Tensor vectors = random_away_from_zero({18, 3}, 1);  // more than one group of the kernel
  for (Index c = 0; c < 3; ++c) vectors.row(4)[c] = static_cast<real>(2);  // beyond the cutoff
  const Variable d(vectors, true);
  for (const RadialFunctions& functions : all_radial_functions(/*cutoff=*/2.4, /*num_basis=*/4))
    check("radial_rows", [&](const Inputs& x) { return radial_rows(x[0], functions); }, {d});
  const auto messages = [](const Inputs& x) { return vector_messages(x[0], x[1], x[2], x[3]); };
  check("vector_messages", messages,
        {input({2, 9}, 2), input({2, 9}, 3), input({2, 3}, 4), input({2, 3, 3}, 5)});
  const auto first = [](const Inputs& x) { return vector_messages(x[0], x[1], x[2]); };
  check("vector_messages without vectors", first, {input({2, 9}, 2), input({2, 9}, 3), input({2, 3}, 4)});
  CHECK_THROWS_AS(vector_messages(d, d, input({2, 3}, 1)), ShapeError);
  CHECK_THROWS_AS(radial_rows(input({2, 2}, 1), {}), ShapeError);
}

TEST_CASE("radial rows are those of their formula, at any length, and have limits at 0") {
  constexpr double cutoff = 3;
  constexpr Index num_basis = 20;
  Tensor d({20, 3});
  for (Index i = 0; i < 20; ++i)
    for (Index c = 0; c < 3; ++c) d.row(i)[c] = static_cast<real>(0.1 * static_cast<double>(i * (c + 1)));
  for (const RadialFunctions& functions : all_radial_functions(cutoff, num_basis)) {
    CAPTURE(static_cast<int>(functions.basis));
    CAPTURE(static_cast<int>(functions.cutoff_function));
    const Tensor rows = radial_rows(Variable(d), functions).value();
    for (Index i = 0; i < 20; ++i) {
      double squares = 0;
      for (Index c = 0; c < 3; ++c)
        squares += static_cast<double>(d.row(i)[c]) * static_cast<double>(d.row(i)[c]);
      const double r = std::sqrt(squares), a = std::numbers::pi / cutoff, q = r / cutoff;
      const double cut = r >= cutoff ? 0
                         : functions.cutoff_function == CutoffFunction::cosine
                             ? 0.5 * (1 + std::cos(a * r))
                             : 1 - 28 * std::pow(q, 6) + 48 * std::pow(q, 7) - 21 * std::pow(q, 8);
      const double tolerance = is_double ? 1e-12 : 2e-5;
      for (Index k = 0; k < num_basis; ++k) {
        const double w = a * static_cast<double>(k + 1), wave = r > 0 ? std::sin(w * r) / r : w;
        const double z = (r - cutoff * static_cast<double>(k) / (num_basis - 1)) * (num_basis - 1) / cutoff;
        const double expected = functions.basis == RadialBasis::gaussian ? std::exp(-z * z / 2)
                                : functions.basis == RadialBasis::bessel ? std::sqrt(2 / cutoff) * wave
                                                                         : wave;
        CHECK(std::abs(static_cast<double>(rows.row(i)[k]) - expected * cut) <= tolerance * w);
      }
      CHECK(std::abs(static_cast<double>(rows.row(i)[num_basis]) - cut) <= tolerance);
      for (Index c = 0; c < 3; ++c) {
        const double unit = r > 0 ? static_cast<double>(d.row(i)[c]) / r : 0;
        CHECK(std::abs(static_cast<double>(rows.row(i)[num_basis + 1 + c]) - unit) <= tolerance);
      }
    }
    // At 0, all derivatives are 0.
    const Variable zero(Tensor::zeros({1, 3}), true), change(Tensor::full({1, 3}, 1), true);
    Tape tape;
    const Variable moved = radial_rows(make_dual(zero, change), functions);
    tape.backward(sum(moved.primal()) + sum(moved.tangent()));
    for (Index c = 0; c < 3; ++c) {
      CHECK(zero.grad().data()[c] == 0);
      CHECK(change.grad().data()[c] == 0);
      CHECK(moved.tangent().value().data()[c] == 0);
    }
  }
}

TEST_CASE("dual: an operation without a tangent says so by name") {
  const Variable x = make_dual(input({3, 4}, 1), input({3, 4}, 2));
  const auto message_of = [&](const std::function<Variable()>& call) {
    try {
      (void)call();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no exception");
  };
  const auto names = [&](const std::string& name, const std::function<Variable()>& call) {
    CHECK(message_of(call).find(name + " of a dual variable of shape [3, 4]") != std::string::npos);
    Tape tape;
    CHECK(message_of(call).find(name + " of a dual variable of shape [3, 4]") != std::string::npos);
  };
  names("gelu", [&] { return gelu(x); });
  names("scaled_unit_rows", [&] { return scaled_unit_rows(x, Variable(Tensor::full({1}, 1))); });
  names("row_distance", [&] { return row_distance(x, x, RowComparison::l1); });
}

TEST_CASE("dual: make_dual") {
  const Variable x = input({3, 4}, 1), t = input({3, 4}, 2);
  const Variable dual = make_dual(x, t);
  CHECK(dual.is_dual());
  CHECK(dual.gradient() == x.gradient());
  CHECK(dual.tangent().gradient() == t.gradient());
  CHECK(!dual.primal().is_dual());
  CHECK(!dual.detach().is_dual());
  CHECK(!x.tangent().defined());
  CHECK(!make_dual(x, {}).is_dual());
  CHECK_THROWS_AS(make_dual(x, Variable(Tensor::zeros({4, 3}))), ShapeError);
  CHECK_THROWS_AS(make_dual(dual, t), InputError);
  CHECK_THROWS_AS(make_dual(x, dual), InputError);
}
