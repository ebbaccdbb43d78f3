// SPDX-License-Identifier: MIT

/// What tests of checkpoints do with their directory.
#pragma once

#include <sar/comm/communicator.hpp>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace sar::test {

/// The names in it, but for the lock of a Checkpointer that lives.
inline std::set<std::string> files(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  names.erase("lock");
  return names;
}

/// Lets rank 0 alone do something. Collective.
inline void on_rank_0(const Communicator& comm, const std::function<void()>& action) {
  comm.agree([&] {
    if (comm.rank() == 0) action();
  });
}

}  // namespace sar::test
