// SPDX-License-Identifier: MIT

/// NumPy's .npz files: zip archives of .npy files, also read by all ranks together. What is not collective is
/// local. Everything throws InputError.
#pragma once

#include "zip_file.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>

#include <cstddef>
#include <memory>
#include <optional>
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

/// Collective. The archive, the same one on all ranks.
std::unique_ptr<const NpzFile> open_npz(const Communicator& comm, const std::string& path);

/// One array. Each rank reads a stored array for itself. Rank 0 reads a deflated or transposed array and
/// sends the others their rows. Errors are InputError, the same on every rank.
class NpzArray {
 public:
  /// Collective. `transposed`: its rows are the columns of the array in the file, the last index first.
  NpzArray(const Communicator& comm, const NpzFile& archive, const NpzMember& member,
           bool transposed = false);

  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  /// The array itself, which the caller may take, if it is stored; else nullptr.
  [[nodiscard]] std::unique_ptr<const NpyFile>& stored() noexcept { return stored_; }
  /// Collective. The rows that this rank owns, in C order. Reads the array to its end: called once.
  [[nodiscard]] DataArray read_rows(const PartitionBook& book);

 private:
  /// For an array that rank 0 reads: the next book.num_nodes() rows of row_bytes each, in the order of the
  /// file; each rank gets those that it owns.
  void deal(const PartitionBook& book, Index row_bytes, std::byte* mine);

  Communicator comm_;
  NpyHeader header_;
  std::unique_ptr<const NpyFile> stored_;
  std::optional<PackedArray> packed_;  // on rank 0
};

}  // namespace sar::formats
