// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/graph/kernels/message_row.hpp>

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
