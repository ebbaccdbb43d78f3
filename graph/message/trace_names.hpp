/// Names of operations in a timeline and in messages. For the sources of graph/ only.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

inline const char* trace_name(HaloMode mode) {
  return std::array{"rematerialize", "sequential", "one_shot"}[static_cast<std::size_t>(mode)];
}

inline const char* trace_name(HaloFormat format) {
  return to_string(format);
}

inline const char* trace_name(Reduce reduce) {
  return std::array{"sum", "mean", "max", "min"}[static_cast<std::size_t>(reduce)];
}

inline const char* trace_name(MessageTarget target) {
  return std::array{"u", "v", "e"}[static_cast<std::size_t>(target)];
}

inline const char* trace_name(Message::Op op) {
  return std::array{"copy", "add", "sub", "mul", "div", "dot"}[static_cast<std::size_t>(op)];
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
