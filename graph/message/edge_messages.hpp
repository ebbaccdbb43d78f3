// SPDX-License-Identifier: MIT

/// Built-in messages as functions of a chunk of edges, for graphs with GraphOptions::reproducible (every sum
/// over edges, forward and backward, is then an exact sum of the kernel of such functions), their tangents,
/// and messages of the fields of frames. For implementation files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/message/started_sum.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the function that computes a message by operations on rows.
[[nodiscard]] MessageFunction function_of_edges(const Message& message);

/// Local. Whether an operand that the message reads is dual.
[[nodiscard]] bool is_dual(const Message& message);

/// Local. The message of the primal operands.
[[nodiscard]] Message primal_of(Message message);

/// Local. Messages whose sum is the tangent of a message: one for each dual operand, by the product rule.
[[nodiscard]] PassVector<Message> tangent_messages(const Message& message);

/// Local. A reduction of the messages of `function`, of which all work is done when it is finished.
[[nodiscard]] std::unique_ptr<StartedSum::Operation> reduction_of(const Graph& graph, const Shape& shape,
                                                                  MessageFunction function, Reduce reduce);

// Messages of the fields of a graph's frames.

/// Local. The message with the fields as operands. Throws InputError for fields that do not exist.
Message resolve(const Graph& graph, const NamedMessage& named);
}}  // namespace sar
