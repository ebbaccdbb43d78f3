// SPDX-License-Identifier: MIT

/// Sums of rows times the matrix of their edge's type; the head of typed_sum_kernel.hpp has the formulas.
///
/// Forward: blocks of destination rows in parallel; the edges of a block grouped by type; of each type a
/// multiple of 48 pairs at a time. Their gathered rows are summed into one row per pair (columns in
/// registers, rows of the next batch prefetched), multiplied by the packed W_r, and added to the output rows.
/// Sums and products stay in the L2 cache.
///
/// Backward: up to 16 blocks of source rows run in parallel and keep their rows t. WeightGradient then
/// multiplies the rows x and t of all pairs of a type, 256 pairs at a time, in parallel over types and tiles
/// of rows of dW. The next blocks follow.
#include <sar/graph/kernels/edge_batches.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/kernels/edges_by_type.hpp>
#include <sar/graph/kernels/typed_sum_kernel.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using namespace edge_batches;

constexpr Index no_limit = std::numeric_limits<Index>::max();

/// Returns the number of pairs that are multiplied at a time, so that their rows stay in the L2 cache.
Index pairs_at_once(const TypedSum& o) {
  constexpr Index unit = 48, numbers = Index{1} << 15;  // unit: rows of whole tiles of a product
  return std::clamp(numbers / (o.in() + o.width()) / unit * unit, unit, 16 * unit);
}

/// Calls visit(type, first, last) for the pairs of a block, at most `most` at a time.
template <class Visit>
void for_pairs(const EdgesByType& block, Index most, const Visit& visit) {
  for (const EdgesByType::Group& group : block.groups())
    for (Index p = group.first; p < group.last; p += most)
      visit(group.type, p, std::min(group.last, p + most));
}

void add_row(const real* from, Index width, real* to) {
  for (Index j = 0; j < width; ++j) to[j] += from[j];
}

/// Sums the rows at the other end of the edges of each pair.
class PairSums {
 public:
  /// Sums `rows`, multiplied by c if given.
  PairSums(Gathered rows, Index offset, const real* c)
      : rows_(rows), offset_(offset), c_(c), factors_(batch_edges, real{1}) {}

  /// Writes to out [last - first, width].
  void operator()(const EdgesByType& block, Index first, Index last, real* out) {
    const local_index* begin = block.begin();
    const real one = 1;
    for_batches<1>(begin, begin + 1, first, last, block.other(), offset_, edges_at_once(rows_.width, 1),
                   {rows_}, [&](const Batch<1>& batch, const Batch<1>& next) {
                     for (Index i = 0; i < batch.segments; ++i) {
                       const Segment& seg = batch.segment[i];
                       for (Index x = 0; c_ != nullptr && x < seg.edges; ++x)
                         factors_[x] = c_[block.edge()[seg.position + x]];
                       lanes::add_rows(rows_of(batch, next, seg, 0, 0, 1, rows_.width), factors_.data(),
                                       seg.begins ? nullptr : &one, out + (seg.row - first) * rows_.width);
                     }
                   });
  }

 private:
  Gathered rows_;
  Index offset_;
  const real* c_;
  std::vector<real> factors_;
};

/// Computes the sums of rows with the edges `typed`, skipping rows with more than `longest` edges. Row i is
/// written to row target(i) of out.
template <class Target>
void sum_rows(const TypedSum& o, const Stage& stage, const TypedEdges& typed, const EdgeRanges& rows,
              Index longest, const Target& target, real* out, bool add) {
  const Index width = o.width(), most = pairs_at_once(o);
  for_typed_blocks(rows.before, rows.num_rows, o.sizes.types, [&](Index first, Index last) {
    for (Index i = first; !add && i < last; ++i) std::fill_n(out + target(i) * width, width, real{0});
    EdgesByType block(o.sizes.types);
    block.group(typed, first, last, longest);
    PairSums sums_of({stage.rows.reals(), o.in()}, stage.begin, o.edge_weight);
    Array<real> sums(most * o.in()), products(most * width);
    for_pairs(block, most, [&](Index type, Index p, Index end) {
      sums_of(block, p, end, sums.data());
      o.matrices->multiply(type, sums.data(), end - p, products.data());
      for (Index k = p; k < end; ++k)
        add_row(products.data() + (k - p) * width, width, out + target(block.row(k)) * width);
    });
  });
}

/// A block of source rows in the backward pass, with the rows t that the gradient of W needs.
class SourceBlock {
 public:
  explicit SourceBlock(const TypedSum& o) : o_(o), pairs_(o.sizes.types) {}

  [[nodiscard]] const EdgesByType& pairs() const { return pairs_; }
  [[nodiscard]] const real* t(Index pair) const { return t_.data() + pair * o_.width(); }

  /// Row i has the values x(i). Its gradient is written to row i of grad, unless null.
  template <class Source>
  void run(const TypedEdges& typed, Index first, Index last, Index longest, const Source& x, real* grad,
           bool add) {
    const Index most = pairs_at_once(o_);
    for (Index i = first; grad != nullptr && !add && i < last; ++i)
      std::fill_n(grad + i * o_.in(), o_.in(), real{0});
    pairs_.group(typed, first, last, longest);
    const Index pairs = pairs_.groups().empty() ? 0 : pairs_.groups().back().last;
    t_.resize(pairs * o_.width());
    rows_.resize(most * o_.in());
    PairSums sums_of({o_.grad_out, o_.width()}, 0, o_.edge_weight);
    for_pairs(pairs_, most, [&](Index type, Index p, Index end) {
      real* t = t_.data() + p * o_.width();
      sums_of(pairs_, p, end, t);
      if (o_.grad_edge_weight != nullptr) set_edge_gradients(type, p, end, x);
      if (grad == nullptr) return;
      o_.transposed->multiply(type, t, end - p, rows_.data());
      for (Index k = p; k < end; ++k)
        add_row(rows_.data() + (k - p) * o_.in(), o_.in(), grad + pairs_.row(k) * o_.in());
    });
  }

 private:
  /// Computes dc_e = <x_u W_r, g_v>.
  template <class Source>
  void set_edge_gradients(Index type, Index first, Index last, const Source& x) {
    const Index width = o_.width();
    for (Index k = first; k < last; ++k)
      std::copy_n(x(pairs_.row(k)), o_.in(), rows_.data() + (k - first) * o_.in());
    products_.resize((last - first) * width);
    o_.matrices->multiply(type, rows_.data(), last - first, products_.data());
    std::vector<real> dots(batch_edges);
    for_batches<1>(pairs_.begin(), pairs_.begin() + 1, first, last, pairs_.other(), 0,
                   edges_at_once(width, 1), {Gathered{o_.grad_out, width}},
                   [&](const Batch<1>& batch, const Batch<1>& next) {
                     for (Index i = 0; i < batch.segments; ++i) {
                       const Segment& seg = batch.segment[i];
                       lanes::dots(rows_of(batch, next, seg, 0, 0, 1, width),
                                   products_.data() + (seg.row - first) * width, dots.data());
                       for (Index k = 0; k < seg.edges; ++k)
                         o_.grad_edge_weight[pairs_.edge()[seg.position + k]] = dots[k];
                     }
                   });
  }

  const TypedSum& o_;
  EdgesByType pairs_;
  Array<real> t_, rows_, products_;
};

/// Adds dW_r += x^T t over the pairs of several blocks, in their order.
class WeightGradient {
 public:
  WeightGradient(const TypedSum& o, const std::vector<SourceBlock>& blocks, std::size_t used)
      : o_(o), blocks_(blocks) {
    for (std::size_t b = 0; b < used; ++b)
      for (const EdgesByType::Group& group : blocks[b].pairs().groups()) lists_.push_back({b, group});
    std::stable_sort(lists_.begin(), lists_.end(),
                     [](const List& a, const List& b) { return a.group.type < b.group.type; });
    for (std::size_t i = 0; i < lists_.size(); ++i)
      if (i == 0 || lists_[i].group.type != lists_[i - 1].group.type) first_list_.push_back(i);
    first_list_.push_back(lists_.size());
  }

  /// A task is a type or a tile of rows of its dW. The bits do not depend on the tiling.
  template <class Source>
  void run(const Source& x) const {
    constexpr Index wanted_tasks = 32, least_rows = 16;
    const Index types = std::ssize(first_list_) - 1, in = o_.in();
    if (types == 0) return;
    const Index tiles = o_.sizes.blocks > 1
                            ? 1
                            : std::clamp<Index>(wanted_tasks / types, 1, std::max<Index>(1, in / least_rows));
    parallel_for(types * tiles, 1, [&](Index task, Index) {
      const Index tile = task % tiles;
      add_columns(x, task / tiles, in * tile / tiles, in * (tile + 1) / tiles);
    });
  }

 private:
  struct List {
    std::size_t block;
    EdgesByType::Group group;
  };
  static constexpr Index depth = 256;  // pairs that are multiplied at a time
  static constexpr Index slack = 64 / static_cast<Index>(sizeof(real));  // readable values past the last row

  /// Adds the products with columns [begin, end) of x.
  template <class Source>
  void add_columns(const Source& x, Index n, Index begin, Index end) const {
    const Index height = end - begin, width = o_.width();
    Array<real> rows(depth * height), sums(depth * width + slack);
    std::fill(sums.end() - slack, sums.end(), real{0});
    RightOperand right(product_method());
    Index filled = 0;
    const auto multiply = [&](Index type) {
      add_products({rows.data(), filled, height, height, 1}, {sums.data(), filled, width, width, 1}, right,
                   o_.grad_weight + type * in_block() * width + begin * o_.sizes.cols);
      filled = 0;
    };
    for (std::size_t i = first_list_[n]; i < first_list_[n + 1]; ++i) {
      const auto& [block, group] = lists_[i];
      for (Index p = group.first; p < group.last; ++p, ++filled) {
        if (filled == depth) multiply(group.type);
        std::copy_n(x(block, p) + begin, height, rows.data() + filled * height);
        std::copy_n(blocks_[block].t(p), width, sums.data() + filled * width);
      }
    }
    multiply(lists_[first_list_[n]].group.type);
  }
  void add_products(const MatrixView& rows, const MatrixView& sums, RightOperand& right, real* to) const {
    const Index in = o_.sizes.rows, out = o_.sizes.cols;
    if (o_.sizes.blocks == 1) {
      right.pack_or_borrow(sums, slack);
      return right.multiply(rows.transposed(), {to, out, to, out});
    }
    for (Index b = 0; b < o_.sizes.blocks; ++b, to += in * out) {
      right.pack_or_borrow(sums.column_range(b * out, (b + 1) * out), slack);
      right.multiply(rows.column_range(b * in, (b + 1) * in).transposed(), {to, out, to, out});
    }
  }
  /// Rows of one matrix of W. With blocks, a row holds the values of its block only.
  [[nodiscard]] Index in_block() const { return o_.sizes.rows; }

  const TypedSum& o_;
  const std::vector<SourceBlock>& blocks_;
  std::vector<List> lists_;  // sorted by type, then block
  std::vector<std::size_t> first_list_;
};

/// The backward pass over rows with the edges `typed`, skipping rows with more than `longest` edges. Row i
/// has the values x(i); its gradient is written to row i of grad, unless null.
template <class Source>
void sources_backward(const TypedSum& o, const TypedEdges& typed, const local_index* before, Index num_rows,
                      Index longest, const Source& x, real* grad, bool add) {
  constexpr Index kept_numbers = Index{1} << 22, wanted_blocks = 16;  // values of t in all kept blocks
  const Index numbers = std::max(kept_numbers, o.sizes.types * o.in() * o.width() / o.sizes.blocks);
  const Index edges = std::clamp<Index>(numbers / (wanted_blocks * o.width()), 256, 1 << 13);
  const std::vector<Index> starts = typed_blocks(before, num_rows, o.sizes.types, edges);
  Index largest = 1;  // many types mean large blocks, of which fewer are kept
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    Index of_block = 0;
    for (Index i = starts[b]; i < starts[b + 1]; ++i) of_block += typed.end[i] - typed.begin[i];
    largest = std::max(largest, of_block);
  }
  const auto kept =
      static_cast<std::size_t>(std::clamp<Index>(numbers / (largest * o.width()), 2, wanted_blocks));
  std::vector<SourceBlock> blocks(std::min(kept, starts.size() - 1), SourceBlock(o));
  for (std::size_t first = 0; first + 1 < starts.size(); first += blocks.size()) {
    const std::size_t used = std::min(blocks.size(), starts.size() - 1 - first);
    parallel_for(static_cast<Index>(used), 1, [&](Index b, Index) {
      blocks[b].run(typed, starts[first + b], starts[first + b + 1], longest, x, grad, add);
    });
    if (o.grad_weight == nullptr) continue;
    WeightGradient(o, blocks, used).run([&](std::size_t block, Index pair) {
      return x(blocks[block].pairs().row(pair));
    });
  }
}

}  // namespace

void typed_sum(const TypedSum& o, const Stage& stage, const EdgeRanges& edges, bool add) {
  TypedEdges typed{.begin = edges.begin,
                   .end = edges.end,
                   .other = stage.shard.src.data(),
                   .first_edge = stage.shard.first_edge,
                   .types = o.types};
  sum_rows(
      o, stage, typed, edges, LongRows::part_edges, [&](Index i) { return edges.row(i); }, o.out, add);
  const LongRows long_rows(edges.begin, edges.end, edges.num_rows);
  if (long_rows.parts() == 0) return;
  Array<real> parts(long_rows.parts() * o.width());
  const EdgeRanges ranges = long_rows.ranges();
  typed.begin = ranges.begin;
  typed.end = ranges.end;
  sum_rows(
      o, stage, typed, ranges, no_limit, [](Index i) { return i; }, parts.data(), false);
  long_rows.for_rows([&](Index row, Index first, Index last) {
    sum_parts(parts.data(), first, last, o.width(), true, o.out + edges.row(row) * o.width());
  });
}

void typed_sum_backward(const TypedSum& o, const Stage& stage, real* grad_src, bool accumulate) {
  const ShardTranspose& transpose = stage.shard.transpose();
  const SourceOffsets offsets(stage.shard, stage.begin, stage.end);
  const local_index* begin = offsets.data();
  const Index in = o.in();
  const auto row_of_x = [&](Index i) { return stage.rows.reals() + i * in; };
  TypedEdges typed{.begin = begin,
                   .end = begin + 1,
                   .other = transpose.dst.data(),
                   .position_of = stage.shard.transpose_positions().data(),
                   .first_edge = stage.shard.first_edge,
                   .types = o.types};
  sources_backward(o, typed, begin, stage.size(), LongRows::part_edges, row_of_x, grad_src, accumulate);
  const LongRows long_rows(begin, begin + 1, stage.size());
  if (long_rows.parts() == 0) return;
  Array<real> parts(grad_src != nullptr ? long_rows.parts() * in : 0);
  const EdgeRanges ranges = long_rows.ranges();
  typed.begin = ranges.begin;
  typed.end = ranges.end;
  sources_backward(
      o, typed, ranges.before, ranges.num_rows, no_limit,
      [&](Index part) { return row_of_x(ranges.row(part)); }, grad_src != nullptr ? parts.data() : nullptr,
      false);
  if (grad_src == nullptr) return;
  long_rows.for_rows([&](Index row, Index first, Index last) {
    sum_parts(parts.data(), first, last, in, true, grad_src + row * in);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, typed_sum, (const TypedSum& o, const Stage& stage, const EdgeRanges& edges, bool add),
             (o, stage, edges, add));
SAR_DISPATCH(void, typed_sum_backward,
             (const TypedSum& o, const Stage& stage, real* grad_src, bool accumulate),
             (o, stage, grad_src, accumulate));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

void TypedSumKernel::begin() {
  matrices_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::as_given);
  o_.matrices = &*matrices_;
}

void TypedSumKernel::accumulate(const Stage& stage) {
  typed_sum(o_, stage, cursor_.ranges(stage), std::exchange(o_.has_base, true));
}

void TypedSumKernel::begin_backward() {
  if (o_.grad_edge_weight != nullptr)
    o_.matrices = &matrices_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::as_given);
  if (o_.wants_source)
    o_.transposed = &transposed_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::transposed);
}

void TypedSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  typed_sum_backward(o_, stage, grad_src.reals(), accumulate);
}

void TypedSumKernel::finish_backward() {
  matrices_.reset();
  transposed_.reset();
}

}}  // namespace sar
#endif
