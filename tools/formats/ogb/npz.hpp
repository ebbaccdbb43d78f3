/// NumPy's .npz files: zip archives of .npy files, stored or deflated, zip64 or not. Everything here is local
/// and throws InputError.
#pragma once

#include "formats/inflate.hpp"

#include <sar/core/files/file.hpp>
#include <sar/core/files/npy_header.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sar::formats {

struct NpzMember {
  std::string name;  ///< of the array: without .npy
  bool packed = false;
  Index begin = 0;         ///< in the archive
  Index packed_bytes = 0;  ///< there
  Index bytes = 0;         ///< unpacked
  std::uint32_t crc = 0;
};

/// The list of the arrays in an archive. All sizes are checked against the file's.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const InputFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::vector<NpzMember>& members() const noexcept { return members_; }
  /// nullptr: there is none of this name.
  [[nodiscard]] const NpzMember* find(const std::string& name) const;
  /// For messages: "data.npz: node_feat".
  [[nodiscard]] std::string place_of(const NpzMember& member) const { return path() + ": " + member.name; }

 private:
  void read_directory(Index begin, Index bytes, Index count);

  InputFile file_;
  std::vector<NpzMember> members_;
  std::map<std::string, std::size_t> by_name_;
};

/// A deflated array, read from front to back.
class PackedArray {
 public:
  PackedArray(const NpzFile& archive, const NpzMember& member);
  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  /// Reads the next `bytes` bytes of the elements, of whole elements, and makes them little-endian. With the
  /// last of them their checksum is verified.
  void read(std::byte* out, Index bytes);

 private:
  void unpack(void* out, Index bytes);

  std::string place_;
  Inflater inflater_;
  NpyHeader header_;
  Index left_;  // bytes
  std::uint32_t sum_ = 0;
  std::uint32_t expected_sum_;
};

}  // namespace sar::formats
