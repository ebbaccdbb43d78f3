// SPDX-License-Identifier: MIT

/// Built-in messages and reductions, under DGL's names, in the direct form and in the form on frames:
///
///     Variable y = graph.update_all(fn::u_mul_e(h, w), fn::mean);
///     graph.update_all(fn::u_mul_e("h", "w", "m"), fn::mean("m", "y"));
///
/// u is a row of the source, v of the destination, e of the edge. Operands are [rows, ...] with any further
/// dimensions, which broadcast as DGL does it: without the row axis, the shorter one is padded with ones on
/// the left, and extents of 1 are repeated; [n] counts as [n, 1]. dot contracts the last dimension and leaves
/// it with extent 1.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/kernels/message_op.hpp>

#include <string>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// What travels along an edge.
struct Message {
  using Op = MessageOp;
  Op op = Op::copy;
  MessageTarget lhs = MessageTarget::u;
  MessageTarget rhs = MessageTarget::e;  ///< another one than lhs; not used by copy
  Variable u;                            ///< [local sources, ...] where lhs or rhs says so
  Variable v;                            ///< [local destinations, ...]
  Variable e;                            ///< [local edges, ...], in the graph's edge order

  [[nodiscard]] const Variable& operand(MessageTarget target) const {
    return target == MessageTarget::u ? u : target == MessageTarget::v ? v : e;
  }
  [[nodiscard]] Variable& operand(MessageTarget target) {
    return target == MessageTarget::u ? u : target == MessageTarget::v ? v : e;
  }
  [[nodiscard]] bool reads(MessageTarget target) const {
    return lhs == target || (op != Op::copy && rhs == target);
  }
};

/// The same with the names of fields of the graph's frames.
struct NamedMessage {
  Message::Op op;
  MessageTarget lhs, rhs;
  std::string lhs_field, rhs_field;
  std::string message;  ///< what the reduction, or apply_edges' result, is called
};

/// A reduction of the message called `message` to the field `out` of the destinations.
struct NamedReduce {
  Reduce reduce;
  std::string message;
  std::string out;
};

namespace fn {

struct CopyFunction {
  MessageTarget target;
  Message operator()(Variable x) const {
    Message message{.op = Message::Op::copy, .lhs = target, .rhs = target, .u = {}, .v = {}, .e = {}};
    message.operand(target) = std::move(x);
    return message;
  }
  NamedMessage operator()(std::string field, std::string message) const {
    return {Message::Op::copy, target, target, std::move(field), {}, std::move(message)};
  }
};

struct BinaryFunction {
  Message::Op op;
  MessageTarget lhs, rhs;
  Message operator()(Variable a, Variable b) const {
    Message message{.op = op, .lhs = lhs, .rhs = rhs, .u = {}, .v = {}, .e = {}};
    message.operand(lhs) = std::move(a);
    message.operand(rhs) = std::move(b);
    return message;
  }
  NamedMessage operator()(std::string a, std::string b, std::string message) const {
    return {op, lhs, rhs, std::move(a), std::move(b), std::move(message)};
  }
};

struct ReduceFunction {
  Reduce reduce;
  operator Reduce() const { return reduce; }  // NOLINT: converts by design
  NamedReduce operator()(std::string message, std::string out) const {
    return {reduce, std::move(message), std::move(out)};
  }
};

inline constexpr CopyFunction copy_u{MessageTarget::u};  ///< m = u
inline constexpr CopyFunction copy_e{MessageTarget::e};  ///< m = e

// u_add_v, u_add_e, v_add_u, v_add_e, e_add_u, e_add_v: m = lhs op rhs; and the same for sub, mul, div, dot.
#define SAR_FUNCTION(op, lhs, rhs) \
  inline constexpr BinaryFunction lhs##_##op##_##rhs{Message::Op::op, MessageTarget::lhs, MessageTarget::rhs};
// clang-format off
#define SAR_FUNCTIONS(op)                                                \
  SAR_FUNCTION(op, u, v) SAR_FUNCTION(op, v, u) SAR_FUNCTION(op, u, e)   \
  SAR_FUNCTION(op, e, u) SAR_FUNCTION(op, v, e) SAR_FUNCTION(op, e, v)
// clang-format on
SAR_BINARY_MESSAGE_OPS(SAR_FUNCTIONS)
#undef SAR_FUNCTIONS
#undef SAR_FUNCTION

// sum; mean, which divides by the in-degree; max and min: of equal messages, that of the smallest edge id
// takes the gradient, and NaN is larger (smaller) than all numbers and equal to NaN.
#define SAR_FUNCTION(name) inline constexpr ReduceFunction name{Reduce::name};
SAR_REDUCTIONS(SAR_FUNCTION)
#undef SAR_FUNCTION

}  // namespace fn
}}  // namespace sar
