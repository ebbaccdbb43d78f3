// SPDX-License-Identifier: MIT
#include "inflate.hpp"

#include <sar/core/error.hpp>

#include <zlib.h>

#include <utility>

namespace sar::formats {
namespace {

constexpr Index input_bytes = Index{1} << 18;

}  // namespace

Index ByteSource::skip(Index bytes) {
  std::string skipped(static_cast<std::size_t>(std::min(bytes, Index{1} << 20)), ' ');
  Index left = bytes;
  while (left > 0) {
    const Index got = read(skipped.data(), std::min(left, std::ssize(skipped)));
    if (got == 0) break;
    left -= got;
  }
  return bytes - left;
}

struct Inflater::Stream {
  explicit Stream(int window_bits) {
    require<MemoryError>(inflateInit2(&z, window_bits) == Z_OK, "no memory to unpack a file");
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream z{};
};

Inflater::Inflater(std::unique_ptr<ByteSource> packed, std::string what, Format format)
    : packed_(std::move(packed)),
      what_(std::move(what)),
      format_(format),
      input_(static_cast<std::size_t>(input_bytes)),
      stream_(std::make_unique<Stream>(format == Format::gzip ? 15 + 16 : -15)) {}

Inflater::~Inflater() = default;

void Inflater::refill() {
  const Index count = packed_->read(reinterpret_cast<char*>(input_.data()), std::ssize(input_));
  if (count == 0) return;
  stream_->z.next_in = input_.data();
  stream_->z.avail_in = static_cast<uInt>(count);
}

/// Behind the end of a stream: another member of gzip, zeros that pad the file, or nothing.
void Inflater::start_next_member() {
  z_stream& z = stream_->z;
  for (;;) {
    if (z.avail_in == 0) refill();
    if (z.avail_in == 0) break;
    if (format_ == Format::gzip && *z.next_in != 0) {
      require<InputError>(*z.next_in == 0x1f, what_,
                          ": there is something else behind the packed data, expected the end of the file");
      require<MemoryError>(inflateReset(&z) == Z_OK, "no memory to unpack a file");
      return;
    }
    require<InputError>(format_ == Format::gzip, what_,
                        ": the packed data end before their section does, expected both together");
    ++z.next_in;
    --z.avail_in;
  }
  finished_ = true;
}

Index Inflater::read(char* out, Index bytes) {
  z_stream& z = stream_->z;
  Index done = 0;
  while (done < bytes && !finished_) {
    if (z.avail_in == 0) refill();
    const auto room = static_cast<uInt>(std::min<Index>(bytes - done, Index{1} << 30));
    z.next_out = reinterpret_cast<unsigned char*>(out + done);
    z.avail_out = room;
    const bool had_input = z.avail_in > 0;
    const int status = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
    if (status == Z_STREAM_END) {
      start_next_member();
      continue;
    }
    require<MemoryError>(status != Z_MEM_ERROR, "no memory to unpack a file");
    require<InputError>(status == Z_OK || (status == Z_BUF_ERROR && !had_input), what_,
                        ": cannot be unpacked (", z.msg != nullptr ? z.msg : "wrong data", "), expected ",
                        format_ == Format::gzip ? "gzip" : "deflated", " data");
    require<InputError>(had_input || room != z.avail_out, what_,
                        ": the packed data end in the middle, expected a complete file");
  }
  return done;
}

}  // namespace sar::formats
