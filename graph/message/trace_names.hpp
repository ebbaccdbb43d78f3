// SPDX-License-Identifier: MIT

/// Names of operations in a timeline and in messages. For the sources of graph/ only.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/message.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
