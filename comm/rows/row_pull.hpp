/// RowPull: rows that a rank has asked their owners for, on their way. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/rows_by_owner.hpp>
#include <sar/core/memory.hpp>

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// All messages are posted by the constructor, so that a rank needs the others no more: it may make any
/// collective call, and fail, before finish().
class RowPull {
 public:
  /// Row i of `out` becomes row ids[i], as it is now: row ids[i] - book.begin(p) of `mine` of its owner p.
  /// `out` is written until finish(), and must live as long as this. Buffers: the own rows that other ranks
  /// want, and the rows of owners whose rows do not lie together in `ids`. Collective.
  RowPull(const Communicator& comm, const PartitionBook& book, const std::byte* mine, Index row_bytes,
          std::span<const Index> ids, std::byte* out);
  /// Waits for the messages, unless finish() did.
  ~RowPull();
  RowPull(const RowPull&) = delete;
  RowPull& operator=(const RowPull&) = delete;

  /// Waits for the rows. Local.
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

}  // namespace sar
