// SPDX-License-Identifier: MIT

/// Arrays of a .npz archive, read by all ranks together.
#pragma once

#include "npz.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>

#include <memory>
#include <optional>
#include <string>

namespace sar::formats {

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
