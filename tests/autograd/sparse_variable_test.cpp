// SPDX-License-Identifier: MIT

/// Sparse rows: the results of dense rows, forward and backward, from the stored values only.
#include <doctest/doctest.h>

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/sparse_product.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/effort.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/sparse.hpp"
#include "support/thrown.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace sar;
using namespace sar::test;

/// The result of f(x, weight, bias) and the gradients of weight and bias.
template <class F>
std::vector<Tensor> run(const Variable& x, const Shape& weight_shape, Index out, const F& f) {
  Variable weight(random_tensor(weight_shape, 2), true), bias(random_tensor({out}, 3), true);
  Tape tape;
  const Variable y = f(x, weight, bias);
  tape.backward(y, random_tensor(y.shape(), 4));
  return {y.value(), weight.grad(), bias.grad()};
}

template <class F>
void check_same(const Shape& rows, const Shape& weight_shape, Index out, const F& f) {
  const Tensor dense = random_sparse(rows, 5, 1);
  const Variable sparse = sparse_of(dense);
  const std::vector<Tensor> expected = run(dense, weight_shape, out, f),
                            found = run(sparse, weight_shape, out, f);
  CHECK_FALSE(sparse.deferred()->computed().defined());  // nothing made dense rows
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].defined() == expected[i].defined());
    if (found[i].defined()) CHECK(relative_error(found[i], expected[i]) < tolerance());
  }
}

const auto linear_of = [](const Variable& x, const Variable& w, const Variable& b) {
  return linear(x, w, b);
};
const auto affine_of = [](const Variable& x, const Variable& w, const Variable& b) {
  return affine(x, w, b);
};

TEST_CASE("products with sparse rows are those with dense rows, and so are the gradients") {
  for (const Index n : {Index{0}, Index{1}, Index{50}, Index{sanitized ? 300 : 2000}})
    for (const Index in : {Index{1}, Index{37}, Index{300}})
      for (const Index out : {Index{1}, Index{7}, Index{16}, Index{75}}) {
        CAPTURE(n);
        CAPTURE(in);
        CAPTURE(out);
        check_same({n, in}, {out, in}, out, linear_of);
        check_same({n, in}, {in, out}, out, affine_of);
        check_same({n, in}, {in, out}, out, [](const Variable& x, const Variable& w, const Variable& b) {
          return add(matmul(x, w), b);
        });
        check_same({n, in}, {out, in}, out, [&](const Variable& x, const Variable& w, const Variable& b) {
          return add_linear(affine(Tensor::full({n, 1}, 1), reshape(b, {1, out})), x, w);
        });
        check_same({n, in}, {out, in}, out, [](const Variable& x, const Variable& w, const Variable& b) {
          return add(linear(x, w, b), linear(x, w));  // a gradient on top of another
        });
      }
}

TEST_CASE("gradients of the weight agree with finite differences") {
  const Tensor dense = random_sparse({40, 23}, 4, 5);
  const Variable x = sparse_of(dense);
  gradcheck([&](const std::vector<Variable>& in) { return linear(x, in[0], in[1]); },
            {Variable(random_tensor({6, 23}, 1), true), Variable(random_tensor({6}, 2), true)});
  gradcheck([&](const std::vector<Variable>& in) { return affine(x, in[0], in[1]); },
            {Variable(random_tensor({23, 6}, 1), true), Variable(random_tensor({6}, 2), true)});
  gradcheck([&](const std::vector<Variable>& in) { return add_linear(in[0] * 2, x, in[1]); },
            {Variable(random_tensor({40, 6}, 1), true), Variable(random_tensor({6, 23}, 2), true)});
}

TEST_CASE("dropout drops the elements that it drops of dense rows") {
  const Tensor dense = random_sparse({300, 61}, 4, 7);
  std::vector<Index> ids;
  for (Index i = 0; i < 300; ++i) ids.push_back((i * 7919 + 5) % 100003 + (Index{1} << 33));
  for (const double p : {0.0, 0.3, 0.9}) {
    const Variable expected = dropout(Tensor(dense.clone()), p, {3, 4, 5}, ids);
    const Variable found = dropout(sparse_of(dense), p, {3, 4, 5}, ids);
    REQUIRE(sparse_matrix(found) != nullptr);
    CHECK(std::ranges::equal(found.value().values(), expected.value().values()));
  }
}

TEST_CASE("rows are chosen and put together without dense rows") {
  const Tensor dense = random_sparse({90, 33}, 3, 9);
  const Variable x = sparse_of(dense);
  const std::vector<Index> ids{80, 0, 3, 3, 89, 17, 10};
  const auto equal = [&](const Variable& found, const Variable& expected) {
    CHECK(sparse_matrix(found) != nullptr);
    CHECK(found.shape() == expected.shape());
    CHECK(std::ranges::equal(found.value().values(), expected.value().values()));
    CHECK(sparse_matrix(found)->row_offsets().front() == 0);
    CHECK(sparse_matrix(found)->row_offsets().back() == sparse_matrix(found)->num_stored());
  };
  equal(gather_rows(x, ids), gather_rows(Variable(dense), ids));
  equal(gather_rows(slice_rows(x, 5, 60), {0, 54, 9}),
        gather_rows(slice_rows(Variable(dense), 5, 60), {0, 54, 9}));
  equal(slice_rows(x, 90, 90), slice_rows(Variable(dense), 90, 90));
  equal(concat_rows({slice_rows(x, 50, 90), x, slice_rows(x, 3, 4)}),
        concat_rows({slice_rows(Variable(dense), 50, 90), dense, slice_rows(Variable(dense), 3, 4)}));
  const Variable part = dropout(slice_rows(x, 10, 40), 0.5, {1, 2, 3}, std::vector<Index>(30, 6));
  equal(part, dropout(slice_rows(Variable(dense), 10, 40), 0.5, {1, 2, 3}, std::vector<Index>(30, 6)));
  CHECK_FALSE(x.deferred()->computed().defined());
  // any other operation makes them
  CHECK(relative_error(add(x, x).value(), add(dense, dense).value()) == 0);
  CHECK(x.deferred()->computed().defined());
  CHECK(thrown<ShapeError>([&] {
          return gather_rows(sparse_of(dense), {0, 90});
        }) == "row number 90 at position 1 for sparse rows of shape [90, 33]");
}

TEST_CASE("sums over rows in several parts have the same bits for every number of threads") {
  const Tensor dense = random_sparse({6000, 400}, 9, 3);
  const Variable x = sparse_of(dense);
  const Tensor b = random_tensor({400, 67}, 1), g = random_tensor({6000, 67}, 2);
  Tensor expected({400, 67});
  matmul_tn(dense, g, expected);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 5}) {
    const ThreadLimit limit(threads);
    Tensor y({6000, 67}), dw({400, 67});
    sparse_matmul(*sparse_matrix(x), b, y);
    sparse_matmul_tn(*sparse_matrix(x), g, dw);
    CHECK(relative_error(dw, expected) < tolerance());
    if (first.empty()) first = {y, dw};
    CHECK(std::ranges::equal(y.values(), first[0].values()));
    CHECK(std::ranges::equal(dw.values(), first[1].values()));
  }
}

TEST_CASE("columns in any order are sorted; the memory is in the byte account") {
  const std::size_t before = live_bytes();
  const Variable x = sparse_variable(5, std::vector<int>{0, 3, 3, 4}, std::vector<std::int64_t>{4, 0, 2, 1},
                                     std::vector<double>{40, 10, 20, -1});
  CHECK(x.shape() == Shape{3, 5});
  CHECK(std::ranges::equal(x.value().values(),
                           std::vector<real>{10, 0, 20, 0, 40, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0}));
  CHECK(std::ranges::equal(sparse_matrix(x)->columns(), std::vector<std::int32_t>{0, 2, 4, 1}));
  CHECK(live_bytes() >= before + 4 * 8 + 4 * (4 + sizeof(real)) + 15 * sizeof(real));
}

TEST_CASE("arrays that are no sparse rows are refused") {
  using Numbers = std::vector<Index>;
  const auto message = [](Index width, const Numbers& offsets, const Numbers& columns, std::size_t values) {
    return thrown<Error>(
        [&] { return sparse_variable(width, offsets, columns, std::vector<real>(values, 1)); });
  };
  CHECK(message(5, {0, 1}, {5}, 1) == "row 0 of sparse rows stores column 5, expected 0 to 4");
  CHECK(message(5, {0, 1, 2}, {4, -2}, 2) == "row 1 of sparse rows stores column -2, expected 0 to 4");
  CHECK(message(5, {0, 1}, {Index{1} << 32}, 1) == "sparse rows store column 4294967296, expected 0 to 4");
  CHECK(message(5, {0, 0, 3}, {3, 1, 3}, 3) ==
        "row 1 of sparse rows stores column 3 twice, expected each column once (SciPy: sum_duplicates())");
  CHECK(message(5, {}, {}, 0) == "sparse rows without row offsets, expected one more than rows");
  CHECK(message(5, {0, 2}, {1, 2}, 1) == "sparse rows of 2 columns and 1 values, expected as many");
  CHECK(message(5, {0, 2, 1, 2}, {1, 2}, 2) ==
        "row offsets of sparse rows fall from 2 to 1 at row 1, expected numbers that do not decrease");
  CHECK(message(5, {1, 2}, {1, 2}, 2) ==
        "row offsets of sparse rows go from 1 to 2, expected 0 to 2, the number of stored values");
  CHECK(message(-1, {0}, {}, 0) == "sparse rows of -1 columns, expected 0 to 2^31 - 1");
  CHECK(thrown<ShapeError>([] {
          return linear(sparse_of(Tensor::full({3, 4}, 1)), Tensor::full({2, 5}, 1));
        }).find("[3, 4]") != std::string::npos);
}

}  // namespace
