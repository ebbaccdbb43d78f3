/// Scores that need rows of both ends of an edge: the dot product, and the additive score of GATv2.
#include <sar/core/reduce.hpp>
#include <sar/graph/kernels/attention_common.hpp>

#include <sar/core/isa_begin.hpp>

namespace attention {
namespace {

/// c <x[u, h], dst[v, h]>
class DotScore {
 public:
  explicit DotScore(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage& stage) {
    if (!o_.unit_sources) return;
    const Index rows = stage.size();
    const Index width = source_width(o_);
    inverse_norm_.resize(rows * o_.heads);
    parallel_for(rows, std::max<Index>((1 << 15) / width, 1), [&](Index first, Index last) {
      for (Index i = first; i < last; ++i)
        for (Index h = 0; h < o_.heads; ++h) {
          const real* x = stage.rows + i * width + h * o_.key_dim;
          real& to = inverse_norm_[i * o_.heads + h];
          columns::head_dots(1, o_.key_dim, x, x, &to);
          to = 1 / std::max(std::sqrt(to), smallest_norm);
        }
    });
  }

  /// Scores of `mine` with rows of the other end, but for c.
  void raw(const Rows& rows, const real* mine, real* s) const { columns::dots(rows, mine, s); }
  /// c, for a source row of the stage.
  [[nodiscard]] bool equal_factors() const { return !o_.unit_sources; }
  [[nodiscard]] real factor(Index source, Index h) const {
    return o_.unit_sources ? o_.scale * inverse_norm_[source * o_.heads + h] : o_.scale;
  }
  /// to = keep to + the gradient of the source's row, from rows of destinations and c ds.
  void source_gradient(const Rows& rows, Index source, const real* x, const real* ds, const real* keep,
                       real* to, real* scratch) const {
    if (!o_.unit_sources) return columns::add_rows(rows, ds, keep, to);
    const Index dim = o_.key_dim;
    columns::add_rows(rows, ds, nullptr, scratch);
    for (Index h = 0; h < o_.heads; ++h, x += dim, scratch += dim, to += dim) {
      if (keep == nullptr) std::fill_n(to, dim, real{0});
      real factor = 1;
      columns::add_scaled(1, dim, &factor, scratch, to);
      const real inverse = inverse_norm_[source * o_.heads + h];
      if (inverse * smallest_norm >= 1) continue;
      columns::head_dots(1, dim, x, scratch, &factor);
      factor *= -inverse * inverse;
      columns::add_scaled(1, dim, &factor, x, to);
    }
  }
  /// to += the gradient of the destination's row, from rows of sources and c ds.
  void dst_gradient(const Rows& rows, const real*, const real* ds, const real* ones, real* to, double*,
                    real*) const {
    columns::add_rows(rows, ds, ones, to);
  }

 private:
  static constexpr real smallest_norm = real(1e-12);
  const AttentionOperands& o_;
  Array<real> inverse_norm_;
};

/// <attn[h], leaky_relu(x[u, h] + dst[v, h])>
class AdditiveV2Score {
 public:
  explicit AdditiveV2Score(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage&) {}
  void raw(const Rows& rows, const real* mine, real* s) const {
    columns::leaky_dots(rows, mine, o_.attn, o_.slope, s);
  }
  [[nodiscard]] bool equal_factors() const { return true; }
  [[nodiscard]] real factor(Index, Index) const { return 1; }
  void source_gradient(const Rows& rows, Index, const real* x, const real* ds, const real* keep, real* to,
                       real*) const {
    columns::add_leaky_slopes(rows, x, o_.attn, o_.slope, ds, keep, to, nullptr);
  }
  /// The gradient of attn is added to `attn`, unless null.
  void dst_gradient(const Rows& rows, const real* dst, const real* ds, const real* ones, real* to,
                    double* attn, real* scratch) const {
    columns::add_leaky_slopes(rows, dst, o_.attn, o_.slope, ds, ones, to, attn != nullptr ? scratch : nullptr);
    for (Index j = 0; attn != nullptr && j < o_.heads * o_.dim; ++j)
      attn[j] += static_cast<double>(scratch[j]);
  }

 private:
  const AttentionOperands& o_;
};

/// By destination, for scores of two rows.
template <class PairScore>
class ScoreOfPairs : public PairScore {
 public:
  static constexpr Index num_stats = 3;
  explicit ScoreOfPairs(const AttentionOperands& o) : PairScore(o), o_(o) {}

  void by_destination(const EdgeRanges& edges, const Batch<1>& batch, const Batch<1>& next, real* s) const {
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 0, 0, o_.heads, o_.key_dim);
      this->raw(rows, o_.dst + edges.row(seg.row) * o_.heads * o_.key_dim, s + seg.first * o_.heads);
    }
    multiply(batch, s);
  }
  /// By c, what lies as scores do.
  void multiply(const Batch<1>& batch, real* s) const {
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

/// The backward pass of the source rows of one thread.
template <class PairScore>
struct PairBackwardBySource {
  const AttentionOperands& o;
  const PairScore& score;
  const Stage& stage;
  const real* stats;  ///< [destinations, 3, heads]
  real* grad_src;
  bool accumulate;

  Factors factors{o};
  const local_index* positions = factors.any() ? stage.shard.transpose_positions().data() : nullptr;
  std::vector<real> alpha = per_edge(o.heads), dalpha = alpha, weighted = alpha, mean = alpha;
  std::vector<real> scratch = std::vector<real>(o.heads * o.key_dim);
  std::vector<real> ones = std::vector<real>(o.heads, real{1});

  void take(const Batch<2>& batch, const Batch<2>& next) {
    const Index values = batch.edges * o.heads;
    compute_alpha(batch, next);
    add_values(batch, next, factors.weights(stage.shard, positions, batch, alpha.data(), weighted));
    factors.backward(batch.edges, alpha.data(), dalpha.data(), nullptr);
    for (Index i = 0; i < values; ++i) alpha[i] *= dalpha[i] - mean[i];
    add_keys(batch, next);
  }

  void compute_alpha(const Batch<2>& batch, const Batch<2>& next) {
    const Index heads = o.heads;
    for (Index x = 0; x < next.edges; ++x) __builtin_prefetch(stats + next.other[x] * 3 * heads);
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 0, 0, heads, o.key_dim);
      score.raw(rows, stage.rows + seg.row * source_width(o), &alpha[seg.first * heads]);
      multiply(seg, alpha.data());
    }
    columns::for_head_lanes(heads, [&](auto lanes, Index h) { subtract_logarithms<lanes>(batch, h); });
    exp_below_zero(alpha.data(), batch.edges * heads);
  }

  /// By c, what lies as scores do.
  void multiply(const Segment& seg, real* s) const {
    if (const real c = score.factor(seg.row, 0); score.equal_factors()) {
      for (Index i = seg.first * o.heads; i < (seg.first + seg.edges) * o.heads; ++i) s[i] *= c;
      return;
    }
    for (Index x = seg.first; x < seg.first + seg.edges; ++x)
      for (Index h = 0; h < o.heads; ++h) s[x * o.heads + h] *= score.factor(seg.row, h);
  }

  template <Index L>
  void subtract_logarithms(const Batch<2>& batch, Index h) {
    using columns::load, columns::store;
    for (Index x = 0; x < batch.edges; ++x) {
      const real* of_dst = stats + batch.other[x] * 3 * o.heads + h;
      real* s = &alpha[x * o.heads + h];
      store<L>(s, load<L>(s) - load<L>(of_dst) - load<L>(of_dst + o.heads));
      store<L>(&mean[x * o.heads + h], load<L>(of_dst + 2 * o.heads));
    }
  }

  /// dalpha, and the gradient of the source rows as values.
  void add_values(const Batch<2>& batch, const Batch<2>& next, const real* weights) {
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 1, 0, o.heads, o.dim);
      const Index from = seg.first * o.heads;
      const Index column = seg.row * source_width(o) + value_at(o);
      columns::dots_and_add(rows, stage.rows + column, &dalpha[from], weights + from,
                            accumulate || !seg.begins ? ones.data() : nullptr, grad_src + column);
    }
  }

  /// The gradient of the source rows as keys, from ds, which lies in alpha.
  void add_keys(const Batch<2>& batch, const Batch<2>& next) {
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 0, 0, o.heads, o.key_dim).again();
      const bool adds = !o.separate_value || accumulate || !seg.begins;
      multiply(seg, alpha.data());
      const Index column = seg.row * source_width(o);
      score.source_gradient(rows, seg.row, stage.rows + column, &alpha[seg.first * o.heads],
                            adds ? ones.data() : nullptr, grad_src + column, scratch.data());
    }
  }
};

/// The backward pass of the destination rows of one thread.
template <class PairScore>
struct PairBackwardByDestination {
  const AttentionOperands& o;
  const ScoreOfPairs<PairScore>& score;
  const GraphShard& shard;
  const EdgeRanges& edges;
  const real* stats;  ///< [destinations, 3, heads]
  double* grad_attn;  ///< added to, unless null

  Factors factors{o};
  std::vector<real> alpha = per_edge(o.heads), dalpha = alpha;
  std::vector<real> scratch = std::vector<real>(o.heads * o.key_dim), nowhere = scratch;
  std::vector<real> ones = std::vector<real>(o.heads, real{1});

  void take(const Batch<1>& batch, const Batch<1>& next) {
    compute_alpha(batch, next);
    if (factors.any()) factors.draw(shard, nullptr, batch);
    factors.backward(batch.edges, alpha.data(), dalpha.data(), o.grad_edge_weight);
    if (o.grad_dst == nullptr && grad_attn == nullptr) return;
    add_gradients(batch, next);
  }

  /// And dalpha.
  void compute_alpha(const Batch<1>& batch, const Batch<1>& next) {
    const Index heads = o.heads;
    score.by_destination(edges, batch, next, alpha.data());
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Index v = edges.row(seg.row);
      const Rows rows = rows_of(batch, next, seg, 0, value_at(o), heads, o.dim);
      columns::dots(o.separate_value ? rows : rows.again(), o.grad_out + v * heads * o.dim,
                    &dalpha[seg.first * heads]);
    }
    columns::for_head_lanes(heads, [&](auto lanes, Index h) { subtract_logarithms<lanes>(batch, h); });
    exp_below_zero(alpha.data(), batch.edges * heads);
  }

  template <Index L>
  void subtract_logarithms(const Batch<1>& batch, Index h) {
    using columns::load, columns::store;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const real* of_dst = stats + edges.row(seg.row) * 3 * o.heads + h;
      const auto max = load<L>(of_dst);
      const auto log_sum = load<L>(of_dst + o.heads);
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        real* s = &alpha[x * o.heads + h];
        store<L>(s, load<L>(s) - max - log_sum);
      }
    }
  }

  /// alpha becomes ds.
  template <Index L>
  void differentiate(const Batch<1>& batch, Index h) {
    using columns::load, columns::store;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const auto mean = load<L>(stats + (edges.row(seg.row) * 3 + 2) * o.heads + h);
      for (Index at = seg.first * o.heads + h; at < (seg.first + seg.edges) * o.heads; at += o.heads)
        store<L>(&alpha[at], load<L>(&alpha[at]) * (load<L>(&dalpha[at]) - mean));
    }
  }

  void add_gradients(const Batch<1>& batch, const Batch<1>& next) {
    columns::for_head_lanes(o.heads, [&](auto lanes, Index h) { differentiate<lanes>(batch, h); });
    score.multiply(batch, alpha.data());
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 0, 0, o.heads, o.key_dim).again();
      const Index column = edges.row(seg.row) * o.heads * o.key_dim;
      score.dst_gradient(rows, o.dst + column, &alpha[seg.first * o.heads], ones.data(),
                         o.grad_dst != nullptr ? o.grad_dst + column : nowhere.data(), grad_attn,
                         scratch.data());
    }
  }
};

template <class PairScore>
class PairAttention final : public Attention<ScoreOfPairs<PairScore>> {
  using Base = Attention<ScoreOfPairs<PairScore>>;
  using Base::o_, Base::score_, Base::cursor_, Base::stats_;

 public:
  using Base::Base;

  void backward(const Stage& stage, real* grad_src, bool accumulate) override {
    score_.prepare(stage);
    if (grad_src != nullptr) by_source(stage, grad_src, accumulate);
    if (o_.grad_dst == nullptr && o_.grad_attn == nullptr && o_.grad_edge_weight == nullptr) return;
    const EdgeRanges edges = cursor_.ranges(stage);
    if (o_.grad_attn == nullptr) {
      for_row_blocks(edges.before, edges.num_rows, 2 * source_width(o_) * real_bytes,
                     [&](Index first, Index last) { by_destination(stage, edges, first, last, nullptr); });
      return;
    }
    const Index degree = stage.shard.num_edges() / std::max<Index>(stage.shard.num_rows(), 1) + 1;
    std::vector<double> grad_attn(o_.heads * o_.key_dim);
    sum_row_blocks(
        edges.num_rows, source_width(o_) * degree,
        [&](Index first, Index last, double* partial) { by_destination(stage, edges, first, last, partial); },
        grad_attn);
    for (std::size_t j = 0; j < grad_attn.size(); ++j) o_.grad_attn[j] += grad_attn[j];
  }

 private:
  void by_source(const Stage& stage, real* grad_src, bool accumulate) {
    const ShardTranspose& transpose = stage.shard.transpose();
    const local_index* begin = transpose.begin.data() + stage.begin;
    const Index width = source_width(o_);
    for_row_blocks(begin, stage.size(), 2 * width * real_bytes, [&](Index first, Index last) {
      PairBackwardBySource<PairScore> pass{.o = o_,
                                           .score = score_,
                                           .stage = stage,
                                           .stats = stats_.data(),
                                           .grad_src = grad_src,
                                           .accumulate = accumulate};
      if (!accumulate)
        for (Index i = first; i < last; ++i)
          if (begin[i] == begin[i + 1]) std::fill_n(grad_src + i * width, width, real{0});
      for_batches<2>(begin, begin + 1, first, last, transpose.dst.data(), 0, 
                     edges_at_once(o_.heads * (o_.key_dim + o_.dim), o_.heads),
                     {Gathered{o_.dst, o_.heads * o_.key_dim}, Gathered{o_.grad_out, o_.heads * o_.dim}},
                     [&](const Batch<2>& batch, const Batch<2>& next) { pass.take(batch, next); });
    });
  }

  /// Rows [first, last) of the shard; `grad_attn` is added to, unless null.
  void by_destination(const Stage& stage, const EdgeRanges& edges, Index first, Index last,
                      double* grad_attn) {
    PairBackwardByDestination<PairScore> pass{.o = o_,
                                              .score = score_,
                                              .shard = stage.shard,
                                              .edges = edges,
                                              .stats = stats_.data(),
                                              .grad_attn = grad_attn};
    for_batches<1>(edges.begin, edges.end, first, last, stage.shard.src.data(), stage.begin,
                   edges_at_once(source_width(o_), o_.heads), {Gathered{stage.rows, source_width(o_)}},
                   [&](const Batch<1>& batch, const Batch<1>& next) { pass.take(batch, next); });
  }
};

}  // namespace
}  // namespace attention

std::unique_ptr<ShardKernel> make_dot_kernel(const AttentionOperands& operands) {
  return std::make_unique<attention::PairAttention<attention::DotScore>>(operands);
}
std::unique_ptr<ShardKernel> make_gatv2_kernel(const AttentionOperands& operands) {
  return std::make_unique<attention::PairAttention<attention::AdditiveV2Score>>(operands);
}

#include <sar/core/isa_end.hpp>

SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_dot_kernel, (const AttentionOperands& operands), (operands));
SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_gatv2_kernel, (const AttentionOperands& operands), (operands));
