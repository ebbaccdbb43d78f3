#include <sar/core/sum_of.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/kernels/linear.hpp>

#include <utility>

#include <sar/core/isa_begin.hpp>

void linear_edge_gradient(const LinearKernel::Operands& o, const Stage& stage) {
  const GraphShard& shard = stage.shard;
  const ShardTranspose& transpose = shard.transpose();
  const Array<local_index>& positions = shard.transpose_positions();
  const Index width = o.width;
  const local_index* offsets = transpose.begin.data() + stage.begin;
  for_row_blocks(offsets, stage.size(), width * static_cast<Index>(sizeof(real)),
                 [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     const real* x = stage.rows + i * width;
                     for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
                       const Index v = transpose.dst[k];
                       const real* g = o.grad_out + v * width;
                       const real dot = sum_of(width, [&](Index j) { return g[j] * x[j]; });
                       o.grad_edge_weight[shard.edge(positions[k])] =
                           (o.dst_scale != nullptr ? o.dst_scale[v] : 1) * dot;
                     }
                   }
                 });
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(void, linear_edge_gradient, (const LinearKernel::Operands& o, const Stage& stage), (o, stage));

#if SAR_COMPILED_ONCE
namespace sar::inline SAR_PRECISION {
namespace {

const local_index* data_or_null(const Array<local_index>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

void LinearKernel::accumulate(const Stage& stage) {
  const GraphShard& shard = stage.shard;
  const EdgeRanges edges = cursor_.ranges(stage);
  gather_sum({.num_rows = edges.num_rows,
              .begin = edges.begin,
              .end = edges.end,
              .before = edges.before,
              .rows = edges.rows,
              .col = shard.src.data(),
              .col_offset = stage.begin,
              .weight = o_.edge_weight,
              .edge_of = data_or_null(shard.edge_of),
              .first_edge = shard.first_edge,
              .row_scale = o_.dst_scale,
              .x = stage.rows,
              .x_rows = stage.size(),
              .out = o_.out,
              .width = o_.width,
              .accumulate = std::exchange(adds_, true)});
}

void LinearKernel::backward(const Stage& stage, real* grad_src, bool accumulate) {
  const GraphShard& shard = stage.shard;
  if (o_.grad_edge_weight != nullptr) linear_edge_gradient(o_, stage);
  if (grad_src == nullptr) return;
  const ShardTranspose& transpose = shard.transpose();
  gather_sum({.num_rows = stage.size(),
              .begin = transpose.begin.data() + stage.begin,
              .end = transpose.begin.data() + stage.begin + 1,
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

}  // namespace sar
#endif
