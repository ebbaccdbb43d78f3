/// A directory that gets its name when it is complete.
#pragma once

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// The directory is made beside `path` under another name, and is removed if commit() is not reached. The
/// ranks see the same file system. Errors are InputError, the same on every rank.
class NewDirectory {
 public:
  /// Throws when there is something at `path` already. Collective.
  NewDirectory(const Communicator& comm, const std::string& path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where to write.
  [[nodiscard]] const std::string& path() const noexcept { return temporary_; }
  /// Renames the directory after all ranks have written. Collective.
  void commit();

 private:
  explicit NewDirectory(const Communicator& comm) : comm_(comm) {}
  void make(const std::string& path);

  Communicator comm_;
  std::string path_;
  std::string temporary_;
  bool made_ = false;  // on rank 0: the destructor removes the directory
};

}  // namespace sar
