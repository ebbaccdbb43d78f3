/// Names of operations in a timeline. For the sources of graph/ only.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>

#include <array>
#include <string>

namespace sar::inline SAR_PRECISION {

inline const char* trace_name(HaloMode mode) {
  return std::array{"rematerialize", "sequential", "one_shot"}[static_cast<std::size_t>(mode)];
}

/// As in fn::, "u_mul_e".
inline std::string trace_name(Message::Op op, MessageTarget lhs, MessageTarget rhs) {
  const auto name = [op] {
    switch (op) {
      case Message::Op::copy:
        return "copy";
      case Message::Op::add:
        return "add";
      case Message::Op::sub:
        return "sub";
      case Message::Op::mul:
        return "mul";
      case Message::Op::div:
        return "div";
      case Message::Op::dot:
        break;
    }
    return "dot";
  }();
  const auto letter = [](MessageTarget target) { return "uve"[static_cast<std::size_t>(target)]; };
  if (op == Message::Op::copy) return std::string(name) + '_' + letter(lhs);
  return std::string{letter(lhs), '_'} + name + '_' + letter(rhs);
}

}  // namespace sar
