// SPDX-License-Identifier: MIT

/// Linear aggregation; the head of linear.hpp has the formulas.
///
/// With one head, the forward pass is one gather_sum, and so is the backward pass unless dw is required.
/// Otherwise they iterate over batches of edges (edge_batches.hpp), those of long rows in parts.
/// weighted_sum() gathers rows of x and adds them, weighted per head, to the destination's row in registers.
/// weighted_sum_backward() iterates over the transpose and gathers rows of g; one loop computes the dot
/// products for dw and the weighted sums for dx, with x_u and dx_u in registers. Both prefetch the rows of
/// the next batch, and the backward pass also its weights and their gradients.
/// Exact sums are a gather_sum of their own, also with several heads and after a pass for dw.
#include <sar/core/simd/row_sums.hpp>
#include <sar/graph/kernels/edge_batches.hpp>
#include <sar/graph/kernels/linear.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using namespace edge_batches;

/// The coefficients of the edges of a batch: edge weights times s_v.
struct Coefficients {
  const LinearKernel::Operands& o;
  PassVector<real> values = per_edge(o.heads);
  PassVector<real> ones = PassVector<real>(o.heads, real{1});

  [[nodiscard]] real dst_scale(Index v) const { return o.dst_scale != nullptr ? o.dst_scale[v] : 1; }
  void set(Index x, Index edge, Index v) {
    const real scale = dst_scale(v);
    for (Index h = 0; h < o.heads; ++h)
      values[x * o.heads + h] = o.edge_weight != nullptr ? scale * o.edge_weight[edge * o.heads + h] : scale;
  }
};

/// The backward pass over the source rows of one thread; X: the type of gradients of the result.
template <class X>
struct WeightedBackward {
  const LinearKernel::Operands& o;
  const Stage& stage;
  const EdgeRows& edges;
  real* grad_src;  ///< null: not required
  bool accumulate;

  Coefficients coefficients{o};
  PassVector<real> dots = per_edge(o.heads);
  PassVector<real> widened = PassVector<real>(stage.rows.is_bfloat16() ? o.width : 0);
  Index widened_row = -1;
  std::array<Index, batch_edges> edge{}, next_edge{};  ///< indices of the edges of a batch and of the next
                                                       ///< one
  bool started = false;

  void take(const Batch<1, X>& batch, const Batch<1, X>& next) {
    if (!std::exchange(started, true)) find_edges(batch, edge);
    find_edges(next, next_edge);
    for (Index x = 0; x < batch.edges; ++x) coefficients.set(x, edge[x], batch.other[x]);
    for (const Segment& seg : batch) add_segment(batch, next, seg);
    for (Index x = 0; o.grad_edge_weight != nullptr && x < batch.edges; ++x) {
      const real scale = coefficients.dst_scale(batch.other[x]);
      for (Index h = 0; h < o.heads; ++h)
        o.grad_edge_weight[edge[x] * o.heads + h] = scale * dots[x * o.heads + h];
    }
    std::swap(edge, next_edge);
  }

  void find_edges(const Batch<1, X>& batch, std::array<Index, batch_edges>& numbers) const {
    for (const Segment& seg : batch) {
      for (Index x = 0; x < seg.edges; ++x) {
        const Index number = edges.edge(seg.position + x);
        numbers[seg.first + x] = number;
        if (o.edge_weight != nullptr) __builtin_prefetch(o.edge_weight + number * o.heads);
        if (o.grad_edge_weight != nullptr) __builtin_prefetch(o.grad_edge_weight + number * o.heads, 1);
      }
    }
  }

  /// x_u, if it is read.
  const real* own_row(Index row) {
    if (!stage.rows.is_bfloat16()) return stage.rows.reals() + row * o.width;
    if (row != std::exchange(widened_row, row))
      widen(stage.rows.bfloat16() + row * o.width, o.width, widened.data());
    return widened.data();
  }

  /// The products of x with the rows, in an order that does not depend on the size of the registers.
  static void dots_in_order(const lanes::RowsOf<X>& rows, const real* x, real* dot) {
    if constexpr (!std::is_same_v<X, real>)
      lanes::dots(rows, x, dot);
    else
      for (Index i = 0; i < rows.n * rows.heads; ++i) {
        const Index first = i % rows.heads * rows.dim;
        dot[i] = static_cast<real>(
            sum_of<double>(rows.dim, [a = x + first, b = rows.at[i / rows.heads] + first](Index j) {
              return static_cast<double>(a[j]) * static_cast<double>(b[j]);
            }));
      }
  }

  void add_segment(const Batch<1, X>& batch, const Batch<1, X>& next, const Segment& seg) {
    const lanes::RowsOf<X> rows = rows_of(batch, next, seg, 0, 0, o.heads, o.width / o.heads);
    const real* factor = &coefficients.values[seg.first * o.heads];
    const real* keep = accumulate || !seg.begins ? coefficients.ones.data() : nullptr;
    const Index column = edges.result(seg.row) * o.width;
    real* dot = &dots[seg.first * o.heads];
    if (o.grad_edge_weight == nullptr)
      lanes::add_rows(rows, factor, keep, grad_src + column);
    else if (o.accumulator == Accumulator::exact)
      dots_in_order(rows, own_row(edges.row(seg.row)), dot);
    else if (grad_src == nullptr)
      lanes::dots(rows, own_row(edges.row(seg.row)), dot);
    else
      lanes::dots_and_add(rows, own_row(edges.row(seg.row)), dot, factor, keep, grad_src + column);
  }
};

template <class X>
void weighted_sum_of(const LinearKernel::Operands& o, const X* rows, const EdgeRows& edges, real* out,
                     bool add) {
  for_row_blocks(edges, o.width * real_bytes, [&](Index first, Index last) {
    Coefficients coefficients{.o = o};
    for (Index i = first; !add && i < last; ++i)
      if (edges.size(i) == 0) std::fill_n(out + edges.result(i) * o.width, o.width, real{0});
    for_batches<1, X>(edges, first, last, edges_at_once(o.width, o.heads), {GatheredOf<X>{rows, o.width}},
                      [&](const Batch<1, X>& batch, const Batch<1, X>& next) {
                        for (const Segment& seg : batch) {
                          const Index v = edges.row(seg.row);
                          for (Index x = 0; x < seg.edges; ++x)
                            coefficients.set(seg.first + x, edges.edge(seg.position + x), v);
                          lanes::add_rows(rows_of(batch, next, seg, 0, 0, o.heads, o.width / o.heads),
                                          &coefficients.values[seg.first * o.heads],
                                          add || !seg.begins ? coefficients.ones.data() : nullptr,
                                          out + edges.result(seg.row) * o.width);
                        }
                      });
  });
}

template <class X>
void weighted_sum_backward_of(const LinearKernel::Operands& o, const Stage& stage, const EdgeRows& edges,
                              const X* grad_out, real* grad_src, bool accumulate) {
  for_row_blocks(edges, 2 * o.width * real_bytes, [&](Index first, Index last) {
    WeightedBackward<X> pass{
        .o = o, .stage = stage, .edges = edges, .grad_src = grad_src, .accumulate = accumulate};
    for (Index i = first; grad_src != nullptr && !accumulate && i < last; ++i)
      if (edges.size(i) == 0) std::fill_n(grad_src + edges.result(i) * o.width, o.width, real{0});
    for_batches<1, X>(edges, first, last, edges_at_once(o.width, o.heads), {GatheredOf<X>{grad_out, o.width}},
                      [&](const Batch<1, X>& batch, const Batch<1, X>& next) { pass.take(batch, next); });
  });
}

}  // namespace

void weighted_sum(const LinearKernel::Operands& o, const Stage& stage, const EdgeRows& edges, bool add) {
  sum_in_parts(edges, o.width, o.out, add, [&](const EdgeRows& rows, TypedNumbers to, bool adds) {
    with_type(stage.rows, [&](const auto* x) { weighted_sum_of(o, x, rows, to.reals(), adds); });
  });
}

void weighted_sum_backward(const LinearKernel::Operands& o, const Stage& stage, const EdgeRows& edges,
                           real* grad_src, bool accumulate) {
  if (o.width == 0) {  // without columns, dw is 0
    for (Index k = edges.begin[0]; o.grad_edge_weight != nullptr && k < edges.begin[stage.size()]; ++k)
      std::fill_n(o.grad_edge_weight + edges.edge(k) * o.heads, o.heads, real{0});
    return;
  }
  sum_in_parts(edges, o.width, grad_src, accumulate, [&](const EdgeRows& rows, TypedNumbers to, bool adds) {
    with_type(o.grad_out, [&](const auto* grad_out) {
      weighted_sum_backward_of(o, stage, rows, grad_out, to.defined() ? to.reals() : nullptr, adds);
    });
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, weighted_sum,
             (const LinearKernel::Operands& o, const Stage& stage, const EdgeRows& edges, bool add),
             (o, stage, edges, add));
SAR_DISPATCH(void, weighted_sum_backward,
             (const LinearKernel::Operands& o, const Stage& stage, const EdgeRows& edges, real* grad_src,
              bool accumulate),
             (o, stage, edges, grad_src, accumulate));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {
namespace {

/// to = (add ? to : 0) + sums, rounded once
void round_sums(const Array<ExactSum>& sums, bool add, real* to) {
  constexpr Index grain = 1 << 15;
  parallel_for_each(std::ssize(sums), grain, [&](Index i) {
    to[i] = static_cast<real>((add ? static_cast<double>(to[i]) : 0) + sums[i].value());
  });
}

}  // namespace

const real* LinearKernel::src_scale(const GraphShard& shard) const {
  for (const SourceScale& of : o_.src_scales)
    if (of.shard == &shard) return of.scale;
  return nullptr;
}

GatherSum LinearKernel::gather_of(const Stage& stage, const EdgeRows& edges) {
  const bool of_edges = o_.edge_rows.defined();
  GatherSum sum{.edges = edges,
                .weight = o_.edge_weight,
                .col_scale = src_scale(stage.shard),
                .row_scale = o_.dst_scale,
                .x = of_edges             ? o_.edge_rows
                     : o_.table.defined() ? o_.table
                                          : stage.rows,
                .x_rows = stage.size(),
                .x_row = o_.table_rows,
                .out = sums_.empty() ? o_.out : TypedNumbers(sums_.data()),
                .width = o_.width,
                .accumulate = std::exchange(adds_, true),
                .accumulator = o_.accumulator,
                .heads = o_.heads};
  if (of_edges) sum.edges.other = nullptr;
  return sum;
}

void LinearKernel::accumulate(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  if (!exact() && o_.heads > 1) return weighted_sum(o_, stage, edges, std::exchange(adds_, true));
  if (exact() && !o_.one_stage && sums_.empty()) sums_.resize(stage.shard.num_dst * o_.width);
  gather_sum(gather_of(stage, edges));
}

void LinearKernel::finish() {
  if (!exact() || o_.one_stage) return;
  round_sums(sums_, o_.has_base, o_.out.reals());
  sums_ = {};
}

// Reads a row for each destination and writes one for each edge.
void LinearKernel::copy_to_edges(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  const Index width = o_.width;
  Bfloat16* const rounded = o_.grad_of_edge_rows.bfloat16();
  real* const reals = o_.grad_of_edge_rows.reals();
  for_row_blocks(edges, width * bytes_of(o_.grad_of_edge_rows.type()), [&](Index first, Index last) {
    Array<real> row(width);
    for (Index i = first; i < last; ++i) {
      const Index v = edges.row(i);
      if (o_.grad_out.is_bfloat16())
        widen(o_.grad_out.bfloat16() + v * width, width, row.data());
      else
        std::copy_n(o_.grad_out.reals() + v * width, width, row.data());
      if (o_.dst_scale != nullptr)
        for (real& number : row) number *= o_.dst_scale[v];
      for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
        const Index to = edges.edge(k) * width;
        if (reals != nullptr)
          std::copy_n(row.data(), width, reals + to);
        else
          narrow(row.data(), width, rounded + to);
      }
    }
  });
}

void LinearKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  if (o_.grad_of_edge_rows.defined()) return copy_to_edges(stage);
  if (!exact() && !is_one_gather())
    return weighted_sum_backward(o_, stage, walk_.by_source(stage), grad_src.reals(), accumulate);
  if (o_.grad_edge_weight != nullptr)
    weighted_sum_backward(o_, stage, walk_.by_source(stage), nullptr, false);
  if (grad_src.defined()) gather_gradients(stage, grad_src, accumulate);
}

void LinearKernel::gather_gradients(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  const real* scale = src_scale(stage.shard);
  if (ExactSum* sums = grad_src.exact_sums(); sums != nullptr && !accumulate)
    std::fill_n(sums, stage.size() * o_.width, ExactSum{});
  gather_sum({.edges = walk_.by_source(stage, o_.edge_weight != nullptr),
              .weight = o_.edge_weight,
              .col_scale = o_.dst_scale,
              .row_scale = scale != nullptr ? scale + stage.begin : nullptr,
              .x = o_.grad_out,
              .x_rows = stage.shard.num_dst,
              .out = grad_src,
              .width = o_.width,
              .accumulate = accumulate,
              .accumulator = o_.accumulator,
              .heads = o_.heads});
}
}}  // namespace sar
#endif
