#include "inflate.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/byte_order_mark.hpp>

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index input_bytes = Index{1} << 18;

}  // namespace

struct Inflater::Stream {
  explicit Stream(int window_bits) {
    require<MemoryError>(inflateInit2(&z, window_bits) == Z_OK, "no memory to unpack a file");
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream z{};
};

Inflater::Inflater(const InputFile& file, std::string what, Index begin, Index bytes, Format format)
    : file_(file),
      what_(std::move(what)),
      next_(begin),
      end_(begin + bytes),
      format_(format),
      input_(static_cast<std::size_t>(std::clamp<Index>(bytes, 1, input_bytes))),
      stream_(std::make_unique<Stream>(format == Format::gzip ? 15 + 16 : -15)) {}

Inflater::~Inflater() = default;

void Inflater::refill() {
  const Index count = std::min(end_ - next_, static_cast<Index>(input_.size()));
  if (count == 0) return;
  file_.read(next_, input_.data(), count);
  next_ += count;
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

TextFile::TextFile(const std::string& path) : file_(path, "a text file, plain or packed by gzip") {
  std::string first(static_cast<std::size_t>(std::min(file_.size(), max_byte_order_mark)), ' ');
  file_.read(0, first.data(), std::ssize(first));
  const bool gzip = first.starts_with("\x1f\x8b");
  require<InputError>(gzip || !path.ends_with(".gz"), path,
                      ": the file does not begin as gzip does, expected gzip data by its name");
  if (gzip)
    inflater_ = std::make_unique<Inflater>(file_, path, 0, file_.size(), Inflater::Format::gzip);
  else
    begin_ = next_ = byte_order_mark(first, path);
}

Index TextFile::max_text_bytes() const noexcept {
  Index bytes = file_.size();
  if (packed() && __builtin_mul_overflow(bytes, max_inflation, &bytes)) bytes = INT64_MAX;
  return bytes;
}

/// Unpacks the first bytes and drops a mark.
void TextFile::read_beginning() {
  is_new_ = false;
  beginning_.resize(max_byte_order_mark);
  beginning_.resize(static_cast<std::size_t>(inflater_->read(beginning_.data(), max_byte_order_mark)));
  beginning_.erase(0, static_cast<std::size_t>(byte_order_mark(beginning_, file_.path())));
}

Index TextFile::read(char* out, Index bytes) {
  if (packed()) {
    if (is_new_) read_beginning();
    const Index looked_at = std::min(bytes, Index{std::ssize(beginning_)});
    std::copy_n(beginning_.data(), looked_at, out);
    beginning_.erase(0, static_cast<std::size_t>(looked_at));
    return looked_at + inflater_->read(out + looked_at, bytes - looked_at);
  }
  const Index count = std::min(bytes, file_.size() - next_);
  file_.read(next_, out, count);
  next_ += count;
  return count;
}

std::string read_beginning(const std::string& path, Index bytes) {
  TextFile file(path);
  std::string text(static_cast<std::size_t>(std::min(bytes, file.max_text_bytes())), ' ');
  text.resize(static_cast<std::size_t>(file.read(text.data(), static_cast<Index>(text.size()))));
  return text;
}

}  // namespace sar::formats
