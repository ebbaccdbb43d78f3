// SPDX-License-Identifier: MIT

/// Bytes that are read from front to back, from a file or as they are unpacked by zlib. Everything here is
/// local and throws InputError.
#pragma once

#include <sar/config.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace sar::formats {

/// All functions are local and throw InputError.
class ByteSource : NonCopyable {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `bytes` more bytes; fewer only at the end.
  virtual Index read(char* out, Index bytes) = 0;
  /// Skips up to `bytes` more bytes, and returns how many; fewer only at the end.
  virtual Index skip(Index bytes);
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
  Index skip(Index bytes) override {
    const Index count = std::min(bytes, end_ - next_);
    next_ += count;
    return count;
  }

 private:
  const InputFile& file_;
  Index next_, end_;
};

/// No file that zlib has packed grows by more than this when it is unpacked.
inline constexpr Index max_inflation = 1032;

class Inflater final : public ByteSource {
 public:
  enum class Format { gzip, raw };  ///< gzip: one or several members; raw: one stream without a frame, of zip

  /// `what` names the packed bytes in messages.
  Inflater(std::unique_ptr<ByteSource> packed, std::string what, Format format);
  ~Inflater() override;

  /// At the end of raw data all packed bytes have been used.
  Index read(char* out, Index bytes) override;

 private:
  struct Stream;
  void refill();
  void start_next_member();

  std::unique_ptr<ByteSource> packed_;
  std::string what_;
  Format format_;
  bool finished_ = false;
  std::vector<unsigned char> input_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace sar::formats
