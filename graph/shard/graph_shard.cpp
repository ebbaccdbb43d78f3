#include <sar/core/error.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <limits>
#include <numeric>

namespace sar::inline SAR_PRECISION {
namespace {

/// Turns counts stored at [i + 1] into offsets.
void accumulate_offsets(Array<local_index>& counts) {
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
}

void check_size(Index num_edges) {
  require<InputError>(num_edges <= std::numeric_limits<local_index>::max(), "a shard has ", num_edges,
                      " edges, at most 2147483647 are possible: use more ranks");
}

/// Calls visit(position, position in the transpose) for all edges, in an order that keeps each source row's
/// edges sorted by destination.
template <class Visit>
void for_each_transposed(const GraphShard& shard, const Array<local_index>& begin, const Visit& visit) {
  Array<local_index> next(begin.begin(), begin.end());
  for (Index i = 0; i < shard.num_rows(); ++i)
    for (Index k = shard.row_begin[i]; k < shard.row_begin[i + 1]; ++k) visit(i, k, next[shard.src[k]]++);
}

}  // namespace

std::size_t GraphShard::bytes() const noexcept {
  std::size_t indices = dst_rows.capacity() + row_begin.capacity() + src.capacity();
  indices += lazy_->transpose.begin.capacity() + lazy_->transpose.dst.capacity();
  indices += lazy_->positions.capacity() + lazy_->inverse.capacity();
  return indices * sizeof(local_index);
}

const ShardTranspose& GraphShard::transpose() const {
  std::call_once(lazy_->transpose_once, [this] {
    ShardTranspose& t = lazy_->transpose;
    t.begin.assign(num_src_rows + 1, 0);
    for (const local_index u : src) ++t.begin[u + 1];
    accumulate_offsets(t.begin);
    t.dst.resize(src.size());
    for_each_transposed(*this, t.begin, [&](Index i, Index, local_index to) {
      t.dst[to] = static_cast<local_index>(dst_row(i));
    });
  });
  return lazy_->transpose;
}

const Array<local_index>& GraphShard::transpose_positions() const {
  const ShardTranspose& t = transpose();
  std::call_once(lazy_->positions_once, [&] {
    lazy_->positions.resize(src.size());
    for_each_transposed(*this, t.begin, [&](Index, Index k, local_index to) {
      lazy_->positions[to] = static_cast<local_index>(k);
    });
  });
  return lazy_->positions;
}

const Array<local_index>& GraphShard::positions_in_transpose() const {
  const ShardTranspose& t = transpose();
  std::call_once(lazy_->inverse_once, [&] {
    lazy_->inverse.resize(src.size());
    for_each_transposed(*this, t.begin, [&](Index, Index k, local_index to) { lazy_->inverse[k] = to; });
  });
  return lazy_->inverse;
}

GraphShard build_shard(const LocalEdge* edges, Index num_edges, Index first_edge, Index num_dst,
                       Index num_src_rows, bool compress) {
  check_size(first_edge + num_edges);
  GraphShard shard;
  shard.num_src_rows = num_src_rows;
  shard.num_dst = num_dst;
  shard.first_edge = first_edge;
  shard.src.resize(num_edges);
  for (Index k = 0; k < num_edges; ++k) shard.src[k] = edges[k].src;
  list_rows(
      shard, num_edges, [&](Index k) { return edges[k].dst; }, compress);
  return shard;
}

}  // namespace sar
