// SPDX-License-Identifier: MIT
#include "text_file.hpp"

#include "parquet_table.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

/// The first bytes of a source, which have been looked at, and then the others.
class PeekedBytes final : public ByteSource {
 public:
  explicit PeekedBytes(std::unique_ptr<ByteSource> source, Index count)
      : source_(std::move(source)), peeked_(static_cast<std::size_t>(count), ' ') {
    peeked_.resize(static_cast<std::size_t>(source_->read(peeked_.data(), count)));
  }
  [[nodiscard]] const std::string& peeked() const { return peeked_; }

  Index read(char* out, Index bytes) override {
    const Index first = std::min(bytes, std::ssize(peeked_));
    std::copy_n(peeked_.data(), first, out);
    peeked_.erase(0, static_cast<std::size_t>(first));
    return first < bytes ? first + source_->read(out + first, bytes - first) : first;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string peeked_;
};

constexpr const char* expected_text = "a text file, plain or packed by gzip";

const ZipMember& member_of(const ZipFile& archive, const ArchivePath& path) {
  const ZipMember* member = archive.find(path.member);
  require<InputError>(member != nullptr, path.archive, ": there is no file ", path.member,
                      " in the archive, expected ", expected_text);
  return *member;
}

}  // namespace

TextFile::TextFile(const std::string& path) : path_(path) {
  std::unique_ptr<ByteSource> source;
  if (const auto packed = path_in_archive(path)) {
    archive_.emplace(packed->archive, "a zip archive");
    const ZipMember& member = member_of(*archive_, *packed);
    source = std::make_unique<MemberBytes>(*archive_, member, path);
    max_text_bytes_ = member.bytes;
  } else {
    file_.emplace(path, expected_text);
    source = std::make_unique<FileBytes>(*file_, 0, file_->size());
    max_text_bytes_ = file_->size();
  }
  auto peeked = std::make_unique<PeekedBytes>(std::move(source), max_byte_order_mark);
  const std::string first = peeked->peeked();
  const bool gzip = first.starts_with("\x1f\x8b");
  require<InputError>(gzip || !path.ends_with(".gz"), path,
                      ": the file does not begin as gzip does, expected gzip data by its name");
  if (gzip) {
    unpacked_ = std::make_unique<Inflater>(std::move(peeked), path, Inflater::Format::gzip);
    if (__builtin_mul_overflow(max_text_bytes_, max_inflation, &max_text_bytes_)) max_text_bytes_ = INT64_MAX;
  } else if (archive_) {
    unpacked_ = std::move(peeked);
  } else {
    begin_ = next_ = byte_order_mark(first, path);
  }
}

/// Unpacks the first bytes and drops a mark.
void TextFile::read_beginning() {
  is_new_ = false;
  beginning_.resize(max_byte_order_mark);
  beginning_.resize(static_cast<std::size_t>(unpacked_->read(beginning_.data(), max_byte_order_mark)));
  beginning_.erase(0, static_cast<std::size_t>(byte_order_mark(beginning_, path_)));
}

Index TextFile::read(char* out, Index bytes) {
  if (packed()) {
    if (is_new_) read_beginning();
    const Index looked_at = std::min(bytes, Index{std::ssize(beginning_)});
    std::copy_n(beginning_.data(), looked_at, out);
    beginning_.erase(0, static_cast<std::size_t>(looked_at));
    return looked_at + unpacked_->read(out + looked_at, bytes - looked_at);
  }
  const Index count = std::min(bytes, file_->size() - next_);
  file_->read(next_, out, count);
  next_ += count;
  return count;
}

std::string read_beginning(const std::string& path, Index bytes) {
  if (is_parquet(path)) return ParquetTable::open(path)->beginning(bytes);
  TextFile file(path);
  std::string text(static_cast<std::size_t>(std::min(bytes, file.max_text_bytes())), ' ');
  text.resize(static_cast<std::size_t>(file.read(text.data(), static_cast<Index>(text.size()))));
  return text;
}

}  // namespace sar::formats
