/// Arrays of a .npz archive, read by all workers together.
#pragma once

#include "npz.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/io/data_array.hpp>
#include <sar/graph/io/npy.hpp>

#include <memory>
#include <optional>

namespace sar::formats {

/// One array. A stored one is read by each rank for itself, a deflated one is unpacked by rank 0, which deals
/// the rows. Errors are InputError, the same on every rank.
class NpzArray {
 public:
  /// Collective.
  NpzArray(const Communicator& comm, const NpzFile& archive, const NpzMember& member,
           NpyOrder accepted = NpyOrder::c);

  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }
  /// Of stored arrays: the array itself, to be taken. nullptr for deflated ones.
  [[nodiscard]] std::unique_ptr<const NpyFile>& stored() noexcept { return stored_; }
  /// Of deflated ones: the next book.num_nodes() pieces of row_bytes each, as slices, in the order of the
  /// file. Collective.
  void deal(const PartitionBook& book, Index row_bytes, std::byte* mine);

 private:
  Communicator comm_;
  NpyHeader header_;
  std::unique_ptr<const NpyFile> stored_;
  std::optional<PackedArray> packed_;  // on rank 0
};

}  // namespace sar::formats
