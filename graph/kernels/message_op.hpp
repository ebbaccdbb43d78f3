// SPDX-License-Identifier: MIT

/// The kinds of built-in messages and reductions, without their operands. A new operation is a name and a row
/// here; what does not compile without its formula, or is red, says what else it needs.
#pragma once

#include <sar/core/text.hpp>

#include <iterator>

namespace sar { inline namespace SAR_PRECISION {

/// The reductions, a name each. `fn` in C++ and Python has their functions.
#define SAR_REDUCTIONS(each) each(sum) each(mean) each(max) each(min)

/// The reduction of the messages at a node; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

#define SAR_NAME(reduce) {Reduce::reduce, #reduce},
inline constexpr EnumName<Reduce> reduce_names[] = {SAR_REDUCTIONS(SAR_NAME)};
#undef SAR_NAME
static_assert(are_in_order(reduce_names));
/// Whether the result is one of the messages. Otherwise it is their sum times in_degree_factor()
/// (graph/message/degree_factors.hpp).
[[nodiscard]] constexpr bool is_extremum(Reduce reduce) noexcept {
  return reduce == Reduce::max || reduce == Reduce::min;
}
[[nodiscard]] constexpr const char* to_string(Reduce reduce) noexcept {
  return name_in(reduce_names, reduce);
}

/// Where the rows of an operand belong: source nodes, destination nodes or edges.
enum class MessageTarget { u, v, e };

inline constexpr EnumName<MessageTarget> message_target_names[] = {
    {MessageTarget::u, "u"}, {MessageTarget::v, "v"}, {MessageTarget::e, "e"}};
static_assert(are_in_order(message_target_names));
[[nodiscard]] constexpr const char* to_string(MessageTarget target) noexcept {
  return name_in(message_target_names, target);
}

/// The operations on two operands, a name each. `fn` in C++ and Python has their functions.
#define SAR_BINARY_MESSAGE_OPS(each) each(add) each(sub) each(mul) each(div) each(dot)

/// The operation on the operands of a message; copy takes one operand.
enum class MessageOp { copy, add, sub, mul, div, dot };

/// What the passes must know of m = a op b beside its formula.
struct MessageOpRow {
  MessageOp value;
  const char* name;
  bool da_reads_b, db_reads_a, db_reads_b;  ///< operands that the derivative by a (by b) depends on
  bool bilinear;  ///< the sum of messages that share b is the message of the sum of their a's, and vice versa
};

inline constexpr MessageOpRow message_op_names[] = {{MessageOp::copy, "copy", false, false, false, false},
                                                    {MessageOp::add, "add", false, false, false, false},
                                                    {MessageOp::sub, "sub", false, false, false, false},
                                                    {MessageOp::mul, "mul", true, true, false, true},
                                                    {MessageOp::div, "div", true, true, true, false},
                                                    {MessageOp::dot, "dot", true, true, false, true}};
#define SAR_ONE(op) +1
static_assert(are_in_order(message_op_names) &&
              std::size(message_op_names) == 1 SAR_BINARY_MESSAGE_OPS(SAR_ONE));
#undef SAR_ONE
[[nodiscard]] constexpr const char* to_string(MessageOp op) noexcept {
  return name_in(message_op_names, op);
}

/// The edges over which edge_softmax normalizes: the in-edges of a destination or the out-edges of a source.
enum class NormBy { dst, src };

}}  // namespace sar
