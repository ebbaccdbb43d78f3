// SPDX-License-Identifier: MIT

/// Edges in the chunks in which they are read from a file.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <span>
#include <vector>

namespace sar::formats {

/// Consecutive edges of a file, with integers for nodes.
struct EdgeChunk {
  Index first_id = 0;
  Array<Index> src;
  Array<Index> dst;
  Array<double> data;  ///< as many numbers for each edge

  void clear() {
    src.clear();
    dst.clear();
    data.clear();
  }
};

/// The edges of this rank, as a list of chunks, so that no list grows and is copied.
class EdgeChunks {
 public:
  void add(Index first_id, std::span<const Index> src, std::span<const Index> dst,
           std::span<const double> data = {});
  [[nodiscard]] std::vector<EdgeChunk>& chunks() noexcept { return chunks_; }
  /// Collective. Calls take(chunk) for each chunk of this rank, and for empty ones: as often on every rank.
  void for_each_round(const Communicator& comm, FunctionRef<void(EdgeChunk& chunk)> take);
  /// Local. The number behind the largest one of this rank's sources (destinations).
  [[nodiscard]] Index count_nodes(Array<Index> EdgeChunk::*ends) const;
  /// Local. Makes one list and frees the chunks meanwhile.
  [[nodiscard]] EdgeList take_edges();
  /// Collective. The `width` numbers of each edge; each rank gets those of its slice of the edges. The
  /// chunks lose them.
  [[nodiscard]] DataArray take_data(const Communicator& comm, const PartitionBook& slices, Index width);

 private:
  std::vector<EdgeChunk> chunks_;
};

}  // namespace sar::formats
