// SPDX-License-Identifier: MIT

/// A text file, plain or packed by gzip, also in a zip archive, read from front to back.
#pragma once

#include "inflate.hpp"
#include "zip_file.hpp"

#include <memory>
#include <optional>
#include <string>

namespace sar::formats {

/// The first two bytes tell whether gzip has packed the text. A byte order mark is no part of it. Everything
/// here is local and throws InputError.
class TextFile {
 public:
  /// Throws when the file cannot be opened, is called .gz and is not, or is a text that is not UTF-8 by its
  /// mark. `expected` ends messages.
  explicit TextFile(const std::string& path, const char* expected = "a text file, plain or packed by gzip");
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Whether it can be read from front to back only: it is packed, or in an archive.
  [[nodiscard]] bool packed() const noexcept { return packed_; }
  /// The file, or the archive that it is in.
  [[nodiscard]] const InputFile& file() const noexcept { return archive_ ? archive_->file() : *file_; }
  /// Where the text of a plain file begins in it.
  [[nodiscard]] Index begin() const noexcept { return begin_; }
  /// The most bytes that the text can have.
  [[nodiscard]] Index max_text_bytes() const noexcept { return max_text_bytes_; }

  /// Reads or skips up to `bytes` more bytes, and returns how many; fewer only at the end.
  Index read(char* out, Index bytes) { return text_->read(out, bytes); }
  Index skip(Index bytes) { return text_->skip(bytes); }

 private:
  /// The bytes of the file or member as they are.
  [[nodiscard]] std::unique_ptr<ByteSource> open_bytes(const ZipMember* member) const;

  std::string path_;
  std::optional<ZipFile> archive_;
  std::optional<InputFile> file_;
  Index begin_ = 0;  // of the text, behind a mark
  Index max_text_bytes_ = 0;
  bool packed_ = false;
  std::unique_ptr<ByteSource> text_;
};

/// The first `bytes` bytes of the text, which may be a ParquetTable; fewer when there are not so many.
std::string read_beginning(const std::string& path, Index bytes);

}  // namespace sar::formats
