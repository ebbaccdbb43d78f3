// SPDX-License-Identifier: MIT
#include "edge_chunks.hpp"

#include "formats/packed/sliced_rows.hpp"

#include <algorithm>
#include <numeric>

namespace sar::formats {

void EdgeChunks::add(Index first_id, std::span<const Index> src, std::span<const Index> dst,
                     std::span<const double> data) {
  if (src.empty()) return;
  EdgeChunk& chunk = chunks_.emplace_back();
  chunk.first_id = first_id;
  chunk.src.assign(src.begin(), src.end());
  chunk.dst.assign(dst.begin(), dst.end());
  chunk.data.assign(data.begin(), data.end());
}

void EdgeChunks::for_each_round(const Communicator& comm, FunctionRef<void(EdgeChunk& chunk)> take) {
  const auto rounds = comm.all_reduce(std::ssize(chunks_), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) take(r < std::ssize(chunks_) ? chunks_[r] : none);
}

Index EdgeChunks::count_nodes(Array<Index> EdgeChunk::*ends) const {
  Index count = 0;
  for (const EdgeChunk& chunk : chunks_)
    for (const Index node : chunk.*ends) count = std::max(count, node + 1);
  return count;
}

EdgeList EdgeChunks::take_edges() {
  std::size_t count = 0;
  for (const EdgeChunk& chunk : chunks_) count += chunk.src.size();
  EdgeList edges;
  edges.id.resize(count);
  std::size_t begin = 0;
  for (const EdgeChunk& chunk : chunks_) {
    const auto at = edges.id.begin() + static_cast<std::ptrdiff_t>(begin);
    std::iota(at, at + static_cast<std::ptrdiff_t>(chunk.src.size()), chunk.first_id);
    begin += chunk.src.size();
  }
  const auto join = [&](Array<Index> EdgeChunk::*column, Array<Index>& joined) {
    joined.resize(count);
    auto at = joined.begin();
    for (EdgeChunk& chunk : chunks_) {
      at = std::copy((chunk.*column).begin(), (chunk.*column).end(), at);
      chunk.*column = {};
    }
  };
  join(&EdgeChunk::src, edges.src);
  join(&EdgeChunk::dst, edges.dst);
  chunks_ = {};
  return edges;
}

DataArray EdgeChunks::take_data(const Communicator& comm, const PartitionBook& slices, Index width) {
  DataArray mine;
  comm.agree([&] {
    std::vector<Index> row_shape;
    if (width > 1) row_shape.push_back(width);
    mine = DataArray(NpyType::float64, row_shape, slices.num_nodes(comm.rank()));
  });
  for_each_round(comm, [&](EdgeChunk& chunk) {
    send_rows(comm, slices, chunk.first_id, std::as_bytes(std::span<const double>(chunk.data)),
              width * static_cast<Index>(sizeof(double)), mine.bytes.data());
    chunk.data = {};
  });
  return mine;
}

}  // namespace sar::formats
