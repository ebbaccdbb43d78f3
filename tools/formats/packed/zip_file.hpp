// SPDX-License-Identifier: MIT

/// Zip archives, stored or deflated, zip64 or not. Everything here is local and throws InputError.
///
/// Room tools/formats/packed: Packed files: gzip, zip archives and the files in them, NumPy's archives.
#pragma once

#include "inflate.hpp"

#include <sar/core/files/file.hpp>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

struct ZipMember {
  std::string name;
  bool packed = false;
  Index begin = 0;         ///< in the archive
  Index packed_bytes = 0;  ///< there
  Index bytes = 0;         ///< unpacked
  std::uint32_t crc = 0;
};

/// Whether the first bytes of a file are those of an archive, which may be empty.
inline bool begins_as_zip(std::string_view bytes) noexcept {
  return bytes.starts_with("PK\3\4") || bytes.starts_with("PK\5\6");
}

/// The list of the members of an archive. All sizes are checked against the file's.
class ZipFile {
 public:
  /// `expected` ends the message when the file is no archive: "a .npz file".
  ZipFile(const std::string& path, std::string expected);
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const InputFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::vector<ZipMember>& members() const noexcept { return members_; }
  /// nullptr: there is none of this name.
  [[nodiscard]] const ZipMember* find(const std::string& name) const;

 private:
  void read_directory(Index begin, Index bytes, Index count);

  InputFile file_;
  std::string expected_;
  std::vector<ZipMember> members_;
  std::map<std::string, std::size_t> by_name_;
};

/// The bytes of a member, unpacked. With the last of them their checksum is verified.
class MemberBytes final : public ByteSource {
 public:
  /// `place` begins messages. The archive outlives it.
  MemberBytes(const ZipFile& archive, const ZipMember& member, std::string place);
  Index read(char* out, Index bytes) override;
  /// The bytes that have not been read.
  [[nodiscard]] Index left() const noexcept { return left_; }

 private:
  std::string place_;
  std::unique_ptr<ByteSource> source_;
  Index left_;
  std::uint32_t sum_ = 0;
  std::uint32_t expected_sum_;
};

/// A path that leads into an archive: "arxiv.zip/arxiv/raw/edge.csv.gz".
struct ArchivePath {
  std::string archive;  ///< "arxiv.zip"
  std::string member;   ///< "arxiv/raw/edge.csv.gz"
};
/// Splits a path behind the first of its parts that is a file and has others behind it; nothing: there is
/// none.
std::optional<ArchivePath> path_in_archive(const std::string& path);

/// Whether there is a file or folder, also in an archive.
bool is_there_or_packed(const std::string& path);
/// Whether there is a folder, also in an archive.
bool is_folder(const std::string& path);
/// The names in a folder, also in an archive, sorted; none where there is no folder.
std::vector<std::string> names_in_folder(const std::string& path);
/// The folders in an archive, under their paths, with files whose names have one of these parts; a part that
/// begins with a slash is behind the folder.
std::set<std::string> folders_with(const std::string& archive, std::initializer_list<const char*> parts);

}  // namespace sar::formats
