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
#include <sar/graph/kernels/typed_sum_kernel.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using namespace edge_batches;

/// Returns the number of pairs that are multiplied at a time, so that their rows stay in the L2 cache.
Index pairs_at_once(const TypedSum& o) {
  constexpr Index unit = 48, numbers = Index{1} << 15;  // unit: rows of whole tiles of a product
  return std::clamp(numbers / (o.in() + o.width()) / unit * unit, unit, 16 * unit);
}

void add_row(const real* from, Index width, real* to) {
  for (Index j = 0; j < width; ++j) to[j] += from[j];
}

/// Sums the rows at the other end of the edges of each pair.
class PairSums {
 public:
  /// Sums `rows`, multiplied by c if given.
  PairSums(Gathered rows, const real* c) : rows_(rows), c_(c), factors_(batch_edges, real{1}) {}

  /// Writes to out [last - first, width].
  void operator()(const EdgeRows& pairs, Index first, Index last, real* out) {
    const real one = 1;
    for_batches<1>(pairs, first, last, edges_at_once(rows_.width, 1), {rows_},
                   [&](const Batch<1>& batch, const Batch<1>& next) {
                     for (const Segment& seg : batch) {
                       for (Index x = 0; c_ != nullptr && x < seg.edges; ++x)
                         factors_[x] = c_[pairs.edge(seg.position + x)];
                       lanes::add_rows(rows_of(batch, next, seg, 0, 0, 1, rows_.width), factors_.data(),
                                       seg.begins ? nullptr : &one, out + (seg.row - first) * rows_.width);
                     }
                   });
  }

 private:
  Gathered rows_;
  const real* c_;
  std::vector<real> factors_;
};

/// Computes the sums of rows.
void sum_rows(const TypedSum& o, const Stage& stage, const EdgeRows& rows, real* out, bool add) {
  const Index width = o.width(), most = pairs_at_once(o);
  for_typed_blocks(rows, o.sizes.types, [&](Index first, Index last) {
    for (Index i = first; !add && i < last; ++i) std::fill_n(out + rows.result(i) * width, width, real{0});
    EdgesByType block(o.types, o.sizes.types);
    block.group(rows, first, last);
    PairSums sums_of({stage.rows.reals(), o.in()}, o.edge_weight);
    Array<real> sums(most * o.in()), products(most * width);
    block.for_pairs(most, [&](Index type, Index p, Index end) {
      sums_of(block.pairs(), p, end, sums.data());
      o.matrices->multiply(type, sums.data(), end - p, products.data());
      for (Index k = p; k < end; ++k)
        add_row(products.data() + (k - p) * width, width, out + rows.result(block.pairs().row(k)) * width);
    });
  });
}

/// A block of source rows in the backward pass, with the rows t that the gradient of W needs.
class SourceBlock {
 public:
  explicit SourceBlock(const TypedSum& o) : o_(o), pairs_(o.types, o.sizes.types) {}

  [[nodiscard]] const EdgesByType& pairs() const { return pairs_; }
  [[nodiscard]] const real* t(Index pair) const { return t_.data() + pair * o_.width(); }

  /// Row i has the values x(i). Its gradient is written to row i of grad, unless null.
  template <class Source>
  void run(const EdgeRows& rows, Index first, Index last, const Source& x, real* grad, bool add) {
    const Index most = pairs_at_once(o_);
    for (Index i = first; grad != nullptr && !add && i < last; ++i)
      std::fill_n(grad + i * o_.in(), o_.in(), real{0});
    pairs_.group(rows, first, last);
    t_.resize(pairs_.pairs().num_rows * o_.width());
    rows_.resize(most * o_.in());
    PairSums sums_of({o_.grad_out, o_.width()}, o_.edge_weight);
    pairs_.for_pairs(most, [&](Index type, Index p, Index end) {
      real* t = t_.data() + p * o_.width();
      sums_of(pairs_.pairs(), p, end, t);
      if (o_.grad_edge_weight != nullptr) set_edge_gradients(type, p, end, x);
      if (grad == nullptr) return;
      o_.transposed->multiply(type, t, end - p, rows_.data());
      for (Index k = p; k < end; ++k)
        add_row(rows_.data() + (k - p) * o_.in(), o_.in(), grad + pairs_.pairs().row(k) * o_.in());
    });
  }

 private:
  /// Computes dc_e = <x_u W_r, g_v>.
  template <class Source>
  void set_edge_gradients(Index type, Index first, Index last, const Source& x) {
    const Index width = o_.width();
    const EdgeRows& pairs = pairs_.pairs();
    for (Index k = first; k < last; ++k)
      std::copy_n(x(pairs.row(k)), o_.in(), rows_.data() + (k - first) * o_.in());
    products_.resize((last - first) * width);
    o_.matrices->multiply(type, rows_.data(), last - first, products_.data());
    std::vector<real> dots(batch_edges);
    for_batches<1>(pairs, first, last, edges_at_once(width, 1), {Gathered{o_.grad_out, width}},
                   [&](const Batch<1>& batch, const Batch<1>& next) {
                     for (const Segment& seg : batch) {
                       lanes::dots(rows_of(batch, next, seg, 0, 0, 1, width),
                                   products_.data() + (seg.row - first) * width, dots.data());
                       for (Index k = 0; k < seg.edges; ++k)
                         o_.grad_edge_weight[pairs.edge(seg.position + k)] = dots[k];
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

/// The backward pass over sources. Row i of `rows` has the values x(row(i)); its gradient is written to row i
/// of grad, unless null.
void sources_backward(const TypedSum& o, const Stage& stage, const EdgeRows& rows, real* grad, bool add) {
  constexpr Index kept_numbers = Index{1} << 22, wanted_blocks = 16;  // values of t in all kept blocks
  const Index numbers = std::max(kept_numbers, o.sizes.types * o.in() * o.width() / o.sizes.blocks);
  const Index edges = std::clamp<Index>(numbers / (wanted_blocks * o.width()), 256, 1 << 13);
  const std::vector<Index> starts = typed_blocks(rows, o.sizes.types, edges);
  Index largest = 1;  // many types mean large blocks, of which fewer are kept
  for (std::size_t b = 0; b + 1 < starts.size(); ++b)
    largest = std::max(largest, rows.slice(starts[b], starts[b + 1]).num_edges());
  const auto kept =
      static_cast<std::size_t>(std::clamp<Index>(numbers / (largest * o.width()), 2, wanted_blocks));
  const auto x = [&](Index i) { return stage.rows.reals() + rows.row(i) * o.in(); };
  std::vector<SourceBlock> blocks(std::min(kept, starts.size() - 1), SourceBlock(o));
  for (std::size_t first = 0; first + 1 < starts.size(); first += blocks.size()) {
    const std::size_t used = std::min(blocks.size(), starts.size() - 1 - first);
    parallel_for(static_cast<Index>(used), 1, [&](Index b, Index) {
      blocks[b].run(rows, starts[first + b], starts[first + b + 1], x, grad, add);
    });
    if (o.grad_weight == nullptr) continue;
    WeightGradient(o, blocks, used).run([&](std::size_t block, Index pair) {
      return x(blocks[block].pairs().pairs().row(pair));
    });
  }
}

}  // namespace

void typed_sum(const TypedSum& o, const Stage& stage, const EdgeRows& edges, bool add) {
  sum_in_parts(edges, o.width(), o.out, add, [&](const EdgeRows& rows, TypedNumbers to, bool adds) {
    sum_rows(o, stage, rows, to.reals(), adds);
  });
}

void typed_sum_backward(const TypedSum& o, const Stage& stage, const EdgeRows& edges, real* grad_src,
                        bool accumulate) {
  sum_in_parts(edges, o.in(), grad_src, accumulate, [&](const EdgeRows& rows, TypedNumbers to, bool adds) {
    sources_backward(o, stage, rows, to.reals(), adds);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, typed_sum, (const TypedSum& o, const Stage& stage, const EdgeRows& edges, bool add),
             (o, stage, edges, add));
SAR_DISPATCH(void, typed_sum_backward,
             (const TypedSum& o, const Stage& stage, const EdgeRows& edges, real* grad_src, bool accumulate),
             (o, stage, edges, grad_src, accumulate));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

void TypedSumKernel::begin() {
  matrices_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::as_given);
  o_.matrices = &*matrices_;
}

void TypedSumKernel::accumulate(const Stage& stage) {
  typed_sum(o_, stage, walk_.by_destination(stage), std::exchange(o_.has_base, true));
}

void TypedSumKernel::begin_backward() {
  if (o_.grad_edge_weight != nullptr)
    o_.matrices = &matrices_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::as_given);
  if (o_.wants_source)
    o_.transposed = &transposed_.emplace(o_.weight, o_.sizes, TypedMatrices::Use::transposed);
}

void TypedSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  typed_sum_backward(o_, stage, walk_.by_source(stage), grad_src.reals(), accumulate);
}

void TypedSumKernel::finish_backward() {
  matrices_.reset();
  transposed_.reset();
}

}}  // namespace sar
#endif
