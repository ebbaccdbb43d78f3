// SPDX-License-Identifier: MIT

/// The kinds of built-in messages and reductions, without their operands.
#pragma once

#include <sar/core/enum_names.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The reduction of the messages at a node; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

inline constexpr EnumName<Reduce> reduce_names[] = {
    {Reduce::sum, "sum"}, {Reduce::mean, "mean"}, {Reduce::max, "max"}, {Reduce::min, "min"}};
static_assert(are_in_order(reduce_names));
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

/// The operation on the two operands of a message; copy takes one operand.
enum class MessageOp { copy, add, sub, mul, div, dot };

inline constexpr EnumName<MessageOp> message_op_names[] = {
    {MessageOp::copy, "copy"}, {MessageOp::add, "add"}, {MessageOp::sub, "sub"},
    {MessageOp::mul, "mul"},   {MessageOp::div, "div"}, {MessageOp::dot, "dot"}};
static_assert(are_in_order(message_op_names));
[[nodiscard]] constexpr const char* to_string(MessageOp op) noexcept {
  return name_in(message_op_names, op);
}

/// The edges over which edge_softmax normalizes: the in-edges of a destination or the out-edges of a source.
enum class NormBy { dst, src };

}}  // namespace sar
