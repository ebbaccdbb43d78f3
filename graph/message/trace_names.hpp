/// Names of operations in a timeline. For the sources of graph/ only.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>

#include <array>
#include <string>

namespace sar {

inline const char* trace_name(HaloMode mode) {
  return std::array{"rematerialize", "sequential", "one_shot"}[static_cast<std::size_t>(mode)];
}

/// As in fn::, "u_mul_e".
inline std::string trace_name(Message::Op op, MessageTarget lhs, MessageTarget rhs) {
  const char* name = std::array{"copy", "add", "sub", "mul", "div", "dot"}[static_cast<std::size_t>(op)];
  const auto letter = [](MessageTarget target) { return "uve"[static_cast<std::size_t>(target)]; };
  if (op == Message::Op::copy) return std::string(name) + '_' + letter(lhs);
  return std::string{letter(lhs), '_'} + name + '_' + letter(rhs);
}

}  // namespace sar
