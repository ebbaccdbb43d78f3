/// What attention kernels have in common, whatever the score: batches of edges, dropout and edge weights, the
/// online softmax. For the kernels of attention only.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/core/vector_math.hpp>
#include <sar/graph/kernels/attention.hpp>
#include <sar/graph/kernels/columns.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <sar/core/isa_begin.hpp>

namespace attention {

using columns::Rows;

constexpr Index real_bytes = static_cast<Index>(sizeof(real));
constexpr std::size_t batch_edges = 64;

/// Consecutive edges of one row within a batch.
struct Segment {
  Index row;       ///< number of the row
  Index position;  ///< of the first edge
  Index first;     ///< its number in the batch
  Index edges;
  bool begins;  ///< these are the first of the row's edges
};

/// Where the rows at the other end of the edges lie.
struct Gathered {
  const real* base = nullptr;
  Index width = 0;
};

/// Some edges of some rows, in order.
template <std::size_t Tables>
struct Batch {
  Index edges = 0;
  Index segments = 0;
  std::array<Segment, batch_edges> segment;
  std::array<Index, batch_edges> other;  ///< gathered row per edge
  std::array<std::array<const real*, batch_edges>, Tables> rows;
};

/// The gathered rows of a segment, from one of the tables.
template <std::size_t Tables>
Rows rows_of(const Batch<Tables>& batch, const Batch<Tables>& next, const Segment& s, std::size_t table) {
  return {batch.rows[table].data() + s.first, next.rows[table].data() + s.first, s.edges};
}

/// run(batch, next) over the edges of rows [first, last). Behind the last edge of `next`, rows are those of
/// the first edge.
template <std::size_t Tables, class Run>
void for_batches(const local_index* begin, const local_index* end, Index first, Index last,
                 const local_index* col, Index col_offset, Index most,
                 const std::array<Gathered, Tables>& tables, const Run& run) {
  std::array<Batch<Tables>, 2> batches;
  Batch<Tables>* current = &batches[0];
  Batch<Tables>* next = &batches[1];
  Index row = first;
  Index k = row < last ? begin[row] : 0;
  const auto fill = [&](Batch<Tables>& batch) {
    batch.edges = batch.segments = 0;
    while (row < last && batch.edges < most) {
      const Index n = std::min(end[row] - k, most - batch.edges);
      if (n > 0) batch.segment[batch.segments++] = {row, k, batch.edges, n, k == begin[row]};
      for (Index i = 0; i < n; ++i) batch.other[batch.edges + i] = col[k + i] - col_offset;
      batch.edges += n;
      k += n;
      if (k == end[row] && ++row < last) k = begin[row];
    }
    for (std::size_t t = 0; t < Tables; ++t) {
      for (Index x = 0; x < batch.edges; ++x)
        batch.rows[t][x] = tables[t].base + batch.other[x] * tables[t].width;
      std::fill(batch.rows[t].begin() + batch.edges, batch.rows[t].end(), tables[t].base);
    }
  };
  for (fill(*current); current->edges > 0; std::swap(current, next)) {
    fill(*next);
    run(*current, *next);
  }
}

/// Edges of a batch: fewer when there are very many heads, so that what is kept per edge stays in cache.
inline Index edges_at_once(Index heads) {
  return std::clamp<Index>(2048 / heads, 8, static_cast<Index>(batch_edges));
}

/// Exponentials of differences to a maximum: those that count for nothing are exactly 0 (and not subnormal).
inline void exp_below_zero(real* x, Index n) {
  constexpr real nothing = sizeof(real) == 4 ? real(1e-34) : real(1e-300);
  vector_math::exp(x, x, n);
  for (Index i = 0; i < n; ++i) x[i] = x[i] < nothing ? real{0} : x[i];
}

/// Columns of a source row, and where its value begins.
inline Index source_width(const AttentionOperands& o) {
  return o.heads * (o.separate_value ? o.key_dim + o.dim : o.dim);
}
inline Index value_at(const AttentionOperands& o) {
  return o.separate_value ? o.heads * o.key_dim : 0;
}

inline real leaky(real x, real slope) {
  return x > 0 ? x : slope * x;
}

/// What multiplies the coefficients of a batch behind the softmax: dropout and edge weights.
class Factors {
 public:
  explicit Factors(const AttentionOperands& o) : o_(o) {
    if (!any()) return;
    const std::size_t values = batch_edges * o.heads;
    drawn_.resize(values);
    mask_.assign(values, 1);
    factor_.resize(values);
  }
  [[nodiscard]] bool any() const { return o_.mask != nullptr || o_.edge_weight != nullptr; }

  /// For the edges of a batch, whose positions in the shard are position_of[..], or their own when that is
  /// null.
  template <class B>
  void draw(const GraphShard& shard, const local_index* position_of, const B& batch) {
    if (!any()) return;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& s = batch.segment[i];
      for (Index x = 0; x < s.edges; ++x) {
        const Index k = s.position + x;
        edge_[s.first + x] = shard.edge(position_of != nullptr ? position_of[k] : k);
      }
    }
    const Index n = batch.edges;
    if (o_.mask != nullptr) {
      std::array<Index, batch_edges> ids;
      for (Index x = 0; x < n; ++x) ids[x] = o_.edge_ids[edge_[x]];
      o_.mask->factors(std::span(ids.data(), n), o_.heads, drawn_.data());
      for (Index x = 0; x < n; ++x)
        for (Index h = 0; h < o_.heads; ++h) mask_[h * n + x] = drawn_[x * o_.heads + h];
    }
    for (Index h = 0; h < o_.heads; ++h)
      for (Index x = 0; x < n; ++x)
        factor_[h * n + x] = mask_[h * n + x] * (o_.edge_weight != nullptr ? o_.edge_weight[edge_[x]] : 1);
  }
  /// alpha, times the factors of the batch's edges where there are some: then in `buffer`.
  template <class B>
  const real* weights(const GraphShard& shard, const local_index* position_of, const B& batch,
                      const real* alpha, std::vector<real>& buffer) {
    if (!any()) return alpha;
    draw(shard, position_of, batch);
    for (Index i = 0; i < batch.edges * o_.heads; ++i) buffer[i] = alpha[i] * factor_[i];
    return buffer.data();
  }
  /// dalpha from <g, value>, in place; also sets the gradients of the n edges' weights, unless null.
  void backward(Index n, const real* alpha, real* dalpha, real* grad_edge_weight) const {
    if (!any()) return;
    for (Index x = 0; grad_edge_weight != nullptr && x < n; ++x) {
      real sum = 0;
      for (Index h = 0; h < o_.heads; ++h) sum += mask_[h * n + x] * alpha[h * n + x] * dalpha[h * n + x];
      grad_edge_weight[edge_[x]] = sum;
    }
    for (Index i = 0; i < n * o_.heads; ++i) dalpha[i] *= factor_[i];
  }

 private:
  const AttentionOperands& o_;
  std::array<Index, batch_edges> edge_;
  std::vector<real> drawn_, mask_, factor_;  // [heads, edges of the batch], drawn_ the other way round
};

/// What a loop body keeps per edge and head of a batch; rows of `edges of the batch` values, one per head.
inline std::vector<real> per_edge(Index heads) {
  return std::vector<real>(batch_edges * heads);
}

/// The online softmax of the destinations of one thread. Score has
///
///     void prepare(const Stage&)                                  before a stage, forward and backward
///     void by_destination(edges, batch, next, real* s) const      scores s [heads, edges] of a batch
template <class Score>
struct OnlineSoftmax {
  const AttentionOperands& o;
  const Score& score;
  const EdgeRanges& edges;
  const bool first_stage;  ///< results are set, not added to
  real *out = o.result->out.data(), *max = o.result->max.data(), *sum = o.result->log_sum.data();
  std::vector<real> s =
      std::vector<real>(2 * batch_edges * o.heads);  ///< of a batch; behind them a factor per segment
  std::vector<real> weighted = per_edge(o.heads);
  Factors factors{o};

  /// Sets the results of those of the rows [first, last) that have no edges.
  void clear(Index first, Index last) {
    const Index heads = o.heads;
    for (Index v = first; v < last; ++v) {
      if (edges.begin[v] < edges.end[v]) continue;
      std::fill_n(out + v * heads * o.dim, heads * o.dim, real{0});
      std::fill_n(max + v * heads, heads, -std::numeric_limits<real>::infinity());
      std::fill_n(sum + v * heads, heads, real{0});
    }
  }

  void take(const GraphShard& shard, const Batch<1>& batch, const Batch<1>& next) {
    score.by_destination(edges, batch, next, s.data());
    subtract_maxima(batch);
    exp_below_zero(s.data(), (batch.edges + batch.segments) * o.heads);
    add_values(batch, next, factors.weights(shard, nullptr, batch, s.data(), weighted));
  }

  /// Scores become differences to the new maxima; behind them, those of the old maxima, for each segment.
  void subtract_maxima(const Batch<1>& batch) {
    const Index n = batch.edges;
    const Index heads = o.heads;
    real* rescale = s.data() + n * heads;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      real* most_so_far = max + edges.row(seg.row) * heads;
      for (Index h = 0; h < heads; ++h) {
        real* mine = s.data() + h * n + seg.first;
        const real most = columns::largest(seg.edges, mine);
        const real before = first_stage && seg.begins ? most : most_so_far[h];
        most_so_far[h] = std::max(before, most);
        for (Index x = 0; x < seg.edges; ++x) mine[x] -= most_so_far[h];
        rescale[i * heads + h] = before - most_so_far[h];
      }
    }
  }

  void add_values(const Batch<1>& batch, const Batch<1>& next, const real* weights) {
    const Index n = batch.edges;
    const Index heads = o.heads;
    const Index dim = o.dim;
    const real* rescale = s.data() + n * heads;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Index v = edges.row(seg.row);
      const Rows rows = rows_of(batch, next, seg, 0);
      for (Index h = 0; h < heads; ++h) {
        const Index from = h * n + seg.first;
        const real keep = first_stage && seg.begins ? 0 : rescale[i * heads + h];
        real& total = sum[v * heads + h];
        total = columns::sum(seg.edges, s.data() + from) + (keep != 0 ? keep * total : 0);
        columns::add_rows(rows, value_at(o) + h * dim, dim, weights + from, keep,
                          out + (v * heads + h) * dim);
      }
    }
  }
};

/// The forward pass of all scores.
template <class Score>
class Attention : public ShardKernel {
 public:
  explicit Attention(const AttentionOperands& operands) : o_(operands), score_(o_) {}
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  void begin() override { first_ = true; }

  void accumulate(const Stage& stage) override {
    const EdgeRanges edges = cursor_.ranges(stage);
    const bool first_stage = std::exchange(first_, false);
    score_.prepare(stage);
    for_row_blocks(
        edges.before, edges.num_rows, o_.heads * o_.dim * real_bytes, [&](Index first, Index last) {
          OnlineSoftmax<Score> softmax{.o = o_, .score = score_, .edges = edges, .first_stage = first_stage};
          if (first_stage) softmax.clear(first, last);
          for_batches<1>(
              edges.begin, edges.end, first, last, stage.shard.src.data(), stage.begin,
              edges_at_once(o_.heads), {Gathered{stage.rows, source_width(o_)}},
              [&](const Batch<1>& batch, const Batch<1>& next) { softmax.take(stage.shard, batch, next); });
        });
  }

  /// out /= sum, and the sum becomes its logarithm. Destinations without edges keep 0.
  void finish() override {
    AttentionResult& r = *o_.result;
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    parallel_for(r.out.num_rows(), destinations_at_once(), [&](Index first, Index last) {
      for (Index i = first * heads; i < last * heads; ++i) {
        real* row = r.out.data() + i * dim;
        if (r.max.data()[i] != -std::numeric_limits<real>::infinity()) {
          real& total = r.log_sum.data()[i];
          const real scale = 1 / total;
          for (Index j = 0; j < dim; ++j) row[j] *= scale;
          total = std::log(total);
        }
        if (o_.bias == nullptr) continue;
        const real* of_head = o_.bias + i % heads * dim;
        for (Index j = 0; j < dim; ++j) row[j] += of_head[j];
      }
    });
  }

  [[nodiscard]] bool needs_source_in_backward() const override { return true; }

  /// Gathers what backward() reads of a destination: [max, log(sum), D], and dst where the score is one
  /// number.
  void begin_backward() override {
    const AttentionResult r = std::exchange(*o_.result, {});
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    stats_ = Tensor(Shape{r.out.num_rows(), Score::num_stats, heads});
    parallel_for(r.out.num_rows(), destinations_at_once(), [&](Index first, Index last) {
      for (Index v = first; v < last; ++v) {
        real* to = stats_.row(v);
        for (Index h = 0; h < heads; ++h) {
          const Index i = v * heads + h;
          const real* g = o_.grad_out + i * dim;
          to[h] = r.max.data()[i];
          to[heads + h] = r.log_sum.data()[i];
          to[2 * heads + h] = columns::dot(dim, g, r.out.data() + i * dim);
          if (o_.bias != nullptr) to[2 * heads + h] -= columns::dot(dim, g, o_.bias + h * dim);
          if constexpr (Score::num_stats == 4) to[3 * heads + h] = o_.dst[i];
        }
      }
    });
  }

 protected:
  [[nodiscard]] Index destinations_at_once() const {
    return std::max<Index>((1 << 15) / (o_.heads * o_.dim), 1);
  }

  const AttentionOperands o_;
  Score score_;
  EdgeCursor cursor_;
  Tensor stats_;       ///< [destinations, Score::num_stats, heads]
  bool first_ = true;  ///< the next stage is the first one: it sets the results
};

}  // namespace attention

#include <sar/core/isa_end.hpp>
