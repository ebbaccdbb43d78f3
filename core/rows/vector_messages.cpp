// Rows in parallel blocks of about 2^15 numbers, then the F channels, vectorized. Bytes moved: the operands
// (12 F numbers a row) are read once forward and once backward, and each result is written once.
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/vector_messages.hpp>
#include <sar/core/simd/independent_iterations.hpp>
#include <sar/core/simd/sum_of.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

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
            sum_of(feats, [&, g = g1 + c * feats](Index j) { return g[j] * (p[feats + j] * w[feats + j]); });
    }
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, vector_messages, (const VectorMessageRows& of, Tensor& out), (of, out));
SAR_DISPATCH(void, vector_messages_backward,
             (const VectorMessageRows& of, const Tensor& grad, VectorMessageGradients& to), (of, grad, to));
