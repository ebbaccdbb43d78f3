// SPDX-License-Identifier: MIT

// Edges, then paths, then channels. The matrices of the paths of an edge are about a hundred numbers. Rows of
// a source and its gradient stay in the first-level cache while the edges of the source are visited.
#include <sar/core/memory/memory.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/nn/atoms/tensor_product.hpp>

#include <array>
#include <type_traits>
#include <utility>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::for_lanes;
using lanes::load;
using lanes::store;
using lanes::Vector;
using lanes::vector_lanes;

/// Calls f(constant 2 l1 + 1, constant 2 l3 + 1).
template <class F, int... k>
void with_sizes(int l1, int l3, const F& f, std::integer_sequence<int, k...> /*all*/) {
  ((k == 4 * l1 + l3 ? f(std::integral_constant<Index, 2 * (k / 4) + 1>(),
                         std::integral_constant<Index, 2 * (k % 4) + 1>())
                     : void()),
   ...);
}
template <class F>
void with_sizes(int l1, int l3, const F& f) {
  with_sizes(l1, l3, f, std::make_integer_sequence<int, 16>());
}

/// The matrices of all paths for the harmonics of an edge.
void make_matrices(const TensorProduct& product, const real* harmonics, Array<real>& to) {
  to.assign(product.matrices, 0);
  for (const TensorProduct::Entry& e : product.entries) to[e.at] += e.value * harmonics[e.row2];
}

Index weight_row(const TensorProductChunk& of, Index e) {
  return of.weight_rows == nullptr ? e : of.weight_rows[e];
}

template <Index m1, Index m3>
void add_path(Index feats, const real* h, const real* weight, const real* matrix, real* out, Index stride) {
  for_lanes(0, feats, [&](auto lanes, Index j) {
    constexpr Index L = lanes;
    const Vector<L> w = load<L>(weight + j);
    Vector<L> x[m1];
    for (Index a = 0; a < m1; ++a) x[a] = load<L>(h + a * feats + j) * w;
    for (Index c = 0; c < m3; ++c) {
      Vector<L> sum = load<L>(out + c * stride + j);
      for (Index a = 0; a < m1; ++a) sum += x[a] * matrix[a * m3 + c];
      store<L>(out + c * stride + j, sum);
    }
  });
}

/// Adds the gradient of h of one path of an edge; that of its weights and `of_matrix` [m1, m3] are
/// overwritten.
template <Index m1, Index m3>
void add_path_gradients(Index feats, const real* h, const real* weight, const real* matrix, const real* grad,
                        Index stride, real* of_h, real* of_weight, real* of_matrix) {
  Vector<vector_lanes> sums[m1 * m3] = {};
  for (Index k = 0; k < m1 * m3; ++k) of_matrix[k] = 0;
  for_lanes(0, feats, [&](auto lanes, Index j) {
    constexpr Index L = lanes;
    const Vector<L> w = load<L>(weight + j);
    Vector<L> g[m3], of_w{};
    for (Index c = 0; c < m3; ++c) g[c] = load<L>(grad + c * stride + j);
    for (Index a = 0; a < m1; ++a) {
      const Vector<L> x = load<L>(h + a * feats + j), weighted = x * w;
      Vector<L> t{};
      for (Index c = 0; c < m3; ++c) t += g[c] * matrix[a * m3 + c];
      of_w += x * t;
      store<L>(of_h + a * feats + j, load<L>(of_h + a * feats + j) + w * t);
      for (Index c = 0; c < m3; ++c)
        if constexpr (L == vector_lanes)
          sums[a * m3 + c] += weighted * g[c];
        else
          of_matrix[a * m3 + c] += (weighted * g[c])[0];
    }
    if (of_weight != nullptr) store<L>(of_weight + j, of_w);
  });
  for (Index k = 0; k < m1 * m3; ++k) of_matrix[k] += lanes::lane_sums<1, vector_lanes>(&sums[k])[0];
}

/// The numbers of a path of an edge and their tangents.
struct DualPath {
  const real *h, *h_tangent, *weight, *weight_tangent, *matrix, *matrix_tangent;
};

template <Index m1, Index m3>
void add_dual_path(Index feats, const DualPath& of, real* out, real* out_tangent, Index stride) {
  for_lanes(0, feats, [&](auto lanes, Index j) {
    constexpr Index L = lanes;
    const Vector<L> w = load<L>(of.weight + j), dw = load<L>(of.weight_tangent + j);
    Vector<L> x[m1], dx[m1];
    for (Index a = 0; a < m1; ++a) {
      const Vector<L> h = load<L>(of.h + a * feats + j);
      x[a] = h * w;
      dx[a] = load<L>(of.h_tangent + a * feats + j) * w + h * dw;
    }
    for (Index c = 0; c < m3; ++c) {
      Vector<L> sum = load<L>(out + c * stride + j), tangent = load<L>(out_tangent + c * stride + j);
      for (Index a = 0; a < m1; ++a) {
        sum += x[a] * of.matrix[a * m3 + c];
        tangent += dx[a] * of.matrix[a * m3 + c] + x[a] * of.matrix_tangent[a * m3 + c];
      }
      store<L>(out + c * stride + j, sum);
      store<L>(out_tangent + c * stride + j, tangent);
    }
  });
}

/// Adds the gradients of h and its tangent; those of the weight and its tangent are overwritten.
template <Index m1, Index m3>
void add_dual_path_gradients(Index feats, const DualPath& of, const real* grad, const real* grad_tangent,
                             Index stride, real* of_h, real* of_h_tangent, real* of_weight,
                             real* of_weight_tangent) {
  for_lanes(0, feats, [&](auto lanes, Index j) {
    constexpr Index L = lanes;
    const Vector<L> w = load<L>(of.weight + j), dw = load<L>(of.weight_tangent + j);
    Vector<L> g[m3], dg[m3], of_w{}, of_dw{};
    for (Index c = 0; c < m3; ++c) {
      g[c] = load<L>(grad + c * stride + j);
      dg[c] = load<L>(grad_tangent + c * stride + j);
    }
    for (Index a = 0; a < m1; ++a) {
      const Vector<L> h = load<L>(of.h + a * feats + j), dh = load<L>(of.h_tangent + a * feats + j);
      Vector<L> t{}, u{};
      for (Index c = 0; c < m3; ++c) {
        t += g[c] * of.matrix[a * m3 + c] + dg[c] * of.matrix_tangent[a * m3 + c];
        u += dg[c] * of.matrix[a * m3 + c];
      }
      of_w += h * t + dh * u;
      of_dw += h * u;
      store<L>(of_h + a * feats + j, load<L>(of_h + a * feats + j) + w * t + dw * u);
      store<L>(of_h_tangent + a * feats + j, load<L>(of_h_tangent + a * feats + j) + w * u);
    }
    if (of_weight == nullptr) return;
    store<L>(of_weight + j, of_w);
    store<L>(of_weight_tangent + j, of_dw);
  });
}

void add_dual_sums(const TensorProductChunk& of, real* out, Index stride) {
  const TensorProduct& product = *of.product;
  const Index feats = of.feats, width = std::ssize(product.paths) * feats, size = product.rows1 * feats;
  Array<real> matrices, tangents;
  for (Index i = 0; i < of.num_groups; ++i)
    for (Index e = of.groups[i]; e < of.groups[i + 1]; ++e) {
      make_matrices(product, of.harmonics + e * of.harmonic_stride, matrices);
      make_matrices(product, of.harmonics_tangent + e * of.harmonic_stride, tangents);
      const real* const h = of.sources + of.others[e] * of.source_stride;
      real* const to = out + of.rows[i] * stride;
      Index weight = weight_row(of, e) * width;
      for (const TensorPath& path : product.paths) {
        const real* const x = h + Index{path.l1} * path.l1 * feats;
        const DualPath dual{x,
                            x + size,
                            of.weights + weight,
                            of.weights_tangent + weight,
                            matrices.data() + path.matrix,
                            tangents.data() + path.matrix};
        real* const z = to + path.out * feats;
        with_sizes(path.l1, path.l3, [&](auto m1, auto m3) {
          add_dual_path<m1, m3>(feats, dual, z, z + of.tangent, path.stride * feats);
        });
        weight += feats;
      }
    }
}

void add_dual_gradients(const TensorProductChunk& of, const real* grad, Index stride,
                        const TensorProductGradients& to) {
  const TensorProduct& product = *of.product;
  const Index feats = of.feats, width = std::ssize(product.paths) * feats, size = product.rows1 * feats;
  Array<real> matrices, tangents;
  for (Index i = 0; i < of.num_groups; ++i)
    for (Index e = of.groups[i]; e < of.groups[i + 1]; ++e) {
      make_matrices(product, of.harmonics + e * of.harmonic_stride, matrices);
      make_matrices(product, of.harmonics_tangent + e * of.harmonic_stride, tangents);
      const Index row = of.rows[i] * of.source_stride;
      const real* const g = grad + of.others[e] * stride;
      Index weight = weight_row(of, e) * width;
      for (const TensorPath& path : product.paths) {
        const Index first = row + Index{path.l1} * path.l1 * feats;
        const DualPath dual{
            of.sources + first,          of.sources + first + size,     of.weights + weight,
            of.weights_tangent + weight, matrices.data() + path.matrix, tangents.data() + path.matrix};
        const real* const of_z = g + path.out * feats;
        const bool wanted = to.weights != nullptr;
        with_sizes(path.l1, path.l3, [&](auto m1, auto m3) {
          add_dual_path_gradients<m1, m3>(feats, dual, of_z, of_z + of.tangent, path.stride * feats,
                                          to.sources + first, to.sources + first + size,
                                          wanted ? to.weights + weight : nullptr,
                                          wanted ? to.weights_tangent + weight : nullptr);
        });
        weight += feats;
      }
    }
}

}  // namespace

void add_tensor_product_sums(const TensorProductChunk& of, real* out, Index stride) {
  if (of.harmonics_tangent != nullptr) return add_dual_sums(of, out, stride);
  const TensorProduct& product = *of.product;
  const Index feats = of.feats, width = std::ssize(product.paths) * feats;
  Array<real> matrices;
  for (Index i = 0; i < of.num_groups; ++i)
    for (Index e = of.groups[i]; e < of.groups[i + 1]; ++e) {
      make_matrices(product, of.harmonics + e * of.harmonic_stride, matrices);
      const real *const h = of.sources + of.others[e] * of.source_stride,
                        *weight = of.weights + weight_row(of, e) * width;
      real* const to = out + of.rows[i] * stride;
      for (const TensorPath& path : product.paths) {
        with_sizes(path.l1, path.l3, [&](auto m1, auto m3) {
          add_path<m1, m3>(feats, h + Index{path.l1} * path.l1 * feats, weight, matrices.data() + path.matrix,
                           to + path.out * feats, path.stride * feats);
        });
        weight += feats;
      }
    }
}

void add_tensor_product_gradients(const TensorProductChunk& of, const real* grad, Index stride,
                                  const TensorProductGradients& to) {
  if (of.harmonics_tangent != nullptr) return add_dual_gradients(of, grad, stride, to);
  const TensorProduct& product = *of.product;
  const Index feats = of.feats, width = std::ssize(product.paths) * feats;
  Array<real> matrices, of_matrices(product.matrices);
  for (Index i = 0; i < of.num_groups; ++i)
    for (Index e = of.groups[i]; e < of.groups[i + 1]; ++e) {
      make_matrices(product, of.harmonics + e * of.harmonic_stride, matrices);
      const real *const h = of.sources + of.rows[i] * of.source_stride,
                        *weight = of.weights + weight_row(of, e) * width,
                        *const g = grad + of.others[e] * stride;
      real *const of_h = to.sources + of.rows[i] * of.source_stride,
                  *of_weight = to.weights == nullptr ? nullptr : to.weights + weight_row(of, e) * width;
      for (const TensorPath& path : product.paths) {
        const Index first = Index{path.l1} * path.l1 * feats;
        with_sizes(path.l1, path.l3, [&](auto m1, auto m3) {
          add_path_gradients<m1, m3>(feats, h + first, weight, matrices.data() + path.matrix,
                                     g + path.out * feats, path.stride * feats, of_h + first, of_weight,
                                     of_matrices.data() + path.matrix);
        });
        weight += feats;
        if (of_weight != nullptr) of_weight += feats;
      }
      real* const of_harmonics = to.harmonics + e * of.harmonic_stride;
      for (const TensorProduct::Entry& entry : product.entries)
        of_harmonics[entry.row2] += entry.value * of_matrices[entry.at];
    }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, add_tensor_product_sums, (const TensorProductChunk& of, real* out, Index stride),
             (of, out, stride));
SAR_DISPATCH(void, add_tensor_product_gradients,
             (const TensorProductChunk& of, const real* grad, Index stride, const TensorProductGradients& to),
             (of, grad, stride, to));
