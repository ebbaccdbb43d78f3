// SPDX-License-Identifier: MIT

/// NumPy's .npz files: zip archives of .npy files. Everything here is local and throws InputError.
#pragma once

#include "zip_file.hpp"

#include <sar/core/files/npy_header.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace sar::formats {

using NpzMember = ZipMember;  ///< its name is that of the array: without .npy

/// The list of the arrays in an archive.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  [[nodiscard]] const std::string& path() const noexcept { return zip_.path(); }
  [[nodiscard]] const ZipFile& zip() const noexcept { return zip_; }
  [[nodiscard]] const std::vector<NpzMember>& members() const noexcept { return members_; }
  /// nullptr: there is none of this name.
  [[nodiscard]] const NpzMember* find(const std::string& name) const;
  /// For messages: "data.npz: node_feat".
  [[nodiscard]] std::string place_of(const NpzMember& member) const { return path() + ": " + member.name; }

 private:
  ZipFile zip_;
  std::vector<NpzMember> members_;
};

/// An array, read from front to back.
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
  MemberBytes bytes_;
  NpyHeader header_;
  Index left_;  // bytes
};

}  // namespace sar::formats
