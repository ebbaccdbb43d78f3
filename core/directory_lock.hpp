/// A directory that one program at a time writes to.
#pragma once

#include <sar/config.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace sar::inline SAR_PRECISION {

/// Held as long as the pointer or a copy of it lives; the locks of one process on the same directory are one.
using DirectoryLock = std::shared_ptr<const void>;

/// Locks a directory that exists, by a file "lock" in it that tells the host, the process and since when. A
/// process that ends in any way gives its locks back, and the file of one that was killed does not matter.
/// Where the directory cannot be written or its file system has no locks, this does nothing. Throws InputError
/// when another process holds the lock for so long, and says which. Local.
DirectoryLock lock_directory(const std::string& directory, std::chrono::milliseconds patience);

}  // namespace sar
