// SPDX-License-Identifier: MIT

/// Built-in messages with every reduction; the head of binary.hpp has the formulas.
///
/// Loop order: blocks of rows in parallel, rows in a block, edges of a row. The general path processes one
/// edge at a time: it prefetches the source row of the edge 8 positions ahead and adds the message to a
/// buffer in the L1 cache. Max and min of copy_u, and sums of products of u and v, iterate over tiles of
/// columns with the edges of a row as inner loop: the extrema (and their argmax) or sums of a tile stay in
/// registers, and rows 16 edges ahead are prefetched. Rows in bfloat16 are often equal in a column, so their
/// edges are taken by ascending ids, of which the first wins; those of reals only after a tile with equal
/// columns. Maxima and minima of copy_u, and their gradients, read and write rows in bfloat16 as they are.
///
/// The backward pass over sources gathers rows of g by the transpose, or rows of z by gather_sum for sums
/// of products of u and v; the row of the source and its gradient stay in the cache. For max and min of
/// copy_u, mark_argmax() first writes one bit per column and edge, and gather_marked() adds the columns of
/// g whose bit is set, in registers.
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/tiles.hpp>
#include <sar/graph/kernels/binary.hpp>
#include <sar/graph/kernels/edge_batches.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index edges_ahead = 8;
constexpr Index sources_ahead = 16;

/// Returns row i, or null if there are no rows.
template <class T>
inline T* row_of(T* rows, Index i, Index width) {
  return rows != nullptr ? rows + i * width : nullptr;
}

/// The operand rows of one edge's message.
struct OperandRows {
  const real* row[3];
  [[nodiscard]] const real* operator[](MessageTarget target) const {
    return row[static_cast<std::size_t>(target)];
  }
};

/// Computes the maxima (minima) and argmax over the `count` rows row(k) for a tile of N columns, in
/// registers. If the rows are `ordered`, the first of equal rows, or of NaN, wins. Otherwise it returns
/// false if there may be such columns, and writes nothing.
template <bool minimum, bool ordered, Index N, class X, class Row, class Number>
[[gnu::always_inline]] inline bool find_extrema(Index count, const Row& row, const Number& number, X* best,
                                                local_index* who) {
  using T = lanes::Tile<1, N>;
  using Mask = lanes::Mask<T::lanes>;
  T most = T::from(row(0));
  Mask from[T::count], ties[T::count] = {};
  for (Index c = 0; c < T::count; ++c) from[c] = Mask{} + number(0);
  for (Index k = 1; k < count; ++k) {
    const T m = T::from(row(k));
    const Mask edge = Mask{} + number(k);
    for (Index c = 0; c < T::count; ++c) {
      Mask nan = m.v[c] != m.v[c];
      if constexpr (ordered) nan &= most.v[c] == most.v[c];
      const Mask wins = (minimum ? m.v[c] < most.v[c] : m.v[c] > most.v[c]) | nan;
      if constexpr (!ordered) ties[c] = (ties[c] & ~wins) | (m.v[c] == most.v[c]);
      most.v[c] = wins ? m.v[c] : most.v[c];
      from[c] = wins ? edge : from[c];
    }
  }
  bool tied = false;
  if constexpr (!ordered) {
    for (Index c = 0; c < T::count; ++c) ties[0] |= ties[c] | (most.v[c] != most.v[c]);
    for (Index l = 0; l < T::lanes; ++l) tied |= ties[0][l] != 0;
  }
  if (tied) return false;
  most.to(best);
  for (Index c = 0; c < T::count; ++c) lanes::store_indices<T::lanes>(who + c * T::lanes, from[c]);
  return true;
}

/// Sign bits of the columns of a tile.
template <Index G, Index N>
using SignsOf = lanes::Signs<lanes::Tile<G, N>::lanes>;

class Binary final : public BinaryKernel {
 public:
  explicit Binary(Operands operands) : o_(std::move(operands)) {}

  void set_output(TypedRows out, bool has_base) override {
    o_.out = out.numbers();
    o_.has_base = has_base;
  }
  [[nodiscard]] bool reads_bfloat16() const override { return o_.out.is_bfloat16(); }

  void begin() override { first_ = true; }
  void accumulate(const Stage& stage) override;
  [[nodiscard]] bool needs_source_in_backward() const override;
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;
  [[nodiscard]] bool writes(NumberType type) const override {
    return type == NumberType::reals || o_.grad_out.is_bfloat16();
  }

 private:
  [[nodiscard]] const Operand& operand(MessageTarget target) const {
    return target == MessageTarget::u ? o_.u : target == MessageTarget::v ? o_.v : o_.e;
  }
  [[nodiscard]] bool reads(MessageTarget target) const { return o_.lhs == target || o_.rhs == target; }
  [[nodiscard]] bool wants(MessageTarget target) const {
    return reads(target) && (target == MessageTarget::u ? o_.wants_u : operand(target).grad != nullptr);
  }
  /// Returns whether the messages of all in-edges of v can be computed as one product of v and the sum of
  /// their sources.
  [[nodiscard]] bool sums_sources() const {
    return o_.result == Result::sum && o_.row.bilinear() && reads(MessageTarget::u) &&
           reads(MessageTarget::v);
  }
  [[nodiscard]] bool extremum() const { return o_.result == Result::max || o_.result == Result::min; }
  /// Whether the result is the extremum of source rows as they are.
  [[nodiscard]] bool extremum_of_rows() const {
    return extremum() && o_.row.is_copy() && o_.lhs == MessageTarget::u;
  }
  /// Bytes that one edge touches; determines the block size.
  [[nodiscard]] Index edge_bytes() const {
    return (o_.row.cost() + o_.row.width()) * static_cast<Index>(sizeof(real));
  }
  /// Returns gm_e, possibly in `buffer` [width].
  [[nodiscard]] const real* message_gradient(Index v, Index edge, real* buffer) const;
  void add_gradient(MessageTarget target, const real* a, const real* b, const real* g, real* to) const {
    target == o_.lhs ? o_.row.add_gradient_a(a, b, g, to) : o_.row.add_gradient_b(a, b, g, to);
  }
  /// Writes the gradient of one row of e; only one edge contributes to it.
  void set_edge_gradient(Index edge, const real* a, const real* b, const real* g) const {
    real* to = o_.e.grad + edge * o_.e.width;
    std::fill_n(to, o_.e.width, real{0});
    add_gradient(MessageTarget::e, a, b, g, to);
  }
  template <class Visit>
  void for_edges(const Stage& stage, const EdgeRows& edges, Index i, const Visit& visit) const;
  /// Computes the i-th row of the stage. `buffer` has [width] values, followed by the sum of the sources.
  void sum_row(const Stage& stage, const EdgeRows& edges, Index i, bool overwrite, real* buffer) const;
  void extremum_row(const Stage& stage, const EdgeRows& edges, Index i, bool first_stage, real* buffer) const;
  /// Specialization of extremum_row() for copy_u, of rows of type X. `order` is memory.
  template <bool minimum, class X>
  void extremum_of_sources(const Stage& stage, const EdgeRows& edges, Index i, bool first_stage,
                           const X* rows, X* out, PassVector<local_index>& order) const;
  /// Sets `order` to the positions of `count` edges, counted from the first, by ascending ids.
  void order_by_id(Index first_edge, Index count, PassVector<local_index>& order) const;
  void backward_by_source(const Stage& stage, real* grad_src, bool accumulate);
  /// Specialization of backward_by_source() for max and min of copy_u. A pass over destinations marks the
  /// columns whose argmax is the edge, one bit each; a pass over sources gathers these bits together with
  /// rows of g.
  template <class X>
  void backward_of_argmax(const Stage& stage, const X* grad_out, TypedNumbers grad_src, bool accumulate);
  void mark_argmax(const GraphShard& shard, const EdgeRows& edges, EdgeSlots& slots) const;
  template <class X, class Y>
  void gather_marked(const EdgeRows& rows, EdgeSlots& slots, const X* grad_out, Y* grad,
                     bool accumulate) const;
  void backward_by_destination(const Stage& stage);
  void backward_of_equal_gradients(const Stage& stage);
  /// Computes sum = the sum of the source rows of the i-th row's edges, [width of u].
  void sum_sources(const Stage& stage, const EdgeRows& edges, Index i, real* sum) const;
  void backward_of_source_sums(const Stage& stage);
  void gather_equal_gradients(const Stage& stage, real* grad_src, bool accumulate);

  Operands o_;
  Tensor z_;  ///< of gather_equal_gradients(): [destinations, width of u]
  EdgeWalk walk_;
  bool first_ = true;  ///< the next stage is the first one and overwrites results
};

/// Calls visit(edge, row of lhs, row of rhs) for the edges of the i-th row.
template <class Visit>
void Binary::for_edges(const Stage& stage, const EdgeRows& edges, Index i, const Visit& visit) const {
  const GraphShard& shard = stage.shard;
  const Index v = edges.row(i);
  for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
    const Index edge = shard.edge(k);
    const Index u = shard.src[k] - stage.begin;
    if (stage.rows.defined() && k + edges_ahead < shard.num_edges()) {
      const Index next = shard.src[k + edges_ahead] - stage.begin;
      if (next >= 0 && next < stage.size()) prefetch_row(stage.rows.reals() + next * o_.u.width, o_.u.width);
    }
    const OperandRows rows{{row_of(stage.rows.reals(), u, o_.u.width), row_of(o_.v.values, v, o_.v.width),
                            row_of(o_.e.values, edge, o_.e.width)}};
    visit(edge, rows[o_.lhs], rows[o_.rhs]);
  }
}

void Binary::sum_row(const Stage& stage, const EdgeRows& edges, Index i, bool overwrite, real* buffer) const {
  const Index width = o_.row.width();
  const Index v = edges.row(i);
  real* out = o_.out.reals() + v * width;
  if (edges.begin[i] == edges.end[i]) {
    if (overwrite) std::fill_n(out, width, real{0});
    return;
  }
  if (sums_sources()) {
    real* sum = buffer + width;
    sum_sources(stage, edges, i, sum);
    const real* y = o_.v.values + v * o_.v.width;
    o_.lhs == MessageTarget::u ? o_.row.store(sum, y, buffer) : o_.row.store(y, sum, buffer);
  } else {
    std::fill_n(buffer, width, real{0});
    for_edges(stage, edges, i, [&](Index, const real* a, const real* b) { o_.row.add(a, b, buffer); });
  }
  const real scale = o_.dst_scale != nullptr ? o_.dst_scale[v] : 1;
  if (overwrite)
    for (Index j = 0; j < width; ++j) out[j] = scale * buffer[j];
  else
    for (Index j = 0; j < width; ++j) out[j] += scale * buffer[j];
}

void Binary::extremum_row(const Stage& stage, const EdgeRows& edges, Index i, bool first_stage,
                          real* buffer) const {
  const MessageRow& row = o_.row;
  const Index width = row.width();
  real* out = o_.out.reals() + edges.row(i) * width;
  local_index* argmax = o_.argmax + edges.row(i) * width;
  if (first_stage) {
    std::fill_n(out, width, real{0});
    std::fill_n(argmax, width, local_index{-1});
  }
  bool empty = width == 0 || argmax[0] < 0;
  for_edges(stage, edges, i, [&](Index edge, const real* a, const real* b) {
    const auto number = static_cast<local_index>(edge);
    if (empty) {
      row.store(a, b, out);
      std::fill_n(argmax, width, number);
      empty = false;
      return;
    }
    if (!row.is_copy()) row.store(a, b, buffer);
    const real* m = row.is_copy() ? a : buffer;
    const auto edge_of = [&](Index) { return number; };
    if (o_.result == Result::min)
      lanes::take_extremum<true>(width, m, edge_of, o_.edge_ids, out, argmax);
    else
      lanes::take_extremum<false>(width, m, edge_of, o_.edge_ids, out, argmax);
  });
}

template <bool minimum, class X>
void Binary::extremum_of_sources(const Stage& stage, const EdgeRows& edges, Index i, bool first_stage,
                                 const X* rows, X* out, PassVector<local_index>& order) const {
  const Index width = o_.row.width();
  const Index begin = edges.begin[i];
  const Index count = edges.end[i] - begin;
  out += edges.row(i) * width;
  local_index* argmax = o_.argmax + edges.row(i) * width;
  if (count == 0) {
    if (!first_stage) return;
    std::fill_n(out, width, X{});
    std::fill_n(argmax, width, local_index{-1});
    return;
  }
  const local_index* src = stage.shard.src.data() + begin;
  order.clear();
  const Index first_edge = stage.shard.edge(begin);
  const Index behind = std::min<Index>(edges.end[edges.num_rows - 1] - begin, count + sources_ahead);
  lanes::for_columns(width, [&](auto n, Index j) {
    const auto find = [&]<bool ordered>(std::bool_constant<ordered>, X* best, local_index* who) {
      const local_index* by_id = order.data();
      const auto number = [&](Index k) {
        return static_cast<local_index>(first_edge + (ordered ? by_id[k] : k));
      };
      const auto row = [&](Index k) {
        const Index ahead = k + sources_ahead;
        const Index next =
            ahead < behind ? src[ordered && ahead < count ? by_id[ahead] : ahead] - stage.begin : -1;
        if (next >= 0 && next < stage.size())
          prefetch_bytes(rows + next * width + j, n * static_cast<Index>(sizeof(X)));
        return rows + (src[ordered ? by_id[k] : k] - stage.begin) * width + j;
      };
      return find_extrema<minimum, ordered, n>(count, row, number, best, who);
    };
    const auto find_all = [&](X* best, local_index* who) {
      // Reals are equal so rarely that ordering their rows is not worth while before some are.
      if (std::is_same_v<X, real> && find(std::bool_constant<false>(), best, who)) return;
      if (order.empty()) order_by_id(first_edge, count, order);
      find(std::bool_constant<true>(), best, who);
    };
    if (first_stage || argmax[j] < 0) return find_all(out + j, argmax + j);
    X best[n];
    local_index who[n];
    find_all(best, who);
    lanes::take_extremum<minimum>(
        n, best, [&](Index c) { return who[c]; }, o_.edge_ids, out + j, argmax + j);
  });
}

void Binary::order_by_id(Index first_edge, Index count, PassVector<local_index>& order) const {
  constexpr Index few = 64;  // counting takes less time than sorting
  const Index* ids = o_.edge_ids + first_edge;
  order.resize(count);
  if (count > few) {
    std::iota(order.begin(), order.end(), local_index{0});
    std::sort(order.begin(), order.end(), [&](local_index a, local_index b) { return ids[a] < ids[b]; });
    return;
  }
  Index smaller[few] = {};
  for (Index b = 0; b < count; ++b)
    for (Index a = 0; a < count; ++a) smaller[a] += ids[b] < ids[a] ? 1 : 0;
  for (Index a = 0; a < count; ++a) order[smaller[a]] = static_cast<local_index>(a);
}

void Binary::accumulate(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  const Index width = o_.row.width();
  const bool first_stage = std::exchange(first_, false);
  for_row_blocks(edges, edge_bytes(), [&](Index first, Index last) {
    Array<real> buffer(width + (sums_sources() ? o_.u.width : 0));
    PassVector<local_index> order;
    for (Index i = first; i < last; ++i) {
      const auto extrema_of = [&](auto minimum, const auto* rows, auto* out) {
        extremum_of_sources<minimum>(stage, edges, i, first_stage, rows, out, order);
      };
      const auto extrema = [&](auto minimum) {
        if (stage.rows.is_bfloat16())
          extrema_of(minimum, stage.rows.bfloat16(), o_.out.bfloat16());
        else
          extrema_of(minimum, stage.rows.reals(), o_.out.reals());
      };
      if (o_.result == Result::edges)
        for_edges(stage, edges, i, [&](Index edge, const real* a, const real* b) {
          o_.row.store(a, b, o_.out.reals() + edge * width);
        });
      else if (o_.result == Result::sum)
        sum_row(stage, edges, i, first_stage && !o_.has_base, buffer.data());
      else if (!extremum_of_rows())
        extremum_row(stage, edges, i, first_stage, buffer.data());
      else if (o_.result == Result::min)
        extrema(std::bool_constant<true>());
      else
        extrema(std::bool_constant<false>());
    }
  });
}

bool Binary::needs_source_in_backward() const {
  if (!reads(MessageTarget::u) || o_.row.is_copy()) return false;
  const bool a = wants(o_.lhs);
  const bool b = wants(o_.rhs);
  return o_.lhs == MessageTarget::u ? o_.row.reads_a(a, b) : o_.row.reads_b(a, b);
}

void Binary::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  if (sums_sources()) {
    if (wants(MessageTarget::v)) backward_of_source_sums(stage);
    if (grad_src.defined()) gather_equal_gradients(stage, grad_src.reals(), accumulate);
    return;
  }
  const bool edges_by_destination = wants(MessageTarget::e) && !o_.wants_u;
  if (wants(MessageTarget::v) && !edges_by_destination && o_.row.linear() && o_.result == Result::sum)
    backward_of_equal_gradients(stage);
  else if (wants(MessageTarget::v) || edges_by_destination)
    backward_by_destination(stage);
  if (!grad_src.defined()) return;
  if (!o_.grad_out.is_bfloat16() && !extremum_of_rows())
    return backward_by_source(stage, grad_src.reals(), accumulate);
  with_type(o_.grad_out,
            [&](const auto* grad_out) { backward_of_argmax(stage, grad_out, grad_src, accumulate); });
}

const real* Binary::message_gradient(Index v, Index edge, real* buffer) const {
  const Index width = o_.row.width();
  if (o_.result == Result::edges) return o_.grad_out.reals() + edge * width;
  const real* g = o_.grad_out.reals() + v * width;
  if (o_.result == Result::sum) return g;
  const local_index* argmax = o_.argmax + v * width;
  const auto number = static_cast<local_index>(edge);
  for (Index j = 0; j < width; ++j) buffer[j] = argmax[j] == number ? g[j] : real{0};
  return buffer;
}

void Binary::backward_by_source(const Stage& stage, real* grad_src, bool accumulate) {
  const bool numbered = reads(MessageTarget::e) || o_.result != Result::sum;
  const EdgeRows edges = walk_.by_source(stage, numbered);
  const Index width = o_.row.width();
  const Index all_edges = stage.shard.num_edges();
  for_row_blocks(edges, edge_bytes(), [&](Index first, Index last) {
    Array<real> buffer(width);
    for (Index i = first; i < last; ++i) {
      real* grad = grad_src + i * o_.u.width;
      if (!accumulate) std::fill_n(grad, o_.u.width, real{0});
      const real* u = row_of(stage.rows.reals(), i, o_.u.width);
      for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
        const Index v = edges.other[k];
        const Index edge = numbered ? edges.edge(k) : 0;
        if (o_.result != Result::edges && k + edges_ahead < all_edges) {
          const Index next = edges.other[k + edges_ahead];
          prefetch_row(o_.grad_out.reals() + next * width, width);
          if (extremum())
            prefetch_bytes(o_.argmax + next * width, width * static_cast<Index>(sizeof(local_index)));
        }
        const real* g = message_gradient(v, edge, buffer.data());
        const OperandRows rows{
            {u, row_of(o_.v.values, v, o_.v.width), row_of(o_.e.values, edge, o_.e.width)}};
        add_gradient(MessageTarget::u, rows[o_.lhs], rows[o_.rhs], g, grad);
        if (o_.e.grad != nullptr) set_edge_gradient(edge, rows[o_.lhs], rows[o_.rhs], g);
      }
    }
  });
}

template <class X>
void Binary::backward_of_argmax(const Stage& stage, const X* grad_out, TypedNumbers grad_src,
                                bool accumulate) {
  const Index width = o_.row.width();
  Index words = 0;
  lanes::for_row_tiles(width, [&](auto g, auto n, Index) { words += SignsOf<g, n>::words; });
  // As many slots per destination as fit in the memory of the result.
  const Index per_row = std::max<Index>(width / std::max<Index>(words, 1), 3);
  const Index most_edges = std::max<Index>(per_row * stage.shard.num_dst, 1 << 12);
  EdgeSlots slots(words);
  for_blocks_of_sources(stage, 0, most_edges, [&](const Stage& block) {
    const EdgeRows edges = walk_.by_destination(block);
    slots.open(block.shard.num_dst, edges);
    mark_argmax(block.shard, edges, slots);
    const TypedNumbers grad_block = grad_src.from((block.begin - stage.begin) * width);
    edge_batches::sum_in_parts(
        walk_.by_source(block), width, grad_block, accumulate,
        [&](const EdgeRows& rows, TypedNumbers to, bool add) {
          with_type(to, [&](auto* grad) { gather_marked(rows, slots, grad_out, grad, add); });
        });
  });
}

void Binary::mark_argmax(const GraphShard& shard, const EdgeRows& edges, EdgeSlots& slots) const {
  for_row_blocks(edges, edge_bytes(), [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      if (edges.begin[i] == edges.end[i]) continue;
      const Index v = edges.row(i);
      const local_index* argmax = o_.argmax + v * o_.row.width();
      real* slot = slots.at(v, edges.begin[i]);
      lanes::for_row_tiles(o_.row.width(), [&](auto g, auto n, Index column) {
        using T = lanes::Tile<g, n>;
        lanes::Mask<T::lanes> edge_of[T::count];
        for (Index c = 0; c < T::count; ++c)
          edge_of[c] = lanes::load_indices<T::lanes>(argmax + column + c * T::lanes);
        real* to = slot;
        for (Index k = edges.begin[i]; k < edges.end[i]; ++k, to += slots.width())
          SignsOf<g, n>::save(T::equal_to(edge_of, static_cast<local_index>(shard.edge(k))), to);
        slot += SignsOf<g, n>::words;
      });
    }
  });
}

template <class X, class Y>
void Binary::gather_marked(const EdgeRows& rows, EdgeSlots& slots, const X* grad_out, Y* grad,
                           bool accumulate) const {
  const Index width = o_.row.width();
  const local_index *const positions = rows.position_of, *const dst = rows.other;
  for_row_blocks(rows, edge_bytes(), [&](Index first, Index last) {
    const Index behind = last > first ? rows.end[last - 1] : 0;
    const auto slot_of = [&](Index k) { return slots.at(dst[k], positions[k]); };
    for (Index i = first; i < last; ++i) {
      if (rows.size(i) > rows.longest) continue;
      Index words = 0;
      lanes::for_row_tiles(width, [&](auto g, auto n, Index column) {
        using T = lanes::Tile<g, n>;
        T sum{};
        if (accumulate) sum = T::from(grad + i * width + column);
        for (Index k = rows.begin[i]; k < rows.end[i]; ++k) {
          if (k + 2 * sources_ahead < behind) __builtin_prefetch(slot_of(k + 2 * sources_ahead) + words);
          if (k + sources_ahead < behind)
            prefetch_bytes(grad_out + dst[k + sources_ahead] * width + column,
                           g * n * static_cast<Index>(sizeof(X)));
          const real* slot = slot_of(k) + words;
          const auto signs = SignsOf<g, n>::load(slot);
          const X* g_v = grad_out + dst[k] * width + column;
          for (Index c = 0; c < T::count; ++c) {
            const auto g_c = lanes::load<T::lanes>(g_v + c * T::lanes);
            sum.v[c] = (signs & SignsOf<g, n>::bits(c)) != 0 ? sum.v[c] + g_c : sum.v[c];
          }
        }
        sum.to(grad + i * width + column);
        words += SignsOf<g, n>::words;
      });
    }
  });
}

void Binary::backward_by_destination(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  const bool edge_gradients = o_.e.grad != nullptr && !o_.wants_u;
  for_row_blocks(edges, edge_bytes(), [&](Index first, Index last) {
    Array<real> buffer(o_.row.width());
    for (Index i = first; i < last; ++i) {
      const Index v = edges.row(i);
      real* grad_v = row_of(o_.v.grad, v, o_.v.width);
      for_edges(stage, edges, i, [&](Index edge, const real* a, const real* b) {
        const real* g = message_gradient(v, edge, buffer.data());
        if (grad_v != nullptr) add_gradient(MessageTarget::v, a, b, g, grad_v);
        if (edge_gradients) set_edge_gradient(edge, a, b, g);
      });
    }
  });
}

void Binary::backward_of_equal_gradients(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  parallel_for(edges.num_rows, 1024, [&](Index first, Index last) {
    Array<real> once(o_.v.width);
    for (Index i = first; i < last; ++i) {
      const Index v = edges.row(i);
      const auto count = static_cast<real>(edges.end[i] - edges.begin[i]);
      if (count == 0) continue;
      std::fill(once.begin(), once.end(), real{0});
      add_gradient(MessageTarget::v, nullptr, nullptr, o_.grad_out.reals() + v * o_.row.width(), once.data());
      real* grad = o_.v.grad + v * o_.v.width;
      for (Index j = 0; j < o_.v.width; ++j) grad[j] += count * once[j];
    }
  });
}

void Binary::sum_sources(const Stage& stage, const EdgeRows& edges, Index i, real* sum) const {
  const Index width = o_.u.width;
  const local_index* src = stage.shard.src.data();
  const Index behind = std::min<Index>(edges.end[edges.num_rows - 1], edges.end[i] + sources_ahead);
  lanes::for_columns(width, [&](auto n, Index j) {
    lanes::Tile<1, n> all{};
    for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
      if (const Index next = k + sources_ahead < behind ? src[k + sources_ahead] - stage.begin : -1;
          next >= 0 && next < stage.size())
        prefetch_row(stage.rows.reals() + next * width + j, n);
      all.add(lanes::Tile<1, n>::from(stage.rows.reals() + (src[k] - stage.begin) * width + j));
    }
    all.to(sum + j);
  });
}

void Binary::backward_of_source_sums(const Stage& stage) {
  const EdgeRows edges = walk_.by_destination(stage);
  for_row_blocks(edges, edge_bytes(), [&](Index first, Index last) {
    Array<real> sum(o_.u.width);
    for (Index i = first; i < last; ++i) {
      if (edges.begin[i] == edges.end[i]) continue;
      const Index v = edges.row(i);
      sum_sources(stage, edges, i, sum.data());
      const OperandRows rows{{sum.data(), row_of(o_.v.values, v, o_.v.width), nullptr}};
      add_gradient(MessageTarget::v, rows[o_.lhs], rows[o_.rhs], o_.grad_out.reals() + v * o_.row.width(),
                   o_.v.grad + v * o_.v.width);
    }
  });
}

void Binary::gather_equal_gradients(const Stage& stage, real* grad_src, bool accumulate) {
  const Index num_dst = stage.shard.num_dst;
  if (!z_.defined()) {
    z_ = Tensor({num_dst, o_.u.width});
    parallel_for(num_dst, std::max<Index>((1 << 15) / std::max<Index>(edge_bytes(), 1), 1),
                 [&](Index first, Index last) {
                   for (Index v = first; v < last; ++v) {
                     std::fill_n(z_.row(v), o_.u.width, real{0});
                     const OperandRows rows{{nullptr, row_of(o_.v.values, v, o_.v.width), nullptr}};
                     add_gradient(MessageTarget::u, rows[o_.lhs], rows[o_.rhs],
                                  o_.grad_out.reals() + v * o_.row.width(), z_.row(v));
                   }
                 });
  }
  gather_sum({.edges = walk_.by_source(stage, false),
              .x = z_.data(),
              .x_rows = num_dst,
              .out = grad_src,
              .width = o_.u.width,
              .accumulate = accumulate});
}

}  // namespace

std::unique_ptr<BinaryKernel> make_binary_kernel(BinaryKernel::Operands operands) {
  return std::make_unique<Binary>(std::move(operands));
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(std::unique_ptr<BinaryKernel>, make_binary_kernel, (BinaryKernel::Operands operands),
             (std::move(operands)));
