// SPDX-License-Identifier: MIT

// Rows in parallel blocks of about 2^15 numbers, then the F channels, vectorized. Bytes moved: the operands
// (12 F numbers a row) are read once forward and once backward, and each result is written once.
#include <sar/core/memory/memory.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/vector_messages.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace {

Index message_grain(Index feats) {
  return std::max<Index>(1, (1 << 15) / (12 * feats + 1));
}

/// The operands of a message.
struct MessageRow {
  const real *phi, *filter, *direction, *vectors;  ///< vectors: null without them
};
class Operands {
 public:
  Operands(const VectorMessageRows& of, Index feats)
      : first_{of.phi.data(), of.filter.data(), of.direction.data(),
               of.vectors.defined() ? of.vectors.data() : nullptr},
        width_(3 * feats) {}
  [[nodiscard]] MessageRow row(Index i) const {
    const auto& [phi, filter, direction, vectors] = first_;
    return {phi + i * width_, filter + i * width_, direction + i * 3,
            vectors != nullptr ? vectors + i * width_ : nullptr};
  }

 private:
  MessageRow first_;
  Index width_;
};

}  // namespace

void vector_messages(const VectorMessageRows& of, Tensor& out) {
  const Index feats = of.phi.row_size() / 3;
  const real scalar = of.scalars ? 1 : 0;
  parallel_for(out.num_rows(), message_grain(feats), [&](Index begin, Index end) {
    const Operands x(of, feats);
    for (Index i = begin; i < end; ++i) {
      const auto [p, w, d, v] = x.row(i);
      const real d0 = d[0], d1 = d[1], d2 = d[2];
      real* const m = out.data() + i * 4 * feats;
      SAR_INDEPENDENT_ITERATIONS
      for (Index j = 0; j < feats; ++j) {
        const real b = p[feats + j] * w[feats + j];
        m[j] = scalar * p[j] * w[j];
        m[feats + j] = b * d0;
        m[2 * feats + j] = b * d1;
        m[3 * feats + j] = b * d2;
      }
      if (v == nullptr) continue;
      SAR_INDEPENDENT_ITERATIONS
      for (Index j = 0; j < feats; ++j) {
        const real g = p[2 * feats + j] * w[2 * feats + j];
        m[feats + j] += g * v[j];
        m[2 * feats + j] += g * v[feats + j];
        m[3 * feats + j] += g * v[2 * feats + j];
      }
    }
  });
}

void vector_messages_backward(const VectorMessageRows& of, const Tensor& grad, VectorMessageGradients& to) {
  const Index feats = of.phi.row_size() / 3;
  const real scalar = of.scalars ? 1 : 0;
  parallel_for(grad.num_rows(), message_grain(feats), [&](Index begin, Index end) {
    const Operands x(of, feats);
    Array<real> dropped(3 * feats);  // gradients that nobody wants
    const auto row_of = [&](Tensor& rows, Index i) {
      return rows.defined() ? rows.data() + i * 3 * feats : dropped.data();
    };
    for (Index i = begin; i < end; ++i) {
      const auto [p, w, d, v] = x.row(i);
      const real *g0 = grad.data() + i * 4 * feats, *g1 = g0 + feats, *g2 = g1 + feats, *g3 = g2 + feats;
      const real d0 = d[0], d1 = d[1], d2 = d[2];
      real *const of_phi = row_of(to.phi, i), *const of_filter = row_of(to.filter, i);
      SAR_INDEPENDENT_ITERATIONS
      for (Index j = 0; j < feats; ++j) {
        const real of_a = scalar * g0[j], of_b = g1[j] * d0 + g2[j] * d1 + g3[j] * d2;
        const real p0 = p[j], p1 = p[feats + j], w0 = w[j], w1 = w[feats + j];
        of_phi[j] = of_a * w0;
        of_phi[feats + j] = of_b * w1;
        of_filter[j] = of_a * p0;
        of_filter[feats + j] = of_b * p1;
      }
      if (v == nullptr) {
        std::fill_n(of_phi + 2 * feats, feats, real{0});
        std::fill_n(of_filter + 2 * feats, feats, real{0});
      } else {
        real* const of_vectors = row_of(to.vectors, i);
        SAR_INDEPENDENT_ITERATIONS
        for (Index j = 0; j < feats; ++j) {
          const real of_g = g1[j] * v[j] + g2[j] * v[feats + j] + g3[j] * v[2 * feats + j];
          const real p2 = p[2 * feats + j], w2 = w[2 * feats + j], g = p2 * w2;
          of_phi[2 * feats + j] = of_g * w2;
          of_filter[2 * feats + j] = of_g * p2;
          of_vectors[j] = g * g1[j];
          of_vectors[feats + j] = g * g2[j];
          of_vectors[2 * feats + j] = g * g3[j];
        }
      }
      if (!to.direction.defined()) continue;
      for (Index c = 0; c < 3; ++c)
        to.direction.data()[3 * i + c] =
            sum_of(feats, [g = g1 + c * feats, phi = p + feats, filter = w + feats](Index j) {
              return g[j] * (phi[j] * filter[j]);
            });
    }
  });
}

namespace {

using lanes::for_lanes;
using lanes::load;
using lanes::store;
using lanes::Vector;
using lanes::vector_lanes;

/// L channels of three parts of a row, F numbers apart.
template <Index L>
struct Three {
  Vector<L> of[3];

  static Three zero() { return {Vector<L>{}, Vector<L>{}, Vector<L>{}}; }
  /// The first `parts` of them; 0 for the others.
  template <Index parts = 3>
  static Three from(const real* row, Index feats) {
    Three x = zero();
    for (Index k = 0; k < parts; ++k) x[k] = load<L>(row + k * feats);
    return x;
  }
  void to(real* row, Index feats, bool accumulate) const {
    for (Index k = 0; k < 3; ++k)
      store<L>(row + k * feats, accumulate ? load<L>(row + k * feats) + of[k] : of[k]);
  }
  const Vector<L>& operator[](Index k) const { return of[k]; }
  Vector<L>& operator[](Index k) { return of[k]; }
};

/// The sums of L channels of the messages of edges first .. last - 1, added to `out`.
template <Index L, bool vectors, bool tangents>
void add_sums(const VectorMessageChunk& c, Index first, Index last, real* out) {
  constexpr Index parts = vectors ? 3 : 2;
  const Index feats = c.feats, of_tangents = vectors ? 6 * feats : 3 * feats, width = parts * feats;
  Vector<L> a{}, da{};
  Three<L> m = Three<L>::zero(), dm = Three<L>::zero();
  for (Index e = first; e < last; ++e) {
    const real *row = c.sources + c.others[e] * c.source_stride, *d = c.direction + e * c.direction_stride;
    const auto p = Three<L>::template from<parts>(row, feats),
               w = Three<L>::template from<parts>(c.filter + e * width, feats);
    const Vector<L> b = p[1] * w[1], g = p[2] * w[2];
    a += p[0] * w[0];
    for (Index k = 0; k < 3; ++k) m[k] += b * d[k];
    if constexpr (vectors) {
      const auto v = Three<L>::from(row + 3 * feats, feats);
      for (Index k = 0; k < 3; ++k) m[k] += g * v[k];
    }
    if constexpr (tangents) {
      const real* change = c.direction_tangent + e * c.direction_stride;
      const auto dp = Three<L>::template from<parts>(row + of_tangents, feats),
                 dw = Three<L>::template from<parts>(c.filter_tangent + e * width, feats);
      const Vector<L> db = dp[1] * w[1] + p[1] * dw[1], dg = dp[2] * w[2] + p[2] * dw[2];
      da += dp[0] * w[0] + p[0] * dw[0];
      for (Index k = 0; k < 3; ++k) dm[k] += db * d[k] + b * change[k];
      if constexpr (vectors) {
        const auto v = Three<L>::from(row + 3 * feats, feats),
                   dv = Three<L>::from(row + of_tangents + 3 * feats, feats);
        for (Index k = 0; k < 3; ++k) dm[k] += dg * v[k] + g * dv[k];
      }
    }
  }
  store<L>(out, load<L>(out) + a);
  m.to(out + feats, feats, true);
  if constexpr (tangents) {
    store<L>(out + 4 * feats, load<L>(out + 4 * feats) + da);
    dm.to(out + 5 * feats, feats, true);
  }
}

/// Gradients of one direction for each edge: sums over channels, lane by lane.
class DirectionSums {
 public:
  explicit DirectionSums(real* to) : to_(to) {}
  void begin(Index edges) {
    if (to_ != nullptr) parts_.assign(edges * 3 * vector_lanes, 0);
  }
  template <Index L>
  void add(Index edge, Index k, const Vector<L>& part) {
    real* const sum = parts_.data() + (edge * 3 + k) * vector_lanes;
    store<L>(sum, load<L>(sum) + part);
  }
  void end(Index first, Index edges) const {
    for (Index i = 0; to_ != nullptr && i < 3 * edges; ++i)
      to_[3 * first + i] = lanes::lane_sums<1, vector_lanes>(
          std::array{load<vector_lanes>(parts_.data() + i * vector_lanes)}.data())[0];
  }

 private:
  real* to_;
  Array<real> parts_;  // [edges, 3, lanes]
};

/// The gradients of L channels over the edges first .. last - 1 of the source with the row `row`.
template <Index L, bool vectors, bool tangents, bool directions>
void add_gradients(const VectorMessageChunk& c, Index j, Index first, Index last, const real* row,
                   const real* grad, real* grad_row, DirectionSums& of_d, DirectionSums& of_change) {
  constexpr Index parts = vectors ? 3 : 2;
  const Index feats = c.feats, of_tangents = vectors ? 6 * feats : 3 * feats, size = c.message_size(),
              width = parts * feats;
  const auto zero = Three<L>::zero();
  const auto p = Three<L>::from(row + j, feats);
  const auto v = vectors ? Three<L>::from(row + 3 * feats + j, feats) : zero;
  const auto dp = tangents ? Three<L>::from(row + of_tangents + j, feats) : zero;
  const auto dv = tangents && vectors ? Three<L>::from(row + of_tangents + 3 * feats + j, feats) : zero;
  Three<L> to_p = zero, to_v = zero, to_dp = zero, to_dv = zero;
  for (Index e = first; e < last; ++e) {
    const real *g_row = grad + c.others[e] * size + j, *d = c.direction + e * c.direction_stride;
    real* const w_row = c.filter + e * width + j;
    const auto w = Three<L>::template from<parts>(w_row, feats), gm = Three<L>::from(g_row + feats, feats);
    Three<L> of_message{load<L>(g_row), gm[0] * d[0] + gm[1] * d[1] + gm[2] * d[2], Vector<L>{}};
    if constexpr (vectors) of_message[2] = gm[0] * v[0] + gm[1] * v[1] + gm[2] * v[2];
    if constexpr (!tangents) {
      for (Index k = 0; k < 3; ++k) {
        if constexpr (directions) of_d.add<L>(e - first, k, p[1] * w[1] * gm[k]);
        if constexpr (vectors) to_v[k] += p[2] * w[2] * gm[k];
      }
      for (Index k = 0; k < parts; ++k) to_p[k] += of_message[k] * w[k];
      for (Index k = 0; k < parts; ++k) store<L>(w_row + k * feats, of_message[k] * p[k]);
    } else {
      const real* change = c.direction_tangent + e * c.direction_stride;
      real* const dw_row = c.filter_tangent + e * width + j;
      const auto dw = Three<L>::template from<parts>(dw_row, feats),
                 gt = Three<L>::from(g_row + 5 * feats, feats);
      Three<L> of_tangent{load<L>(g_row + 4 * feats), gt[0] * d[0] + gt[1] * d[1] + gt[2] * d[2],
                          Vector<L>{}};
      of_message[1] += gt[0] * change[0] + gt[1] * change[1] + gt[2] * change[2];
      if constexpr (vectors) {
        of_message[2] += gt[0] * dv[0] + gt[1] * dv[1] + gt[2] * dv[2];
        of_tangent[2] = gt[0] * v[0] + gt[1] * v[1] + gt[2] * v[2];
        const Vector<L> g = p[2] * w[2], dg = dp[2] * w[2] + p[2] * dw[2];
        for (Index k = 0; k < 3; ++k) to_v[k] += g * gm[k] + dg * gt[k];
        for (Index k = 0; k < 3; ++k) to_dv[k] += g * gt[k];
      }
      if constexpr (directions) {
        const Vector<L> b = p[1] * w[1], db = dp[1] * w[1] + p[1] * dw[1];
        for (Index k = 0; k < 3; ++k) of_d.add<L>(e - first, k, b * gm[k] + db * gt[k]);
        for (Index k = 0; k < 3; ++k) of_change.add<L>(e - first, k, b * gt[k]);
      }
      for (Index k = 0; k < parts; ++k) {
        to_p[k] += of_message[k] * w[k] + of_tangent[k] * dw[k];
        to_dp[k] += of_tangent[k] * w[k];
        store<L>(w_row + k * feats, of_message[k] * p[k] + of_tangent[k] * dp[k]);
        store<L>(dw_row + k * feats, of_tangent[k] * p[k]);
      }
    }
  }
  to_p.to(grad_row + j, feats, true);
  if constexpr (vectors) to_v.to(grad_row + 3 * feats + j, feats, true);
  if constexpr (tangents) to_dp.to(grad_row + of_tangents + j, feats, true);
  if constexpr (tangents && vectors) to_dv.to(grad_row + of_tangents + 3 * feats + j, feats, true);
}

/// Calls run(constants vectors, tangents).
template <class Run>
void for_kind(const VectorMessageChunk& c, const Run& run) {
  const auto choose = [&](auto vectors) {
    if (c.tangents)
      run(vectors, std::true_type());
    else
      run(vectors, std::false_type());
  };
  if (c.vectors)
    choose(std::true_type());
  else
    choose(std::false_type());
}

}  // namespace

void add_vector_message_sums(const VectorMessageChunk& of, real* out) {
  for_kind(of, [&](auto vectors, auto tangents) {
    for (Index i = 0; i < of.num_groups; ++i) {
      real* const to = out + of.rows[i] * of.message_size();
      for_lanes(0, of.feats, [&](auto lanes, Index j) {
        VectorMessageChunk at = of;
        at.sources += j;
        at.filter += j;
        if (tangents) at.filter_tangent += j;
        add_sums<lanes, vectors, tangents>(at, of.groups[i], of.groups[i + 1], to + j);
      });
    }
  });
}

void vector_message_gradients(const VectorMessageChunk& of, const real* grad, real* grad_sources,
                              real* grad_direction, real* grad_direction_tangent) {
  DirectionSums of_d(grad_direction), of_change(grad_direction_tangent);
  for_kind(of, [&](auto vectors, auto tangents) {
    for (Index i = 0; i < of.num_groups; ++i) {
      const Index first = of.groups[i], last = of.groups[i + 1];
      const real* const row = of.sources + of.rows[i] * of.source_stride;
      real* const to = grad_sources + of.rows[i] * of.source_stride;
      of_d.begin(last - first);
      of_change.begin(last - first);
      const auto run = [&](auto directions) {
        for_lanes(0, of.feats, [&](auto lanes, Index j) {
          add_gradients<lanes, vectors, tangents, directions>(of, j, first, last, row, grad, to, of_d,
                                                              of_change);
        });
      };
      if (grad_direction != nullptr)
        run(std::true_type());
      else
        run(std::false_type());
      of_d.end(first, last - first);
      of_change.end(first, last - first);
    }
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, vector_messages, (const VectorMessageRows& of, Tensor& out), (of, out));
SAR_DISPATCH(void, vector_messages_backward,
             (const VectorMessageRows& of, const Tensor& grad, VectorMessageGradients& to), (of, grad, to));
SAR_DISPATCH(void, add_vector_message_sums, (const VectorMessageChunk& of, real* out), (of, out));
SAR_DISPATCH(void, vector_message_gradients,
             (const VectorMessageChunk& of, const real* grad, real* grad_sources, real* grad_direction,
              real* grad_direction_tangent),
             (of, grad, grad_sources, grad_direction, grad_direction_tangent));
