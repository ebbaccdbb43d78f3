// SPDX-License-Identifier: MIT

/// Shared by the attention kernels, whatever the score: dropout and edge weights, and the online softmax.
/// Included by attention kernels only.
///
/// Loop order of the forward pass: blocks of destination rows in parallel; within a block, batches of up to
/// 64 edges in the order of destinations; within a batch, first the scores of all edges and heads, then
/// maxima, exponentials and sums, then the gathered rows. A batch and the next one fit in the L1 cache. The
/// columns of a destination's result stay in registers while the rows of a segment are added.
#pragma once

#include <sar/core/rows/row_access.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/attention_kernel.hpp>
#include <sar/graph/kernels/edge_batches.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/kernels/row_loops.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <sar/core/isa/isa_begin.hpp>

namespace attention {

using namespace edge_batches;

/// Computes exponentials of differences to a maximum. Negligible results are set to exactly 0, so that they
/// are not subnormal.
inline void exp_below_zero(real* x, Index n) {
  constexpr real nothing = sizeof(real) == 4 ? real(1e-34) : real(1e-300);
  vector_math::exp(x, x, n);
  for (Index i = 0; i < n; ++i) x[i] = x[i] < nothing ? real{0} : x[i];
}

/// D of a destination whose softmax has one term, so that ds is 0.
inline constexpr real one_term = std::numeric_limits<real>::infinity();

/// What is subtracted from scores whose maximum is `most`: 0 if all of them are -infinity, so that their
/// exponentials are 0.
template <class Number>
inline Number finite_maximum(Number most) {
  return most > -std::numeric_limits<real>::infinity() ? most : Number{};
}
/// What exponentials are divided by: their sum, which is 1 or more unless all scores are -infinity.
template <class Number>
inline Number softmax_divisor(Number sum) {
  return sum < 1 ? Number{} + 1 : sum;
}

/// Replaces D by one_term where the sum of the exponentials is 1: all others than the largest, if there are
/// any, are less than its rounding.
inline void mark_one_term(Index heads, const real* log_sum, real* mean) {
  for (Index h = 0; h < heads; ++h) mean[h] = log_sum[h] == 0 ? one_term : mean[h];
}

/// Replaces n coefficients alpha by ds = alpha (dalpha - D).
inline void to_score_gradients(Index n, const real* dalpha, const real* mean, real* alpha) {
  for (Index i = 0; i < n; ++i) alpha[i] = mean[i] == one_term ? real{0} : alpha[i] * (dalpha[i] - mean[i]);
}

/// Number of columns of a source row, and the first column of its value.
inline Index source_width(const AttentionOperands& o) {
  return o.heads * (o.separate_value ? o.key_dim + o.dim : o.dim);
}
inline Index value_at(const AttentionOperands& o) {
  return o.separate_value ? o.heads * o.key_dim : 0;
}

/// Source row i of a stage as `real`: in place, or widened into `buffer`.
inline const real* source_row(const Stage& stage, Index i, Index width, real* buffer) {
  if (!stage.rows.is_bfloat16()) return stage.rows.reals() + i * width;
  widen(stage.rows.bfloat16() + i * width, width, buffer);
  return buffer;
}
/// The same for row v of the destinations, of heads * key_dim columns.
inline const real* destination_row(const AttentionOperands& o, Index v, real* buffer) {
  if (!o.dst.is_bfloat16()) return o.dst.reals().row(v);
  const Index width = o.heads * o.key_dim;
  widen(o.dst.bfloat16() + v * width, width, buffer);
  return buffer;
}

/// `count` gradients from number `first` on, which one thread computes in `real`.
class GradientBlock {
 public:
  GradientBlock(TypedNumbers to, Index first, Index count, bool accumulate)
      : to_(to.from(first)), count_(count), sums_(to.is_bfloat16() ? count : 0) {
    if (to_.is_bfloat16() && accumulate) widen(to_.bfloat16(), count_, sums_.data());
  }
  /// Null if the gradients are not required.
  [[nodiscard]] real* data() { return to_.is_bfloat16() ? sums_.data() : to_.reals(); }
  /// Once, after the last change.
  void store() const {
    if (to_.is_bfloat16()) narrow(sums_.data(), count_, to_.bfloat16());
  }

 private:
  TypedNumbers to_;
  Index count_;
  Array<real> sums_;
};

template <Index L>
inline lanes::Vector<L> leaky(const lanes::Vector<L>& x, real slope) {
  return x > 0 ? x : slope * x;
}

/// Factors that multiply the coefficients of a batch after the softmax: dropout and edge weights.
class Factors {
 public:
  explicit Factors(const AttentionOperands& o) : o_(o) {
    if (!any()) return;
    mask_.assign(batch_edges * o.heads, 1);
    factor_.resize(mask_.size());
  }
  [[nodiscard]] bool any() const { return o_.mask != nullptr || o_.edge_weight != nullptr; }

  /// Computes the factors of a batch.
  template <class B>
  void draw(const EdgeRows& rows, const B& batch) {
    if (!any()) return;
    for (const Segment& s : batch)
      for (Index x = 0; x < s.edges; ++x) edge_[s.first + x] = rows.edge(s.position + x);
    const Index n = batch.edges;
    if (o_.mask != nullptr) {
      std::array<Index, batch_edges> ids;
      for (Index x = 0; x < n; ++x) ids[x] = o_.edge_ids[edge_[x]];
      o_.mask->factors(std::span(ids.data(), n), o_.heads, mask_.data());
    }
    for (Index x = 0; x < n; ++x) {
      const real weight = o_.edge_weight != nullptr ? o_.edge_weight[edge_[x]] : 1;
      for (Index i = x * o_.heads; i < (x + 1) * o_.heads; ++i) factor_[i] = mask_[i] * weight;
    }
  }
  /// Returns alpha if there are no factors. Otherwise writes alpha times the factors to `buffer` and returns
  /// it.
  template <class B>
  const real* weights(const EdgeRows& rows, const B& batch, const real* alpha, PassVector<real>& buffer) {
    if (!any()) return alpha;
    draw(rows, batch);
    for (Index i = 0; i < batch.edges * o_.heads; ++i) buffer[i] = alpha[i] * factor_[i];
    return buffer.data();
  }
  /// Multiplies dalpha, which holds <g, value>, by the factors, in place. Also writes the gradients of the n
  /// edges' weights, unless null.
  void backward(Index n, const real* alpha, real* dalpha, real* grad_edge_weight) const {
    if (!any()) return;
    for (Index x = 0; grad_edge_weight != nullptr && x < n; ++x) {
      real sum = 0;
      for (Index i = x * o_.heads; i < (x + 1) * o_.heads; ++i) sum += mask_[i] * alpha[i] * dalpha[i];
      grad_edge_weight[edge_[x]] = sum;
    }
    for (Index i = 0; i < n * o_.heads; ++i) dalpha[i] *= factor_[i];
  }

 private:
  const AttentionOperands& o_;
  std::array<Index, batch_edges> edge_;
  PassVector<real> mask_, factor_;  // [edges of the batch, heads]
};

/// Cached values per source row, for example el. The values of the local shard are kept from its first part
/// to its last, because stages of the remote shard run in between.
class SourceNumbers {
 public:
  /// Calls compute(values) unless the values are cached. Called before each stage or part, forward and
  /// backward.
  template <class Compute>
  void prepare(const Stage& stage, Index size, const Compute& compute) {
    current_ = stage.is_part() ? &of_parts_ : &of_stage_;
    if (stage.is_part() && stage.first_row > 0) return;
    current_->resize(size);
    compute(current_->data());
  }
  [[nodiscard]] const real* data() const { return current_->data(); }

 private:
  Array<real> of_parts_, of_stage_;
  Array<real>* current_ = &of_stage_;
};

/// The online softmax over the destinations of one thread. Between batches, `out` is the result over the
/// edges so far, already divided by their sum; each batch rescales it. The type Score provides
///
///     void prepare(const Stage&)                                  before each stage or part
///
///     void by_destination(edges, batch, next, real* s, real* row) const
///
/// which computes the scores s [edges, heads] of a batch and may use `row`, of heads * key_dim numbers.
template <class Score>
struct OnlineSoftmax {
  const AttentionOperands& o;
  const Score& score;
  const EdgeRows& edges;
  const bool first_stage;  ///< overwrite results instead of adding to them
  AttentionResult& result;
  real* out = result.out.data();  ///< row v is at out + v * heads * dim
  real *max = result.max.data(), *sum = result.log_sum.data();
  real* min = result.min.defined() ? result.min.data() : nullptr;
  PassVector<real> s =
      PassVector<real>(2 * batch_edges * o.heads);  ///< scores of a batch, then rescaling exponents
  PassVector<real> weighted = per_edge(o.heads);
  PassVector<real> ones = PassVector<real>(o.heads, real{1});
  PassVector<real> row_of_dst = PassVector<real>(o.heads * o.key_dim);
  Factors factors{o};

  /// Initializes the results of the rows [first, last) without edges.
  void clear(Index first, Index last) {
    const Index width = o.heads * o.dim;
    for (Index v = first; v < last; ++v) {
      if (edges.size(v) > 0) continue;
      if (o.bias != nullptr)
        std::copy_n(o.bias, width, out + v * width);
      else
        std::fill_n(out + v * width, width, real{0});
      std::fill_n(max + v * o.heads, o.heads, -std::numeric_limits<real>::infinity());
      std::fill_n(sum + v * o.heads, o.heads, real{0});
      if (min != nullptr) std::fill_n(min + v * o.heads, o.heads, std::numeric_limits<real>::infinity());
    }
  }

  template <class X>
  void take(const Batch<1, X>& batch, const Batch<1, X>& next) {
    score.by_destination(edges, batch, next, s.data(), row_of_dst.data());
    if (min != nullptr) lanes::for_head_lanes(o.heads, [&](auto L, Index h) { find_minima<L>(batch, h); });
    lanes::for_head_lanes(o.heads, [&](auto L, Index h) { subtract_maxima<L>(batch, h); });
    exp_below_zero(s.data(), (batch.edges + batch.segments) * o.heads);
    lanes::for_head_lanes(o.heads, [&](auto L, Index h) { divide_by_sums<L>(batch, h); });
    add_values(batch, next, factors.weights(edges, batch, s.data(), weighted));
  }

  [[nodiscard]] Index row(const Segment& segment) const { return edges.result(segment.row); }
  [[nodiscard]] bool sets(const Segment& segment) const { return first_stage && segment.begins; }

  /// Computes the new minima of heads h .. h + L - 1.
  template <Index L, class B>
  void find_minima(const B& batch, Index h) {
    using lanes::load, lanes::store;
    for (const Segment& seg : batch) {
      real* so_far = min + row(seg) * o.heads + h;
      const real* mine = s.data() + seg.first * o.heads + h;
      const auto before = sets(seg) ? load<L>(mine) : load<L>(so_far);
      store<L>(so_far, lanes::rows_combined<L>(
                           seg.edges, o.heads, before, [&](auto N, Index at) { return load<N>(mine + at); },
                           [](const auto& x, const auto& y) { return x < y ? x : y; }));
    }
  }

  /// Computes the new maxima of heads h .. h + L - 1 and subtracts them from the scores. Stores the old
  /// maximum minus the new one after the scores, for each segment.
  template <Index L, class B>
  void subtract_maxima(const B& batch, Index h) {
    using lanes::load, lanes::store;
    real* old = s.data() + batch.edges * o.heads + h;
    for (Index i = 0; i < batch.segments; ++i, old += o.heads) {
      const Segment& seg = batch.segment[i];
      real* so_far = max + row(seg) * o.heads + h;
      real* mine = s.data() + seg.first * o.heads + h;
      const auto before = sets(seg) ? load<L>(mine) : load<L>(so_far);
      const auto most = lanes::rows_combined<L>(
          seg.edges, o.heads, before, [&](auto N, Index at) { return load<N>(mine + at); },
          [](const auto& x, const auto& y) { return x > y ? x : y; });
      store<L>(so_far, most);
      const auto shift = finite_maximum(most);
      store<L>(old, before - shift);
      lanes::for_lanes_of_rows<L>(seg.edges, o.heads, [&](auto N, Index at) {
        store<N>(mine + at, load<N>(mine + at) - lanes::repeated<N, L>(shift));
      });
    }
  }

  /// Divides the exponentials by the new sums, which gives the edges' coefficients. Stores the factor of the
  /// previous result after them, for each segment.
  template <Index L, class B>
  void divide_by_sums(const B& batch, Index h) {
    using lanes::load, lanes::store;
    real* old = s.data() + batch.edges * o.heads + h;
    for (Index i = 0; i < batch.segments; ++i, old += o.heads) {
      const Segment& seg = batch.segment[i];
      real* so_far = sum + row(seg) * o.heads + h;
      real* mine = s.data() + seg.first * o.heads + h;
      auto total =
          lanes::sum_of_rows<L>(seg.edges, o.heads, [&](auto N, Index at) { return load<N>(mine + at); });
      const auto before = sets(seg) ? total - total : load<L>(old) * load<L>(so_far);
      total += before;
      store<L>(so_far, total);
      const auto scale = 1 / softmax_divisor(total);
      store<L>(old, before * scale);
      lanes::for_lanes_of_rows<L>(seg.edges, o.heads, [&](auto N, Index at) {
        store<N>(mine + at, load<N>(mine + at) * lanes::repeated<N, L>(scale));
      });
    }
  }

  template <class X>
  void add_values(const Batch<1, X>& batch, const Batch<1, X>& next, const real* weights) {
    const Index width = o.heads * o.dim;
    const real* keep = s.data() + batch.edges * o.heads;
    for (Index i = 0; i < batch.segments; ++i, keep += o.heads) {
      const Segment& seg = batch.segment[i];
      const auto rows = rows_of(batch, next, seg, 0, value_at(o), o.heads, o.dim);
      real* to = out + row(seg) * width;
      const real* factor = weights + seg.first * o.heads;
      if (o.bias == nullptr) {
        lanes::add_rows(rows, factor, sets(seg) ? nullptr : keep, to);
        continue;
      }
      if (sets(seg))
        std::copy_n(o.bias, width, to);
      else
        lanes::scale_from(o.heads, o.dim, keep, o.bias, to);
      lanes::add_rows(rows, factor, ones.data(), to);
    }
  }
};

/// Merges the parts [first, last) of head h of destination v and, unless `sets`, the previous result, in
/// double precision.
inline void merge_parts(const AttentionResult& parts, Index first, Index last, AttentionResult& r, Index v,
                        Index h, bool sets) {
  const Index dim = parts.out.shape()[2], at = (v * r.max.shape()[1] + h) * dim;
  real* max = r.max.row(v) + h;
  real* sum = r.log_sum.row(v) + h;
  PassVector<real> merged(r.out.defined() ? 0 : dim);
  real* out = r.out.defined() ? r.out.data() + at : merged.data();
  real most = sets ? parts.max.row(first)[h] : *max;
  for (Index part = first; part < last; ++part) most = std::max(most, parts.max.row(part)[h]);
  const auto shift = static_cast<double>(finite_maximum(most));
  double total = 0;
  PassVector<double> values(dim, 0);
  const auto add = [&](real max_of, real sum_of, const real* row) {
    const double weight = static_cast<double>(sum_of) * std::exp(static_cast<double>(max_of) - shift);
    total += weight;
    for (Index j = 0; j < dim; ++j) values[j] += weight * static_cast<double>(row[j]);
  };
  if (!sets) add(*max, *sum, out);
  for (Index part = first; part < last; ++part)
    add(parts.max.row(part)[h], parts.log_sum.row(part)[h], parts.out.row(part) + h * dim);
  if (r.min.defined()) {
    real& least = r.min.row(v)[h];
    if (sets) least = parts.min.row(first)[h];
    for (Index part = first; part < last; ++part) least = std::min(least, parts.min.row(part)[h]);
  }
  *max = most;
  *sum = static_cast<real>(total);
  for (Index j = 0; j < dim; ++j) out[j] = static_cast<real>(values[j] / softmax_divisor(total));
  if (!r.out.defined()) narrow(out, dim, r.rounded.bfloat16() + at);
}

/// Replaces the sums by their logarithms; maxima of -infinity by 0, and their sums by 1.
inline void take_logarithms(AttentionResult& result) {
  real *sums = result.log_sum.data(), *max = result.max.data();
  parallel_for(result.log_sum.size(), 1 << 12, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      sums[i] = softmax_divisor(sums[i]);
      max[i] = finite_maximum(max[i]);
    }
    vector_math::log(sums + first, sums + first, last - first);
  });
}

/// The forward pass, for any score.
template <class Score>
class Attention : public ShardKernel {
 public:
  explicit Attention(const AttentionOperands& operands) : o_(operands), score_(o_) {}

  static void* operator new(std::size_t bytes) { return allocate_object(bytes); }
  static void operator delete(void* kernel, std::size_t bytes) noexcept { deallocate_object(kernel, bytes); }

  void begin() override { first_ = true; }

  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool reads_bfloat16() const override { return true; }
  void accumulate(const Stage& stage) override {
    const bool first_stage = std::exchange(first_, false);
    score_.prepare(stage);
    const EdgeParts split(walks_.at(stage.shard).by_destination(stage));
    attend(stage, split.whole_rows(), *o_.result, first_stage);
    const Index parts = split.size();
    if (parts == 0) return;
    AttentionResult of_parts{.out = Tensor(Shape{parts, o_.heads, o_.dim}),
                             .max = Tensor(Shape{parts, o_.heads}),
                             .log_sum = Tensor(Shape{parts, o_.heads})};
    if (o_.result->min.defined()) of_parts.min = Tensor(Shape{parts, o_.heads});
    attend(stage, split.parts(), of_parts, true);
    split.for_rows([&](Index v, Index first, Index last) {
      for (Index h = 0; h < o_.heads; ++h) merge_parts(of_parts, first, last, *o_.result, v, h, first_stage);
    });
  }

  void finish() override { take_logarithms(*o_.result); }

  [[nodiscard]] bool needs_source_in_backward() const override { return true; }

  /// Packs what backward() reads of a destination into one row: [max, log(sum), D or one_term], and dst for
  /// scores with one value per destination and head.
  void begin_backward() override {
    const AttentionResult r = std::exchange(*o_.result, {});
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    stats_ = Tensor(Shape{r.max.num_rows(), Score::num_stats, heads});
    const TypedRows out = r.rows();
    parallel_for(r.max.num_rows(), destinations_at_once(), [&](Index first, Index last) {
      std::vector<real> of_bias(heads);
      RowReader<> of_out(out), of_grad(o_.grad_out);
      for (Index v = first; v < last; ++v) {
        real* to = stats_.row(v);
        const real* g = of_grad.row(v);
        std::copy_n(r.max.row(v), heads, to);
        std::copy_n(r.log_sum.row(v), heads, to + heads);
        lanes::head_dots(heads, dim, g, of_out.row(v), to + 2 * heads);
        if (o_.bias != nullptr) {
          lanes::head_dots(heads, dim, g, o_.bias, of_bias.data());
          for (Index h = 0; h < heads; ++h) to[2 * heads + h] -= of_bias[h];
        }
        mark_one_term(heads, to + heads, to + 2 * heads);
        if constexpr (Score::num_stats == 4) std::copy_n(o_.dst.reals().row(v), heads, to + 3 * heads);
      }
    });
  }

 private:
  void attend(const Stage& stage, const EdgeRows& edges, AttentionResult& result, bool first_stage) {
    const Index width = o_.heads * o_.dim;
    const bool rounds = !result.out.defined();
    for_row_blocks(edges, o_.heads * o_.dim * real_bytes, [&](Index first, Index last) {
      Array<real> rows_of_out(rounds ? (last - first) * width : 0);
      OnlineSoftmax<Score> softmax{.o = o_,
                                   .score = score_,
                                   .edges = edges,
                                   .first_stage = first_stage,
                                   .result = result,
                                   .out = rounds ? rows_of_out.data() - first * width : result.out.data()};
      if (first_stage) softmax.clear(first, last);
      with_type(stage.rows, [&]<class X>(const X* rows) {
        for_batches<1, X>(
            edges, first, last, edges_at_once(source_width(o_), o_.heads),
            {GatheredOf<X>{rows, source_width(o_)}},
            [&](const Batch<1, X>& batch, const Batch<1, X>& next) { softmax.take(batch, next); });
      });
      if (rounds)
        narrow(rows_of_out.data(), (last - first) * width, result.rounded.bfloat16() + first * width);
    });
  }

 protected:
  [[nodiscard]] Index destinations_at_once() const {
    return std::max<Index>((1 << 15) / (o_.heads * o_.dim), 1);
  }

  const AttentionOperands o_;
  Score score_;
  OfEachShard<EdgeWalk> walks_;
  Tensor stats_;       ///< [destinations, Score::num_stats, heads]
  bool first_ = true;  ///< the next stage is the first one and overwrites results
};

}  // namespace attention

#include <sar/core/isa/isa_end.hpp>
