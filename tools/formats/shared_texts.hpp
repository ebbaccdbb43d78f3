// SPDX-License-Identifier: MIT

/// What rank 0 finds or reads, on all ranks. An exception of rank 0 is one of all ranks.
#pragma once

#include <sar/comm/broadcast_texts.hpp>
#include <sar/core/threads/parallel.hpp>

#include <string>
#include <vector>

namespace sar::formats {

/// Collective.
inline std::vector<std::string> shared_list(const Communicator& comm,
                                            FunctionRef<std::vector<std::string>()> find) {
  return broadcast_texts(comm,
                         comm.agree([&] { return comm.rank() == 0 ? find() : std::vector<std::string>(); }));
}

/// Collective. A text, or a path, which is empty if there is none.
inline std::string shared_text(const Communicator& comm, FunctionRef<std::string()> find) {
  return shared_list(comm, [&] { return std::vector<std::string>{find()}; })[0];
}

}  // namespace sar::formats
