// SPDX-License-Identifier: MIT

/// Loops of built-in messages over the lines of one row. The steps along a line (0 for a repeated operand, 1
/// otherwise) are compile-time constants, so that the inner loops vectorize.
#include <sar/core/error.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/tensor/broadcast.hpp>
#include <sar/graph/kernels/message_row.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using Op = MessageOp;

// A new operation adds a branch to each of these three functions; it does not compile without. Which operands
// its derivatives read, its row in message_op_names says.
template <Op op>
[[maybe_unused]] inline constexpr bool has_no_line = false;

template <Op op>
inline real value(real a, real b) {
  if constexpr (op == Op::add)
    return a + b;
  else if constexpr (op == Op::sub)
    return a - b;
  else if constexpr (op == Op::mul || op == Op::dot)
    return a * b;
  else if constexpr (op == Op::div)
    return a / b;
  else
    static_assert(has_no_line<op>);
}

/// Derivatives of value(a[i], b[k]). Operands that a derivative does not depend on may be null.
template <Op op>
inline real derivative_a(const real* b, Index k) {
  if constexpr (op == Op::add || op == Op::sub)
    return 1;
  else if constexpr (op == Op::mul || op == Op::dot)
    return b[k];
  else if constexpr (op == Op::div)
    return 1 / b[k];
  else
    static_assert(has_no_line<op>);
}
template <Op op>
inline real derivative_b(const real* a, Index i, const real* b, Index k) {
  if constexpr (op == Op::add)
    return 1;
  else if constexpr (op == Op::sub)
    return -1;
  else if constexpr (op == Op::mul || op == Op::dot)
    return a[i];
  else if constexpr (op == Op::div)
    return -a[i] / (b[k] * b[k]);
  else
    static_assert(has_no_line<op>);
}

/// Calls run(step of a, step of b) with the steps as constants.
template <class Run>
inline void with_steps(bool a_repeats, bool b_repeats, const Run& run) {
  using Zero = std::integral_constant<Index, 0>;
  using One = std::integral_constant<Index, 1>;
  if (a_repeats)
    b_repeats ? run(Zero{}, Zero{}) : run(Zero{}, One{});
  else
    b_repeats ? run(One{}, Zero{}) : run(One{}, One{});
}

template <MessageOp op>
struct Loops {
  static constexpr bool is_dot = op == Op::dot;

  template <bool add>
  static void forward(const MessageLines& row, const real* a, const real* b, real* m) {
    const Index n = row.length;
    with_steps(row.a_repeats, row.b_repeats, [&](auto step_a, auto step_b) {
      for (const MessageLines::Line& line : row.lines) {
        const real* x = a + line.a;
        const real* y = b + line.b;
        const auto term = [&](Index j) { return value<op>(x[j * step_a], y[j * step_b]); };
        if constexpr (is_dot) {
          const real sum = sum_of(n, term);
          *m = add ? *m + sum : sum;
          ++m;
        } else {
          for (Index j = 0; j < n; ++j) m[j] = add ? m[j] + term(j) : term(j);
          m += n;
        }
      }
    });
  }

  /// Adds g[j] * derivative(j) to to[j] along every line of the operand, or their sum if the operand is
  /// repeated.
  template <bool of_a>
  static void backward(const MessageLines& row, const real* a, const real* b, const real* g, real* out) {
    const Index n = row.length;
    with_steps(row.a_repeats, row.b_repeats, [&](auto step_a, auto step_b) {
      for (const MessageLines::Line& line : row.lines) {
        const auto term = [&](Index j) {
          const Index i = line.a + j * step_a;
          const Index k = line.b + j * step_b;
          return g[is_dot ? 0 : j] * (of_a ? derivative_a<op>(b, k) : derivative_b<op>(a, i, b, k));
        };
        real* to = out + (of_a ? line.a : line.b);
        if constexpr ((of_a ? decltype(step_a)::value : decltype(step_b)::value) == 0)
          *to += sum_of(n, term);
        else
          for (Index j = 0; j < n; ++j) to[j] += term(j);
        g += is_dot ? 1 : n;
      }
    });
  }

  static constexpr MessageLoops functions{&forward<false>, &forward<true>, &backward<true>, &backward<false>};
};

template <>
struct Loops<MessageOp::copy> {
  template <bool add>
  static void forward(const MessageLines& row, const real* a, const real*, real* m) {
    for (Index j = 0; j < row.length; ++j) m[j] = add ? m[j] + a[j] : a[j];
  }
  static void backward(const MessageLines& row, const real*, const real*, const real* g, real* out) {
    for (Index j = 0; j < row.length; ++j) out[j] += g[j];
  }
  static constexpr MessageLoops functions{&forward<false>, &forward<true>, &backward, &backward};
};

}  // namespace

MessageLoops message_loops(MessageOp op) {
#define SAR_CASE(op) \
  case Op::op:       \
    return Loops<Op::op>::functions;
  switch (op) { SAR_CASE(copy) SAR_BINARY_MESSAGE_OPS(SAR_CASE) }
#undef SAR_CASE
  return {};
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(MessageLoops, message_loops, (MessageOp op), (op));

#if SAR_COMPILED_ONCE
namespace sar { inline namespace SAR_PRECISION {

MessageRow::MessageRow(MessageOp op, const Shape& a, const Shape& b) : op_(op) {
  const Shape row_a = a.with_rows(1);
  const Shape row_b = b.with_rows(1);
  for (int d = 1; d < std::min(a.dims(), b.dims()); ++d) {
    const Index m = a[a.dims() - d];
    const Index n = b[b.dims() - d];
    require<ShapeError>(m == n || m == 1 || n == 1, "rows of a message's operands ", a, " and ", b,
                        " do not broadcast: ", m, " against ", n);
  }
  shape_ = broadcast(row_a, row_b);
  const auto last_extent = [](const Shape& s) { return s.dims() > 1 ? s[s.dims() - 1] : 1; };
  const auto without_last = [](const Shape& s) {
    std::array<Index, 4> extents{};
    for (int d = 0; d < s.dims(); ++d) extents[d] = d > 0 && d + 1 == s.dims() ? 1 : s[d];
    return Shape(std::span<const Index>(extents.data(), s.dims()));
  };
  if (op != MessageOp::dot) {
    const BroadcastLoops loops(row_a, row_b, shape_);
    const int last = loops.dims - 1;
    lines_.length = loops.inner();
    lines_.a_repeats = loops.stride_a[last] == 0;
    lines_.b_repeats = loops.stride_b[last] == 0;
    for (Index i = 0; i < loops.lines(); ++i)
      lines_.lines.push_back({loops.offsets(i)[0], loops.offsets(i)[1]});
  } else {  // one line per element of the result; it runs along the contracted dimension
    lines_.length = last_extent(shape_);
    lines_.a_repeats = last_extent(row_a) != lines_.length;
    lines_.b_repeats = last_extent(row_b) != lines_.length;
    shape_ = without_last(shape_);
    const BroadcastLoops loops(without_last(row_a), without_last(row_b), shape_);
    const int last = loops.dims - 1;
    for (Index i = 0; i < loops.lines(); ++i)
      for (Index j = 0; j < loops.inner(); ++j)
        lines_.lines.push_back({(loops.offsets(i)[0] + j * loops.stride_a[last]) * last_extent(row_a),
                                (loops.offsets(i)[1] + j * loops.stride_b[last]) * last_extent(row_b)});
  }
  loops_ = message_loops(op);
}
}}  // namespace sar
#endif
