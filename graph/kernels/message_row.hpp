// SPDX-License-Identifier: MIT

/// One row of a built-in message, computed from one row of each operand with DGL's broadcasting, and its
/// derivatives. Fused kernels call it for each edge.
///
///     m    = a op b                                            elementwise
///
///     m[i] = sum over the last dimension of a[i, :] b[i, :]    dot
///
/// A row is split into lines along which each operand is contiguous or repeated, so that the inner loops
/// vectorize: operands of equal shape, or with a scalar, have one line; [H, 1] against [H, D] has H lines.
/// All data is in the cache.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/kernels/message_op.hpp>

#include <cstddef>

namespace sar { inline namespace SAR_PRECISION {

/// The lines of a message's operands.
struct MessageLines {
  struct Line {
    Index a, b;  ///< offset of the line in a row of each operand
  };
  PassVector<Line> lines;
  Index length = 0;                           ///< length of a line
  bool a_repeats = false, b_repeats = false;  ///< the operand has one element along the line
};

/// The loops of an operation; arguments as in MessageRow.
struct MessageLoops {
  using Forward = void (*)(const MessageLines&, const real* a, const real* b, real* m);
  using Backward = void (*)(const MessageLines&, const real* a, const real* b, const real* g, real* out);
  Forward store = nullptr, add = nullptr;
  Backward add_gradient_a = nullptr, add_gradient_b = nullptr;
};
MessageLoops message_loops(MessageOp op);

class MessageRow {
 public:
  /// An empty message.
  MessageRow() = default;
  /// A message of operands with rows like those of `a` and `b` (the first dimension is ignored); copy takes
  /// `a` twice. Throws ShapeError that names both shapes if they do not broadcast.
  MessageRow(MessageOp op, const Shape& a, const Shape& b);

  /// Returns the shape of `rows` messages, with as many dimensions as the operand with more.
  [[nodiscard]] Shape shape(Index rows) const { return shape_.with_rows(rows); }
  [[nodiscard]] Index width() const { return shape_.row_size(); }
  /// Number of elements that the computation of a message touches.
  [[nodiscard]] Index cost() const { return std::ssize(lines_.lines) * (lines_.length + 1); }

  /// Computes m = a op b.
  void store(const real* a, const real* b, real* m) const { loops_.store(lines_, a, b, m); }
  /// Computes m += a op b.
  void add(const real* a, const real* b, real* m) const { loops_.add(lines_, a, b, m); }
  /// Adds the gradient of a, for the gradient g of m, to da. Operands that the gradient does not depend on
  /// may be null: see reads_a and reads_b.
  void add_gradient_a(const real* a, const real* b, const real* g, real* da) const {
    loops_.add_gradient_a(lines_, a, b, g, da);
  }
  void add_gradient_b(const real* a, const real* b, const real* g, real* db) const {
    loops_.add_gradient_b(lines_, a, b, g, db);
  }
  /// Return whether the backward pass reads the values of a (b), depending on which gradients are required.
  [[nodiscard]] bool reads_a(bool, bool wants_b) const { return wants_b && row().db_reads_a; }
  [[nodiscard]] bool reads_b(bool wants_a, bool wants_b) const {
    return (wants_a && row().da_reads_b) || (wants_b && row().db_reads_b);
  }
  /// Returns whether the gradients depend on the gradient of the message only, not on operands.
  [[nodiscard]] bool linear() const { return !reads_a(true, true) && !reads_b(true, true); }
  /// Returns whether the sum of messages that share b is the message of the sum of their a's, and vice versa.
  [[nodiscard]] bool bilinear() const { return row().bilinear; }
  [[nodiscard]] bool is_copy() const { return op_ == MessageOp::copy; }

 private:
  [[nodiscard]] const MessageOpRow& row() const { return message_op_names[static_cast<std::size_t>(op_)]; }

  MessageOp op_ = MessageOp::copy;
  Shape shape_;
  MessageLines lines_;
  MessageLoops loops_;
};

}}  // namespace sar
