// SPDX-License-Identifier: MIT

/// Attention with a matrix per edge type; the head of typed_attention_kernel.hpp has the formulas.
///
/// Loop order: blocks of rows in parallel; in a block, the edges grouped by type and row (EdgesByType);
/// of each type, 16 to 128 pairs at a time. For these pairs: copy their rows, multiply them by the type's
/// matrices, iterate over their edges in batches that gather rows of the other end (prefetched one batch
/// ahead), multiply the sums by the matrices, and add them to the rows of the result. All rows of the pairs
/// at hand take at most 256 KiB, unless 16 pairs take more, and stay in the cache.
///
/// The pass by source runs over at most 32 fixed ranges of blocks, each with its own sums of the matrices'
/// gradients.
#include <sar/core/products/right_operand.hpp>
#include <sar/graph/kernels/attention_common.hpp>
#include <sar/graph/kernels/typed_attention_kernel.hpp>

#include <sar/core/isa/isa_begin.hpp>

namespace attention {
namespace {

/// Products of the rows of some pairs with the matrices of their type, on one thread.
class HeadProducts {
 public:
  explicit HeadProducts(const TypedAttentionOperands& o)
      : heads_(o.heads), dim_(o.dim), product_(dim_ * dim_) {}

  enum class Transposed { no, yes };
  /// Computes to[i, h] = rows[i, h] w[h], or w[h]^T, for n rows; w [heads, dim, dim].
  void multiply(const real* rows, Index n, const real* w, Transposed transposed, real* to) {
    const Index width = heads_ * dim_;
    for (Index h = 0; h < heads_; ++h) {
      const MatrixView matrix{w + h * dim_ * dim_, dim_, dim_, dim_, 1};
      right_.pack(transposed == Transposed::yes ? matrix.transposed() : matrix);
      right_.multiply({rows + h * dim_, n, dim_, width, 1}, {to + h * dim_, width});
    }
  }
  /// Computes sums[h] += a[h]^T b[h], a sum over n rows.
  void add_outer(const real* a, const real* b, Index n, double* sums) {
    const Index width = heads_ * dim_, size = dim_ * dim_;
    for (Index h = 0; h < heads_; ++h) {
      right_.pack({b + h * dim_, n, dim_, width, 1});
      right_.multiply(MatrixView{a + h * dim_, n, dim_, width, 1}.transposed(), {product_.data(), dim_});
      for (Index i = 0; i < size; ++i) sums[h * size + i] += static_cast<double>(product_[i]);
    }
  }

 private:
  Index heads_, dim_;
  RightOperand right_{product_method()};
  Array<real> product_;
};
using Transposed = HeadProducts::Transposed;

/// Calls visit(type, first pair, number of pairs) for all pairs of a block, a few pairs of one type at a
/// time.
template <class Visit>
void for_some_pairs(const EdgesByType& block, Index width, const Visit& visit) {
  constexpr Index bytes = 1 << 18;  // of the rows of these pairs: up to six rows per pair
  const Index most = std::clamp<Index>(bytes / (6 * width * real_bytes), 16, 128);
  block.for_pairs(most, [&](Index type, Index first, Index last) { visit(type, first, last - first); });
}

/// Scores of keys with the queries of pairs.
struct PairScores {
  const AttentionOperands& o;
  const real* queries;  ///< q' of the current pairs

  void by_destination(const EdgeRows&, const Batch<1>& batch, const Batch<1>& next, real* s, real*) const {
    for (const Segment& seg : batch) {
      const Rows rows = rows_of(batch, next, seg, 0, 0, o.heads, o.dim);
      lanes::dots(rows, queries + seg.row * o.heads * o.dim, s + seg.first * o.heads);
    }
  }
};

/// The forward pass over the destinations of one thread.
class PairSoftmax {
 public:
  PairSoftmax(const TypedAttentionOperands& o, const Stage& stage, const EdgeRows& rows,
              AttentionResult& result)
      : o_(o), stage_(stage), rows_(rows), result_(result), products_(o) {}

  void take(const EdgesByType& block) {
    for_some_pairs(block, width(), [&](Index type, Index first, Index n) {
      const Index matrices = type * o_.heads * o_.dim * o_.dim;
      queries_.resize(n * width());
      for (Index i = 0; i < n; ++i)
        std::copy_n(o_.query + rows_.row(block.pairs().row(first + i)) * width(), width(),
                    queries_.data() + i * width());
      scored_.resize(n * width());
      products_.multiply(queries_.data(), n, o_.att + matrices, Transposed::yes, scored_.data());
      attend(block.pairs().slice(first, first + n));
      real* messages = scored_.data();
      products_.multiply(means_.out.data(), n, o_.msg + matrices, Transposed::no, messages);
      for (Index i = 0; i < n; ++i)
        merge(i, messages + i * width(), rows_.result(block.pairs().row(first + i)));
    });
  }

 private:
  [[nodiscard]] Index width() const { return o_.heads * o_.dim; }

  void attend(EdgeRows pairs) {
    const Index n = pairs.num_rows;
    pairs.of_parts = true;
    if (!means_.out.defined() || means_.out.num_rows() < n)
      means_ = {.out = Tensor(Shape{n, o_.heads, o_.dim}),
                .max = Tensor(Shape{n, o_.heads}),
                .log_sum = Tensor(Shape{n, o_.heads})};
    const PairScores scores{operands_, scored_.data()};
    OnlineSoftmax<PairScores> softmax{
        .o = operands_, .score = scores, .edges = pairs, .first_stage = true, .result = means_};
    for_batches<1>(pairs, 0, n, edges_at_once(2 * width(), o_.heads),
                   {Gathered{stage_.rows.reals(), 2 * width()}},
                   [&](const Batch<1>& batch, const Batch<1>& next) { softmax.take(batch, next); });
  }

  /// Merges pair i into a row of the result, as the online softmax does with a batch.
  void merge(Index i, const real* message, Index row) {
    real* max = result_.max.row(row);
    real* sum = result_.log_sum.row(row);
    real *before = weights_.data(), *mine = before + o_.heads;
    for (Index h = 0; h < o_.heads; ++h) {
      const real most = std::max(max[h], means_.max.row(i)[h]), shift = finite_maximum(most);
      before[h] = max[h] - shift;
      mine[h] = means_.max.row(i)[h] - shift;
      max[h] = most;
    }
    exp_below_zero(weights_.data(), 2 * o_.heads);
    for (Index h = 0; h < o_.heads; ++h) {
      before[h] *= sum[h];
      sum[h] = before[h] + mine[h] * means_.log_sum.row(i)[h];
      before[h] /= softmax_divisor(sum[h]);
    }
    lanes::scale_from(o_.heads, o_.dim, before, message, result_.out.row(row));
  }

  const TypedAttentionOperands& o_;
  const AttentionOperands operands_{
      .heads = o_.heads, .dim = o_.dim, .key_dim = o_.dim, .separate_value = true};
  const Stage& stage_;
  const EdgeRows& rows_;
  AttentionResult& result_;
  HeadProducts products_;
  Array<real> queries_, scored_;
  AttentionResult means_;  ///< of the current pairs
  PassVector<real> weights_ = PassVector<real>(2 * o_.heads);
};

/// The edge loop of both passes of the backward pass. A pair has its own rows a and b, and an edge has two
/// rows of the other end:
///
///     s = <a, other_a>        <g, m> = <b, other_b>
class PairGradients {
 public:
  /// stats: [destinations, 3, heads].
  PairGradients(const TypedAttentionOperands& o, const real* stats) : o_(o), stats_(stats) {}

  /// For each pair, computes sums_a = sum ds other_a and, unless null, sums_b = sum alpha other_b.
  /// stats_row(segment, x) returns the destination of an edge.
  template <class StatsRow>
  void take(const EdgeRows& pairs, const std::array<Gathered, 2>& others, const real* a, const real* b,
            const StatsRow& stats_row, real* sums_a, real* sums_b) {
    const Index width = o_.heads * o_.dim, heads = o_.heads;
    for_batches<2>(pairs, 0, pairs.num_rows, edges_at_once(2 * width, heads), others,
                   [&](const Batch<2>& batch, const Batch<2>& next) {
                     for (const Segment& seg : batch)
                       lanes::dots(rows_of(batch, next, seg, 0, 0, heads, o_.dim).without_prefetch(),
                                   a + seg.row * width, &alpha_[seg.first * heads]);
                     compute_alpha(batch, stats_row);
                     for (const Segment& seg : batch) {
                       const Rows rows = rows_of(batch, next, seg, 1, 0, heads, o_.dim);
                       real* dalpha = &dalpha_[seg.first * heads];
                       if (sums_b == nullptr)
                         lanes::dots(rows, b + seg.row * width, dalpha);
                       else
                         lanes::dots_and_add(rows, b + seg.row * width, dalpha, &alpha_[seg.first * heads],
                                             seg.begins ? nullptr : ones_.data(), sums_b + seg.row * width);
                     }
                     to_score_gradients(batch.edges * heads, dalpha_.data(), mean_.data(), alpha_.data());
                     for (const Segment& seg : batch)
                       lanes::add_rows(rows_of(batch, next, seg, 0, 0, heads, o_.dim),
                                       &alpha_[seg.first * heads], seg.begins ? nullptr : ones_.data(),
                                       sums_a + seg.row * width);
                   });
  }

 private:
  /// Replaces scores by alpha, in place, and loads D of each edge.
  template <class StatsRow>
  void compute_alpha(const Batch<2>& batch, const StatsRow& stats_row) {
    for (const Segment& seg : batch) {
      for (Index x = seg.first; x < seg.first + seg.edges; ++x) {
        const real* stats = stats_ + stats_row(seg, batch.other[x]) * 3 * o_.heads;
        for (Index h = 0; h < o_.heads; ++h) {
          alpha_[x * o_.heads + h] = alpha_[x * o_.heads + h] - stats[h] - stats[o_.heads + h];
          mean_[x * o_.heads + h] = stats[2 * o_.heads + h];
        }
      }
    }
    exp_below_zero(alpha_.data(), batch.edges * o_.heads);
  }

  const TypedAttentionOperands& o_;
  const real* stats_;
  PassVector<real> alpha_ = per_edge(o_.heads), dalpha_ = alpha_, mean_ = alpha_;
  PassVector<real> ones_ = PassVector<real>(o_.heads, real{1});
};

/// Buffers for the rows of a thread's current pairs.
struct PairBuffers {
  Array<real> a, b;              ///< the pairs' own rows
  Array<real> a_there, b_there;  ///< their products with the matrices, comparable with rows of the other end
  Array<real> sums_a, sums_b;

  void resize(Index size) {
    for (Array<real>* rows : {&a, &b, &a_there, &b_there, &sums_a, &sums_b}) rows->resize(size);
  }
};

/// Sums of the gradients of all matrices, one copy for each of a fixed number of ranges of rows.
class MatrixSums {
 public:
  MatrixSums(Index size, bool wanted) {
    constexpr Index most = 32, most_values = Index{1} << 22;
    ranges_ = wanted ? std::clamp<Index>(most_values / std::max<Index>(size, 1), 2, most) : most;
    if (wanted) sums_.assign(ranges_ * size, 0.0);
    size_ = size;
  }
  [[nodiscard]] Index ranges() const { return ranges_; }
  /// Returns the sums of a range, or null if they are not required.
  [[nodiscard]] double* of(Index range) { return sums_.empty() ? nullptr : sums_.data() + range * size_; }
  void add_to(double* out) const {
    if (sums_.empty()) return;
    parallel_for(size_, 1 << 12, [&](Index begin, Index end) {
      for (Index range = 0; range < ranges_; ++range)
        for (Index i = begin; i < end; ++i) out[i] += sums_[range * size_ + i];
    });
  }

 private:
  Index ranges_, size_;
  Array<double> sums_;
};

class TypedAttention final : public ShardKernel {
 public:
  explicit TypedAttention(const TypedAttentionOperands& operands)
      : o_(operands),
        att_sums_(matrices(), o_.grad_att != nullptr),
        msg_sums_(matrices(), o_.grad_msg != nullptr) {}

  void begin() override {
    parallel_for(o_.result->out.num_rows(), rows_at_once(), [&](Index first, Index last) {
      std::fill(o_.result->out.row(first), o_.result->out.row(last), real{0});
      std::fill(o_.result->max.row(first), o_.result->max.row(last), -std::numeric_limits<real>::infinity());
      std::fill(o_.result->log_sum.row(first), o_.result->log_sum.row(last), real{0});
    });
  }
  [[nodiscard]] bool takes_parts() const override { return true; }

  void accumulate(const Stage& stage) override {
    const EdgeParts split(walks_.at(stage.shard).by_destination(stage));
    attend(stage, split.whole_rows(), *o_.result);
    const Index parts = split.size();
    if (parts == 0) return;
    AttentionResult of_parts{.out = Tensor::zeros(Shape{parts, o_.heads, o_.dim}),
                             .max = Tensor::full({parts, o_.heads}, -std::numeric_limits<real>::infinity()),
                             .log_sum = Tensor::zeros({parts, o_.heads})};
    attend(stage, split.parts(), of_parts);
    split.for_rows([&](Index v, Index first, Index last) {
      for (Index h = 0; h < o_.heads; ++h) merge_parts(of_parts, first, last, *o_.result, v, h, false);
    });
  }

  void finish() override { take_logarithms(*o_.result); }

  [[nodiscard]] bool needs_source_in_backward() const override { return true; }

  void begin_backward() override {
    const AttentionResult result = std::exchange(*o_.result, {});
    const TypedRows out = result.rows();
    stats_ = Tensor(Shape{out.num_rows(), 3, o_.heads});
    parallel_for(out.num_rows(), rows_at_once(), [&](Index first, Index last) {
      RowReader<> of_out(out);
      for (Index v = first; v < last; ++v) {
        std::copy_n(result.max.row(v), o_.heads, stats_.row(v));
        std::copy_n(result.log_sum.row(v), o_.heads, stats_.row(v) + o_.heads);
        lanes::head_dots(o_.heads, o_.dim, o_.grad_out + v * width(), of_out.row(v),
                         stats_.row(v) + 2 * o_.heads);
        mark_one_term(o_.heads, stats_.row(v) + o_.heads, stats_.row(v) + 2 * o_.heads);
      }
    });
  }

  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    if (o_.grad_query != nullptr) by_destination(stage);
    if (grad_src.defined() || o_.grad_att != nullptr || o_.grad_msg != nullptr)
      by_source(stage, grad_src.reals(), accumulate);
  }

  void finish_backward() override {
    if (o_.grad_att != nullptr) att_sums_.add_to(o_.grad_att);
    if (o_.grad_msg != nullptr) msg_sums_.add_to(o_.grad_msg);
  }

 private:
  [[nodiscard]] Index width() const { return o_.heads * o_.dim; }
  [[nodiscard]] Index matrices() const { return o_.num_types * o_.heads * o_.dim * o_.dim; }
  [[nodiscard]] Index matrices_of(Index type) const { return type * o_.heads * o_.dim * o_.dim; }
  [[nodiscard]] Index rows_at_once() const { return std::max<Index>((1 << 15) / width(), 1); }

  void attend(const Stage& stage, const EdgeRows& rows, AttentionResult& result) {
    for_typed_blocks(rows, o_.num_types, [&](Index first, Index last) {
      EdgesByType block(o_.types, o_.num_types);
      block.group(rows, first, last);
      PairSoftmax(o_, stage, rows, result).take(block);
    });
  }

  void by_destination(const Stage& stage) {
    sum_in_parts(
        walks_.at(stage.shard).by_destination(stage), width(), o_.grad_query, true,
        [&](const EdgeRows& rows, TypedNumbers to, bool) { add_query_gradients(stage, rows, to.reals()); });
  }

  /// `to` has one row per result of `rows`.
  void add_query_gradients(const Stage& stage, const EdgeRows& rows, real* to) {
    const std::array<Gathered, 2> keys_and_values = {Gathered{stage.rows.reals(), 2 * width()},
                                                     Gathered{stage.rows.reals() + width(), 2 * width()}};
    for_typed_blocks(rows, o_.num_types, [&](Index first, Index last) {
      EdgesByType block(o_.types, o_.num_types);
      block.group(rows, first, last);
      HeadProducts products(o_);
      PairGradients gradients(o_, stats_.data());
      PairBuffers at;
      for_some_pairs(block, width(), [&](Index type, Index p, Index n) {
        const real *att = o_.att + matrices_of(type), *msg = o_.msg + matrices_of(type);
        const EdgeRows pairs = block.pairs().slice(p, p + n);
        at.resize(n * width());
        for (Index i = 0; i < n; ++i) {
          const Index v = rows.row(pairs.row(i));
          std::copy_n(o_.query + v * width(), width(), at.a.data() + i * width());
          std::copy_n(o_.grad_out + v * width(), width(), at.b.data() + i * width());
        }
        products.multiply(at.a.data(), n, att, Transposed::yes, at.a_there.data());
        products.multiply(at.b.data(), n, msg, Transposed::yes, at.b_there.data());
        gradients.take(
            pairs, keys_and_values, at.a_there.data(), at.b_there.data(),
            [&](const Segment& seg, Index) { return rows.row(pairs.row(seg.row)); }, at.sums_a.data(),
            nullptr);
        products.multiply(at.sums_a.data(), n, att, Transposed::no, at.a_there.data());
        for (Index i = 0; i < n; ++i)
          add_row(at.a_there.data() + i * width(), to + rows.result(pairs.row(i)) * width());
      });
      poll_progress();
    });
  }

  void by_source(const Stage& stage, real* grad_src, bool accumulate) {
    const Index row_size = 2 * width();
    if (grad_src != nullptr && !accumulate)
      parallel_for(stage.size(), rows_at_once(), [&](Index first, Index last) {
        std::fill(grad_src + first * row_size, grad_src + last * row_size, real{0});
      });
    sum_in_parts(
        walks_.at(stage.shard).by_source(stage), row_size, grad_src, true,
        [&](const EdgeRows& rows, TypedNumbers to, bool) { add_source_gradients(stage, rows, to.reals()); });
  }

  /// `to` has one row per result of `rows` and is added to; null: not required.
  void add_source_gradients(const Stage& stage, const EdgeRows& rows, real* to) {
    const std::vector<Index> starts = typed_blocks(rows, o_.num_types);
    const Index blocks = std::ssize(starts) - 1, ranges = std::min(att_sums_.ranges(), msg_sums_.ranges());
    parallel_for(ranges, 1, [&](Index range, Index) {
      EdgesByType block(o_.types, o_.num_types);
      HeadProducts products(o_);
      PairGradients gradients(o_, stats_.data());
      PairBuffers at;
      for (Index b = range * blocks / ranges; b < (range + 1) * blocks / ranges; ++b) {
        block.group(rows, starts[b], starts[b + 1]);
        for_some_pairs(block, width(), [&](Index type, Index p, Index n) {
          take_sources(stage, rows, block.pairs().slice(p, p + n), type, range, products, gradients, at, to);
        });
        poll_progress();
      }
    });
  }

  void take_sources(const Stage& stage, const EdgeRows& rows, const EdgeRows& pairs, Index type, Index range,
                    HeadProducts& products, PairGradients& gradients, PairBuffers& at, real* to) {
    const real *att = o_.att + matrices_of(type), *msg = o_.msg + matrices_of(type);
    const Index n = pairs.num_rows;
    at.resize(n * width());
    for (Index i = 0; i < n; ++i) {
      const real* row = stage.rows.reals() + rows.row(pairs.row(i)) * 2 * width();
      std::copy_n(row, width(), at.a.data() + i * width());
      std::copy_n(row + width(), width(), at.b.data() + i * width());
    }
    products.multiply(at.a.data(), n, att, Transposed::no, at.a_there.data());
    products.multiply(at.b.data(), n, msg, Transposed::no, at.b_there.data());
    gradients.take(
        pairs, {Gathered{o_.query, width()}, Gathered{o_.grad_out, width()}}, at.a_there.data(),
        at.b_there.data(), [](const Segment&, Index other) { return other; }, at.sums_a.data(),
        at.sums_b.data());
    if (double* sums = att_sums_.of(range); sums != nullptr)
      products.add_outer(at.a.data(), at.sums_a.data(), n, sums + matrices_of(type));
    if (double* sums = msg_sums_.of(range); sums != nullptr)
      products.add_outer(at.b.data(), at.sums_b.data(), n, sums + matrices_of(type));
    if (to == nullptr) return;
    products.multiply(at.sums_a.data(), n, att, Transposed::yes, at.a_there.data());
    products.multiply(at.sums_b.data(), n, msg, Transposed::yes, at.b_there.data());
    for (Index i = 0; i < n; ++i) {
      real* row = to + rows.result(pairs.row(i)) * 2 * width();
      add_row(at.a_there.data() + i * width(), row);
      add_row(at.b_there.data() + i * width(), row + width());
    }
  }

  void add_row(const real* from, real* to) const {
    for (Index j = 0; j < width(); ++j) to[j] += from[j];
  }

  const TypedAttentionOperands o_;
  OfEachShard<EdgeWalk> walks_;
  Tensor stats_;  ///< [destinations, 3, heads]: max, log(sum), D
  MatrixSums att_sums_, msg_sums_;
};

}  // namespace
}  // namespace attention

std::unique_ptr<ShardKernel> make_typed_attention_kernel(const TypedAttentionOperands& operands) {
  return std::make_unique<attention::TypedAttention>(operands);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(std::unique_ptr<ShardKernel>, make_typed_attention_kernel,
             (const TypedAttentionOperands& operands), (operands));
