#include <sar/core/reduce.hpp>
#include <sar/core/vector_math.hpp>
#include <sar/graph/kernels/attention.hpp>
#include <sar/graph/kernels/columns.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sar {
namespace {

using columns::add_scaled;
using columns::Rows;

constexpr Index real_bytes = static_cast<Index>(sizeof(real));
constexpr std::size_t batch_edges = 64;

/// Consecutive edges of one row within a batch.
struct Segment {
  Index row;       ///< number of the row
  Index position;  ///< of the first edge
  Index first;     ///< its number in the batch
  Index edges;
  bool begins;  ///< the row's first edges of this walk
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
Index edges_at_once(Index heads) {
  return std::clamp<Index>(2048 / heads, 8, static_cast<Index>(batch_edges));
}

/// Exponentials of differences to a maximum: those that count for nothing are exactly 0 (and not subnormal).
void exp_below_zero(real* x, Index n) {
  constexpr real nothing = sizeof(real) == 4 ? real(1e-34) : real(1e-300);
  vector_math::exp(x, x, n);
  for (Index i = 0; i < n; ++i) x[i] = x[i] < nothing ? real{0} : x[i];
}

/// Columns of a source row, and where its value begins.
Index source_width(const AttentionOperands& o) {
  return o.heads * (o.separate_value ? o.key_dim + o.dim : o.dim);
}
Index value_at(const AttentionOperands& o) {
  return o.separate_value ? o.heads * o.key_dim : 0;
}

real leaky(real x, real slope) {
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
  /// dalpha from <g, value>, in place; the gradients of the n edges' weights on the way, unless null.
  void go_back(Index n, const real* alpha, real* dalpha, real* grad_edge_weight) const {
    if (!any()) return;
    for (Index x = 0; grad_edge_weight != nullptr && x < n; ++x) {
      real sum = 0;
      for (Index h = 0; h < o_.heads; ++h) sum += mask_[h * n + x] * alpha[h * n + x] * dalpha[h * n + x];
      grad_edge_weight[edge_[x]] = sum;
    }
    for (Index i = 0; i < n * o_.heads; ++i) dalpha[i] *= factor_[i];
  }
  [[nodiscard]] const real* factor() const { return factor_.data(); }

 private:
  const AttentionOperands& o_;
  std::array<Index, batch_edges> edge_;
  std::vector<real> drawn_, mask_, factor_;  // [heads, edges of the batch], drawn_ the other way round
};

/// What a loop body keeps per edge and head of a batch; rows of `edges of the batch` values, one per head.
std::vector<real> per_edge(Index heads) {
  return std::vector<real>(batch_edges * heads);
}

/// The online softmax, whatever the score. Score has
///     void prepare(const Stage&)                            before a stage, either way
///     void by_destination(edges, batch, next, real* s)      scores s [heads, edges] of a batch of
///     destinations
template <class Score>
class Attention : public ShardKernel {
 public:
  explicit Attention(const AttentionOperands& operands) : o_(operands), score_(o_) {}
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  void begin() override { first_ = true; }

  void accumulate(const Stage& stage) override {
    const GraphShard& shard = stage.shard;
    const EdgeRanges edges = cursor_.ranges(stage);
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index width = heads * dim;
    const bool first_stage = std::exchange(first_, false);
    real* out = o_.result->out.data();
    real* maxima = o_.result->max.data();
    real* sums = o_.result->log_sum.data();
    score_.prepare(stage);
    for_row_blocks(edges.before, edges.num_rows, width * real_bytes, [&](Index first, Index last) {
      std::vector<real> s(2 * batch_edges * heads);  // and behind them a factor for each segment
      std::vector<real> weighted = per_edge(heads);
      Factors factors(o_);
      if (first_stage) {
        for (Index v = first; v < last; ++v) {
          if (edges.begin[v] < edges.end[v]) continue;
          std::fill_n(out + v * width, width, real{0});
          std::fill_n(maxima + v * heads, heads, -std::numeric_limits<real>::infinity());
          std::fill_n(sums + v * heads, heads, real{0});
        }
      }
      for_batches<1>(edges.begin, edges.end, first, last, shard.src.data(), stage.begin, edges_at_once(heads),
                     {Gathered{stage.rows, source_width(o_)}},
                     [&](const Batch<1>& batch, const Batch<1>& next) {
                       const Index n = batch.edges;
                       score_.by_destination(edges, batch, next, s.data());
                       real* rescale = s.data() + n * heads;
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         real* max = maxima + edges.row(seg.row) * heads;
                         for (Index h = 0; h < heads; ++h) {
                           real* mine = s.data() + h * n + seg.first;
                           const real most = columns::largest(seg.edges, mine);
                           const real before = first_stage && seg.begins ? most : max[h];
                           max[h] = std::max(before, most);
                           for (Index x = 0; x < seg.edges; ++x) mine[x] -= max[h];
                           rescale[i * heads + h] = before - max[h];
                         }
                       }
                       exp_below_zero(s.data(), (n + batch.segments) * heads);
                       const real* weights = s.data();
                       if (factors.any()) {
                         factors.draw(shard, nullptr, batch);
                         for (Index i = 0; i < n * heads; ++i) weighted[i] = s[i] * factors.factor()[i];
                         weights = weighted.data();
                       }
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const Index v = edges.row(seg.row);
                         const Rows rows = rows_of(batch, next, seg, 0);
                         for (Index h = 0; h < heads; ++h) {
                           const Index from = h * n + seg.first;
                           const real keep = first_stage && seg.begins ? 0 : rescale[i * heads + h];
                           real& sum = sums[v * heads + h];
                           sum = columns::sum(seg.edges, s.data() + from) + (keep != 0 ? keep * sum : 0);
                           columns::add_rows(rows, value_at(o_) + h * dim, dim, weights + from, keep,
                                             out + v * width + h * dim);
                         }
                       }
                     });
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

/// leaky_relu(el[u, h] + dst[v, h])
class AdditiveScore {
 public:
  static constexpr Index num_stats = 4;
  explicit AdditiveScore(const AttentionOperands& o) : o_(o) {}

  void prepare(const Stage& stage) {
    const Index rows = stage.size();
    const Index width = o_.heads * o_.dim;
    el_.resize(rows * o_.heads);
    parallel_for(rows, std::max<Index>((1 << 15) / width, 1), [&](Index first, Index last) {
      for (Index i = first; i < last; ++i)
        for (Index h = 0; h < o_.heads; ++h)
          el_[i * o_.heads + h] =
              columns::dot(o_.dim, o_.attn + h * o_.dim, stage.rows + i * width + h * o_.dim);
    });
  }

  void by_destination(const EdgeRanges& edges, const Batch<1>& batch, const Batch<1>&, real* s) const {
    const Index n = batch.edges;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const real* er = o_.dst + edges.row(seg.row) * o_.heads;
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        const real* el = source(batch.other[x]);
        for (Index h = 0; h < o_.heads; ++h) s[h * n + x] = leaky(el[h] + er[h], o_.slope);
      }
    }
  }

  /// el of a source row of the stage, [heads].
  [[nodiscard]] const real* source(Index row) const { return el_.data() + row * o_.heads; }

 private:
  const AttentionOperands& o_;
  Array<real> el_;
};

/// Sums by destination of something that is computed source row by source row: a buffer with a slot per edge
/// of a block of source rows, in the order of destinations.
class DestinationSums {
 public:
  explicit DestinationSums(Index heads) : heads_(heads) {}

  /// Of `edges`, which stay as they are until add_to(); `num_dst`: destinations of the worker.
  void open(Index num_dst, const EdgeRanges& edges) {
    edges_ = edges;
    shift_.resize(num_dst);
    for (Index i = 0; i < edges.num_rows; ++i) shift_[edges.row(i)] = edges.before[i] - edges.begin[i];
    const std::size_t values = (first_slot(edges.num_rows) * heads_);
    if (buffer_.size() < values) {
      buffer_ = Array<real>();  // so that there are never two
      buffer_.resize(values);
    }
  }
  /// Where the edge at `position` into destination v writes: [heads].
  [[nodiscard]] real* slot(Index v, Index position) {
    return buffer_.data() + (position + shift_[v]) * heads_;
  }
  /// Adds what was written since open() to sums [destinations, heads].
  void add_to(real* sums) const {
    for_row_blocks(edges_.before, edges_.num_rows, heads_ * real_bytes, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        real* sum = sums + edges_.row(i) * heads_;
        for (Index k = first_slot(i); k < first_slot(i + 1); ++k)
          for (Index h = 0; h < heads_; ++h) sum[h] += buffer_[k * heads_ + h];
      }
    });
  }

 private:
  /// Slots of the rows before row i.
  [[nodiscard]] Index first_slot(Index i) const {
    return i == 0 ? 0 : Index{edges_.before[i - 1]} + edges_.end[i - 1] - edges_.begin[i - 1];
  }

  Index heads_;
  EdgeRanges edges_{};
  Array<local_index> shift_;
  Array<real> buffer_;
};

/// visit(block) for blocks of the source rows of a stage with at most `most_edges` edges each, or one row.
template <class Visit>
void for_source_blocks(const Stage& stage, Index width, Index most_edges, const Visit& visit) {
  const Array<local_index>& begin = stage.shard.transpose().begin;
  for (Index from = stage.begin; from < stage.end;) {
    const auto behind =
        std::upper_bound(begin.begin() + from + 1, begin.begin() + stage.end + 1, begin[from] + most_edges);
    const Index to = std::max<Index>(behind - begin.begin() - 1, from + 1);
    visit(Stage{stage.shard, from, to, stage.rows + (from - stage.begin) * width});
    from = to;
  }
}

class AdditiveAttention final : public Attention<AdditiveScore> {
 public:
  explicit AdditiveAttention(const AttentionOperands& operands)
      : Attention(operands), by_destination_(operands.heads) {}

  void backward(const Stage& stage, real* grad_src, bool accumulate) override {
    const Index heads = o_.heads;
    const Index width = heads * o_.dim;
    const Index rows = stage.size();
    score_.prepare(stage);
    grad_el_.assign(rows * heads, 0);
    const Index most_edges = std::max<Index>(3 * stage.shard.num_dst, 1 << 12);
    for_source_blocks(stage, width, most_edges, [&](const Stage& block) {
      if (o_.grad_dst != nullptr) by_destination_.open(block.shard.num_dst, cursor_.ranges(block));
      const Index skipped = block.begin - stage.begin;
      walk(block, skipped, grad_src != nullptr ? grad_src + skipped * width : nullptr, accumulate);
      if (o_.grad_dst != nullptr) by_destination_.add_to(o_.grad_dst);
    });
    if (o_.grad_attn == nullptr) return;
    std::vector<double> grad_attn(width);
    sum_row_blocks(
        rows, width,
        [&](Index first, Index last, double* partial) {
          for (Index i = first; i < last; ++i)
            for (Index h = 0; h < heads; ++h) {
              const double factor = grad_el_[i * heads + h];
              const real* x = stage.rows + i * width + h * o_.dim;
              double* to = partial + h * o_.dim;
              for (Index j = 0; j < o_.dim; ++j) to[j] += factor * static_cast<double>(x[j]);
            }
        },
        grad_attn);
    for (Index j = 0; j < width; ++j) o_.grad_attn[j] += grad_attn[j];
  }

 private:
  /// Source rows of a block; row i of it is row i + skipped of the stage.
  void walk(const Stage& block, Index skipped, real* grad_src, bool accumulate) {
    const GraphShard& shard = block.shard;
    const ShardTranspose& transpose = shard.transpose();
    const local_index* positions = shard.transpose_positions().data();
    const local_index* begin = transpose.begin.data() + block.begin;
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index width = heads * dim;
    for_row_blocks(begin, block.end - block.begin, 2 * width * real_bytes, [&](Index first, Index last) {
      std::vector<real> alpha = per_edge(heads), dalpha = per_edge(heads), slope = per_edge(heads),
                        mean = per_edge(heads), weighted = per_edge(heads), nowhere(dim);
      Factors factors(o_);
      if (grad_src != nullptr && !accumulate)
        for (Index i = first; i < last; ++i)
          if (begin[i] == begin[i + 1]) std::fill_n(grad_src + i * width, width, real{0});
      for_batches<1>(begin, begin + 1, first, last, transpose.dst.data(), 0, edges_at_once(heads),
                     {Gathered{o_.grad_out, width}}, [&](const Batch<1>& batch, const Batch<1>& next) {
                       const Index n = batch.edges;
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const real* el = score_.source(seg.row + skipped);
                         for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
                           const real* stats = stats_.data() + batch.other[x] * 4 * heads;
                           for (Index h = 0; h < heads; ++h) {
                             const real score = el[h] + stats[3 * heads + h];
                             slope[h * n + x] = score > 0 ? 1 : o_.slope;
                             alpha[h * n + x] = leaky(score, o_.slope) - stats[h] - stats[heads + h];
                             mean[h * n + x] = stats[2 * heads + h];
                           }
                         }
                       }
                       exp_below_zero(alpha.data(), n * heads);
                       const real* weights = alpha.data();
                       if (factors.any()) {
                         factors.draw(shard, positions, batch);
                         for (Index i = 0; i < n * heads; ++i) weighted[i] = alpha[i] * factors.factor()[i];
                         weights = weighted.data();
                       }
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const Rows rows = rows_of(batch, next, seg, 0);
                         const real keep = accumulate || !seg.begins ? 1 : 0;
                         for (Index h = 0; h < heads; ++h) {
                           const Index from = h * n + seg.first;
                           const real* x = block.rows + seg.row * width + h * dim;
                           if (grad_src != nullptr)
                             columns::dots_and_add(rows, h * dim, dim, x, &dalpha[from], weights + from, keep,
                                                   grad_src + seg.row * width + h * dim);
                           else
                             columns::dots(rows, h * dim, dim, x, &dalpha[from]);
                         }
                       }
                       factors.go_back(n, alpha.data(), dalpha.data(), o_.grad_edge_weight);
                       for (Index i = 0; i < n * heads; ++i) alpha[i] *= slope[i] * (dalpha[i] - mean[i]);
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         for (Index h = 0; h < heads; ++h) {
                           const real sum = columns::sum(seg.edges, &alpha[h * n + seg.first]);
                           grad_el_[(seg.row + skipped) * heads + h] += sum;
                           if (grad_src != nullptr)
                             add_scaled(dim, sum, o_.attn + h * dim, grad_src + seg.row * width + h * dim);
                         }
                         if (o_.grad_dst == nullptr) continue;
                         for (Index x = 0; x < seg.edges; ++x) {
                           real* slot =
                               by_destination_.slot(batch.other[seg.first + x], positions[seg.position + x]);
                           for (Index h = 0; h < heads; ++h) slot[h] = alpha[h * n + seg.first + x];
                         }
                       }
                     });
    });
  }

  DestinationSums by_destination_;
  Array<real> grad_el_;
};

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
          inverse_norm_[i * o_.heads + h] =
              1 / std::max(std::sqrt(columns::dot(o_.key_dim, x, x)), smallest_norm);
        }
    });
  }

  /// Scores of `mine` with rows of the other end, but for c.
  void raw(const Rows& rows, Index h, const real* mine, real* s) const {
    columns::dots(rows, h * o_.key_dim, o_.key_dim, mine, s);
  }
  /// c, for a source row of the stage.
  [[nodiscard]] real factor(Index source, Index h) const {
    return o_.unit_sources ? o_.scale * inverse_norm_[source * o_.heads + h] : o_.scale;
  }
  /// to = keep to + the gradient of the source's row, from rows of destinations and c ds.
  void source_gradient(const Rows& rows, Index h, Index source, const real* x, const real* ds, real keep,
                       real* to, real* scratch) const {
    const Index dim = o_.key_dim;
    if (!o_.unit_sources) return columns::add_rows(rows, h * dim, dim, ds, keep, to);
    columns::add_rows(rows, h * dim, dim, ds, 0, scratch);
    if (keep == 0) std::fill_n(to, dim, real{0});
    add_scaled(dim, 1, scratch, to);
    const real inverse = inverse_norm_[source * o_.heads + h];
    if (inverse * smallest_norm < 1)
      add_scaled(dim, -inverse * inverse * columns::dot(dim, x, scratch), x, to);
  }
  /// to += the gradient of the destination's row, from rows of sources and c ds.
  void dst_gradient(const Rows& rows, Index h, const real*, const real* ds, real* to, double*, real*) const {
    columns::add_rows(rows, h * o_.key_dim, o_.key_dim, ds, 1, to);
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
  void raw(const Rows& rows, Index h, const real* mine, real* s) const {
    columns::leaky_dots(rows, h * o_.dim, o_.dim, mine, o_.attn + h * o_.dim, o_.slope, s);
  }
  [[nodiscard]] real factor(Index, Index) const { return 1; }
  void source_gradient(const Rows& rows, Index h, Index, const real* x, const real* ds, real keep, real* to,
                       real*) const {
    columns::add_leaky_slopes(rows, h * o_.dim, o_.dim, x, o_.attn + h * o_.dim, o_.slope, ds, keep, to,
                              nullptr);
  }
  /// The gradient of attn is added to `attn`, unless null.
  void dst_gradient(const Rows& rows, Index h, const real* dst, const real* ds, real* to, double* attn,
                    real* scratch) const {
    columns::add_leaky_slopes(rows, h * o_.dim, o_.dim, dst, o_.attn + h * o_.dim, o_.slope, ds, 1, to,
                              attn != nullptr ? scratch : nullptr);
    for (Index j = 0; attn != nullptr && j < o_.dim; ++j)
      attn[h * o_.dim + j] += static_cast<double>(scratch[j]);
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
    const Index n = batch.edges;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[i];
      const Rows rows = rows_of(batch, next, seg, 0);
      const real* dst = o_.dst + edges.row(seg.row) * o_.heads * o_.key_dim;
      for (Index h = 0; h < o_.heads; ++h) this->raw(rows, h, dst + h * o_.key_dim, s + h * n + seg.first);
    }
    multiply(batch, s);
  }
  /// By c, what lies as scores do.
  void multiply(const Batch<1>& batch, real* s) const {
    for (Index h = 0; h < o_.heads; ++h)
      for (Index x = 0; x < batch.edges; ++x) s[h * batch.edges + x] *= this->factor(batch.other[x], h);
  }

 private:
  const AttentionOperands& o_;
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
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index key_dim = o_.key_dim;
    const Index width = source_width(o_);
    const local_index* positions = Factors(o_).any() ? stage.shard.transpose_positions().data() : nullptr;
    for_row_blocks(begin, stage.size(), 2 * width * real_bytes, [&](Index first, Index last) {
      std::vector<real> alpha = per_edge(heads), dalpha = per_edge(heads), weighted = per_edge(heads),
                        mean = per_edge(heads), scratch(key_dim);
      Factors factors(o_);
      if (!accumulate)
        for (Index i = first; i < last; ++i)
          if (begin[i] == begin[i + 1]) std::fill_n(grad_src + i * width, width, real{0});
      for_batches<2>(begin, begin + 1, first, last, transpose.dst.data(), 0, edges_at_once(heads),
                     {Gathered{o_.dst, heads * key_dim}, Gathered{o_.grad_out, heads * dim}},
                     [&](const Batch<2>& batch, const Batch<2>& next) {
                       const Index n = batch.edges;
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const Rows rows = rows_of(batch, next, seg, 0);
                         for (Index h = 0; h < heads; ++h) {
                           real* s = &alpha[h * n + seg.first];
                           score_.raw(rows, h, stage.rows + seg.row * width + h * key_dim, s);
                           const real c = score_.factor(seg.row, h);
                           for (Index x = 0; x < seg.edges; ++x) s[x] *= c;
                         }
                       }
                       for (Index x = 0; x < n; ++x) {
                         const real* stats = stats_.data() + batch.other[x] * 3 * heads;
                         for (Index h = 0; h < heads; ++h) {
                           alpha[h * n + x] -= stats[h];
                           alpha[h * n + x] -= stats[heads + h];
                           mean[h * n + x] = stats[2 * heads + h];
                         }
                       }
                       exp_below_zero(alpha.data(), n * heads);
                       const real* weights = alpha.data();
                       if (factors.any()) {
                         factors.draw(stage.shard, positions, batch);
                         for (Index i = 0; i < n * heads; ++i) weighted[i] = alpha[i] * factors.factor()[i];
                         weights = weighted.data();
                       }
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const Rows rows = rows_of(batch, next, seg, 1);
                         const real keep = accumulate || !seg.begins ? 1 : 0;
                         for (Index h = 0; h < heads; ++h) {
                           const Index from = h * n + seg.first;
                           const Index column = seg.row * width + value_at(o_) + h * dim;
                           columns::dots_and_add(rows, h * dim, dim, stage.rows + column, &dalpha[from],
                                                 weights + from, keep, grad_src + column);
                         }
                       }
                       factors.go_back(n, alpha.data(), dalpha.data(), nullptr);
                       for (Index i = 0; i < n * heads; ++i) alpha[i] *= dalpha[i] - mean[i];
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[i];
                         const Rows rows = rows_of(batch, next, seg, 0);
                         const real keep = !o_.separate_value || accumulate || !seg.begins ? 1 : 0;
                         for (Index h = 0; h < heads; ++h) {
                           real* ds = &alpha[h * n + seg.first];
                           const real c = score_.factor(seg.row, h);
                           for (Index x = 0; x < seg.edges; ++x) ds[x] *= c;
                           const Index column = seg.row * width + h * key_dim;
                           score_.source_gradient(rows, h, seg.row, stage.rows + column, ds, keep,
                                                  grad_src + column, scratch.data());
                         }
                       }
                     });
    });
  }

  /// Rows [first, last) of the shard; `grad_attn` is added to, unless null.
  void by_destination(const Stage& stage, const EdgeRanges& edges, Index first, Index last,
                      double* grad_attn) {
    const GraphShard& shard = stage.shard;
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index key_dim = o_.key_dim;
    std::vector<real> alpha = per_edge(heads), dalpha = per_edge(heads), scratch(key_dim), nowhere(key_dim);
    Factors factors(o_);
    for_batches<1>(edges.begin, edges.end, first, last, shard.src.data(), stage.begin, edges_at_once(heads),
                   {Gathered{stage.rows, source_width(o_)}},
                   [&](const Batch<1>& batch, const Batch<1>& next) {
                     const Index n = batch.edges;
                     score_.by_destination(edges, batch, next, alpha.data());
                     for (Index i = 0; i < batch.segments; ++i) {
                       const Segment& seg = batch.segment[i];
                       const Index v = edges.row(seg.row);
                       const Rows rows = rows_of(batch, next, seg, 0);
                       const real* stats = stats_.data() + v * 3 * heads;
                       for (Index h = 0; h < heads; ++h) {
                         real* s = &alpha[h * n + seg.first];
                         for (Index x = 0; x < seg.edges; ++x) s[x] = s[x] - stats[h] - stats[heads + h];
                         columns::dots(rows, value_at(o_) + h * dim, dim, o_.grad_out + (v * heads + h) * dim,
                                       &dalpha[h * n + seg.first]);
                       }
                     }
                     exp_below_zero(alpha.data(), n * heads);
                     if (factors.any()) factors.draw(shard, nullptr, batch);
                     factors.go_back(n, alpha.data(), dalpha.data(), o_.grad_edge_weight);
                     if (o_.grad_dst == nullptr && grad_attn == nullptr) return;
                     for (Index i = 0; i < batch.segments; ++i) {
                       const Segment& seg = batch.segment[i];
                       const real* stats = stats_.data() + edges.row(seg.row) * 3 * heads;
                       for (Index h = 0; h < heads; ++h)
                         for (Index x = seg.first; x < seg.first + seg.edges; ++x)
                           alpha[h * n + x] *= dalpha[h * n + x] - stats[2 * heads + h];
                     }
                     score_.multiply(batch, alpha.data());
                     for (Index i = 0; i < batch.segments; ++i) {
                       const Segment& seg = batch.segment[i];
                       const Rows rows = rows_of(batch, next, seg, 0);
                       for (Index h = 0; h < heads; ++h) {
                         const Index column = (edges.row(seg.row) * heads + h) * key_dim;
                         score_.dst_gradient(rows, h, o_.dst + column, &alpha[h * n + seg.first],
                                             o_.grad_dst != nullptr ? o_.grad_dst + column : nowhere.data(),
                                             grad_attn, scratch.data());
                       }
                     }
                   });
  }
};

}  // namespace

std::unique_ptr<ShardKernel> make_attention(AttentionScore score, const AttentionOperands& operands) {
  if (score == AttentionScore::additive) return std::make_unique<AdditiveAttention>(operands);
  if (score == AttentionScore::dot) return std::make_unique<PairAttention<DotScore>>(operands);
  return std::make_unique<PairAttention<AdditiveV2Score>>(operands);
}

}  // namespace sar
