// SPDX-License-Identifier: MIT

/// ByteSource: bytes that are read from front to back, from a file or as they are unpacked.
#pragma once

#include <sar/config.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>

namespace sar::formats {

/// All functions are local and throw InputError.
class ByteSource : NonCopyable {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `bytes` more bytes; fewer only at the end.
  virtual Index read(char* out, Index bytes) = 0;
};

/// A section of a file, which outlives it.
class FileBytes final : public ByteSource {
 public:
  FileBytes(const InputFile& file, Index begin, Index bytes)
      : file_(file), next_(begin), end_(begin + bytes) {}
  Index read(char* out, Index bytes) override {
    const Index count = std::min(bytes, end_ - next_);
    file_.read(next_, out, count);
    next_ += count;
    return count;
  }

 private:
  const InputFile& file_;
  Index next_, end_;
};

}  // namespace sar::formats
