// SPDX-License-Identifier: MIT

// The transpose is a counting sort of the edges by source: O(edges + source rows) time, on one thread, one
// random write of 4 bytes per edge. Positions, in either direction, repeat the second pass. With fewer
// than two edges per source row on average, the offsets are kept as one bit per source row and one per
// edge, and 4 bytes for each 1024 source rows.
#include <sar/core/error.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Calls visit(row, position, position in the transpose) for all edges, in an order that keeps the edges of
/// each source row sorted by destination. `next`: the next free position of each source row.
template <class Visit>
void for_each_transposed(const GraphShard& shard, Array<local_index> next, const Visit& visit) {
  for (Index i = 0; i < shard.num_rows(); ++i)
    for (Index k = shard.row_begin[i]; k < shard.row_begin[i + 1]; ++k) visit(i, k, next[shard.src[k]]++);
}

/// Returns the offsets of all source rows as a copy.
Array<local_index> all_source_offsets(const GraphShard& shard) {
  const SourceOffsets offsets(shard, 0, shard.num_src_rows);
  return {offsets.data(), offsets.data() + shard.num_src_rows + 1};
}

}  // namespace

std::size_t GraphShard::bytes() const noexcept {
  std::size_t indices = dst_rows.capacity() + row_begin.capacity() + src.capacity();
  indices += lazy_->begin.capacity() + lazy_->transpose.dst.capacity();
  indices += lazy_->positions.capacity() + lazy_->inverse.capacity();
  std::size_t bits = 0;
  if (const auto& few = lazy_->bits) {
    bits = few->rows.bytes() + few->first_edges.bytes();
    indices += few->before.capacity();
  }
  return indices * sizeof(local_index) + bits;
}

const local_index* GraphShard::offsets_of_every_row(Array<local_index>& made) const {
  if (num_rows() == num_dst) return row_begin.data();
  made.resize(static_cast<std::size_t>(num_dst + 1));
  Index row = 0;
  for (Index i = 0; i < num_rows(); ++i)
    for (; row <= dst_rows[i]; ++row) made[row] = row_begin[i];
  std::fill(made.begin() + row, made.end(), row_begin.back());
  return made.data();
}

const ShardTranspose& GraphShard::transpose() const {
  std::call_once(lazy_->transpose_once, [this] {
    Array<local_index> begin(static_cast<std::size_t>(num_src_rows + 1), 0);
    for (const local_index u : src) ++begin[u + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    Array<local_index> dst(src.size());
    for_each_transposed(*this, begin, [&](Index i, Index, local_index to) {
      dst[to] = static_cast<local_index>(dst_row(i));
    });
    if (num_edges() < 2 * num_src_rows) {
      FewEdges bits{IndexSet(num_src_rows), IndexSet(num_edges()), {}};
      for (Index u = 0; u < num_src_rows; ++u) {
        if (u % FewEdges::rows_of_block == 0) bits.before.push_back(begin[u]);
        if (begin[u] == begin[u + 1]) continue;
        bits.rows.insert(u);
        bits.first_edges.insert(begin[u]);
      }
      lazy_->bits.emplace(std::move(bits));
    } else {
      lazy_->begin = std::move(begin);
    }
    lazy_->transpose.dst = std::move(dst);
  });
  return lazy_->transpose;
}

const Array<local_index>& GraphShard::transpose_positions() const {
  (void)transpose();
  std::call_once(lazy_->positions_once, [&] {
    Array<local_index> positions(src.size());
    for_each_transposed(*this, all_source_offsets(*this),
                        [&](Index, Index k, local_index to) { positions[to] = static_cast<local_index>(k); });
    lazy_->positions = std::move(positions);
  });
  return lazy_->positions;
}

const Array<local_index>& GraphShard::positions_in_transpose() const {
  (void)transpose();
  std::call_once(lazy_->inverse_once, [&] {
    Array<local_index> inverse(src.size());
    for_each_transposed(*this, all_source_offsets(*this),
                        [&](Index, Index k, local_index to) { inverse[k] = to; });
    lazy_->inverse = std::move(inverse);
  });
  return lazy_->inverse;
}

SourceOffsets::SourceOffsets(const GraphShard& shard, Index first, Index last) {
  (void)shard.transpose();
  if (!shard.lazy_->bits) {
    begin_ = shard.lazy_->begin.data() + first;
    return;
  }
  const auto& [rows, first_edges, before] = *shard.lazy_->bits;
  made_.resize(static_cast<std::size_t>(last - first + 1));
  Index row = first;  // next row to write
  const Index block = first / GraphShard::FewEdges::rows_of_block;
  Index edge = block < std::ssize(before) ? before[block] : shard.num_edges();
  for (Index u = rows.next(block * GraphShard::FewEdges::rows_of_block); u < last && u < shard.num_src_rows;
       u = rows.next(u + 1)) {
    for (; row <= u; ++row) made_[row - first] = static_cast<local_index>(edge);
    edge = first_edges.next(edge + 1);
  }
  for (; row <= last; ++row) made_[row - first] = static_cast<local_index>(std::min(edge, shard.num_edges()));
  begin_ = made_.data();
}

GraphShard build_shard(const LocalEdge* edges, Index num_edges, Index first_edge, Index num_dst,
                       Index num_src_rows, bool every_row) {
  require<InputError>(first_edge + num_edges <= std::numeric_limits<local_index>::max(), "a shard has ",
                      first_edge + num_edges, " edges, at most 2147483647 are possible: use more ranks");
  GraphShard shard;
  shard.num_src_rows = num_src_rows;
  shard.num_dst = num_dst;
  shard.first_edge = first_edge;
  shard.src.resize(num_edges);
  for (Index k = 0; k < num_edges; ++k) shard.src[k] = edges[k].src;
  list_rows(
      shard, num_edges, [&](Index k) { return edges[k].dst; }, every_row);
  return shard;
}
}}  // namespace sar
