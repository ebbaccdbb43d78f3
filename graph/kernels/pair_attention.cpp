// SPDX-License-Identifier: MIT

/// Scores that need rows of both ends of an edge: the dot product, and the additive score of GATv2. The head
/// of attention_kernel.hpp has the formulas.
///
/// Backward, for blocks of source rows with 3 to 16 edges per destination on average:
///
/// - by source: batches of edges over the transpose. Rows of dst and g are gathered; the loop that reads a
///   table last prefetches its rows of the next batch. The source row and its gradient stay in the L1 cache.
///   c ds, and the signs of GATv2, are scattered to slots ordered by destination.
/// - by destination: dot gathers rows of x, weighted by the slots. GATv2 reads only the slots, sequentially.
///
/// Rows with more than 1,024 edges are split into parts in both passes.
#include <sar/core/rows/rows.hpp>
#include <sar/graph/kernels/attention_common.hpp>
#include <sar/graph/kernels/pair_attention.hpp>

#include <sar/core/isa/isa_begin.hpp>

namespace attention {
namespace {

/// The score c <x[u, h], dst[v, h]>.
class DotScore {
 public:
  explicit DotScore(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage& stage) {
    if (!o_.unit_sources) return;
    const Index rows = stage.size();
    const Index width = source_width(o_);
    inverse_norm_.prepare(stage, rows * o_.heads, [&](real* inverse_norm) {
      parallel_for(rows, std::max<Index>((1 << 15) / width, 1), [&](Index first, Index last) {
        PassVector<real> buffer(stage.rows.is_bfloat16() ? width : 0);
        for (Index i = first; i < last; ++i) {
          const real* row = source_row(stage, i, width, buffer.data());
          for (Index h = 0; h < o_.heads; ++h) {
            const real* x = row + h * o_.key_dim;
            real& to = inverse_norm[i * o_.heads + h];
            lanes::head_dots(1, o_.key_dim, x, x, &to);
            to = 1 / std::max(std::sqrt(to), smallest_norm);
          }
        }
      });
    });
  }

  /// Reals per edge that the pass by source stores for source_gradient() and the destinations.
  [[nodiscard]] Index sign_words() const { return 0; }
  /// Computes the scores of the row `mine` with rows of the other end, without the factor c.
  template <class X>
  void raw(const RowsOf<X>& rows, const real* mine, real* s) const {
    lanes::dots(rows, mine, s);
  }
  /// Whether c is the same for all sources, and c of a source row of the stage.
  [[nodiscard]] bool equal_factors() const { return !o_.unit_sources; }
  [[nodiscard]] real factor(Index source, Index h) const {
    return o_.unit_sources ? o_.scale * inverse_norm_.data()[source * o_.heads + h] : o_.scale;
  }
  /// Computes to = keep to + the gradient of the source's row, from rows of destinations and c ds; `to` may
  /// be null. Stores signs for add_destinations().
  template <class X>
  void source_gradient(const RowsOf<X>& rows, real*, Index source, const real* x, const real* ds,
                       const real* keep, real* to, double*, real* scratch) const {
    if (to == nullptr) return;
    if (!o_.unit_sources) return lanes::add_rows(rows, ds, keep, to);
    const Index dim = o_.key_dim;
    lanes::add_rows(rows, ds, nullptr, scratch);
    for (Index h = 0; h < o_.heads; ++h, x += dim, scratch += dim, to += dim) {
      if (keep == nullptr) std::fill_n(to, dim, real{0});
      real factor = 1;
      lanes::add_scaled(1, dim, &factor, scratch, to);
      const real inverse = inverse_norm_.data()[source * o_.heads + h];
      if (inverse * smallest_norm >= 1) continue;
      lanes::head_dots(1, dim, x, scratch, &factor);
      factor *= -inverse * inverse;
      lanes::add_scaled(1, dim, &factor, x, to);
    }
  }
  /// Adds the gradients of the rows [first, last) of `edges`, except long ones, from rows of sources and c
  /// ds. The gradient of row i is added to to(i).
  template <class To>
  void add_destinations(const Stage& block, const EdgeRows& edges, EdgeSlots& slots, Index first, Index last,
                        const To& to, double*) const {
    const Index width = o_.heads * o_.key_dim;
    const PassVector<real> ones(o_.heads, real{1});
    with_type(block.rows, [&]<class X>(const X* rows) {
      for_batches<1, X>(
          edges, first, last, edges_at_once(width, o_.heads), {GatheredOf<X>{rows, source_width(o_)}},
          [&](const Batch<1, X>& batch, const Batch<1, X>& next) {
            for (const Segment& seg : batch)
              lanes::add_rows(rows_of(batch, next, seg, 0, 0, o_.heads, o_.key_dim),
                              slots.at(edges.row(seg.row), seg.position), ones.data(), to(seg.row));
          });
    });
  }

 private:
  static constexpr real smallest_norm = real(1e-12);
  const AttentionOperands& o_;
  SourceNumbers inverse_norm_;
};

/// The score <attn[h], leaky_relu(x[u, h] + dst[v, h])>. Both ends have the gradient
///
///     attn * sum of ds leaky_relu'(x + dst)
///
/// so that the signs of x + dst, one bit per column, replace the row at the other end. Since leaky_relu(z) =
/// z leaky_relu'(z), the gradient of attn is the sum over the rows of both ends of the row times the sum
/// above.
class AdditiveV2Score {
 public:
  explicit AdditiveV2Score(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage&) {}
  [[nodiscard]] Index sign_words() const { return lanes::sign_words(o_.heads, o_.dim); }
  template <class X>
  void raw(const RowsOf<X>& rows, const real* mine, real* s) const {
    lanes::leaky_dots(rows, mine, o_.attn, o_.slope, s);
  }
  [[nodiscard]] bool equal_factors() const { return true; }
  [[nodiscard]] real factor(Index, Index) const { return 1; }
  template <class X>
  void source_gradient(const RowsOf<X>& rows, real* signs, Index, const real* x, const real* ds, const real*,
                       real* to, double* attn, real* scratch) const {
    lanes::sum_by_signs_of(rows, x, ds, o_.slope, scratch, signs);
    add(scratch, x, to, attn);
  }
  template <class To>
  void add_destinations(const Stage&, const EdgeRows& edges, EdgeSlots& slots, Index first, Index last,
                        const To& to, double* attn) const {
    const Index width = o_.heads * o_.dim;
    std::vector<real> sums(width), row(width);
    for (Index i = first; i < last; ++i) {
      const Index n = edges.size(i);
      if (n == 0 || n > edges.longest) continue;
      const real* slot = slots.at(edges.row(i), edges.begin[i]);
      lanes::sum_by_signs(n, o_.heads, o_.dim, slot, slots.width(), slot + o_.heads, slots.width(), o_.slope,
                          sums.data());
      add(sums.data(), destination_row(o_, edges.row(i), row.data()), to(i), attn);
    }
  }

 private:
  /// Adds attn * sums to `to`, and the gradient of attn to `attn`, unless null.
  void add(const real* sums, const real* row, real* to, double* attn) const {
    const Index width = o_.heads * o_.dim;
    if (to != nullptr) lanes::add_products(width, o_.attn, sums, to);
    if (attn == nullptr) return;
    for (Index j = 0; j < width; ++j) attn[j] += static_cast<double>(row[j]) * static_cast<double>(sums[j]);
  }

  const AttentionOperands& o_;
};

/// Computes scores by destination, for scores of two rows.
template <class PairScore>
class ScoreOfPairs : public PairScore {
 public:
  static constexpr Index num_stats = 3;
  explicit ScoreOfPairs(const AttentionOperands& o) : PairScore(o), o_(o) {}

  template <class X>
  void by_destination(const EdgeRows& edges, const Batch<1, X>& batch, const Batch<1, X>& next, real* s,
                      real* row) const {
    for (const Segment& seg : batch) {
      RowsOf<X> rows = rows_of(batch, next, seg, 0, 0, o_.heads, o_.key_dim);
      if (!o_.separate_value) rows = rows.without_prefetch();  // the loop over values prefetches
      this->raw(rows, destination_row(o_, edges.row(seg.row), row), s + seg.first * o_.heads);
    }
    multiply(batch, s);
  }
  /// Multiplies values in the layout of scores by c.
  template <class B>
  void multiply(const B& batch, real* s) const {
    if (const real c = this->factor(0, 0); this->equal_factors()) {
      for (Index i = 0; i < batch.edges * o_.heads; ++i) s[i] *= c;
      return;
    }
    for (Index x = 0; x < batch.edges; ++x)
      for (Index h = 0; h < o_.heads; ++h) s[x * o_.heads + h] *= this->factor(batch.other[x], h);
  }

 private:
  const AttentionOperands& o_;
};

/// The backward pass over the source rows of one thread, which gathers rows of numbers X.
template <class PairScore, class X>
struct PairBackward {
  using B = Batch<2, X>;
  const AttentionOperands& o;
  const PairScore& score;
  const Stage& block;    ///< a block of source rows
  const EdgeRows& rows;  ///< its rows, or parts of them
  const real* stats;     ///< [destinations, 3, heads]
  real* grad_src;        ///< a row per result of `rows`; null: not required
  bool accumulate;
  EdgeSlots* slots;   ///< receives c ds and signs, unless null
  double* grad_attn;  ///< added to, unless null

  Factors factors{o};
  Index sign_words = score.sign_words();
  PassVector<real> alpha = per_edge(o.heads), dalpha = alpha, weighted = alpha, mean = alpha;
  std::vector<real> signs = std::vector<real>(batch_edges * sign_words);
  std::vector<real> scratch = std::vector<real>(o.heads * o.key_dim);
  PassVector<real> ones = PassVector<real>(o.heads, real{1});
  std::array<real*, batch_edges> slot{};  ///< slot of each edge of the batch
  std::vector<real> own = std::vector<real>(source_width(o));

  void take(const B& batch, const B& next) {
    if (slots != nullptr) find_slots(batch);
    compute_alpha(batch, next);
    add_values(batch, next, factors.weights(rows, batch, alpha.data(), weighted));
    factors.backward(batch.edges, alpha.data(), dalpha.data(), o.grad_edge_weight);
    to_score_gradients(batch.edges * o.heads, dalpha.data(), mean.data(), alpha.data());
    add_keys(batch, next);
    if (slots != nullptr) fill_slots(batch);
  }

  [[nodiscard]] Index source(const Segment& segment) const { return rows.row(segment.row); }
  [[nodiscard]] const real* source_row_of(const Segment& segment) {
    return source_row(block, source(segment), source_width(o), own.data());
  }

  void find_slots(const B& batch) {
    for (const Segment& seg : batch) {
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        slot[x] = slots->at(batch.other[x], rows.position_of[seg.position + x - seg.first]);
        prefetch_bytes(slot[x], 1);
      }
    }
  }
  void fill_slots(const B& batch) {
    const auto copy = [&](const real* from, Index n, Index to) {
      lanes::for_head_lanes(n, [&](auto L, Index j) {
        for (Index x = 0; x < batch.edges; ++x)
          lanes::store<L>(slot[x] + to + j, lanes::load<L>(from + x * n + j));
      });
    };
    copy(alpha.data(), o.heads, 0);
    copy(signs.data(), sign_words, o.heads);
  }

  void compute_alpha(const B& batch, const B& next) {
    const Index heads = o.heads;
    for (Index x = 0; x < next.edges; ++x) {
      prefetch_row(stats + next.other[x] * 3 * heads, 1);
      prefetch_row(stats + next.other[x] * 3 * heads + 3 * heads - 1, 1);
    }
    for (const Segment& seg : batch) {
      const auto keys = rows_of(batch, next, seg, 0, 0, heads, o.key_dim).without_prefetch();
      score.raw(keys, source_row_of(seg), &alpha[seg.first * heads]);
      multiply(seg, alpha.data());
    }
    lanes::for_head_lanes(heads, [&](auto L, Index h) { subtract_logarithms<L>(batch, h); });
    exp_below_zero(alpha.data(), batch.edges * heads);
  }

  /// Multiplies values in the layout of scores by c.
  void multiply(const Segment& seg, real* s) const {
    if (const real c = score.factor(source(seg), 0); score.equal_factors()) {
      for (Index i = seg.first * o.heads; i < (seg.first + seg.edges) * o.heads; ++i) s[i] *= c;
      return;
    }
    for (Index x = seg.first; x < seg.first + seg.edges; ++x)
      for (Index h = 0; h < o.heads; ++h) s[x * o.heads + h] *= score.factor(source(seg), h);
  }

  template <Index L>
  void subtract_logarithms(const B& batch, Index h) {
    using lanes::load, lanes::store;
    for (Index x = 0; x < batch.edges; ++x) {
      const real* of_dst = stats + batch.other[x] * 3 * o.heads + h;
      real* s = &alpha[x * o.heads + h];
      store<L>(s, load<L>(s) - load<L>(of_dst) - load<L>(of_dst + o.heads));
      store<L>(&mean[x * o.heads + h], load<L>(of_dst + 2 * o.heads));
    }
  }

  /// Computes dalpha, and adds the gradient of the source rows as values.
  void add_values(const B& batch, const B& next, const real* weights) {
    for (const Segment& seg : batch) {
      const auto gathered = rows_of(batch, next, seg, 1, 0, o.heads, o.dim);
      const Index from = seg.first * o.heads;
      const real* values = source_row_of(seg) + value_at(o);
      if (grad_src != nullptr)
        lanes::dots_and_add(gathered, values, &dalpha[from], weights + from,
                            accumulate || !seg.begins ? ones.data() : nullptr,
                            grad_src + seg.row * source_width(o) + value_at(o));
      else
        lanes::dots(gathered, values, &dalpha[from]);
    }
  }

  /// Adds the gradient of the source rows as keys. Reads ds from alpha and multiplies it by c there.
  void add_keys(const B& batch, const B& next) {
    for (const Segment& seg : batch) {
      multiply(seg, alpha.data());
      if (grad_src == nullptr && slots == nullptr) continue;
      const auto keys = rows_of(batch, next, seg, 0, 0, o.heads, o.key_dim);
      const bool adds = !o.separate_value || accumulate || !seg.begins;
      score.source_gradient(keys, signs.data() + seg.first * sign_words, source(seg), source_row_of(seg),
                            &alpha[seg.first * o.heads], adds ? ones.data() : nullptr,
                            grad_src != nullptr ? grad_src + seg.row * source_width(o) : nullptr, grad_attn,
                            scratch.data());
    }
  }
};

template <class PairScore>
class PairAttention final : public Attention<ScoreOfPairs<PairScore>> {
  using Base = Attention<ScoreOfPairs<PairScore>>;
  using Base::o_, Base::score_, Base::walks_, Base::stats_;

 public:
  explicit PairAttention(const AttentionOperands& operands)
      : Base(operands), slots_(o_.heads + score_.sign_words()) {}

  [[nodiscard]] NumberType gradient_type(NumberType wanted) const override {
    return o_.grad_out.is_bfloat16() ? wanted : NumberType::reals;
  }
  [[nodiscard]] bool writes(NumberType) const override { return true; }

  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    if (o_.grad_dst == nullptr && o_.grad_attn == nullptr) {
      if (grad_src.defined() || o_.grad_edge_weight != nullptr)
        by_source(stage, grad_src, accumulate, nullptr);
      return;
    }
    // Slots for 3 to 16 edges per destination: together with the statistics per destination they use half the
    // memory of the result, if that is enough.
    const Index free = o_.heads * o_.dim / 2 - ScoreOfPairs<PairScore>::num_stats * o_.heads - 8;
    const Index per_row = std::clamp<Index>(free / slots_.width(), 3, 16);
    const Index most_edges = std::max<Index>(per_row * stage.shard.num_dst, 1 << 12);
    const Index width = source_width(o_);
    for_blocks_of_sources(stage, width, most_edges, [&](const Stage& block) {
      const EdgeRows edges = walks_.at(block.shard).by_destination(block);
      slots_.open(block.shard.num_dst, edges);
      const Index skipped = (block.begin - stage.begin) * width;
      by_source(block, grad_src.from(skipped), accumulate, &slots_);
      by_destination(block, edges);
    });
  }

  /// Calls body(first, last, gradient of attn or null) for blocks of rows.
  template <class Body>
  void over_rows(const EdgeRows& rows, Index bytes_per_edge, const Body& body) {
    if (o_.grad_attn == nullptr)
      return for_row_blocks(rows, bytes_per_edge,
                            [&](Index first, Index last) { body(first, last, nullptr); });
    std::vector<double> sums(o_.heads * o_.key_dim);
    const Index n = rows.num_rows, degree = n > 0 ? (rows.offsets()[n - 1] - rows.offsets()[0]) / n + 1 : 1;
    sum_row_blocks(
        n, bytes_per_edge / real_bytes * degree,
        [&](Index first, Index last, double* partial) { body(first, last, partial); }, sums);
    for (std::size_t j = 0; j < sums.size(); ++j) o_.grad_attn[j] += sums[j];
  }

  void by_source(const Stage& block, TypedNumbers grad_src, bool accumulate, EdgeSlots* slots) {
    score_.prepare(block);
    const bool numbered = slots != nullptr || o_.mask != nullptr || o_.edge_weight != nullptr;
    sum_in_parts(walks_.at(block.shard).by_source(block, numbered), source_width(o_), grad_src, accumulate,
                 [&](const EdgeRows& rows, TypedNumbers to, bool add) {
                   with_type(ConstTypedNumbers(o_.grad_out.numbers()), [&](const auto* grad_out) {
                     take_sources(block, rows, grad_out, to, add, slots);
                   });
                 });
  }

  template <class X>
  void take_sources(const Stage& block, const EdgeRows& rows, const X* grad_out, TypedNumbers grad_src,
                    bool accumulate, EdgeSlots* slots) {
    const Index width = source_width(o_);
    const auto* const dst = static_cast<const X*>(o_.dst.numbers().memory());
    over_rows(rows, 2 * width * real_bytes, [&](Index first, Index last, double* grad_attn) {
      GradientBlock gradients(grad_src, first * width, (last - first) * width, accumulate);
      real* const to = grad_src.defined() ? gradients.data() - first * width : nullptr;
      if (to != nullptr && !accumulate)
        for (Index i = first; i < last; ++i)
          if (rows.size(i) == 0) std::fill_n(to + i * width, width, real{0});
      PairBackward<PairScore, X> pass{.o = o_,
                                      .score = score_,
                                      .block = block,
                                      .rows = rows,
                                      .stats = stats_.data(),
                                      .grad_src = to,
                                      .accumulate = accumulate,
                                      .slots = slots,
                                      .grad_attn = grad_attn};
      for_batches<2, X>(
          rows, first, last, edges_at_once(o_.heads * (o_.key_dim + o_.dim), o_.heads),
          {GatheredOf<X>{dst, o_.heads * o_.key_dim}, GatheredOf<X>{grad_out, o_.heads * o_.dim}},
          [&](const Batch<2, X>& batch, const Batch<2, X>& next) {
            pass.take(batch, next);
            poll_progress();  // a task of sum_row_blocks may have many edges
          });
      gradients.store();
    });
  }

  void by_destination(const Stage& block, const EdgeRows& edges) {
    const Index width = o_.heads * o_.key_dim;
    sum_in_parts(edges, width, o_.grad_dst, true, [&](const EdgeRows& rows, TypedNumbers to, bool) {
      over_rows(rows, source_width(o_) * real_bytes, [&](Index first, Index last, double* grad_attn) {
        const auto result = [&](Index i) {
          return to.defined() ? to.reals() + rows.result(i) * width : nullptr;
        };
        score_.add_destinations(block, rows, slots_, first, last, result, grad_attn);
      });
    });
  }

  EdgeSlots slots_;  ///< [c ds per head, signs]
};

}  // namespace
}  // namespace attention

std::unique_ptr<ShardKernel> make_dot_kernel(const AttentionOperands& operands) {
  return std::make_unique<attention::PairAttention<attention::DotScore>>(operands);
}
std::unique_ptr<ShardKernel> make_gatv2_kernel(const AttentionOperands& operands) {
  return std::make_unique<attention::PairAttention<attention::AdditiveV2Score>>(operands);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_dot_kernel, (const AttentionOperands& operands), (operands));
SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_gatv2_kernel, (const AttentionOperands& operands),
             (operands));
