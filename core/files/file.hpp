// SPDX-License-Identifier: MIT

/// Files with errors that name them: reads at any offset, and writes that never leave a half-written file.
/// Also names of files, and byte order marks.
#pragma once

#include <sar/config.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the message of errno.
std::string system_error();

/// Makes a directory and those above it. Throws InputError.
void make_directories(const std::string& path);

/// An open regular file for reading; the library opens all its input files with this class. Thread-safe.
/// Throws InputError on errors.
class InputFile : NonCopyable {
 public:
  /// `expected` ends the message when the file cannot be opened, for example "a .npy file". A directory,
  /// FIFO, socket or device is refused at once, without waiting for another program.
  InputFile(std::string path, const std::string& expected);
  ~InputFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Index size() const noexcept { return size_; }  ///< bytes, when the file was opened
  /// Reads `bytes` bytes at `offset`. Throws InputError if the file ends before offset + bytes.
  void read(Index offset, void* out, Index bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  Index size_ = 0;
};

/// A new file that will replace `target` once it is complete.
struct Replacement {
  std::string target;     ///< the given path, with symbolic links resolved
  std::string temporary;  ///< name of the new file, in the directory of the target
  int descriptor = -1;    ///< open for writing; the caller closes it
};

/// Creates the new file under an unused name, without following links, with the permissions of the file that
/// it replaces. Throws InputError if it cannot be created or the target is not a regular file.
Replacement open_replacement(const std::string& path);

/// A file that gets its name when it is complete: it is written under another name in the same directory, and
/// removed unless commit() is called. If `path` is a symbolic link, the file that it points to is replaced.
/// Throws InputError on errors.
class TemporaryFile : NonCopyable {
 public:
  explicit TemporaryFile(const std::string& path) : file_(open_replacement(path)) {}
  ~TemporaryFile();

  /// Appends bytes.
  void write(const void* data, std::size_t bytes);
  /// Flushes the file to disk, renames it, and flushes the directory. With `flushed` false it only renames:
  /// for files of a directory that gets its own name after sync_file_system().
  void commit(bool flushed = true);

 private:
  Replacement file_;
};

/// A file that grows by whole lines while other programs read it, or a device such as /dev/stdout. Throws
/// InputError on errors.
class LineFile : NonCopyable {
 public:
  /// Opens or creates the file and truncates it unless `append`. A FIFO without a reader is refused.
  LineFile(std::string path, bool append);
  ~LineFile();

  /// Appends a line, which must end with "\\n". If this fails, the file keeps its previous contents.
  void add(const std::string& line);

 private:
  std::string path_;
  int descriptor_ = -1;
  Index size_ = -1;  // for regular files
};

/// Flushes all files of the directory's file system to disk. Throws InputError.
void sync_file_system(const std::string& directory);

/// Flushes the directory's entries to disk, so that a rename in it is durable. Throws InputError.
void sync_directory(const std::string& directory);

/// Returns whether `path` exists. True also for an unreadable file and a dangling link, so that opening it
/// reports the problem.
bool is_there(const std::string& path);

/// Returns the names in a directory except "." and "..", in any order. Sets `error` on failure.
std::vector<std::string> names_in(const std::string& directory, std::error_code& error);

/// Reads a whole text file, without a byte order mark. Throws InputError if it cannot be read, is larger than
/// max_bytes or is not UTF-8 by its mark.
std::string read_text(const std::string& path, const std::string& expected, Index max_bytes = Index{1} << 26);

/// Throws InputError if `path` cannot be written. Leaves no file behind. For checks before long work.
void check_writable(const std::string& path);

/// Writes a whole text file through a TemporaryFile. Throws InputError.
void write_text(const std::string& path, const std::string& text);

// File names for the names of types and fields.

/// Local. Returns a file name for any name: characters that every file system allows are kept; others, and
/// a leading dot, become %XX. Throws InputError for an empty name and for a file name of more than 200
/// bytes.
std::string escaped(const std::string& name);
/// Returns the file name of an edge type, for example "author:writes:paper".
std::string escaped(const std::string& src_type, const std::string& name, const std::string& dst_type);

/// Local. Returns the name that escaped() was called with. A percent sign without two hexadecimal digits is
/// kept.
std::string unescaped(const std::string& name);

// The byte order mark at the beginning of a text, which editors and spreadsheets write ("CSV UTF-8"). Local.

/// The number of bytes at the beginning of a text that decide whether it has a mark.
inline constexpr Index max_byte_order_mark = 4;

/// Returns the number of bytes of the mark with which a text in UTF-8 begins: 3, or 0 without a mark. Throws
/// InputError, beginning with `path`, for the mark of UTF-16 or UTF-32.
Index byte_order_mark(std::string_view beginning, const std::string& path);

// A lock that lets one process at a time write to a directory.

/// Holds the lock while the pointer or a copy lives. Within a process, locks on the same directory are
/// shared.
using DirectoryLock = std::shared_ptr<const void>;

/// Local. Locks an existing directory with flock() on a file "lock" in it. The file contains the host, the
/// process and the time. The lock is released when the process ends in any way; a leftover file of a killed
/// process is harmless. Does nothing if the directory is not writable or its file system has no locks.
/// Throws InputError that names the holder if another process holds the lock for longer than `patience`.
DirectoryLock lock_directory(const std::string& directory, std::chrono::milliseconds patience);
}}  // namespace sar
