#include <sar/core/sum_of.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/kernels/linear.hpp>

namespace sar {
namespace {

const local_index* data_or_null(const Array<local_index>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

void LinearKernel::accumulate(const SourcePiece& piece) {
  const GraphShard& shard = piece.shard;
  const EdgeRanges edges = cursor_.ranges(piece);
  // The local shard comes first and lists all destinations: it sets the rows that have no base.
  const bool first = shard.dst_rows.empty() && piece.begin == 0;
  gather_sum({.num_rows = edges.num_rows,
              .begin = edges.begin,
              .end = edges.end,
              .before = edges.before,
              .rows = edges.rows,
              .col = shard.src.data(),
              .col_offset = piece.begin,
              .weight = o_.edge_weight,
              .edge_of = data_or_null(shard.edge_of),
              .first_edge = shard.first_edge,
              .row_scale = o_.dst_scale,
              .x = piece.rows,
              .x_rows = piece.end - piece.begin,
              .out = o_.out,
              .width = o_.width,
              .accumulate = o_.has_base || !first});
}

void LinearKernel::backward(const SourcePiece& piece, real* grad_src, bool accumulate) {
  const GraphShard& shard = piece.shard;
  if (o_.grad_edge_weight != nullptr) edge_gradient(piece);
  if (grad_src == nullptr) return;
  const ShardTranspose& transpose = shard.transpose();
  gather_sum({.num_rows = piece.end - piece.begin,
              .begin = transpose.begin.data() + piece.begin,
              .end = transpose.begin.data() + piece.begin + 1,
              .col = transpose.dst.data(),
              .weight = o_.edge_weight,
              .position_of = o_.edge_weight != nullptr ? shard.transpose_positions().data() : nullptr,
              .edge_of = data_or_null(shard.edge_of),
              .first_edge = shard.first_edge,
              .col_scale = o_.dst_scale,
              .x = o_.grad_out,
              .x_rows = shard.num_dst,
              .out = grad_src,
              .width = o_.width,
              .accumulate = accumulate});
}

void LinearKernel::edge_gradient(const SourcePiece& piece) {
  const GraphShard& shard = piece.shard;
  const ShardTranspose& transpose = shard.transpose();
  const Array<local_index>& positions = shard.transpose_positions();
  const Index width = o_.width;
  const local_index* offsets = transpose.begin.data() + piece.begin;
  for_row_blocks(offsets, piece.end - piece.begin, width * static_cast<Index>(sizeof(real)),
                 [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     const real* x = piece.rows + i * width;
                     for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
                       const Index v = transpose.dst[k];
                       const real* g = o_.grad_out + v * width;
                       const real dot = sum_of(width, [&](Index j) { return g[j] * x[j]; });
                       o_.grad_edge_weight[shard.edge(positions[k])] =
                           (o_.dst_scale != nullptr ? o_.dst_scale[v] : 1) * dot;
                     }
                   }
                 });
}

}  // namespace sar
