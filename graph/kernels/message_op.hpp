/// The kinds of built-in messages and reductions, without their operands.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The reduction of the messages at a node; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

/// Where the rows of an operand belong: source nodes, destination nodes or edges.
enum class MessageTarget { u, v, e };

/// The operation on the two operands of a message; copy takes one operand.
enum class MessageOp { copy, add, sub, mul, div, dot };

/// The edges over which edge_softmax normalizes: the in-edges of a destination or the out-edges of a source.
enum class NormBy { dst, src };

}}  // namespace sar
