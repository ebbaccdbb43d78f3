// SPDX-License-Identifier: MIT

/// A lock that lets one process at a time write to a directory.
#pragma once

#include <sar/config.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Holds the lock while the pointer or a copy lives. Within a process, locks on the same directory are
/// shared.
using DirectoryLock = std::shared_ptr<const void>;

/// Local. Locks an existing directory with flock() on a file "lock" in it. The file contains the host, the
/// process and the time. The lock is released when the process ends in any way; a leftover file of a killed
/// process is harmless. Does nothing if the directory is not writable or its file system has no locks.
/// Throws InputError that names the holder if another process holds the lock for longer than `patience`.
DirectoryLock lock_directory(const std::string& directory, std::chrono::milliseconds patience);

}}  // namespace sar
