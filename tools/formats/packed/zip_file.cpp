// SPDX-License-Identifier: MIT
#include "zip_file.hpp"

#include <sar/core/error.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index end_bytes = 22;      // of the end record, without its comment
constexpr Index locator_bytes = 20;  // of what leads to the end record of zip64
constexpr Index end64_bytes = 56;
constexpr Index entry_bytes = 46;  // of an entry of the directory, without its names
constexpr Index local_bytes = 30;  // of the record in front of a member, without its names
constexpr std::uint64_t none16 = 0xffff, none32 = 0xffffffff;  // the number stands in a zip64 record

/// Little-endian.
template <int bytes>
std::uint64_t number(const unsigned char* at) noexcept {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}

/// The section lies in the file?
bool inside(std::uint64_t begin, std::uint64_t bytes, Index size) noexcept {
  return begin <= static_cast<std::uint64_t>(size) && bytes <= static_cast<std::uint64_t>(size) - begin;
}

/// Replaces what stands in the zip64 field of an entry: in this order, each only if it is not in the entry.
bool read_zip64_field(const unsigned char* at, const unsigned char* end, std::uint64_t& bytes,
                      std::uint64_t& packed_bytes, std::uint64_t& begin) noexcept {
  while (end - at >= 4) {
    const auto kind = number<2>(at);
    const auto length = static_cast<std::ptrdiff_t>(number<2>(at + 2));
    at += 4;
    if (end - at < length) return false;
    if (kind == 1) {
      const unsigned char* field_end = at + length;
      for (std::uint64_t* value : {&bytes, &packed_bytes, &begin}) {
        if (*value != none32) continue;
        if (field_end - at < 8) return false;
        *value = number<8>(at);
        at += 8;
      }
      return true;
    }
    at += length;
  }
  return bytes != none32 && packed_bytes != none32 && begin != none32;
}

/// A member of an archive under its own path, as a folder's name: "arxiv/raw" is "arxiv/raw/".
std::string as_folder(const std::string& member) {
  return member.empty() || member.ends_with('/') ? member : member + "/";
}

}  // namespace

ZipFile::ZipFile(const std::string& path, std::string expected)
    : file_(path, expected), expected_(std::move(expected)) {
  const Index size = file_.size();
  const Index tail_bytes = std::min(size, end_bytes + 0xffff);
  std::vector<unsigned char> tail(static_cast<std::size_t>(tail_bytes));
  file_.read(size - tail_bytes, tail.data(), tail_bytes);
  Index end = tail_bytes - end_bytes;
  while (end >= 0 && (std::memcmp(tail.data() + end, "PK\5\6", 4) != 0 ||
                      static_cast<Index>(number<2>(tail.data() + end + 20)) != tail_bytes - end - end_bytes))
    --end;
  require<InputError>(end >= 0, path, ": the file does not end as a zip archive does, expected ", expected_);
  std::uint64_t count = number<2>(tail.data() + end + 10);
  std::uint64_t bytes = number<4>(tail.data() + end + 12);
  std::uint64_t begin = number<4>(tail.data() + end + 16);
  if (count == none16 || bytes == none32 || begin == none32) {
    const Index locator = size - tail_bytes + end - locator_bytes;
    unsigned char record[end64_bytes] = {};
    if (locator >= 0) file_.read(locator, record, locator_bytes);
    const std::uint64_t end64 = number<8>(record + 8);
    const bool found = std::memcmp(record, "PK\6\7", 4) == 0 && inside(end64, end64_bytes, size);
    if (found) file_.read(static_cast<Index>(end64), record, end64_bytes);
    require<InputError>(found && std::memcmp(record, "PK\6\6", 4) == 0, path,
                        ": the end of the archive tells of zip64 records that are not there, expected ",
                        expected_);
    count = number<8>(record + 32);
    bytes = number<8>(record + 40);
    begin = number<8>(record + 48);
  }
  require<InputError>(inside(begin, bytes, size) && count <= bytes / entry_bytes, path,
                      ": the archive's list of ", count, " members has ", bytes, " bytes at ", begin,
                      ", expected it inside the file of ", size);
  read_directory(static_cast<Index>(begin), static_cast<Index>(bytes), static_cast<Index>(count));
}

void ZipFile::read_directory(Index begin, Index bytes, Index count) {
  std::vector<unsigned char> directory(static_cast<std::size_t>(bytes));
  file_.read(begin, directory.data(), bytes);
  const unsigned char* at = directory.data();
  const unsigned char* const end = at + bytes;
  const auto expect = [&](bool condition, const auto&... what) {
    require<InputError>(condition, path(), ": member ", members_.size(), " of the archive ", what...);
  };
  for (Index i = 0; i < count; ++i) {
    expect(end - at >= entry_bytes && std::memcmp(at, "PK\1\2", 4) == 0, "is not in its list, expected ",
           count, " members");
    const auto flags = number<2>(at + 8);
    const auto method = number<2>(at + 10);
    std::uint64_t packed_bytes = number<4>(at + 20);
    std::uint64_t plain_bytes = number<4>(at + 24);
    std::uint64_t local = number<4>(at + 42);
    const auto name_bytes = static_cast<std::ptrdiff_t>(number<2>(at + 28));
    const auto extra_bytes = static_cast<std::ptrdiff_t>(number<2>(at + 30));
    const auto comment_bytes = static_cast<std::ptrdiff_t>(number<2>(at + 32));
    expect(end - at - entry_bytes >= name_bytes + extra_bytes + comment_bytes,
           "is longer than its list, expected ", count, " members");
    ZipMember member;
    member.crc = static_cast<std::uint32_t>(number<4>(at + 16));
    const unsigned char* name = at + entry_bytes;
    member.name.assign(name, name + name_bytes);
    at = name + name_bytes;
    expect(read_zip64_field(at, at + extra_bytes, plain_bytes, packed_bytes, local),
           "has a wrong zip64 field, expected its sizes and its place");
    at += extra_bytes + comment_bytes;

    expect((flags & 1) == 0 && (method == 0 || method == 8), "has method ", method,
           (flags & 1) != 0 ? ", encrypted" : "", ", expected stored (0) or deflated (8)");
    unsigned char record[local_bytes] = {};
    expect(inside(local, local_bytes, file_.size()), "begins at ", local, ", expected inside the file of ",
           file_.size());
    file_.read(static_cast<Index>(local), record, local_bytes);
    expect(std::memcmp(record, "PK\3\4", 4) == 0, "does not begin at ", local, ", expected a zip archive");
    const std::uint64_t data = local + local_bytes + number<2>(record + 26) + number<2>(record + 28);
    expect(inside(data, packed_bytes, file_.size()), "has ", packed_bytes, " bytes at ", data,
           ", expected them inside the file of ", file_.size());
    member.packed = method == 8;
    member.begin = static_cast<Index>(data);
    member.packed_bytes = static_cast<Index>(packed_bytes);
    expect(member.packed ? plain_bytes / max_inflation <= packed_bytes : plain_bytes == packed_bytes, "has ",
           plain_bytes, " bytes made of ", packed_bytes, ", expected ",
           member.packed ? "at most 1032 times as many" : "as many");
    member.bytes = static_cast<Index>(plain_bytes);
    expect(by_name_.emplace(member.name, members_.size()).second, "is named ", member.name,
           " as another one, expected different names");
    members_.push_back(std::move(member));
  }
}

const ZipMember* ZipFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

MemberBytes::MemberBytes(const ZipFile& archive, const ZipMember& member, std::string place)
    : place_(std::move(place)),
      source_(std::make_unique<FileBytes>(archive.file(), member.begin, member.packed_bytes)),
      left_(member.bytes),
      expected_sum_(member.crc) {
  if (member.packed) source_ = std::make_unique<Inflater>(std::move(source_), place_, Inflater::Format::raw);
}

Index MemberBytes::read(char* out, Index bytes) {
  const Index wanted = std::min(bytes, left_);
  const Index got = source_->read(out, wanted);
  require<InputError>(got == wanted, place_, ": the packed data end ", left_ - got,
                      " bytes early, expected a complete file");
  for (Index done = 0; done < got; done += Index{1} << 30)
    sum_ = static_cast<std::uint32_t>(crc32(sum_, reinterpret_cast<const unsigned char*>(out) + done,
                                            static_cast<uInt>(std::min(got - done, Index{1} << 30))));
  left_ -= got;
  if (left_ > 0 || bytes == 0) return got;
  char more = 0;
  require<InputError>(source_->read(&more, 1) == 0, place_, ": there are more bytes than the archive says");
  require<InputError>(sum_ == expected_sum_, place_, ": the sum of the bytes is ", sum_, ", expected ",
                      expected_sum_);
  return got;
}

std::optional<ArchivePath> path_in_archive(const std::string& path) {
  std::error_code unreachable;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (std::filesystem::is_directory(part, unreachable)) continue;
    if (!std::filesystem::is_regular_file(part, unreachable)) return std::nullopt;
    const std::size_t begin = path.find_first_not_of('/', slash);
    if (begin == std::string::npos) return std::nullopt;
    return ArchivePath{part, path.substr(begin)};
  }
  return std::nullopt;
}

bool is_there_or_packed(const std::string& path) {
  const std::optional<ArchivePath> packed = path_in_archive(path);
  if (!packed) return is_there(path);
  const ZipFile archive(packed->archive, "a zip archive");
  return std::ranges::any_of(archive.members(), [&](const ZipMember& member) {
    return member.name == packed->member || member.name.starts_with(as_folder(packed->member));
  });
}

bool is_folder(const std::string& path) {
  std::error_code unreachable;
  return path_in_archive(path) ? !names_in_folder(path).empty()
                               : std::filesystem::is_directory(path, unreachable);
}

std::vector<std::string> names_in_folder(const std::string& path) {
  const std::optional<ArchivePath> packed = path_in_archive(path);
  std::set<std::string> names;
  if (packed) {
    const std::string folder = as_folder(packed->member);
    const ZipFile archive(packed->archive, "a zip archive");
    for (const ZipMember& member : archive.members())
      if (member.name.starts_with(folder) && member.name.size() > folder.size())
        names.insert(member.name.substr(folder.size(), member.name.find('/', folder.size()) - folder.size()));
  } else {
    std::error_code unreachable;
    for (const std::string& name : names_in(path, unreachable)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::set<std::string> folders_with(const std::string& path, std::initializer_list<const char*> parts) {
  std::set<std::string> folders;
  const ZipFile archive(path, "a zip archive");
  for (const ZipMember& member : archive.members()) {
    const std::string name = "/" + member.name;
    if (name.starts_with("/__MACOSX")) continue;
    for (const char* part : parts)
      if (const std::size_t at = name.find(part); at != std::string::npos)
        folders.insert(path + name.substr(0, name.rfind('/', at)));
  }
  return folders;
}

}  // namespace sar::formats
