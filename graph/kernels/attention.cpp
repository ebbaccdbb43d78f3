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

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

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
      if (n > 0) batch.segment[at(batch.segments++)] = {row, k, batch.edges, n, k == begin[row]};
      for (Index i = 0; i < n; ++i) batch.other[at(batch.edges + i)] = col[k + i] - col_offset;
      batch.edges += n;
      k += n;
      if (k == end[row] && ++row < last) k = begin[row];
    }
    for (std::size_t t = 0; t < Tables; ++t) {
      for (Index x = 0; x < batch.edges; ++x)
        batch.rows[t][at(x)] = tables[t].base + batch.other[at(x)] * tables[t].width;
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

real leaky(real x, real slope) {
  return x > 0 ? x : slope * x;
}

/// What multiplies the coefficients of a batch behind the softmax: dropout and edge weights.
class Factors {
 public:
  explicit Factors(const AttentionOperands& o) : o_(o) {
    if (!any()) return;
    const std::size_t values = batch_edges * at(o.heads);
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
      const Segment& s = batch.segment[at(i)];
      for (Index x = 0; x < s.edges; ++x) {
        const Index k = s.position + x;
        edge_[at(s.first + x)] = shard.edge(position_of != nullptr ? position_of[k] : k);
      }
    }
    const Index n = batch.edges;
    if (o_.mask != nullptr) {
      std::array<Index, batch_edges> ids;
      for (Index x = 0; x < n; ++x) ids[at(x)] = o_.edge_ids[edge_[at(x)]];
      o_.mask->factors({ids.data(), at(n)}, o_.heads, drawn_.data());
      for (Index x = 0; x < n; ++x)
        for (Index h = 0; h < o_.heads; ++h) mask_[at(h * n + x)] = drawn_[at(x * o_.heads + h)];
    }
    for (Index h = 0; h < o_.heads; ++h)
      for (Index x = 0; x < n; ++x)
        factor_[at(h * n + x)] =
            mask_[at(h * n + x)] * (o_.edge_weight != nullptr ? o_.edge_weight[edge_[at(x)]] : 1);
  }
  [[nodiscard]] Index edge(Index x) const { return edge_[at(x)]; }
  [[nodiscard]] const real* mask() const { return mask_.data(); }
  [[nodiscard]] const real* factor() const { return factor_.data(); }

 private:
  const AttentionOperands& o_;
  std::array<Index, batch_edges> edge_;
  std::vector<real> drawn_, mask_, factor_;  // [heads, edges of the batch], drawn_ the other way round
};

/// What a loop body keeps per edge and head of a batch; rows of `edges of the batch` values, one per head.
std::vector<real> per_edge(Index heads) {
  return std::vector<real>(batch_edges * at(heads));
}

/// The online softmax, whatever the score. Score has
///     void prepare(const SourcePiece&)                            before a piece, either way
///     void by_destination(const Batch&, const Batch& next, real* s)      scores s [heads, edges]
template <class Score>
class Attention : public ShardKernel {
 public:
  explicit Attention(const AttentionOperands& operands) : o_(operands), score_(o_) {}
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  void accumulate(const SourcePiece& piece) override {
    const GraphShard& shard = piece.shard;
    const EdgeRanges edges = cursor_.ranges(piece);
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index width = heads * dim;
    // The local shard comes first and lists all destinations.
    const bool first_piece = shard.dst_rows.empty() && piece.begin == 0;
    score_.prepare(piece);
    for_row_blocks(edges.begin, shard.num_rows(), width * real_bytes, [&](Index first, Index last) {
      std::vector<real> s(2 * batch_edges * at(heads));  // and behind them a factor for each segment
      std::vector<real> weighted = per_edge(heads);
      Factors factors(o_);
      if (first_piece) {
        for (Index v = first; v < last; ++v) {
          if (edges.begin[v] < edges.end[v]) continue;
          std::fill_n(o_.out + v * width, width, real{0});
          std::fill_n(o_.max + v * heads, heads, -std::numeric_limits<real>::infinity());
          std::fill_n(o_.sum + v * heads, heads, real{0});
        }
      }
      for_batches<1>(edges.begin, edges.end, first, last, shard.src.data(), piece.begin, edges_at_once(heads),
                     {Gathered{piece.rows, width}}, [&](const Batch<1>& batch, const Batch<1>& next) {
                       const Index n = batch.edges;
                       score_.by_destination(shard, batch, s.data());
                       real* rescale = s.data() + n * heads;
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[at(i)];
                         real* max = o_.max + shard.dst_row(seg.row) * heads;
                         for (Index h = 0; h < heads; ++h) {
                           real* mine = s.data() + h * n + seg.first;
                           const real most = columns::largest(seg.edges, mine);
                           const real before = first_piece && seg.begins ? most : max[h];
                           max[h] = std::max(before, most);
                           for (Index x = 0; x < seg.edges; ++x) mine[x] -= max[h];
                           rescale[i * heads + h] = before - max[h];
                         }
                       }
                       exp_below_zero(s.data(), (n + batch.segments) * heads);
                       const real* weights = s.data();
                       if (factors.any()) {
                         factors.draw(shard, nullptr, batch);
                         for (Index i = 0; i < n * heads; ++i)
                           weighted[at(i)] = s[at(i)] * factors.factor()[i];
                         weights = weighted.data();
                       }
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[at(i)];
                         const Index v = shard.dst_row(seg.row);
                         const Rows rows = rows_of(batch, next, seg, 0);
                         for (Index h = 0; h < heads; ++h) {
                           const Index from = h * n + seg.first;
                           const real keep = first_piece && seg.begins ? 0 : rescale[i * heads + h];
                           real& sum = o_.sum[v * heads + h];
                           sum = columns::sum(seg.edges, s.data() + from) + (keep != 0 ? keep * sum : 0);
                           columns::add_rows(rows, h * dim, dim, weights + from, keep,
                                             o_.out + v * width + h * dim);
                         }
                       }
                     });
    });
  }

  [[nodiscard]] bool needs_source_in_backward() const override { return true; }

 protected:
  const AttentionOperands o_;
  Score score_;
  EdgeCursor cursor_;
};

/// leaky_relu(el[u, h] + dst[v, h])
class AdditiveScore {
 public:
  explicit AdditiveScore(const AttentionOperands& o) : o_(o) {}

  void prepare(const SourcePiece& piece) {
    const Index rows = piece.end - piece.begin;
    const Index width = o_.heads * o_.dim;
    el_.resize(at(rows * o_.heads));
    parallel_for(rows, std::max<Index>((1 << 15) / width, 1), [&](Index first, Index last) {
      for (Index i = first; i < last; ++i)
        for (Index h = 0; h < o_.heads; ++h)
          el_[at(i * o_.heads + h)] =
              columns::dot(o_.dim, o_.attn + h * o_.dim, piece.rows + i * width + h * o_.dim);
    });
  }

  void by_destination(const GraphShard& shard, const Batch<1>& batch, real* s) const {
    const Index n = batch.edges;
    for (Index i = 0; i < batch.segments; ++i) {
      const Segment& seg = batch.segment[at(i)];
      const real* er = o_.dst + shard.dst_row(seg.row) * o_.heads;
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        const real* el = source(batch.other[at(x)]);
        for (Index h = 0; h < o_.heads; ++h) s[h * n + x] = leaky(el[h] + er[h], o_.slope);
      }
    }
  }

  /// el of a source row of the piece, [heads].
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

  /// Of the edges with sources in `block`, in ranges `edges`.
  void open(const SourcePiece& block, const EdgeRanges& edges) {
    const GraphShard& shard = block.shard;
    slot_begin_.resize(at(shard.num_rows() + 1));
    shift_.resize(at(shard.num_dst));
    slot_begin_[0] = 0;
    for (Index i = 0; i < shard.num_rows(); ++i) {
      slot_begin_[at(i + 1)] = slot_begin_[at(i)] + edges.end[i] - edges.begin[i];
      shift_[at(shard.dst_row(i))] = slot_begin_[at(i)] - edges.begin[i];
    }
    const std::size_t values = at(slot_begin_.back() * heads_);
    if (buffer_.size() < values) {
      buffer_ = Array<real>();  // so that there are never two
      buffer_.resize(values);
    }
  }
  /// Where the edge at `position` into destination v writes: [heads].
  [[nodiscard]] real* slot(Index v, Index position) {
    return buffer_.data() + (position + shift_[at(v)]) * heads_;
  }
  /// Adds what was written since open() to sums [destinations, heads].
  void add_to(const GraphShard& shard, real* sums) const {
    for_row_blocks(slot_begin_.data(), shard.num_rows(), heads_ * real_bytes, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        real* sum = sums + shard.dst_row(i) * heads_;
        for (Index k = slot_begin_[at(i)]; k < slot_begin_[at(i + 1)]; ++k)
          for (Index h = 0; h < heads_; ++h) sum[h] += buffer_[at(k * heads_ + h)];
      }
    });
  }

 private:
  Index heads_;
  Array<local_index> slot_begin_, shift_;
  Array<real> buffer_;
};

/// visit(block) for blocks of the source rows of a piece with at most `most_edges` edges each, or one row.
template <class Visit>
void for_source_blocks(const SourcePiece& piece, Index width, Index most_edges, const Visit& visit) {
  const Array<local_index>& begin = piece.shard.transpose().begin;
  for (Index from = piece.begin; from < piece.end;) {
    const auto behind = std::upper_bound(begin.begin() + from + 1, begin.begin() + piece.end + 1,
                                         begin[at(from)] + most_edges);
    const Index to = std::max<Index>(behind - begin.begin() - 1, from + 1);
    visit(SourcePiece{piece.shard, from, to, piece.rows + (from - piece.begin) * width});
    from = to;
  }
}

class AdditiveAttention final : public Attention<AdditiveScore> {
 public:
  explicit AdditiveAttention(const AttentionOperands& operands)
      : Attention(operands), by_destination_(operands.heads) {}

  void backward(const SourcePiece& piece, real* grad_src, bool accumulate) override {
    const Index heads = o_.heads;
    const Index width = heads * o_.dim;
    const Index rows = piece.end - piece.begin;
    score_.prepare(piece);
    grad_el_.assign(at(rows * heads), 0);
    const Index most_edges = std::max<Index>(3 * piece.shard.num_dst, 1 << 12);
    for_source_blocks(piece, width, most_edges, [&](const SourcePiece& block) {
      if (o_.grad_dst != nullptr) by_destination_.open(block, cursor_.ranges(block));
      const Index skipped = block.begin - piece.begin;
      walk(block, skipped, grad_src != nullptr ? grad_src + skipped * width : nullptr, accumulate);
      if (o_.grad_dst != nullptr) by_destination_.add_to(piece.shard, o_.grad_dst);
    });
    if (o_.grad_attn == nullptr) return;
    std::vector<double> grad_attn(at(width));
    sum_row_blocks(
        rows, width,
        [&](Index first, Index last, double* partial) {
          for (Index i = first; i < last; ++i)
            for (Index h = 0; h < heads; ++h) {
              const double factor = grad_el_[at(i * heads + h)];
              const real* x = piece.rows + i * width + h * o_.dim;
              double* to = partial + h * o_.dim;
              for (Index j = 0; j < o_.dim; ++j) to[j] += factor * static_cast<double>(x[j]);
            }
        },
        grad_attn);
    for (Index j = 0; j < width; ++j) o_.grad_attn[j] += grad_attn[at(j)];
  }

 private:
  /// Source rows of a block; row i of it is row i + skipped of the piece.
  void walk(const SourcePiece& block, Index skipped, real* grad_src, bool accumulate) {
    const GraphShard& shard = block.shard;
    const ShardTranspose& transpose = shard.transpose();
    const local_index* positions = shard.transpose_positions().data();
    const local_index* begin = transpose.begin.data() + block.begin;
    const Index heads = o_.heads;
    const Index dim = o_.dim;
    const Index width = heads * dim;
    for_row_blocks(begin, block.end - block.begin, 2 * width * real_bytes, [&](Index first, Index last) {
      std::vector<real> alpha = per_edge(heads), dalpha = per_edge(heads), slope = per_edge(heads),
                        mean = per_edge(heads), weighted = per_edge(heads), nowhere(at(dim));
      Factors factors(o_);
      if (grad_src != nullptr && !accumulate)
        for (Index i = first; i < last; ++i)
          if (begin[i] == begin[i + 1]) std::fill_n(grad_src + i * width, width, real{0});
      for_batches<1>(begin, begin + 1, first, last, transpose.dst.data(), 0, edges_at_once(heads),
                     {Gathered{o_.grad_out, width}}, [&](const Batch<1>& batch, const Batch<1>& next) {
                       const Index n = batch.edges;
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[at(i)];
                         const real* el = score_.source(seg.row + skipped);
                         for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
                           const real* stats = o_.stats + batch.other[at(x)] * 4 * heads;
                           for (Index h = 0; h < heads; ++h) {
                             const real score = el[h] + stats[3 * heads + h];
                             slope[at(h * n + x)] = score > 0 ? 1 : o_.slope;
                             alpha[at(h * n + x)] = leaky(score, o_.slope) - stats[h] - stats[heads + h];
                             mean[at(h * n + x)] = stats[2 * heads + h];
                           }
                         }
                       }
                       exp_below_zero(alpha.data(), n * heads);
                       const real* weights = alpha.data();
                       if (factors.any()) {
                         factors.draw(shard, positions, batch);
                         for (Index i = 0; i < n * heads; ++i)
                           weighted[at(i)] = alpha[at(i)] * factors.factor()[i];
                         weights = weighted.data();
                       }
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[at(i)];
                         const Rows rows = rows_of(batch, next, seg, 0);
                         const real keep = accumulate || !seg.begins ? 1 : 0;
                         for (Index h = 0; h < heads; ++h) {
                           const Index from = h * n + seg.first;
                           const real* x = block.rows + seg.row * width + h * dim;
                           if (grad_src != nullptr)
                             columns::dots_and_add(rows, h * dim, dim, x, &dalpha[at(from)], weights + from,
                                                   keep, grad_src + seg.row * width + h * dim);
                           else
                             columns::dots(rows, h * dim, dim, x, &dalpha[at(from)]);
                         }
                       }
                       if (o_.grad_edge_weight != nullptr)
                         for (Index x = 0; x < n; ++x) {
                           real sum = 0;
                           for (Index h = 0; h < heads; ++h)
                             sum += factors.mask()[h * n + x] * alpha[at(h * n + x)] * dalpha[at(h * n + x)];
                           o_.grad_edge_weight[factors.edge(x)] = sum;
                         }
                       if (factors.any())
                         for (Index i = 0; i < n * heads; ++i) dalpha[at(i)] *= factors.factor()[i];
                       for (Index i = 0; i < n * heads; ++i)
                         alpha[at(i)] *= slope[at(i)] * (dalpha[at(i)] - mean[at(i)]);
                       for (Index i = 0; i < batch.segments; ++i) {
                         const Segment& seg = batch.segment[at(i)];
                         for (Index h = 0; h < heads; ++h) {
                           const real sum = columns::sum(seg.edges, &alpha[at(h * n + seg.first)]);
                           grad_el_[at((seg.row + skipped) * heads + h)] += sum;
                           if (grad_src != nullptr)
                             add_scaled(dim, sum, o_.attn + h * dim, grad_src + seg.row * width + h * dim);
                         }
                         if (o_.grad_dst == nullptr) continue;
                         for (Index x = 0; x < seg.edges; ++x) {
                           real* slot = by_destination_.slot(batch.other[at(seg.first + x)],
                                                             positions[seg.position + x]);
                           for (Index h = 0; h < heads; ++h) slot[h] = alpha[at(h * n + seg.first + x)];
                         }
                       }
                     });
    });
  }

  DestinationSums by_destination_;
  Array<real> grad_el_;
};

}  // namespace

std::unique_ptr<ShardKernel> make_additive_attention(const AttentionOperands& operands) {
  return std::make_unique<AdditiveAttention>(operands);
}

void finish_attention(Index rows, Index heads, Index dim, real* out, const real* max, real* sum) {
  parallel_for(rows, std::max<Index>((1 << 15) / (heads * dim), 1), [&](Index first, Index last) {
    for (Index i = first * heads; i < last * heads; ++i) {
      if (max[i] == -std::numeric_limits<real>::infinity()) continue;  // no edges: 0
      const real scale = 1 / sum[i];
      for (Index j = 0; j < dim; ++j) out[i * dim + j] *= scale;
      sum[i] = std::log(sum[i]);
    }
  });
}

void attention_stats(Index rows, Index heads, Index dim, const real* out, const real* max,
                     const real* log_sum, const real* grad_out, const real* dst, real* stats) {
  const Index count = dst != nullptr ? 4 : 3;
  parallel_for(rows, std::max<Index>((1 << 15) / (heads * dim), 1), [&](Index first, Index last) {
    for (Index v = first; v < last; ++v) {
      real* to = stats + v * count * heads;
      for (Index h = 0; h < heads; ++h) {
        const Index i = v * heads + h;
        to[h] = max[i];
        to[heads + h] = log_sum[i];
        to[2 * heads + h] = columns::dot(dim, grad_out + i * dim, out + i * dim);
        if (dst != nullptr) to[3 * heads + h] = dst[i];
      }
    }
  });
}

}  // namespace sar
