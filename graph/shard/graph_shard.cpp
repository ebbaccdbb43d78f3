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
  std::size_t indices = dst_rows.capacity() + row_begin.capacity() + src.capacity() + edge_of.capacity();
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
                       Index num_owner_rows, bool compress, Array<local_index>& used_rows) {
  check_size(first_edge + num_edges);
  GraphShard shard;
  shard.num_dst = num_dst;
  shard.first_edge = first_edge;

  Array<local_index> row_of_owner;  // the shard's source row, or -1
  if (compress) {
    // most owners are no neighbours: nothing as long as their nodes is made for them
    row_of_owner.assign(num_edges > 0 ? num_owner_rows : 0, -1);
    for (Index k = 0; k < num_edges; ++k) row_of_owner[edges[k].src] = 0;
    for (Index u = 0; u < static_cast<Index>(row_of_owner.size()); ++u) {
      if (row_of_owner[u] < 0) continue;
      row_of_owner[u] = static_cast<local_index>(used_rows.size());
      used_rows.push_back(static_cast<local_index>(u));
    }
    shard.num_src_rows = static_cast<Index>(used_rows.size());
  } else {
    shard.num_src_rows = num_owner_rows;
  }

  shard.src.resize(num_edges);
  for (Index k = 0; k < num_edges; ++k) shard.src[k] = compress ? row_of_owner[edges[k].src] : edges[k].src;

  list_rows(shard, num_edges, [&](Index k) { return edges[k].dst; }, compress);
  return shard;
}

GraphShard merge_shards(const std::vector<GraphShard>& shards, Index num_dst) {
  Index num_edges = 0;
  Array<local_index> count(num_dst + 1, 0);  // edges per destination row, then offsets
  for (const GraphShard& shard : shards) {
    num_edges += shard.num_edges();
    for (Index i = 0; i < shard.num_rows(); ++i)
      count[shard.dst_row(i) + 1] += shard.row_begin[i + 1] - shard.row_begin[i];
  }
  check_size(num_edges);

  GraphShard merged;
  merged.num_dst = num_dst;
  merged.row_begin.push_back(0);
  for (Index v = 0; v < num_dst; ++v) {
    if (count[v + 1] > 0) {
      merged.dst_rows.push_back(static_cast<local_index>(v));
      merged.row_begin.push_back(merged.row_begin.back() + count[v + 1]);
    }
    count[v + 1] += count[v];
  }
  merged.src.resize(num_edges);
  merged.edge_of.resize(num_edges);
  for (const GraphShard& shard : shards) {  // count[v] is where the next edge of v goes
    for (Index i = 0; i < shard.num_rows(); ++i) {
      for (Index k = shard.row_begin[i]; k < shard.row_begin[i + 1]; ++k) {
        const std::size_t to = count[shard.dst_row(i)]++;
        merged.src[to] = static_cast<local_index>(merged.num_src_rows + shard.src[k]);
        merged.edge_of[to] = static_cast<local_index>(shard.edge(k));
      }
    }
    merged.num_src_rows += shard.num_src_rows;
  }
  return merged;
}

}  // namespace sar
