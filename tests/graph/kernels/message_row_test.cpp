// SPDX-License-Identifier: MIT
#include "graph/message_formula.hpp"

#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/graph/kernels/message_row.hpp>

#include <cstddef>
#include <string>
#include <vector>

using namespace sar;

namespace {

using Row = std::vector<real>;

Row message(MessageOp op, const Shape& a, const Shape& b, const Row& x, const Row& y) {
  const MessageRow row(op, a, b);
  Row m(row.width());
  row.store(x.data(), y.data(), m.data());
  return m;
}

}  // namespace

TEST_CASE("operands broadcast from the right") {
  CHECK(message(MessageOp::sub, {9, 2, 2}, {9, 2, 1}, {1, 2, 3, 4}, {1, 10}) == Row{0, 1, -7, -6});
  CHECK(message(MessageOp::mul, {9, 3}, {9}, {1, 2, 3}, {2}) == Row{2, 4, 6});
  CHECK(message(MessageOp::dot, {9, 2, 2}, {9, 2, 2}, {1, 2, 3, 4}, {1, 1, 2, 2}) == Row{3, 14});
  CHECK(MessageRow(MessageOp::dot, {9, 2, 2}, {9, 2, 2}).shape(5) == Shape{5, 2, 1});
  CHECK_THROWS_AS(MessageRow(MessageOp::add, {9, 2}, {9, 3}), ShapeError);
}

TEST_CASE("gradients of a quotient; those of repeated elements are added up") {
  const MessageRow row(MessageOp::div, {9, 2}, {9, 1});
  const Row a{6, 8}, b{2}, g{1, 10};
  Row da(2, 0), db(1, 0);
  row.add_gradient_a(a.data(), b.data(), g.data(), da.data());
  row.add_gradient_b(a.data(), b.data(), g.data(), db.data());
  CHECK(da == Row{0.5, 5});
  CHECK(db == Row{-1.5 - 20});
  CHECK(row.reads_b(true, false));
  CHECK(!row.reads_a(true, false));
  CHECK(MessageRow(MessageOp::add, {9, 2}, {9, 2}).linear());
}

TEST_CASE("gradients are those of the formula, and do not depend on operands that are not read") {
  const Row a{6, 8}, b{2, -5}, g{1, 10}, other{-3, 7};
  const auto gradients = [&](const MessageRow& row, bool of_a, const Row& x, const Row& y) {
    Row to(2, 0);
    of_a ? row.add_gradient_a(x.data(), y.data(), g.data(), to.data())
         : row.add_gradient_b(x.data(), y.data(), g.data(), to.data());
    return to;
  };
  for (const auto& op : message_op_names) {
    CAPTURE(std::string(op.name));
    const MessageRow row(op.value, {9, 2}, {9, 2});
    Row by_formula[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const real of_message = op.value == MessageOp::dot ? g[0] : g[i];
      by_formula[0].push_back(of_message * static_cast<real>(test::derivative_a(op.value, a[i], b[i])));
      by_formula[1].push_back(of_message * static_cast<real>(test::derivative_b(op.value, a[i], b[i])));
    }
    for (const bool of_a : {true, false}) {
      if (!of_a && op.value == MessageOp::copy) continue;
      const Row gradient = gradients(row, of_a, a, b);
      for (std::size_t i = 0; i < 2; ++i) CHECK(gradient[i] == doctest::Approx(by_formula[of_a ? 0 : 1][i]));
      CHECK((gradients(row, of_a, other, b) == gradient) == !row.reads_a(of_a, !of_a));
      CHECK((gradients(row, of_a, a, other) == gradient) == !row.reads_b(of_a, !of_a));
    }
    CHECK(row.linear() == (!row.reads_a(true, true) && !row.reads_b(true, true)));
  }
}
