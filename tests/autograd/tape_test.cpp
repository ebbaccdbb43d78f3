// SPDX-License-Identifier: MIT

/// What the tape records, when it lets go of memory, and how tapes nest.
#include <doctest/doctest.h>

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;

constexpr Index rows = 1000;
constexpr Index width = 64;
constexpr std::size_t tensor_bytes = rows * width * sizeof(real);

/// Live tensors of [rows, width], rounded.
std::size_t tensors(std::size_t bytes) {
  return (bytes + tensor_bytes / 2) / tensor_bytes;
}

Variable leaf(std::uint64_t stream) {
  return {random_tensor({rows, width}, stream), true};
}

TEST_CASE("nothing is recorded without a tape, from constants, or under NoTape") {
  const Variable x = leaf(1);
  CHECK(!relu(x).requires_grad());
  Tape tape;
  CHECK(Tape::current() == &tape);
  CHECK(!relu(x.detach()).requires_grad());
  {
    const NoTape off;
    CHECK(Tape::current() == nullptr);
    CHECK(!relu(x).requires_grad());
  }
  CHECK(relu(x).requires_grad());
}

TEST_CASE("only leaves keep their gradients; a result that is not used gets none") {
  const Variable x(Tensor::full({3}, 2), true);
  const Variable unused(Tensor::full({3}, 2), true);
  Tape tape;
  const Variable y = x * x;
  const Variable aside = unused * y;
  tape.backward(sum(y));
  CHECK(x.grad().data()[1] == 4);
  CHECK(!y.grad().defined());
  CHECK(!unused.grad().defined());
  CHECK(!aside.grad().defined());
}

TEST_CASE("computed values are added in place") {
  for (const bool first : {true, false}) {
    Gradient gradient({3});
    if (!first) gradient.add(Tensor::full({3}, 100));
    const real* const memory = first ? nullptr : gradient.value().data();
    gradient.add([&](Tensor& out, bool accumulate) {
      CHECK(accumulate == !first);
      CHECK((first || out.data() == memory));
      for (real& x : out.values()) x = (accumulate ? x : 0) + 11;
    });
    CHECK(gradient.value().data()[2] == (first ? 11 : 111));
  }
  Gradient failed({3});
  CHECK_THROWS_AS(failed.add([](Tensor&, bool) { throw InputError("no"); }), InputError);
  CHECK(!failed.value().defined());
  failed.add(Tensor::full({3}, 1));
  CHECK(failed.value().data()[0] == 1);
}

TEST_CASE("gradients of several backward passes add up until zero_grad") {
  Variable x(Tensor::full({3}, 2), true);
  for (int pass = 1; pass <= 2; ++pass) {
    Tape tape;
    tape.backward(sum(x * x));
    CHECK(x.grad().data()[0] == 4 * pass);
  }
  x.zero_grad();
  CHECK(!x.grad().defined());
}

TEST_CASE("a gradient that was handed out does not change later") {
  const Variable x(Tensor::full({3}, 2), true);
  Tape first;
  first.backward(sum(x * x));
  const Tensor kept = x.grad();
  first.backward(sum(x * x * x));
  CHECK(kept.data()[0] == 4);
  CHECK(x.grad().data()[0] == 4 + 12);
}

TEST_CASE("two variables that were sent the same tensor keep their own sums") {
  const Variable a(Tensor::full({3}, 2), true);
  const Variable b(Tensor::full({3}, 2), true);
  Tape tape;
  tape.backward((a + b) + a, Tensor::full({3}, 1));
  CHECK(a.grad().data()[0] == 2);
  CHECK(b.grad().data()[0] == 1);
}

TEST_CASE("a second backward pass through the same records is an error") {
  const Variable x(Tensor::full({3}, 2), true);
  Tape tape;
  const Variable y = exp(x);
  const Variable loss = sum(y);
  tape.backward(loss);
  CHECK_THROWS_AS(tape.backward(loss), Error);
  CHECK_THROWS_AS(tape.backward(sum(y * y)), Error);  // y leads nowhere any more
  tape.backward(sum(y.detach() * x));
  CHECK(x.grad().data()[0] == doctest::Approx(2 * std::exp(2.0)));
}

TEST_CASE("results of a destroyed tape cannot pass gradients on") {
  const Variable x(Tensor::full({3}, 2), true);
  Variable y;
  {
    Tape tape;
    y = x * x;
  }
  Tape tape;
  CHECK_THROWS_AS(tape.backward(sum(y * y)), Error);
  CHECK(!x.grad().defined());
}

TEST_CASE("backward from constants, from vectors without a seed, with a wrong seed") {
  Tape tape;
  const Variable x(Tensor::full({3}, 2), true);
  CHECK_THROWS_AS(tape.backward(Tensor::full({1}, 1)), Error);
  CHECK_THROWS_AS(tape.backward(x * x), ShapeError);
  CHECK_THROWS_AS(tape.backward(x * x, Tensor::zeros({4})), ShapeError);
}

TEST_CASE("an operation that throws in its backward pass leaves an empty tape") {
  const Variable x(Tensor::full({3}, 2), true);
  Tape tape;
  const Variable y = x * x;
  const Variable z = record(Tensor::zeros({1}), [](const Tensor&) { throw InputError("lost"); });
  CHECK_THROWS_AS(tape.backward(z), InputError);
  tape.backward(sum(x));
  CHECK(x.grad().data()[0] == 1);
}

TEST_CASE("a seed gives the vector-Jacobian product") {
  const Variable x(Tensor::from({2}, {3, 4}), true);
  Tape tape;
  tape.backward(x * x, Tensor::from({2}, {10, 100}));
  CHECK(x.grad().data()[0] == 60);
  CHECK(x.grad().data()[1] == 800);
}

TEST_CASE("an inner tape sends gradients to variables of the outer one") {
  // d/dx sum(f(x^2)) with f unwound on an inner tape: rematerialization by hand.
  const Variable x(Tensor::from({2}, {3, 4}), true);
  const Variable weight(Tensor::from({2}, {5, 7}), true);
  const auto f = [&](const Variable& u) { return weight * u * u; };
  Tape outer;
  const Variable u = x * x;
  Tensor value;
  {
    const NoTape off;
    value = f(u).value();
  }
  const Variable y = record(value, [&, u](const Tensor& grad) {
    Tape inner;
    const Variable again = f(u);
    inner.backward(again, grad);
    CHECK(Tape::current() == &inner);
  });
  outer.backward(sum(y));
  CHECK(x.grad().data()[0] == 4 * 5 * 27);  // d(w x^4) = 4 w x^3
  CHECK(x.grad().data()[1] == 4 * 7 * 64);
  CHECK(weight.grad().data()[1] == 256);
}

TEST_CASE("an inner tape whose result is a variable of the outer one") {
  const Variable x(Tensor::from({1}, {3}), true);
  Tape outer;
  const Variable y = x * x;
  {
    Tape inner;
    inner.backward(y, Tensor::from({1}, {10}));
    CHECK(y.grad().item() == 10);
  }
  outer.backward(y);
  CHECK(x.grad().item() == 6 * 11);
}

TEST_CASE("a chain of temporaries works in one tensor, and relu keeps only its result") {
  const Variable x = leaf(1);
  Tape tape;
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  const Variable y = relu(scale_shift(leaf(2) + x, 2, 1));  // the new leaf's memory is the only one
  CHECK(tensors(live_bytes() - before) == 1);
  CHECK(tensors(peak_bytes() - before) == 1);
  const Variable z = relu(dropout(x, 0.5, {1, 1, 1}, RowIds(std::vector<Index>(rows, 3))));
  CHECK(tensors(live_bytes() - before) == 2);
}

TEST_CASE("an operand that somebody still needs is not overwritten") {
  const Variable x = leaf(1);
  const Tensor original = x.value().clone();
  Tape tape;
  Variable h = exp(x);
  const Tensor kept = h.value().clone();
  const Variable same = h;
  const Variable y = relu(std::move(h)) + sigmoid(x);
  CHECK(relative_error(same.value(), kept) == 0);
  tape.backward(sum(y));
  CHECK(relative_error(x.value(), original) == 0);
  // exp keeps its result, which a temporary would otherwise offer to the next operation
  Variable direct(random_tensor({4}, 3), true);
  tape.backward(sum(scale_shift(exp(direct), 2)));
  for (Index i = 0; i < 4; ++i)
    CHECK(direct.grad().data()[i] ==
          doctest::Approx(2 * std::exp(static_cast<double>(direct.value().data()[i]))));
}

TEST_CASE("the backward pass needs one gradient at a time and frees what it has used") {
  const Variable x = leaf(1);
  const std::size_t before = live_bytes();
  Tape tape;
  Variable loss;
  {
    Variable h = x;
    for (int layer = 0; layer < 10; ++layer) h = tanh(h);
    loss = sum(h);
  }
  CHECK(tensors(live_bytes() - before) == 10);  // the results of tanh
  reset_peak_bytes();
  tape.backward(loss);
  CHECK(tensors(peak_bytes() - before) == 11);  // and one gradient, handed from record to record
  CHECK(tensors(live_bytes() - before) == 1);   // that of the leaf
}

TEST_CASE("records let go of their tensors one by one") {
  const Variable x = leaf(1);
  const std::size_t before = live_bytes();
  std::vector<std::size_t> live;
  Tape tape;
  Variable h = x;
  for (int layer = 0; layer < 4; ++layer) {
    h = tanh(h);
    h = record(h.value(), [&, to = h.gradient()](Tensor grad) {
      to->add(std::move(grad));
      live.push_back(tensors(live_bytes() - before));
    });
  }
  const Variable loss = sum(std::exchange(h, Variable()));
  tape.backward(loss);
  CHECK(live == std::vector<std::size_t>{5, 4, 3, 2});  // results left, and the gradient
}

TEST_CASE("products add to a gradient that is there already without a temporary") {
  const ThreadLimit one(1);          // each thread packs operands in a buffer of its own,
  constexpr Index many = 16 * rows;  // which is small beside these rows
  const Variable x(random_tensor({many, width}, 1), true);
  const Variable a(random_tensor({width, width}, 2), true);
  const Variable b(random_tensor({width, width}, 3), true);
  Tape tape;
  Variable y = linear(x, a) + linear(x, b);
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  tape.backward(std::exchange(y, Variable()), Tensor::full({many, width}, 1));
  // the seed and the gradient of x; the weights' are small
  CHECK(tensors((peak_bytes() - before) / 16) <= 2);
}

TEST_CASE("results and gradients are the same bits for every number of threads") {
  const Tensor x0 = random_tensor({3000, width}, 1);
  const Tensor w0 = random_tensor({width, width}, 2);
  const Tensor b0 = random_tensor({width}, 3);
  std::vector<Index> ids;
  for (Index i = 0; i < 3000; ++i) ids.push_back(i * i % 3000);
  const auto run = [&] {
    const Variable x(x0, true);
    const Variable w(w0, true);
    const Variable b(b0, true);
    Tape tape;
    Variable h = dropout(relu(linear(x, w, b)), 0.3, {1, 2, 3}, ids);
    h = h + gather_rows(h, ids) * b - mean(h, ReduceDim::rows);
    h = log_softmax(h / (1 + exp(-mean(h, ReduceDim::columns))));
    tape.backward(mean(h * h));
    std::vector<real> all;
    for (const Variable& v : {x, w, b})
      all.insert(all.end(), v.grad().values().begin(), v.grad().values().end());
    return all;
  };
  std::vector<std::vector<real>> results;
  for (const int threads : {1, 2, 3}) {
    const ThreadLimit limit(threads);
    results.push_back(run());
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("row ids are borrowed from lvalues and taken over from temporaries") {
  const Variable x(Tensor::from({3}, {1, 2, 3}), true);
  Tape tape;
  std::vector<Index> ids{2, 0};
  const RowIds borrowed(ids);
  CHECK(borrowed.span().data() == ids.data());
  const Index* data = ids.data();
  Variable y = gather_rows(x, std::move(ids));
  ids = {7, 7};
  const Array<Index> account{1, 1};
  CHECK(RowIds(account).span().data() == account.data());
  CHECK(RowIds(std::vector<Index>{4, 5}).span()[1] == 5);
  tape.backward(sum(y));
  CHECK(x.grad().data()[0] == 1);
  CHECK(x.grad().data()[1] == 0);
  CHECK(data != nullptr);
}

}  // namespace
