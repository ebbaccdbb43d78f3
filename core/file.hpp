/// Files with errors that name them: reading at any offset, and writing that leaves no half-written file.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The text of errno.
std::string system_error();

/// An open regular file. Reading is safe from several threads. Errors are InputError. This is how every file
/// is opened that the library reads.
class InputFile {
 public:
  /// `expected` ends the message when the file cannot be opened: "a .npy file". A directory, FIFO, socket or
  /// device is refused at once, without waiting for another program.
  InputFile(std::string path, const std::string& expected);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Index size() const noexcept { return size_; }  ///< bytes, when it was opened
  /// Throws InputError when the file ends before offset + bytes.
  void read(Index offset, void* out, Index bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  Index size_ = 0;
};

/// A new file for what shall replace `target` when it is complete.
struct Replacement {
  std::string target;     ///< the given path, or where it leads if it is a symbolic link
  std::string temporary;  ///< the name of the new file, beside the target
  int descriptor;         ///< open for writing; the caller closes it
};

/// Makes the file: nothing had its name before, and no link is followed. Throws InputError when it cannot be
/// made, and when the target is something else than a regular file.
Replacement open_replacement(const std::string& path);

/// A file that gets its name when it is complete: it is written beside `path` under another name, and removed
/// if commit() is not reached. If `path` is a symbolic link, this is about the file that it leads to. Errors
/// are InputError.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const void* data, std::size_t bytes);
  /// Flushes to the disk, renames, and flushes the directory. Without `flushed` it only renames: for files of
  /// a directory that gets its own name after sync_file_system().
  void commit(bool flushed = true);

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// A file that grows by whole lines while others read it, or a device such as /dev/stdout. Errors are
/// InputError.
class LineFile {
 public:
  /// Opens the file, or makes it; without `append`, it is empty then. A FIFO that no program reads is
  /// refused.
  LineFile(std::string path, bool append);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Writes a line, which ends with "\\n". If this fails, a file is as it was before.
  void add(const std::string& line);

 private:
  std::string path_;
  int descriptor_ = -1;
  Index size_ = -1;  // of a regular file
};

/// Flushes all files of the file system that holds the directory. Throws InputError.
void sync_file_system(const std::string& directory);

/// Flushes a directory's entries to the disk, so that a rename in it is durable. Throws InputError.
void sync_directory(const std::string& directory);

/// Whether there is a file of the name: also one that cannot be read, and a link that leads nowhere, so that
/// opening it says what is wrong.
bool is_there(const std::string& path);

/// The names in a directory, but for "." and "..", in any order; `error` says why there are none.
std::vector<std::string> names_in(const std::string& directory, std::error_code& error);

/// The whole of a small text file. Throws InputError when it cannot be read or has more than max_bytes.
std::string read_text(const std::string& path, const std::string& expected, Index max_bytes = Index{1} << 26);

/// Throws InputError when no file can be written to `path`, and leaves nothing there: for a check before long
/// work.
void check_writable(const std::string& path);

/// Writes a whole text file by way of a TemporaryFile.
void write_text(const std::string& path, const std::string& text);

}  // namespace sar
