// SPDX-License-Identifier: MIT
#include "text_file.hpp"

#include "parquet_table.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

const ZipMember& member_of(const ZipFile& archive, const ArchivePath& path, const char* expected) {
  const ZipMember* member = archive.find(path.member);
  require<InputError>(member != nullptr, path.archive, ": there is no file ", path.member,
                      " in the archive, expected ", expected);
  return *member;
}

}  // namespace

TextFile::TextFile(const std::string& path, const char* expected) : path_(path) {
  std::unique_ptr<ByteSource> bytes;
  if (const auto packed = path_in_archive(path)) {
    archive_.emplace(packed->archive, "a zip archive");
    const ZipMember& member = member_of(*archive_, *packed, expected);
    bytes = std::make_unique<MemberBytes>(*archive_, member, path);
    max_text_bytes_ = member.bytes;
  } else {
    file_.emplace(path, expected);
    bytes = std::make_unique<FileBytes>(*file_, 0, file_->size());
    max_text_bytes_ = file_->size();
  }
  text_ = std::make_unique<PeekedBytes>(std::move(bytes), max_byte_order_mark);
  const bool gzip = text_->peeked().starts_with("\x1f\x8b");
  require<InputError>(gzip || !path.ends_with(".gz"), path,
                      ": the file does not begin as gzip does, expected gzip data by its name");
  if (gzip) {
    text_ = std::make_unique<PeekedBytes>(
        std::make_unique<Inflater>(std::move(text_), path, Inflater::Format::gzip), max_byte_order_mark);
    if (__builtin_mul_overflow(max_text_bytes_, max_inflation, &max_text_bytes_)) max_text_bytes_ = INT64_MAX;
  }
  packed_ = gzip || archive_;
  begin_ = text_->skip(byte_order_mark(text_->peeked(), path));
}

std::string read_beginning(const std::string& path, Index bytes) {
  if (is_parquet(path)) return ParquetTable::open(path)->beginning(bytes);
  TextFile file(path);
  std::string text(static_cast<std::size_t>(std::min(bytes, file.max_text_bytes())), ' ');
  text.resize(static_cast<std::size_t>(file.read(text.data(), static_cast<Index>(text.size()))));
  return text;
}

}  // namespace sar::formats
