// SPDX-License-Identifier: MIT

/// NumPy's .npz files: zip archives of .npy files, also read by all ranks together. What is not collective is
/// local. Everything throws InputError.
#pragma once

#include "zip_file.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar::formats {

/// An array in an archive, which outlives it. Its name is without .npy.
struct NpzMember : ZipMember {
  const ZipFile* archive = nullptr;
  /// For messages: "data.npz: node_feat".
  [[nodiscard]] std::string place() const { return archive->path() + ": " + name; }
};

/// The list of the arrays in an archive.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);
  [[nodiscard]] const std::string& path() const noexcept { return zip_.path(); }
  [[nodiscard]] const std::vector<NpzMember>& members() const noexcept { return members_; }
  /// nullptr: there is none of this name.
  [[nodiscard]] const NpzMember* find(const std::string& name) const;

 private:
  ZipFile zip_;
  std::vector<NpzMember> members_;
};

/// The text of an array that is one short text, such as `format` of SciPy's archives.
std::string text_of(const NpzMember& member);

/// An array of numbers, read from front to back. Of texts or Python objects, the message says how Python
/// makes numbers of them.
class PackedArray {
 public:
  explicit PackedArray(const NpzMember& member);
  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  /// Reads the next `bytes` bytes of the elements, of whole elements, and makes them little-endian. With the
  /// last of them their checksum is verified.
  void read(std::byte* out, Index bytes);

 private:
  std::string place_;
  MemberBytes bytes_;
  NpyHeader header_;
};

/// Collective. The archive, the same one on all ranks.
std::unique_ptr<const NpzFile> open_npz(const Communicator& comm, const std::string& path);

/// One array of numbers. Each rank reads a stored array for itself. Rank 0 reads a deflated or transposed
/// array and sends the others their rows. Errors are InputError, the same on every rank.
class NpzArray {
 public:
  /// Collective. `transposed`: its rows are the columns of the array in the file, the last index first.
  NpzArray(const Communicator& comm, const NpzMember& member, bool transposed = false);

  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  [[nodiscard]] const std::vector<Index>& shape() const noexcept { return header_.shape; }
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
