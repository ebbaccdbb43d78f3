// SPDX-License-Identifier: MIT

/// The additive score of GAT, which needs one value per head from each end of an edge; the head of
/// attention_kernel.hpp has the formulas.
///
/// Forward: el is computed once per source row of a stage, then attention_common.hpp iterates over the
/// destinations. Per edge and head the score loop reads el of the source, which is prefetched one batch
/// ahead.
///
/// Backward, for blocks of source rows with at most 6 edges per destination of the rank on average:
///
/// - by source: batches of edges over the transpose; x_u and its gradient are in registers, rows of g are
///   gathered and prefetched one batch ahead. ds is written sequentially to a buffer.
/// - by destination: each destination gathers the ds of its edges from the buffer; indices and buffer entries
///   of later rows are prefetched. Its sum stays in registers.
///
/// In the pass by source, a thread that has processed a range of source rows adds grad_el times attn to
/// their gradients.
#include <sar/core/rows/rows.hpp>
#include <sar/graph/kernels/attention_common.hpp>
#include <sar/graph/kernels/gat_attention.hpp>

#include <sar/core/isa/isa_begin.hpp>

namespace attention {
namespace {

/// The score leaky_relu(el[u, h] + dst[v, h] + type_term[r, h]).
class AdditiveScore {
 public:
  static constexpr Index num_stats = 4;
  explicit AdditiveScore(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage& stage) {
    const Index rows = stage.size();
    const Index width = o_.heads * o_.dim;
    el_.prepare(stage, rows * o_.heads, [&](real* el) {
      parallel_for(rows, std::max<Index>((1 << 15) / width, 1), [&](Index first, Index last) {
        PassVector<real> buffer(stage.rows.is_bfloat16() ? width : 0);
        for (Index i = first; i < last; ++i)
          lanes::head_dots(o_.heads, o_.dim, o_.attn, source_row(stage, i, width, buffer.data()),
                           el + i * o_.heads);
      });
    });
  }

  template <class B>
  void by_destination(const EdgeRows& edges, const B& batch, const B& next, real* s, real*) const {
    for (Index x = 0; x < next.edges; ++x) prefetch_row(source(next.other[x]), o_.heads);
    lanes::for_head_lanes(o_.heads, [&](auto L, Index h) {
      for (const Segment& seg : batch) {
        const auto er = lanes::load<L>(o_.dst.reals().row(edges.row(seg.row)) + h);
        for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
          auto sum = lanes::load<L>(source(batch.other[x]) + h) + er;
          if (o_.type_term != nullptr)
            sum += lanes::load<L>(type_term(edges.edge(seg.position + x - seg.first)) + h);
          lanes::store<L>(s + x * o_.heads + h, leaky<L>(sum, o_.slope));
        }
      }
    });
  }

  /// Returns el of a source row of the stage, [heads].
  [[nodiscard]] const real* source(Index row) const { return el_.data() + row * o_.heads; }

  /// Requires a type_term.
  [[nodiscard]] const real* type_term(Index edge) const { return o_.type_term + o_.types[edge] * o_.heads; }

 private:
  const AttentionOperands& o_;
  SourceNumbers el_;
};

/// Sums by destination of values that are computed by source row. The buffer has one entry per edge of a
/// block of source rows, in their order; each destination gathers the entries of its edges.
class DestinationSums {
 public:
  /// Edges of a block per destination. More edges mean fewer passes over the destinations.
  static constexpr Index edges_per_destination = 6;

  explicit DestinationSums(Index heads) : heads_(heads) {}

  /// Prepares the buffer for the edges of `block`, some of the shard's source rows, by source. Blocks of a
  /// shard must come in ascending order.
  void open(const Stage& block, const EdgeRows& sources) {
    if (block.begin == 0) next_.at(block.shard).start(block.shard);
    first_ = sources.num_rows > 0 ? sources.begin[0] : 0;
    const std::size_t values = sources.num_edges() * heads_;
    if (buffer_.size() < values) {
      buffer_ = Array<real>();  // free the old buffer first
      buffer_.resize(values);
    }
  }
  /// Returns the buffer entry [heads] of the edge at `position` of the transpose. The entry of the next edge
  /// follows it.
  [[nodiscard]] real* place(Index position) { return buffer_.data() + (position - first_) * heads_; }

  /// Adds the entries written since open(block) to sums [destinations, heads].
  void add_to(const Stage& block, real* sums) {
    const GraphShard& shard = block.shard;
    const local_index* offsets = shard.row_begin.data();
    const local_index* src = shard.src.data();
    const local_index* place_of = shard.positions_in_transpose().data();
    NextEdges& later = next_.at(shard);
    const EdgeRows rows{.num_rows = shard.num_rows(), .begin = offsets, .end = offsets + 1};
    for_row_blocks(rows, heads_ * real_bytes, [&](Index first, Index last) {
      lanes::for_head_lanes(heads_, [&](auto L, Index h) {
        const bool moves = h + L == heads_;
        for (Index i = first; i < last; ++i) {
          prefetch(block, place_of, later, i, last);
          if (later.source[i] >= block.end) continue;
          const local_index end = offsets[i + 1];
          local_index k = later.position[i];
          real* to = sums + shard.dst_row(i) * heads_ + h;
          auto sum = lanes::load<L>(to);
          do sum += lanes::load<L>(place(place_of[k]) + h);
          while (++k < end && src[k] < block.end);
          lanes::store<L>(to, sum);
          if (!moves) continue;
          later.position[i] = k;
          later.source[i] = k < end ? src[k] : NextEdges::no_more;
        }
      });
    });
  }

 private:
  /// Prefetches what later rows will read: the indices of row i + 16, then the buffer entries of row i + 8,
  /// as many as a row has on average.
  void prefetch(const Stage& block, const local_index* place_of, const NextEdges& next, Index i,
                Index last) const {
    constexpr Index rows = 8;
    const GraphShard& shard = block.shard;
    if (const Index later = i + 2 * rows; later < last) {
      prefetch_bytes(shard.src.data() + next.position[later], 1);
      prefetch_bytes(place_of + next.position[later], 1);
    }
    const Index soon = i + rows;
    if (soon >= last || next.source[soon] >= block.end) return;
    const Index last_edge = shard.row_begin[soon + 1] - 1, last_place = std::ssize(buffer_) - 1;
    for (Index n = 0; n < edges_per_destination; ++n) {
      const Index k = std::min<Index>(next.position[soon] + n, last_edge);
      prefetch_bytes(buffer_.data() + std::min((place_of[k] - first_) * heads_, last_place), 1);
    }
  }

  Index heads_;
  Index first_ = 0;  // position of the block's first edge
  OfEachShard<NextEdges> next_;
  Array<real> buffer_;
};

/// The backward pass over the source rows of one thread.
struct AdditiveBackward {
  const AttentionOperands& o;
  const AdditiveScore& score;
  const EdgeRows& rows;   ///< of a block of source rows
  Index skipped;          ///< row i of the block is row i + skipped of the stage
  const real* stats;      ///< [destinations, 4, heads]
  DestinationSums& sums;  ///< of ds
  real* grad_el;          ///< [rows of the stage, heads], added to
  real* grad_src;         ///< as block.rows; null: not required here
  bool accumulate;
  double* grad_type_term;  ///< [types, heads], added to, unless null
  const Stage* own = nullptr;  ///< the block with its rows in `real`

  PassVector<real> alpha = per_edge(o.heads), dalpha = alpha, slope = alpha, mean = alpha, weighted = alpha;
  PassVector<real> ones = PassVector<real>(o.heads, real{1});
  Factors factors{o};

  template <class B>
  void take(const B& batch, const B& next) {
    for (Index x = 0; x < next.edges; ++x) prefetch_row(stats + next.other[x] * 4 * o.heads, 4 * o.heads);
    lanes::for_head_lanes(o.heads, [&](auto L, Index h) { compute_scores<L>(batch, h); });
    exp_below_zero(alpha.data(), batch.edges * o.heads);
    add_values(batch, next, factors.weights(rows, batch, alpha.data(), weighted));
    factors.backward(batch.edges, alpha.data(), dalpha.data(), o.grad_edge_weight);
    real* ds = o.grad_dst != nullptr ? sums.place(batch.segment[0].position) : alpha.data();
    lanes::for_head_lanes(o.heads, [&](auto L, Index h) { compute_gradients<L>(batch, ds, h); });
    if (grad_type_term != nullptr) add_to_types(batch, ds);
  }

  [[nodiscard]] Index edge(const Segment& seg, Index x) const {
    return rows.edge(seg.position + x - seg.first);
  }

  template <class B>
  void add_to_types(const B& batch, const real* ds) {
    for (const Segment& seg : batch) {
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        double* to = grad_type_term + o.types[edge(seg, x)] * o.heads;
        for (Index h = 0; h < o.heads; ++h) to[h] += static_cast<double>(ds[x * o.heads + h]);
      }
    }
  }

  /// Computes the logarithms of alpha, and the other values that depend on both ends of an edge.
  template <Index L, class B>
  void compute_scores(const B& batch, Index h) {
    using lanes::load, lanes::store;
    const Index heads = o.heads;
    for (const Segment& seg : batch) {
      const auto el = load<L>(score.source(seg.row + skipped) + h);
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        const real* of_dst = stats + batch.other[x] * 4 * heads + h;
        auto raw = el + load<L>(of_dst + 3 * heads);
        if (o.type_term != nullptr) raw += load<L>(score.type_term(edge(seg, x)) + h);
        const auto one = lanes::Vector<L>{} + real{1};
        store<L>(&slope[x * heads + h], raw > 0 ? one : o.slope * one);
        store<L>(&alpha[x * heads + h], leaky<L>(raw, o.slope) - load<L>(of_dst) - load<L>(of_dst + heads));
        store<L>(&mean[x * heads + h], load<L>(of_dst + 2 * heads));
      }
    }
  }

  /// Computes dalpha, and adds the gradient of the source rows as values.
  template <class B>
  void add_values(const B& batch, const B& next, const real* weights) {
    for (const Segment& seg : batch) {
      const auto gathered = rows_of(batch, next, seg, 0, 0, o.heads, o.dim);
      const Index column = seg.row * o.heads * o.dim;
      const Index from = seg.first * o.heads;
      if (grad_src != nullptr)
        lanes::dots_and_add(gathered, own->rows.reals() + column, &dalpha[from], weights + from,
                            accumulate || !seg.begins ? ones.data() : nullptr, grad_src + column);
      else
        lanes::dots(gathered, own->rows.reals() + column, &dalpha[from]);
    }
  }

  /// Computes ds of the edges and adds it to grad_el of the sources.
  template <Index L, class B>
  void compute_gradients(const B& batch, real* ds, Index h) const {
    using lanes::load, lanes::store;
    const Index heads = o.heads;
    for (const Segment& seg : batch) {
      const Index from = seg.first * heads + h;
      real* to = grad_el + (seg.row + skipped) * heads + h;
      store<L>(to, load<L>(to) + lanes::sum_of_rows<L>(seg.edges, heads, [&](auto N, Index at) {
                     const Index k = from + at;
                     const auto of_dst = load<N>(&mean[k]);
                     const auto all =
                         load<N>(&alpha[k]) * load<N>(&slope[k]) * (load<N>(&dalpha[k]) - of_dst);
                     const auto d = of_dst == one_term ? lanes::Vector<N>{} : all;
                     store<N>(ds + k, d);
                     return d;
                   }));
    }
  }
};

class AdditiveAttention final : public Attention<AdditiveScore> {
 public:
  explicit AdditiveAttention(const AttentionOperands& operands)
      : Attention(operands), by_destination_(operands.heads) {}

  [[nodiscard]] NumberType gradient_type(NumberType wanted) const override {
    return o_.grad_out.is_bfloat16() ? wanted : NumberType::reals;
  }
  [[nodiscard]] bool writes(NumberType) const override { return true; }

  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    const Index width = o_.heads * o_.dim;
    score_.prepare(stage);
    grad_el_.assign(stage.size() * o_.heads, 0);
    const Index most_edges =
        std::max<Index>(DestinationSums::edges_per_destination * stage.shard.num_dst, 1 << 12);
    for_blocks_of_sources(stage, width, most_edges, [&](const Stage& block) {
      const bool numbered = o_.mask != nullptr || o_.edge_weight != nullptr || o_.type_term != nullptr;
      const EdgeRows rows = walks_.at(block.shard).by_source(block, numbered);
      if (o_.grad_dst != nullptr) by_destination_.open(block, rows);
      const Index skipped = block.begin - stage.begin;
      backward_block(block, rows, skipped, grad_src.from(skipped * width), accumulate);
      if (o_.grad_dst != nullptr) by_destination_.add_to(block, o_.grad_dst);
    });
    if (o_.grad_attn != nullptr) add_grad_attn(stage);
  }

  void backward_block(const Stage& block, const EdgeRows& rows, Index skipped, TypedNumbers grad_src,
                      bool accumulate) {
    const Index width = o_.heads * o_.dim, num_rows = rows.num_rows;
    const auto take = [&](Index first, Index last, double* grad_type_term) {
      backward_rows(block, first, last, grad_src,
                    {.o = o_,
                     .score = score_,
                     .rows = rows,
                     .skipped = skipped,
                     .stats = stats_.data(),
                     .sums = by_destination_,
                     .grad_el = grad_el_.data(),
                     .grad_src = nullptr,
                     .accumulate = accumulate,
                     .grad_type_term = grad_type_term});
    };
    if (o_.grad_type_term == nullptr)
      return for_row_blocks(rows, 2 * width * real_bytes,
                            [&](Index first, Index last) { take(first, last, nullptr); });
    std::vector<double> sums(o_.num_types * o_.heads);
    const Index degree = num_rows > 0 ? rows.num_edges() / num_rows + 1 : 1;
    sum_row_blocks(num_rows, 2 * width * degree, take, sums);
    for (std::size_t i = 0; i < sums.size(); ++i) o_.grad_type_term[i] += sums[i];
  }

  /// Rows of type bfloat16 are widened for this thread, and their gradients added up in `real` and rounded.
  void backward_rows(const Stage& block, Index first, Index last, TypedNumbers to,
                     AdditiveBackward pass) const {
    const Index width = o_.heads * o_.dim, numbers = (last - first) * width;
    Stage rows = block;
    Array<real> own(block.rows.is_bfloat16() ? numbers : 0);
    GradientBlock gradients(to, first * width, numbers, pass.accumulate);
    if (block.rows.is_bfloat16()) {
      widen(block.rows.bfloat16() + first * width, numbers, own.data());
      rows.rows = std::as_const(own).data() - first * width;
    }
    if (to.defined()) pass.grad_src = gradients.data() - first * width;
    pass.own = &rows;
    with_type(ConstTypedNumbers(o_.grad_out.numbers()),
              [&](const auto* grad_out) { run_rows(first, last, grad_out, pass); });
    gradients.store();
  }

  template <class X>
  void run_rows(Index first, Index last, const X* grad_out, AdditiveBackward& pass) const {
    const Index width = o_.heads * o_.dim;
    real* grad_src = pass.grad_src;
    if (grad_src != nullptr && !pass.accumulate)
      for (Index i = first; i < last; ++i)
        if (pass.rows.size(i) == 0) std::fill_n(grad_src + i * width, width, real{0});
    for_batches<1, X>(pass.rows, first, last, edges_at_once(width, o_.heads),
                      {GatheredOf<X>{grad_out, width}},
                      [&](const Batch<1, X>& batch, const Batch<1, X>& next) {
                        pass.take(batch, next);
                        if (pass.grad_type_term != nullptr) poll_progress();  // a task may have many edges
                      });
    for (Index i = first; grad_src != nullptr && i < last; ++i)
      lanes::add_scaled(o_.heads, o_.dim, pass.grad_el + (i + pass.skipped) * o_.heads, o_.attn,
                        grad_src + i * width);
  }

  /// Adds the gradient of attn: the sum over the rows of the stage times their gradient of el.
  void add_grad_attn(const Stage& stage) {
    const Index heads = o_.heads;
    const Index width = heads * o_.dim;
    std::vector<double> grad_attn(width);
    sum_row_blocks(
        stage.size(), width,
        [&](Index first, Index last, double* partial) {
          PassVector<real> buffer(stage.rows.is_bfloat16() ? width : 0);
          for (Index i = first; i < last; ++i) {
            const real* const row = source_row(stage, i, width, buffer.data());
            for (Index h = 0; h < heads; ++h) {
              const double factor = grad_el_[i * heads + h];
              const real* x = row + h * o_.dim;
              double* to = partial + h * o_.dim;
              for (Index j = 0; j < o_.dim; ++j) to[j] += factor * static_cast<double>(x[j]);
            }
          }
        },
        grad_attn);
    for (Index j = 0; j < width; ++j) o_.grad_attn[j] += grad_attn[j];
  }

  DestinationSums by_destination_;
  Array<real> grad_el_;
};

}  // namespace
}  // namespace attention

std::unique_ptr<ShardKernel> make_gat_kernel(const AttentionOperands& operands) {
  return std::make_unique<attention::AdditiveAttention>(operands);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_gat_kernel, (const AttentionOperands& operands), (operands));
