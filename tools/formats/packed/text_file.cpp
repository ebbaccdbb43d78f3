// SPDX-License-Identifier: MIT
#include "text_file.hpp"

#include "parquet_table.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>

namespace sar::formats {

TextFile::TextFile(const std::string& path, const char* expected) : path_(path) {
  const ZipMember* member = nullptr;
  if (const auto packed = path_in_archive(path)) {
    archive_.emplace(packed->archive, "a zip archive");
    member = archive_->find(packed->member);
    require<InputError>(member != nullptr, packed->archive, ": there is no file ", packed->member,
                        " in the archive, expected ", expected);
  } else {
    file_.emplace(path, expected);
  }
  const auto open = [&](bool gzip) -> std::unique_ptr<ByteSource> {
    if (gzip) return std::make_unique<Inflater>(open_bytes(member), path, Inflater::Format::gzip);
    return open_bytes(member);
  };
  const auto begin_of = [](std::unique_ptr<ByteSource> bytes) {
    std::string begin(static_cast<std::size_t>(max_byte_order_mark), ' ');
    begin.resize(static_cast<std::size_t>(bytes->read(begin.data(), max_byte_order_mark)));
    return begin;
  };
  const bool gzip = begin_of(open(false)).starts_with("\x1f\x8b");
  require<InputError>(gzip || !path.ends_with(".gz"), path,
                      ": the file does not begin as gzip does, expected gzip data by its name");
  max_text_bytes_ = member != nullptr ? member->bytes : file_->size();
  if (gzip && __builtin_mul_overflow(max_text_bytes_, max_inflation, &max_text_bytes_))
    max_text_bytes_ = INT64_MAX;
  packed_ = gzip || archive_;
  text_ = open(gzip);
  begin_ = text_->skip(byte_order_mark(begin_of(open(gzip)), path));
}

std::unique_ptr<ByteSource> TextFile::open_bytes(const ZipMember* member) const {
  if (member != nullptr) return std::make_unique<MemberBytes>(*archive_, *member, path_);
  return std::make_unique<FileBytes>(*file_, 0, file_->size());
}

std::string read_beginning(const std::string& path, Index bytes) {
  if (is_parquet(path)) return ParquetTable::open(path)->beginning(bytes);
  TextFile file(path);
  std::string text;
  for (Index got = -1; got != 0;) {
    const Index size = std::ssize(text), piece = std::min(bytes - size, Index{1} << 22);
    text.resize(static_cast<std::size_t>(size + piece));
    got = file.read(text.data() + size, piece);
    text.resize(static_cast<std::size_t>(size + got));
  }
  return text;
}

}  // namespace sar::formats
