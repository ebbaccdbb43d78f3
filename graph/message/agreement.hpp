// SPDX-License-Identifier: MIT

/// Checks that all ranks make the same call with the same arguments, before rows are sent. For implementing
/// operations:
///
///     return collective(
///         graph.comm(),
///         [&] {                                     // what this rank checks by itself, and what must be equal
///           check(...);
///           return CollectiveCall("update_all").equal(graph.options()).equal("reduction", reduce);
///         },
///         [&] { ... });                             // what the call does
#pragma once

#include <sar/autograd/tape.hpp>
#include <sar/comm/collective_call.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/message.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

// Names in a timeline and in messages.

template <class Enum>
requires std::is_enum_v<Enum>
const char* trace_name(Enum value) {
  return to_string(value);
}

/// The name of the enumerator with that number; "none" for -1.
template <class Enum>
std::string name_of(std::int64_t number) {
  return number < 0 ? "none" : trace_name(static_cast<Enum>(number));
}

/// As in fn::, "u_mul_e".
inline std::string trace_name(Message::Op op, MessageTarget lhs, MessageTarget rhs) {
  const std::string name = trace_name(op), left = trace_name(lhs);
  return op == Message::Op::copy ? name + '_' + left : left + '_' + name + '_' + trace_name(rhs);
}

/// Everything in the options of a graph.
void add_arguments(CollectiveCall& call, const GraphOptions& options);

/// Collective. Runs body() in Communicator::agree and returns its result, after comparing the
/// CollectiveCall that describe() returns between all ranks. Exceptions of both are thrown on all ranks.
template <class Describe, class Body>
auto collective(const Communicator& comm, const Describe& describe, const Body& body,
                const char* caller = __builtin_FUNCTION()) {
  return comm.agree(
      [&] {
        comm.require_equal(describe());
        return body();
      },
      caller);
}

/// record() of an operation whose backward pass is collective: it runs in Communicator::agree.
Variable record_collective(const Communicator& comm, const Variable& value, Tape::Backward backward);

}}  // namespace sar
