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

#include <string>
#include <utility>

namespace sar {

/// How the messages that arrive at a node are combined; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

/// Where an operand's rows belong: to source nodes, destination nodes, or edges.
enum class Target { u, v, e };

/// What travels along an edge.
struct Message {
  enum class Op { copy, add, sub, mul, div, dot };
  Op op = Op::copy;
  Target lhs = Target::u;
  Target rhs = Target::e;  ///< another one than lhs; not used by copy
  Variable u;              ///< [local sources, ...] where lhs or rhs says so
  Variable v;              ///< [local destinations, ...]
  Variable e;              ///< [local edges, ...], in the graph's edge order

  [[nodiscard]] const Variable& operand(Target target) const {
    return target == Target::u ? u : target == Target::v ? v : e;
  }
  [[nodiscard]] Variable& operand(Target target) {
    return target == Target::u ? u : target == Target::v ? v : e;
  }
  [[nodiscard]] bool reads(Target target) const { return lhs == target || (op != Op::copy && rhs == target); }
};

/// The same with the names of fields of the graph's frames.
struct NamedMessage {
  Message::Op op;
  Target lhs, rhs;
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
  Target target;
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
  Target lhs, rhs;
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

inline constexpr CopyFunction copy_u{Target::u};  ///< m = u
inline constexpr CopyFunction copy_e{Target::e};  ///< m = e

inline constexpr BinaryFunction u_add_v{Message::Op::add, Target::u, Target::v};
inline constexpr BinaryFunction u_add_e{Message::Op::add, Target::u, Target::e};
inline constexpr BinaryFunction v_add_u{Message::Op::add, Target::v, Target::u};
inline constexpr BinaryFunction v_add_e{Message::Op::add, Target::v, Target::e};
inline constexpr BinaryFunction e_add_u{Message::Op::add, Target::e, Target::u};
inline constexpr BinaryFunction e_add_v{Message::Op::add, Target::e, Target::v};

inline constexpr BinaryFunction u_sub_v{Message::Op::sub, Target::u, Target::v};
inline constexpr BinaryFunction u_sub_e{Message::Op::sub, Target::u, Target::e};
inline constexpr BinaryFunction v_sub_u{Message::Op::sub, Target::v, Target::u};
inline constexpr BinaryFunction v_sub_e{Message::Op::sub, Target::v, Target::e};
inline constexpr BinaryFunction e_sub_u{Message::Op::sub, Target::e, Target::u};
inline constexpr BinaryFunction e_sub_v{Message::Op::sub, Target::e, Target::v};

inline constexpr BinaryFunction u_mul_v{Message::Op::mul, Target::u, Target::v};
inline constexpr BinaryFunction u_mul_e{Message::Op::mul, Target::u, Target::e};
inline constexpr BinaryFunction v_mul_u{Message::Op::mul, Target::v, Target::u};
inline constexpr BinaryFunction v_mul_e{Message::Op::mul, Target::v, Target::e};
inline constexpr BinaryFunction e_mul_u{Message::Op::mul, Target::e, Target::u};
inline constexpr BinaryFunction e_mul_v{Message::Op::mul, Target::e, Target::v};

inline constexpr BinaryFunction u_div_v{Message::Op::div, Target::u, Target::v};
inline constexpr BinaryFunction u_div_e{Message::Op::div, Target::u, Target::e};
inline constexpr BinaryFunction v_div_u{Message::Op::div, Target::v, Target::u};
inline constexpr BinaryFunction v_div_e{Message::Op::div, Target::v, Target::e};
inline constexpr BinaryFunction e_div_u{Message::Op::div, Target::e, Target::u};
inline constexpr BinaryFunction e_div_v{Message::Op::div, Target::e, Target::v};

inline constexpr BinaryFunction u_dot_v{Message::Op::dot, Target::u, Target::v};
inline constexpr BinaryFunction u_dot_e{Message::Op::dot, Target::u, Target::e};
inline constexpr BinaryFunction v_dot_u{Message::Op::dot, Target::v, Target::u};
inline constexpr BinaryFunction v_dot_e{Message::Op::dot, Target::v, Target::e};
inline constexpr BinaryFunction e_dot_u{Message::Op::dot, Target::e, Target::u};
inline constexpr BinaryFunction e_dot_v{Message::Op::dot, Target::e, Target::v};

inline constexpr ReduceFunction sum{Reduce::sum};
inline constexpr ReduceFunction mean{Reduce::mean};  ///< divides by the in-degree over all shards
/// Of equal messages, that of the smallest edge id takes the gradient. NaN is larger than all others.
inline constexpr ReduceFunction max{Reduce::max};
inline constexpr ReduceFunction min{Reduce::min};  ///< as max; NaN is smaller than all others

}  // namespace fn
}  // namespace sar
