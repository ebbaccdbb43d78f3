// SPDX-License-Identifier: MIT

// A chunk is found by binary search in the number of edges before each row, so threads write chunks in any
// order: O(log(rows) + chunk size). Groups need no sort if the ids ascend; otherwise a radix sort with
// digits of 11 bits, stable and linear, orders the positions. take_rows() moves blocks of 128 KiB in
// parallel: each row is read once, at random, and written once in order.
#include <sar/core/simd/loop_hints.hpp>
#include <sar/graph/kernels/edge_block.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index block_bytes = Index{1} << 17;  // bytes of rows that one task moves
constexpr Index narrow_rows = 16;              // rows of fewer numbers are copied without a call of memcpy

Index rows_per_task(Index width) {
  return std::max<Index>(block_bytes / std::max<Index>(width * static_cast<Index>(sizeof(real)), 1), 16);
}

}  // namespace

void EdgeBlocks::by_destination(const Stage& stage) {
  shard_ = &stage.shard;
  begin_ = stage.begin;
  by_source_ = false;
  num_edges_ = 0;
  first_.assign(1, 0);
  if (stage.begin == stage.end) return;
  rows_ = cursor_.ranges(stage);
  if (const Index last = rows_.num_rows - 1; last >= 0)
    num_edges_ = Index{rows_.before[last]} - rows_.before[0] + rows_.end[last] - rows_.begin[last];
  divide();
}

void EdgeBlocks::by_source(const Stage& stage) {
  shard_ = &stage.shard;
  (void)stage.shard.transpose_positions();
  by_source_ = true;
  const local_index* offsets = source_offsets_.emplace(stage.shard, stage.begin, stage.end).data();
  rows_ = {stage.size(), nullptr, offsets, offsets + 1, offsets};
  num_edges_ = offsets[stage.size()] - offsets[0];
  divide();
}

/// Whole rows: as many as fit.
void EdgeBlocks::divide() {
  if (of_rows_ == Rows::split) return;
  first_.assign(1, 0);
  const auto before = [&](Index row) {
    return row < rows_.num_rows ? Index{rows_.before[row]} - rows_.before[0] : num_edges_;
  };
  for (Index row = 0; row < rows_.num_rows;) {
    ++row;
    while (row < rows_.num_rows && before(row + 1) - first_.back() <= max_size_) ++row;
    if (before(row) > first_.back()) first_.push_back(before(row));
  }
}

/// Calls visit_row(row, position in the block, first edge, number of edges) for the rows with edges in block
/// b.
template <class VisitRow>
void EdgeBlocks::for_rows(Index b, const VisitRow& visit_row) const {
  const Index first = first_edge(b), n = first_edge(b + 1) - first;
  const auto edges_before = static_cast<local_index>(rows_.before[0] + first);
  Index row = std::upper_bound(rows_.before, rows_.before + rows_.num_rows, edges_before) - rows_.before - 1;
  Index k = Index{rows_.begin[row]} + edges_before - rows_.before[row];
  for (Index at = 0; at < n; k = rows_.begin[++row]) {
    const Index count = std::min<Index>(rows_.end[row] - k, n - at);
    if (count > 0) visit_row(row, at, k, count);
    at += count;
    if (at == n) return;
  }
}

void EdgeBlocks::write(Index b, EdgeBlock& block, BlockGroups& groups) const {
  for (Array<local_index>* list : {&block.src, &block.dst, &block.edge})
    list->resize(first_edge(b + 1) - first_edge(b));
  groups.clear();
  const GraphShard& shard = *shard_;
  const auto take_row = [&](Array<local_index>& ids, local_index id, Index at, Index count) {
    std::fill_n(ids.data() + at, count, id);
    groups.append(id, count);
  };
  if (by_source_) {
    const local_index* dst = shard.transpose().dst.data();
    const local_index* positions = shard.transpose_positions().data();
    for_rows(b, [&](Index row, Index at, Index k, Index count) {
      take_row(block.src, static_cast<local_index>(row), at, count);
      std::copy_n(dst + k, count, block.dst.data() + at);
      for (Index i = 0; i < count; ++i)
        block.edge[at + i] = static_cast<local_index>(shard.edge(positions[k + i]));
    });
  } else {
    const auto begin = static_cast<local_index>(begin_);
    for_rows(b, [&](Index row, Index at, Index k, Index count) {
      take_row(block.dst, static_cast<local_index>(rows_.row(row)), at, count);
      for (Index i = 0; i < count; ++i) {
        block.src[at + i] = shard.src[k + i] - begin;
        block.edge[at + i] = static_cast<local_index>(shard.edge(k + i));
      }
    });
  }
}

void BlockGroups::clear() {
  order.clear();
  rows.clear();
  begin.assign(1, 0);
}

void BlockGroups::append(local_index row, Index positions) {
  rows.push_back(row);
  begin.push_back(begin.back() + static_cast<local_index>(positions));
}

void BlockGroups::build(const Array<local_index>& ids) {
  clear();
  if (!std::is_sorted(ids.begin(), ids.end())) sort(ids);
  const auto n = static_cast<Index>(ids.size());
  for (Index k = 0, first = 0; k < n; first = k) {
    const local_index row = ids[position(k)];
    while (k < n && ids[position(k)] == row) ++k;
    append(row, k - first);
  }
}

// LSD radix sort with digits of 11 bits; it skips digits above the largest id.
void BlockGroups::sort(const Array<local_index>& ids) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  const auto largest = static_cast<std::uint32_t>(*std::max_element(ids.begin(), ids.end()));
  order.resize(ids.size());
  std::iota(order.begin(), order.end(), 0);
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

GatherSum BlockGroups::sums_of(const Tensor& x, Index first, Index last, TypedNumbers out) const {
  return {.num_rows = last - first,
          .begin = begin.data() + first,
          .end = begin.data() + first + 1,
          .col = order.empty() ? nullptr : order.data(),
          .x = x.data(),
          .x_rows = x.num_rows(),
          .out = out,
          .width = x.row_size(),
          .accumulate = true,
          .accumulator = out.exact_sums() != nullptr ? Accumulator::exact : Accumulator::rounded};
}

void BlockGroups::add_rows_to(TypedNumbers out, const Tensor& x, Index first, Index last,
                              const real* scale) const {
  GatherSum sums = sums_of(x, first, last, out);
  sums.rows = rows.data() + first;
  sums.row_scale = scale;
  gather_sum(sums);
}

TypedRows BlockGroups::sum_of(const Tensor& x, Index i, NumberType type, const real* scale) const {
  TypedRows sum({1, x.row_size()}, type);
  sum.set_zero();
  GatherSum sums = sums_of(x, i, i + 1, sum.numbers());
  sums.row_scale = scale != nullptr ? scale + rows[i] : nullptr;
  gather_sum(sums);
  return sum;
}

template <class X>
void take_rows(const X* x, Index stride, Index width, const Array<local_index>& ids, const real* scale,
               real* out) {
  const Index row_bytes = width * static_cast<Index>(sizeof(X)), ahead = rows_ahead(row_bytes);
  const auto n = static_cast<Index>(ids.size());
  const auto row = [&](Index k) { return x + ids[k] * stride; };
  if (width == 0) return;
  parallel_for_each(n, rows_per_task(width), [&](Index k) {
    if (k + ahead < n) prefetch_bytes(row(k + ahead), row_bytes);
    real* to = out + k * width;
    if constexpr (!std::is_same_v<X, real>)
      widen(row(k), width, to);
    else if (width < narrow_rows)
      for (Index j = 0; j < width; ++j) to[j] = row(k)[j];
    else
      std::memcpy(to, row(k), row_bytes);
    if (scale == nullptr) return;
    const real factor = scale[ids[k]];
    for (Index j = 0; j < width; ++j) to[j] *= factor;
  });
}
template void take_rows(const real*, Index, Index, const Array<local_index>&, const real*, real*);
template void take_rows(const Bfloat16*, Index, Index, const Array<local_index>&, const real*, real*);

void take_rows(const TypedRows& x, const Array<local_index>& ids, const real* scale, real* out) {
  const Index width = x.row_size();
  if (x.is_bfloat16())
    take_rows(x.bfloat16(), width, width, ids, scale, out);
  else
    take_rows(x.reals().data(), width, width, ids, scale, out);
}

void put_rows(const Tensor& x, const Array<local_index>& ids, TypedRows& out) {
  const Index width = x.row_size();
  Bfloat16* const rounded = out.bfloat16();
  real* const reals = out.is_real() ? out.reals().data() : nullptr;
  parallel_for_each(x.num_rows(), rows_per_task(width), [&](Index k) {
    if (rounded != nullptr)
      narrow(x.row(k), width, rounded + ids[k] * width);
    else
      std::copy(x.row(k), x.row(k) + width, reals + ids[k] * width);
  });
}
}}  // namespace sar
