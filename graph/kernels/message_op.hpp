/// What a built-in message and its reduction are, without their operands.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// How the messages that arrive at a node are combined; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

/// Where an operand's rows belong: to source nodes, destination nodes, or edges.
enum class MessageTarget { u, v, e };

/// The operation on the two operands of a message; copy takes one.
enum class MessageOp { copy, add, sub, mul, div, dot };

/// Over which edges edge_softmax normalises: the in-edges of a destination, or the out-edges of a source.
enum class NormBy { dst, src };

}  // namespace sar
