/// A directory that does not get its name unless it is complete.
#pragma once

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar {

/// Made beside `path` under another name, and removed if commit() is not reached. The ranks see the same file
/// system. Errors are InputError, the same on every rank.
class NewDirectory {
 public:
  /// Throws when there is something at `path` already. Collective.
  NewDirectory(const Communicator& comm, const std::string& path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where to write.
  [[nodiscard]] const std::string& path() const noexcept { return temporary_; }
  /// When all ranks have written: renames. Collective.
  void commit();

 private:
  explicit NewDirectory(const Communicator& comm) : comm_(comm) {}
  void make(const std::string& path);

  Communicator comm_;
  std::string path_;
  std::string temporary_;
  bool made_ = false;  // on rank 0: there is something to remove
};

}  // namespace sar
