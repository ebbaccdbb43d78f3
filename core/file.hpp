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

/// An open regular file. Reading is safe from several threads. Errors are InputError.
class InputFile {
 public:
  /// `expected` ends the message when the file cannot be opened: "a .npy file".
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

/// A file that gets its name when it is complete: it is written beside `path` under another name, and removed
/// if commit() is not reached. Errors are InputError.
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
  int descriptor_;
};

/// Flushes all files of the file system that holds the directory. Throws InputError.
void sync_file_system(const std::string& directory);

/// Flushes a directory's entries to the disk, so that a rename in it is durable. Throws InputError.
void sync_directory(const std::string& directory);

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
