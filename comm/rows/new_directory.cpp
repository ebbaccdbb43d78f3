// SPDX-License-Identifier: MIT

// Rank 0 creates PATH.tmpPID and broadcasts its name. In commit(), rank 0 waits at a barrier for all
// ranks, flushes the directory, renames it and flushes its parent.
#include <sar/comm/rows/new_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <unistd.h>
#include <filesystem>
#include <system_error>

namespace sar { inline namespace SAR_PRECISION {

namespace fs = std::filesystem;

// The delegated constructor completes first, so the destructor runs if make() throws.
NewDirectory::NewDirectory(const Communicator& comm, const std::string& path) : NewDirectory(comm) {
  comm.agree([&] { make(path); });
}

void NewDirectory::make(const std::string& path) {
  path_ = path;
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  if (comm_.rank() == 0) {
    require<InputError>(!path_.empty(), "the name of the output directory is empty");
    std::error_code error;
    require<InputError>(!fs::exists(fs::symlink_status(path_, error)), path_,
                        ": exists already, expected a directory that can be made");
    // A process on another host or in another container, or a killed one, may have left a directory with this
    // process's name.
    for (int attempt = 0; attempt < 100 && !made_; ++attempt) {
      temporary_ = concat(path_, ".tmp", ::getpid());
      if (attempt > 0) temporary_ += concat('-', attempt);
      made_ = fs::create_directory(temporary_, error);
      if (error) break;
    }
    require<InputError>(made_, path_, ": cannot be made (",
                        error ? error.message() : "there is a " + temporary_, ")");
  }
  temporary_ = comm_.broadcast(temporary_, 0);
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (made_) fs::remove_all(temporary_, ignored);
}

void NewDirectory::commit() {
  comm_.agree([&] {
    comm_.barrier();
    if (comm_.rank() != 0) return;
    std::error_code error;
    require<InputError>(!fs::exists(fs::symlink_status(path_, error)), path_,
                        ": exists already, expected a directory that can be made");
    sync_directory(temporary_);
    fs::rename(temporary_, path_, error);
    require<InputError>(!error, path_, ": cannot be made (", error.message(), ")");
    made_ = false;
    sync_directory(fs::path(path_).parent_path().string());
  });
}
}}  // namespace sar
