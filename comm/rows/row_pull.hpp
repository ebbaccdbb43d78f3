// SPDX-License-Identifier: MIT

/// RowPull: rows being pulled from their owners. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/rows_by_owner.hpp>
#include <sar/core/memory/memory.hpp>

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A collective pull of rows. All messages are posted by the constructor, so that this rank no longer depends
/// on the others: it may make any collective call, and fail, before finish().
class RowPull : NonCopyable {
 public:
  /// Collective. Copies rows ids[0], ids[1], ... with their current values to `out`; row ids[i] is row
  /// ids[i] - book.begin(p) of `mine` on its owner p. `out` must outlive this object and is written until
  /// finish(). Buffers: the rows that other ranks requested of this rank, and received rows that are not
  /// adjacent in `ids`.
  RowPull(const Communicator& comm, const PartitionBook& book, const std::byte* mine, Index row_bytes,
          std::span<const Index> ids, std::byte* out);
  /// Waits for the messages unless finish() did.
  ~RowPull();

  /// Local. Waits for the rows and copies them to `out`.
  void finish();

 private:
  RowPull(const Communicator& comm, Index row_bytes, std::byte* out);
  void post(std::span<const Index> out_counts);
  void wait();

  Communicator comm_;
  Index row_bytes_;
  std::byte* out_;
  RowsByOwner wanted_;
  Array<std::byte> outgoing_, incoming_;
  std::vector<MPI_Request> requests_;
};

}}  // namespace sar
