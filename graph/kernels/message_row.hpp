/// One row of a built-in message, computed from a row of each operand with DGL's broadcasting, and its
/// derivatives: what fused kernels run edge by edge.
///
///     m = a op b      elementwise, or   m[i] = sum over the last dimension of a[i, :] b[i, :]     (dot)
///
/// Operands are divided into lines along which they are contiguous or repeated, so that the inner loops
/// vectorise: same shape and a scalar operand are one line, [H, 1] against [H, D] is H lines. All in cache.
#pragma once

#include <sar/core/tensor.hpp>
#include <sar/core/workspace.hpp>
#include <sar/graph/kernels/message_op.hpp>

namespace sar::inline SAR_PRECISION {

/// The lines of a message's operands.
struct MessageLines {
  struct Line {
    Index a, b;  ///< where the line begins in a row of each operand
  };
  PassVector<Line> lines;
  Index length = 0;                           ///< of a line
  bool a_repeats = false, b_repeats = false;  ///< one element along the line
};

/// The loops of an operation; arguments as those of MessageRow.
struct MessageLoops {
  using Forward = void (*)(const MessageLines&, const real* a, const real* b, real* m);
  using Backward = void (*)(const MessageLines&, const real* a, const real* b, const real* g, real* out);
  Forward store = nullptr, add = nullptr;
  Backward add_gradient_a = nullptr, add_gradient_b = nullptr;
};
MessageLoops message_loops(MessageOp op);

class MessageRow {
 public:
  /// Nothing yet.
  MessageRow() = default;
  /// Of operands with rows as those of `a` and `b` (the first dimension does not matter); copy takes `a`
  /// twice. Throws ShapeError naming both when they do not broadcast.
  MessageRow(MessageOp op, const Shape& a, const Shape& b);

  /// Shape of `rows` messages: as many dimensions as the operand that has more.
  [[nodiscard]] Shape shape(Index rows) const { return shape_.with_rows(rows); }
  [[nodiscard]] Index width() const { return shape_.row_size(); }
  /// Elements that computing a message touches.
  [[nodiscard]] Index cost() const;

  /// m = a op b
  void store(const real* a, const real* b, real* m) const { loops_.store(lines_, a, b, m); }
  /// m += a op b
  void add(const real* a, const real* b, real* m) const { loops_.add(lines_, a, b, m); }
  /// da += the gradient of a for the gradient g of m. What the gradient does not depend on may be
  /// null: see reads_a and reads_b.
  void add_gradient_a(const real* a, const real* b, const real* g, real* da) const {
    loops_.add_gradient_a(lines_, a, b, g, da);
  }
  void add_gradient_b(const real* a, const real* b, const real* g, real* db) const {
    loops_.add_gradient_b(lines_, a, b, g, db);
  }
  /// Whether the backward pass reads the values of a (b), when the gradients of a and b are wanted or not.
  [[nodiscard]] bool reads_a(bool wants_a, bool wants_b) const;
  [[nodiscard]] bool reads_b(bool wants_a, bool wants_b) const;
  /// Whether gradients depend on no value at all, but for the gradient of the message.
  [[nodiscard]] bool linear() const { return op_ == MessageOp::add || op_ == MessageOp::sub || is_copy(); }
  /// Whether a sum of messages with one b is the message of the sum of their a's, and the other way round.
  [[nodiscard]] bool bilinear() const { return op_ == MessageOp::mul || op_ == MessageOp::dot; }
  [[nodiscard]] bool is_copy() const { return op_ == MessageOp::copy; }

 private:
  MessageOp op_ = MessageOp::copy;
  Shape shape_;
  MessageLines lines_;
  MessageLoops loops_;
};

}  // namespace sar
