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

inline constexpr BinaryFunction u_add_v{Message::Op::add, MessageTarget::u, MessageTarget::v};
inline constexpr BinaryFunction u_add_e{Message::Op::add, MessageTarget::u, MessageTarget::e};
inline constexpr BinaryFunction v_add_u{Message::Op::add, MessageTarget::v, MessageTarget::u};
inline constexpr BinaryFunction v_add_e{Message::Op::add, MessageTarget::v, MessageTarget::e};
inline constexpr BinaryFunction e_add_u{Message::Op::add, MessageTarget::e, MessageTarget::u};
inline constexpr BinaryFunction e_add_v{Message::Op::add, MessageTarget::e, MessageTarget::v};

inline constexpr BinaryFunction u_sub_v{Message::Op::sub, MessageTarget::u, MessageTarget::v};
inline constexpr BinaryFunction u_sub_e{Message::Op::sub, MessageTarget::u, MessageTarget::e};
inline constexpr BinaryFunction v_sub_u{Message::Op::sub, MessageTarget::v, MessageTarget::u};
inline constexpr BinaryFunction v_sub_e{Message::Op::sub, MessageTarget::v, MessageTarget::e};
inline constexpr BinaryFunction e_sub_u{Message::Op::sub, MessageTarget::e, MessageTarget::u};
inline constexpr BinaryFunction e_sub_v{Message::Op::sub, MessageTarget::e, MessageTarget::v};

inline constexpr BinaryFunction u_mul_v{Message::Op::mul, MessageTarget::u, MessageTarget::v};
inline constexpr BinaryFunction u_mul_e{Message::Op::mul, MessageTarget::u, MessageTarget::e};
inline constexpr BinaryFunction v_mul_u{Message::Op::mul, MessageTarget::v, MessageTarget::u};
inline constexpr BinaryFunction v_mul_e{Message::Op::mul, MessageTarget::v, MessageTarget::e};
inline constexpr BinaryFunction e_mul_u{Message::Op::mul, MessageTarget::e, MessageTarget::u};
inline constexpr BinaryFunction e_mul_v{Message::Op::mul, MessageTarget::e, MessageTarget::v};

inline constexpr BinaryFunction u_div_v{Message::Op::div, MessageTarget::u, MessageTarget::v};
inline constexpr BinaryFunction u_div_e{Message::Op::div, MessageTarget::u, MessageTarget::e};
inline constexpr BinaryFunction v_div_u{Message::Op::div, MessageTarget::v, MessageTarget::u};
inline constexpr BinaryFunction v_div_e{Message::Op::div, MessageTarget::v, MessageTarget::e};
inline constexpr BinaryFunction e_div_u{Message::Op::div, MessageTarget::e, MessageTarget::u};
inline constexpr BinaryFunction e_div_v{Message::Op::div, MessageTarget::e, MessageTarget::v};

inline constexpr BinaryFunction u_dot_v{Message::Op::dot, MessageTarget::u, MessageTarget::v};
inline constexpr BinaryFunction u_dot_e{Message::Op::dot, MessageTarget::u, MessageTarget::e};
inline constexpr BinaryFunction v_dot_u{Message::Op::dot, MessageTarget::v, MessageTarget::u};
inline constexpr BinaryFunction v_dot_e{Message::Op::dot, MessageTarget::v, MessageTarget::e};
inline constexpr BinaryFunction e_dot_u{Message::Op::dot, MessageTarget::e, MessageTarget::u};
inline constexpr BinaryFunction e_dot_v{Message::Op::dot, MessageTarget::e, MessageTarget::v};

inline constexpr ReduceFunction sum{Reduce::sum};
inline constexpr ReduceFunction mean{Reduce::mean};  ///< divides by the in-degree
/// Of equal messages, that of the smallest edge id takes the gradient. NaN is larger than all numbers and
/// equal to NaN.
inline constexpr ReduceFunction max{Reduce::max};
inline constexpr ReduceFunction min{Reduce::min};  ///< as max; NaN is smaller than all numbers

}  // namespace fn
}}  // namespace sar
