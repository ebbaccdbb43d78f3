#include <sar/graph/kernels/edge_block.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index block_bytes = Index{1} << 17;  // of rows moved by one task
constexpr Index prefetch_bytes = 4096;         // of rows requested ahead
constexpr Index line = 64;                     // bytes of a cache line

Index rows_per_task(Index width) {
  return std::max<Index>(block_bytes / std::max<Index>(width * static_cast<Index>(sizeof(real)), 1), 16);
}

/// The edges [begin[i], end[i]) of rows [0, num_rows), at most `limit` edges at a time:
/// write(i, first, last, n) puts edges [first, last) of row i at position n of the block, flush(n) ends one.
template <class Write, class Flush>
void cut_rows(Index num_rows, const local_index* begin, const local_index* end, Index limit,
              const Write& write, const Flush& flush) {
  Index n = 0;
  for (Index i = 0; i < num_rows; ++i) {
    for (Index first = begin[i]; first < end[i];) {
      const Index last = std::min<Index>(end[i], first + limit - n);
      write(i, first, last, n);
      n += last - first;
      first = last;
      if (n < limit) continue;
      flush(n);
      n = 0;
    }
  }
  if (n > 0) flush(n);
}

}  // namespace

void EdgeBlock::resize(Index n) {
  for (Array<local_index>* list : {&src, &dst, &edge}) list->resize(n);
}

void EdgeBlocks::by_destination(const Stage& stage, FunctionRef<void(const EdgeBlock&)> visit) {
  if (stage.begin == stage.end) return;
  const GraphShard& shard = stage.shard;
  const EdgeRanges edges = cursor_.ranges(stage);
  const Index limit = std::min(max_size_, std::max<Index>(shard.num_edges(), 1));
  block_.resize(limit);
  cut_rows(
      edges.num_rows, edges.begin, edges.end, limit,
      [&](Index i, Index first, Index last, Index n) {
        const auto v = static_cast<local_index>(edges.row(i));
        for (Index k = first; k < last; ++k, ++n) {
          block_.src[n] = shard.src[k] - static_cast<local_index>(stage.begin);
          block_.dst[n] = v;
          block_.edge[n] = static_cast<local_index>(shard.edge(k));
        }
      },
      [&](Index n) {
        block_.resize(n);
        visit(block_);
        block_.resize(limit);
      });
}

void EdgeBlocks::by_source(const Stage& stage, FunctionRef<void(const EdgeBlock&)> visit) {
  const GraphShard& shard = stage.shard;
  const ShardTranspose& transpose = shard.transpose();
  const Array<local_index>& positions = shard.transpose_positions();
  const local_index* offsets = transpose.begin.data() + stage.begin;
  const Index limit = std::min(max_size_, std::max<Index>(shard.num_edges(), 1));
  block_.resize(limit);
  cut_rows(
      stage.size(), offsets, offsets + 1, limit,
      [&](Index i, Index first, Index last, Index n) {
        for (Index k = first; k < last; ++k, ++n) {
          block_.src[n] = static_cast<local_index>(i);
          block_.dst[n] = transpose.dst[k];
          block_.edge[n] = static_cast<local_index>(shard.edge(positions[k]));
        }
      },
      [&](Index n) {
        block_.resize(n);
        visit(block_);
        block_.resize(limit);
      });
}

void BlockGroups::build(const Array<local_index>& ids) {
  order.resize(ids.size());
  std::iota(order.begin(), order.end(), 0);
  if (!std::is_sorted(ids.begin(), ids.end())) {
    constexpr int digit_bits = 11;
    constexpr std::size_t digits = std::size_t{1} << digit_bits;
    const auto largest = static_cast<std::uint32_t>(*std::max_element(ids.begin(), ids.end()));
    other_.resize(ids.size());
    for (int shift = 0; shift < 32 && (largest >> shift) != 0; shift += digit_bits) {
      const auto digit = [&](local_index position) {
        return (static_cast<std::uint32_t>(ids[position]) >> shift) & (digits - 1);
      };
      std::array<local_index, digits> first{};
      for (const local_index position : order) ++first[digit(position)];
      local_index sum = 0;
      for (local_index& count : first) sum += std::exchange(count, sum);
      for (const local_index position : order) other_[first[digit(position)]++] = position;
      order.swap(other_);
    }
  }
  rows.clear();
  begin.clear();
  for (std::size_t k = 0; k < order.size(); ++k) {
    const local_index row = ids[order[k]];
    if (k > 0 && row == rows.back()) continue;
    rows.push_back(row);
    begin.push_back(static_cast<local_index>(k));
  }
  begin.push_back(static_cast<local_index>(order.size()));
}

void BlockGroups::add_rows_to(real* out, const Tensor& x, const real* scale) const {
  gather_sum({.num_rows = size(),
              .begin = begin.data(),
              .end = begin.data() + 1,
              .rows = rows.data(),
              .col = order.data(),
              .row_scale = scale,
              .x = x.data(),
              .x_rows = x.num_rows(),
              .out = out,
              .width = x.row_size(),
              .accumulate = true});
}

void take_rows(const real* x, Index stride, Index width, const Array<local_index>& ids, const real* scale,
               real* out) {
  const Index row_bytes = width * static_cast<Index>(sizeof(real));
  const Index ahead = std::max<Index>(prefetch_bytes / std::max<Index>(row_bytes, 1), 2);
  const auto n = static_cast<Index>(ids.size());
  const auto row = [&](Index k) { return x + ids[k] * stride; };
  if (width == 0) return;
  parallel_for(n, rows_per_task(width), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) {
      if (k + ahead < n) {
        const char* bytes = reinterpret_cast<const char*>(row(k + ahead));
        for (Index b = 0; b < row_bytes; b += line) __builtin_prefetch(bytes + b);
      }
      const real* from = row(k);
      real* to = out + k * width;
      if (scale == nullptr) {
        std::memcpy(to, from, row_bytes);
      } else {
        const real factor = scale[ids[k]];
        for (Index j = 0; j < width; ++j) to[j] = factor * from[j];
      }
    }
  });
}

void put_rows(const Tensor& x, const Array<local_index>& ids, real* out) {
  const Index width = x.row_size();
  parallel_for(x.num_rows(), rows_per_task(width), [&](Index begin, Index end) {
    for (Index k = begin; k < end; ++k) std::copy(x.row(k), x.row(k) + width, out + ids[k] * width);
  });
}

}  // namespace sar
