// SPDX-License-Identifier: MIT

/// The formulas of built-in messages and reductions, as the tests compare with them: one branch each.
#pragma once

#include <sar/core/error.hpp>
#include <sar/graph/kernels/message_op.hpp>

namespace sar::test {

/// One element of a op b; of dot, one term of its sum.
template <class Number>
Number message_element(MessageOp op, const Number& a, const Number& b) {
  switch (op) {
    case MessageOp::copy:
      return a;
    case MessageOp::add:
      return a + b;
    case MessageOp::sub:
      return a - b;
    case MessageOp::mul:
    case MessageOp::dot:
      return a * b;
    case MessageOp::div:
      return a / b;
  }
  throw InputError("a message without a formula");
}

/// By what a reduction that is no extremum multiplies the sum of `degree` messages.
inline double factor_of_sum(Reduce reduce, double degree) {
  switch (reduce) {
    case Reduce::sum:
      return 1;
    case Reduce::mean:
      return 1 / degree;
    case Reduce::max:
    case Reduce::min:
      break;
  }
  throw InputError("a sum without a formula");
}

/// A number and its derivative.
struct Slope {
  double value, slope = 0;

  friend Slope operator+(Slope a, Slope b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Slope operator-(Slope a, Slope b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Slope operator*(Slope a, Slope b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Slope operator/(Slope a, Slope b) {
    return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value};
  }
};

/// The derivatives of message_element.
inline double derivative_a(MessageOp op, double a, double b) {
  return message_element<Slope>(op, {a, 1}, {b, 0}).slope;
}
inline double derivative_b(MessageOp op, double a, double b) {
  return message_element<Slope>(op, {a, 0}, {b, 1}).slope;
}

}  // namespace sar::test
