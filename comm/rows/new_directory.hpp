// SPDX-License-Identifier: MIT

/// A directory that gets its name when it is complete.
#pragma once

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Creates a directory beside `path` under a temporary name, and removes it unless commit() is called. All
/// ranks must see the same file system. Throws InputError, the same on every rank, on errors.
class NewDirectory : NonCopyable {
 public:
  /// Collective. Throws InputError if `path` exists already.
  NewDirectory(const Communicator& comm, const std::string& path);
  ~NewDirectory();

  /// Returns the temporary path to write to.
  [[nodiscard]] const std::string& path() const noexcept { return temporary_; }
  /// Collective. Waits for all ranks, then renames the directory.
  void commit();

 private:
  explicit NewDirectory(const Communicator& comm) : comm_(comm) {}
  void make(const std::string& path);

  Communicator comm_;
  std::string path_;
  std::string temporary_;
  bool made_ = false;  // on rank 0: the destructor removes the directory
};
}}  // namespace sar
