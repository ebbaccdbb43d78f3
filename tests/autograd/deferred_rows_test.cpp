// SPDX-License-Identifier: MIT

/// Values that are computed when they are read: the same as those in memory, in every operation.
#include <doctest/doctest.h>

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/row_operand.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/tensor/deferred_rows.hpp>

#include "support/effort.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using namespace sar;
using namespace sar::test;

/// 2 x, and how many rows were computed.
class Doubled : public DeferredRows {
 public:
  explicit Doubled(Tensor x) : DeferredRows(x.shape()), x_(std::move(x)) {}
  void compute(Index first, Index count, real* out) const override {
    computed += count;
    std::transform(x_.row(first), x_.row(first + count), out, [](real x) { return 2 * x; });
  }
  [[nodiscard]] std::span<const std::byte> reads(Index first, Index count) const override {
    return std::as_bytes(std::span(x_.row(first), static_cast<std::size_t>(count * x_.row_size())));
  }
  mutable std::atomic<Index> computed = 0;

 private:
  Tensor x_;
};

/// y = 2 x, in memory or deferred.
Variable doubled(const Variable& x, bool deferred) {
  const auto backward = [dx = x.gradient()](Tensor grad) {
    Tensor twice(grad.shape());
    scale_shift(grad, 2, 0, twice);
    dx->add(std::move(twice));
  };
  if (deferred) return record(Variable(std::make_shared<const Doubled>(x.value())), backward);
  Tensor y(x.shape());
  scale_shift(x.value(), 2, 0, y);
  return record(y, backward);
}

/// The result of f(2 x, weight, bias) and the gradients of all.
template <class F>
std::vector<Tensor> run(const Shape& rows, const Shape& weight_shape, Index out, bool deferred, const F& f) {
  Variable x(random_tensor(rows, 1), true), weight(random_tensor(weight_shape, 2), true),
      bias(random_tensor({out}, 3), true);
  Tape tape;
  const Variable y = f(doubled(x, deferred), weight, bias);
  tape.backward(y, random_tensor(y.shape(), 4));
  return {y.value(), x.grad(), weight.grad(), bias.grad()};
}

template <class F>
void check_same(const Shape& rows, const Shape& weight_shape, Index out, const F& f) {
  const std::vector<Tensor> expected = run(rows, weight_shape, out, false, f),
                            found = run(rows, weight_shape, out, true, f);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].defined() == expected[i].defined());
    if (found[i].defined()) CHECK(relative_error(found[i], expected[i]) < tolerance());
  }
}

TEST_CASE("products of deferred rows, and their gradients: no row, one chunk, several chunks") {
  // a chunk has 2^16 elements, and 48 rows at least
  for (const auto& [rows, columns] :
       {std::pair<Index, Index>{0, 3}, {7, 3}, {sanitized ? 250 : 1030, 4100}}) {
    CAPTURE(rows);
    for (const Index out : {Index{2}, columns == 3 ? Index{3} : Index{1}}) {
      check_same({rows, columns}, {out, columns}, out,
                 [](Variable y, const Variable& w, const Variable& b) { return linear(std::move(y), w, b); });
      check_same({rows, columns}, {columns, out}, out,
                 [](Variable y, const Variable& w, const Variable& b) { return affine(std::move(y), w, b); });
      check_same({rows, columns}, {out, columns}, out,
                 [&](const Variable& y, const Variable& w, const Variable& b) {
                   return add_linear(add(Variable(random_tensor({y.num_rows(), w.shape()[0]}, 5)), b), y, w);
                 });
      check_same({rows, columns}, {columns, out}, out,
                 [](const Variable& y, const Variable& w, const Variable&) { return matmul(y, w); });
    }
  }
  check_same({6, 4, 3}, {2, 3}, 2,
             [](Variable y, const Variable& w, const Variable& b) { return linear(std::move(y), w, b); });
}

TEST_CASE("the gradient of a square layer has the same bits in the memory of its result's gradient") {
  const Tensor weight = random_tensor({96, 96}, 2);
  for (const bool out_in : {false, true})
    for (const Index rows : {Index{1}, Index{5000}}) {
      const auto gradient = [&](const Tensor& held, Tensor seed) {
        const Variable x(random_tensor({rows, 96}, 1), true);
        Tape tape;
        const Variable y = out_in ? linear(x, weight, {}) : affine(x, weight, {});
        const real* const memory = seed.data();
        tape.backward(y, std::move(seed));
        CHECK((x.grad().data() == memory) == !held.defined());
        return x.grad();
      };
      const Tensor seed = random_tensor({rows, 96}, 3), apart = gradient(seed, seed),
                   in_place = gradient({}, seed.clone());
      CHECK(std::ranges::equal(apart.values(), in_place.values()));
    }
}

TEST_CASE("two products of the same deferred rows, and elementwise operations") {
  check_same({50, 4}, {4, 4}, 4, [](const Variable& y, const Variable& w, const Variable& b) {
    return add(linear(y, w, b), relu(linear(y, w, {})));
  });
  check_same({50, 4}, {4, 4}, 4, [](const Variable& y, const Variable& w, const Variable& b) {
    return add(add(relu(y), mul(y, b)), slice_rows(concat_columns({matmul(y, w)}), 0, 50));
  });
}

TEST_CASE("a linear layer computes rows as it goes; a value is computed once for all copies") {
  const Tensor x = random_tensor({2100, 4100}, 1);
  const auto rows = std::make_shared<const Doubled>(x);
  const Variable y(rows);
  CHECK(y.defined());
  CHECK(y.shape() == x.shape());
  CHECK(y.num_rows() == 2100);
  CHECK_FALSE(y.requires_grad());
  CHECK(rows->computed == 0);
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  (void)linear(y, random_tensor({2, 4100}, 2));
  CHECK(rows->computed == 2100);
  CHECK(peak_bytes() - before < x.bytes() / 2);
  Variable copy = y, other = y.detach();
  CHECK(copy.value().row(2099)[7] == 2 * x.row(2099)[7]);
  CHECK(copy.value().data() == other.value().data());
  CHECK(y.deferred() != nullptr);
  CHECK(other.deferred() == nullptr);  // it was asked for as something to write to
  CHECK(rows->computed == 4200);
}

TEST_CASE("dropout of values that others hold is computed when it is read: the same draws and gradients") {
  std::vector<Index> ids(70);
  for (Index i = 0; i < 70; ++i) ids[static_cast<std::size_t>(i)] = 3 * i + 1;
  const DropoutMask mask({1, 2, 3}, 0.4);
  for (const bool wanted : {false, true}) {
    const Variable x(random_tensor({70, 5}, 1), wanted);
    Tensor expected(x.shape());
    const DropoutBits bits(mask, ids, 5);
    bits.apply(x.value(), expected);
    Tape tape;
    const Variable y = dropout(x, 0.4, {1, 2, 3}, ids);
    CHECK(y.deferred() != nullptr);
    const Variable weight(random_tensor({2, 5}, 2), true);
    const Variable z = linear(y, weight, {});
    CHECK(relative_error(z.value(), linear(expected, weight.detach(), {}).value()) < tolerance());
    CHECK(std::ranges::equal(y.value().values(), expected.values()));
    const Tensor seed = random_tensor(z.shape(), 3);
    tape.backward(z, seed.clone());
    Tensor dw({2, 5}), dy({70, 5}), dx({70, 5});
    matmul_tn(seed, expected, dw);
    matmul(seed, weight.value(), dy);
    bits.apply(dy, dx);
    CHECK(relative_error(weight.grad(), dw) < tolerance());
    if (wanted) CHECK(relative_error(x.grad(), dx) < tolerance());
  }
  const Variable x(random_tensor({70, 5}, 1));
  CHECK(dropout(x, 0.4, {1, 2, 3}, ids).deferred() == nullptr);  // no tape
}

TEST_CASE("rows of a table that are gathered when they are read: products and slices make no copy") {
  const Tensor table = random_tensor({3000, 50}, 1);
  for (const Index n : {0, 1, 1500, 5000}) {
    CAPTURE(n);
    std::vector<Index> ids;
    for (Index i = 0; i < n; ++i) ids.push_back((i * i * 7 + 11 * i) % 3000);
    const Variable in_memory = gather_rows(Variable(table), ids), y = deferred_gather_rows(table, ids);
    const auto rows = gathered_rows(y);
    REQUIRE(rows != nullptr);
    CHECK(y.shape() == in_memory.shape());
    const Index begin = n / 3;
    const auto outcome = [&](const Variable& x) {
      const Variable weight(random_tensor({50, 50}, 2), true), bias(random_tensor({50}, 3), true);
      Tape tape;
      const Variable part = slice_rows(x, begin, n);
      CHECK((gathered_rows(part) != nullptr) == (gathered_rows(x) != nullptr));
      const Variable z = add_linear(linear(x, weight, bias), slice_rows(x, 0, n), weight);
      const Variable of_part = linear(part, weight);
      tape.backward(sum(z * Variable(random_tensor(z.shape(), 4))) + sum(of_part * of_part),
                    Tensor::full({1}, 1));
      return std::vector<Tensor>{z.value(), of_part.value(), weight.grad(), bias.grad()};
    };
    const std::vector<Tensor> want = outcome(in_memory), got = outcome(y);
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(relative_error(got[i], want[i]) < tolerance());
    CHECK_FALSE(rows->computed().defined());
    CHECK(std::ranges::equal(y.value().values(), in_memory.value().values()));
    CHECK(std::ranges::equal(slice_rows(y, begin, n).value().values(),
                             slice_rows(in_memory, begin, n).value().values()));
    CHECK(std::ranges::equal(relu(y).value().values(), relu(in_memory).value().values()));
    CHECK(thrown<ShapeError>([&] { (void)slice_rows(y, 0, n + 1); }) ==
          "rows 0 to " + std::to_string(n + 1) + " of a tensor of shape [" + std::to_string(n) + ", 50]");
  }
  CHECK(thrown<ShapeError>([&] {
          (void)deferred_gather_rows(table, {4, 3000});
        }) == "row number 3000 at position 1 for a tensor of 3000 rows");
  CHECK(thrown<ShapeError>([&] { (void)deferred_gather_rows(table, {-1}); }) ==
        "row number -1 at position 0 for a tensor of 3000 rows");
  CHECK(thrown<ShapeError>([&] { (void)deferred_gather_rows(Tensor(), {}); }) ==
        "deferred_gather_rows of an undefined tensor");
}

TEST_CASE("rows of a table that are gathered when they are read: detached, they keep their values") {
  Tensor table = random_tensor({30, 4}, 1);
  const std::vector<Index> ids{3, 29, 3, 0, 7};
  const Variable in_memory = gather_rows(Variable(table.clone()), ids);
  Variable weight(random_tensor({6, 4}, 2), true);
  const Variable all = deferred_gather_rows(table, ids), part = slice_rows(all, 1, 4);
  const auto outcome = [&](const Variable& x, const Variable& slice, const auto& between) {
    weight.zero_grad();
    Tape tape;
    const Variable z = sum(linear(x, weight)) + sum(linear(slice, weight) * linear(slice, weight));
    between();
    tape.backward(z, Tensor::full({1}, 1));
    return weight.grad().clone();
  };
  const Tensor want = outcome(in_memory, slice_rows(in_memory, 1, 4), [] {});
  const Tensor got = outcome(all, part, [&] {
    gathered_rows(part)->source()->detach();
    table.fill(100);
  });
  CHECK(relative_error(got, want) < tolerance());
  CHECK(std::ranges::equal(all.value().values(), in_memory.value().values()));
  CHECK(std::ranges::equal(part.value().values(), slice_rows(in_memory, 1, 4).value().values()));
}

/// The result of a function of recomputed_linear(), or of linear() and reshape(), and the gradients of all.
/// `rows`: of the input, 2 x in memory or deferred.
std::vector<Tensor> of_linear(Index n, bool recomputed, bool deferred, bool with_bias) {
  Variable x(random_tensor({n, 6}, 1), true), weight(random_tensor({8, 6}, 2), true),
      bias = with_bias ? Variable(random_tensor({8}, 3), true) : Variable();
  Tape tape;
  const Variable rows = doubled(x, deferred);
  const Shape heads{n, 2, 4};
  const Variable y =
      recomputed ? recomputed_linear(rows, weight, bias, heads) : reshape(linear(rows, weight, bias), heads);
  const Variable scores = head_dots(y, Variable(random_tensor({1, 2, 4}, 4), true));
  if (recomputed) {
    REQUIRE(y.deferred() != nullptr);
    CHECK(y.shape() == heads);
    const std::size_t before = live_bytes();
    CHECK(y.deferred()->computed().defined() == true);
    y.deferred()->release();
    CHECK_FALSE(y.deferred()->computed().defined());
    if (n > 0) CHECK(live_bytes() + static_cast<std::size_t>(8 * n) * sizeof(real) <= before);
  }
  const Variable result = sum(scores * scores) + sum(y * y);
  tape.backward(result, Tensor::full({1}, 1));
  return {y.value(), result.value(), x.grad(), weight.grad(), bias.grad()};
}

TEST_CASE("a product that is computed again has the same bits") {
  for (const Index n : {0, 1, 700})
    for (const bool deferred : {false, true})
      for (const bool with_bias : {false, true}) {
        CAPTURE(n);
        CAPTURE(deferred);
        CAPTURE(with_bias);
        const std::vector<Tensor> want = of_linear(n, false, deferred, with_bias),
                                  got = of_linear(n, true, deferred, with_bias);
        for (std::size_t i = 0; i < want.size(); ++i)
          CHECK(std::ranges::equal(std::as_const(got[i]).values(), std::as_const(want[i]).values()));
      }
}

TEST_CASE("some rows of a product that is computed again, and calls that are refused") {
  const Variable x(random_tensor({300, 6}, 1)), weight(random_tensor({8, 6}, 2), true);
  const Tensor want = linear(x, weight).value();
  for (const bool deferred : {false, true}) {
    const Tape tape;
    const Variable y = recomputed_linear(deferred ? Variable(std::make_shared<const Doubled>(x.value())) : x,
                                         weight, {}, {300, 8});
    REQUIRE(y.deferred() != nullptr);
    Tensor some({7, 8});
    y.deferred()->compute(290, 7, some.data());
    CHECK_FALSE(y.deferred()->computed().defined());
    Tensor rows = want.slice_rows(290, 297).clone();
    if (deferred) scale_shift(rows, 2, 0, rows);
    CHECK(relative_error(some, rows) < tolerance());
    // as an operand of a product, its rows are computed when they are multiplied
    CHECK(relative_error(linear(y, Tensor::full({1, 8}, 1)).value(),
                         linear(y.value(), Tensor::full({1, 8}, 1)).value()) < tolerance());
  }
  CHECK(recomputed_linear(x, weight, {}, {300, 2, 4}).deferred() == nullptr);  // no tape
  const Tape tape;
  CHECK(thrown<ShapeError>([&] {
          (void)recomputed_linear(x, weight, {}, {300, 3, 3});
        }) ==
        "recomputed_linear: rows of shape [300, 3, 3] for an input of shape [300, 6] and a weight of shape "
        "[8, 6]");
  CHECK(thrown<ShapeError>([&] {
          (void)recomputed_linear(x, Variable(random_tensor({8, 5}, 2), true), {}, {300, 8});
        }) == "linear: input of shape [300, 6] for a weight of shape [8, 5] ([out, in])");
}

TEST_CASE("rows of an operand lie where they are, or are computed") {
  const Tensor x = random_tensor({10, 3}, 1);
  const Doubled rows(x);
  const RowOperand in_memory(x), computed(rows);
  CHECK_FALSE(in_memory.is_deferred());
  CHECK(computed.is_deferred());
  CHECK(computed.shape() == Shape{10, 3});
  Array<real> memory;
  const MatrixView here = in_memory.view(2, 5, memory);
  CHECK(here.data == x.row(2));
  CHECK(memory.empty());
  CHECK(in_memory.readable_behind(5) == 15);
  const MatrixView there = computed.view(2, 5, memory);
  CHECK(there.rows == 3);
  CHECK(there.cols == 3);
  for (Index i = 0; i < 9; ++i) CHECK(there.data[i] == 2 * x.row(2)[i]);
  CHECK(std::ssize(memory) >= 9 + computed.readable_behind(5));
  for (const RowOperand& operand : {in_memory, computed}) {
    CHECK(static_cast<const void*>(operand.reads(8, 12).data()) == x.row(8));
    CHECK(operand.reads(8, 12).size() == 6 * sizeof(real));
    CHECK(operand.reads(10, 12).empty());
    CHECK(operand.reads(20, 22).empty());
  }
  (void)rows.all();
  CHECK_FALSE(RowOperand(rows).is_deferred());
}

TEST_CASE("a layer reads an array that is borrowed for reading where it multiplies its rows") {
  const Tensor owned = random_tensor({3000, 64}, 1);
  const Tensor borrowed = Tensor::borrow(owned.data(), owned.shape());
  std::vector<Index> ids(3000);
  std::iota(ids.begin(), ids.end(), Index{0});
  const auto run = [&](const Tensor& rows) {
    Variable weight(random_tensor({8, 64}, 2), true);
    Tape tape;
    Variable dropped = dropout(Variable(rows), 0.5, {.seed = 1}, ids);
    REQUIRE(dropped.deferred() != nullptr);
    const Variable y = linear(std::move(dropped), weight, {});
    tape.backward(y, random_tensor(y.shape(), 4));
    return std::pair(y.value(), weight.grad());
  };
  const auto [y, grad] = run(owned);
  const auto [y_borrowed, grad_borrowed] = run(borrowed);
  CHECK(std::ranges::equal(y.values(), y_borrowed.values()));
  CHECK(std::ranges::equal(grad.values(), grad_borrowed.values()));
}

}  // namespace
