#include <sar/graph/kernels/extremum.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>

namespace sar {

void ExtremumKernel::accumulate(const SourcePiece& piece) {
  const GraphShard& shard = piece.shard;
  const EdgeRanges edges = cursor_.ranges(piece);
  const Index width = o_.width;
  const real sign = o_.minimum ? -1 : 1;  // the smallest is the largest of the negatives
  for_row_blocks(
      edges.begin, shard.num_rows(), width * static_cast<Index>(sizeof(real)), [&](Index first, Index last) {
        for (Index i = first; i < last; ++i) {
          const Index v = shard.dst_row(i);
          real* out = o_.out + v * width;
          local_index* winners = o_.winners + v * width;
          for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
            const auto edge = static_cast<local_index>(shard.edge(k));
            const real weight = o_.edge_weight != nullptr ? o_.edge_weight[edge] : 1;
            const real* x = piece.rows + (shard.src[static_cast<std::size_t>(k)] - piece.begin) * width;
            for (Index j = 0; j < width; ++j) {
              const real message = weight * x[j];
              const bool wins = winners[j] < 0 || sign * message > sign * out[j] ||
                                (message == out[j] && o_.edge_ids[edge] < o_.edge_ids[winners[j]]);
              out[j] = wins ? message : out[j];
              winners[j] = wins ? edge : winners[j];
            }
          }
        }
      });
}

void ExtremumKernel::backward(const SourcePiece& piece, real* grad_src, bool accumulate) {
  const GraphShard& shard = piece.shard;
  const ShardTranspose& transpose = shard.transpose();
  const Array<local_index>& positions = shard.transpose_positions();
  const Index width = o_.width;
  const local_index* offsets = transpose.begin.data() + piece.begin;
  for_row_blocks(offsets, piece.end - piece.begin, 2 * width * static_cast<Index>(sizeof(real)),
                 [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) {
                     real* grad = grad_src != nullptr ? grad_src + i * width : nullptr;
                     if (grad != nullptr && !accumulate) std::fill(grad, grad + width, real{0});
                     for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
                       const auto edge =
                           static_cast<local_index>(shard.edge(positions[static_cast<std::size_t>(k)]));
                       const Index v = transpose.dst[static_cast<std::size_t>(k)];
                       const local_index* winners = o_.winners + v * width;
                       const real* g = o_.grad_out + v * width;
                       const real weight = o_.edge_weight != nullptr ? o_.edge_weight[edge] : 1;
                       if (grad != nullptr)
                         for (Index j = 0; j < width; ++j)
                           grad[j] += winners[j] == edge ? weight * g[j] : real{0};
                       if (o_.grad_edge_weight == nullptr) continue;
                       const real* x = piece.rows + i * width;
                       real sum = 0;
                       for (Index j = 0; j < width; ++j) sum += winners[j] == edge ? x[j] * g[j] : real{0};
                       o_.grad_edge_weight[edge] = sum;
                     }
                   }
                 });
}

}  // namespace sar
