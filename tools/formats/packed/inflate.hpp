// SPDX-License-Identifier: MIT

/// Unpacks what zlib has packed. Everything here is local and throws InputError.
#pragma once

#include "byte_source.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sar::formats {

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
