// SPDX-License-Identifier: MIT

/// Edges in the chunks in which they are read from a file.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/node_data.hpp>

#include <span>
#include <vector>

namespace sar::formats {

/// Consecutive edges of a file.
struct EdgeChunk {
  Index first_id = 0;
  Array<Index> src;
  Array<Index> dst;
  Array<double> data;  ///< some numbers for each edge
};

/// The edges of this rank, as a list of chunks, so that no list grows and is copied.
class EdgeChunks {
 public:
  void add(Index first_id, std::span<const Index> src, std::span<const Index> dst,
           std::span<const double> data = {});
  [[nodiscard]] std::vector<EdgeChunk>& chunks() noexcept { return chunks_; }
  /// Local. Makes one list and frees the chunks meanwhile.
  [[nodiscard]] EdgeList take_edges();
  /// Collective. The `width` numbers of each edge; each rank gets those of its slice of the edges. The
  /// chunks lose them.
  [[nodiscard]] DataArray take_data(const Communicator& comm, const PartitionBook& slices, Index width);

 private:
  std::vector<EdgeChunk> chunks_;
};

}  // namespace sar::formats
