// SPDX-License-Identifier: MIT

// With tangents, the same loops compute with dual numbers a + b e, e^2 = 0. Let y + y' e = f(x + x' e), and g
// and g' the gradients of y and y'. The backward pass of f for the dual number g' + g e gives the gradient of
// x' as its first part and that of x as its second one, because the derivative of g . f + g' . f' in x is
// that of the backward pass g' J(x) in the direction x', plus g J(x).
#include <sar/core/simd/lanes.hpp>
#include <sar/nn/atoms/symmetric_contraction.hpp>

#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::for_lanes;
using lanes::load;
using lanes::store;
using lanes::Vector;

constexpr Index most_components = 17, most_outs = 16;  // up to l = 3, and the factor 1

/// a + b e
template <Index L>
struct Dual {
  Vector<L> a, b;

  Dual& operator+=(const Dual& other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};
template <Index L>
[[gnu::always_inline]] inline Dual<L> operator*(const Dual<L>& x, const Dual<L>& y) {
  return {x.a * y.a, x.a * y.b + x.b * y.a};
}
template <Index L>
[[gnu::always_inline]] inline Dual<L> operator*(const Dual<L>& x, const Vector<L>& y) {
  return {x.a * y, x.b * y};
}

template <Index L, bool tangents>
struct Numbers {
  using Number = std::conditional_t<tangents, Dual<L>, Vector<L>>;

  static Number from(const real* value, const real* tangent) {
    if constexpr (tangents)
      return {load<L>(value), load<L>(tangent)};
    else
      return load<L>(value);
  }
  static void to(const Number& x, real* value, real* tangent) {
    if constexpr (tangents) {
      store<L>(value, x.a);
      store<L>(tangent, x.b);
    } else {
      store<L>(value, x);
    }
  }
  /// The part that belongs to constants in the backward pass.
  static Vector<L> last_part(const Number& x) {
    if constexpr (tangents)
      return x.b;
    else
      return x;
  }
};

/// Loads the components of a row, and 1 behind them.
template <Index L, bool tangents, class Number>
void load_row(const ContractionChunk& c, Index row, Index j, Number* x) {
  const Index n = c.basis->one, begin = row * n * c.feats + j;
  for (Index i = 0; i < n; ++i)
    x[i] = Numbers<L, tangents>::from(c.x + begin + i * c.feats,
                                      c.tangent + (tangents ? begin + i * c.feats : 0));
  const Vector<L> one = Vector<L>{} + real{1};
  if constexpr (tangents)
    x[n] = {one, Vector<L>{}};
  else
    x[n] = one;
}

template <Index L, bool tangents>
void contract_channels(const ContractionChunk& c, Index j, real* y, real* y_tangent) {
  using N = Numbers<L, tangents>;
  typename N::Number x[most_components], sums[most_outs];
  for (const Index row : c.rows) {
    load_row<L, tangents>(c, row, j, x);
    for (Index o = 0; o < c.basis->outs; ++o) sums[o] = typename N::Number{};
    for (const SymmetricBasis::Product& p : c.basis->products) {
      const auto product = x[p.x[0]] * x[p.x[1]] * x[p.x[2]];
      for (Index t = p.first_term; t < p.last_term; ++t)
        sums[c.basis->terms[static_cast<std::size_t>(t)].out] +=
            product * load<L>(c.coefficients + t * c.feats + j);
    }
    for (Index o = 0; o < c.basis->outs; ++o) {
      const Index at = (row * c.basis->outs + o) * c.feats + j;
      N::to(sums[o], y + at, y_tangent + (tangents ? at : 0));
    }
  }
}

template <Index L, bool tangents>
void differentiate_channels(const ContractionChunk& c, Index j, const real* grad, const real* grad_tangent,
                            real* of_x, real* of_tangent, real* of_coefficients) {
  using N = Numbers<L, tangents>;
  typename N::Number x[most_components], of[most_components], g[most_outs];
  for (const Index row : c.rows) {
    load_row<L, tangents>(c, row, j, x);
    for (Index i = 0; i <= c.basis->one; ++i) of[i] = typename N::Number{};
    for (Index o = 0; o < c.basis->outs; ++o) {
      const Index at = (row * c.basis->outs + o) * c.feats + j;
      if constexpr (tangents)
        g[o] = N::from(grad_tangent + at, grad + at);
      else
        g[o] = N::from(grad + at, nullptr);
    }
    for (const SymmetricBasis::Product& p : c.basis->products) {
      const auto &x0 = x[p.x[0]], &x1 = x[p.x[1]], &x2 = x[p.x[2]];
      const auto last = x1 * x2;
      typename N::Number sum = {};
      for (Index t = p.first_term; t < p.last_term; ++t) {
        const auto& of_out = g[c.basis->terms[static_cast<std::size_t>(t)].out];
        sum += of_out * load<L>(c.coefficients + t * c.feats + j);
        if (of_coefficients == nullptr) continue;
        real* const to = of_coefficients + t * c.feats + j;
        store<L>(to, load<L>(to) + N::last_part(of_out * (x0 * last)));
      }
      of[p.x[0]] += sum * last;
      const auto first = sum * x0;
      of[p.x[1]] += first * x2;
      of[p.x[2]] += first * x1;
    }
    for (Index i = 0; i < c.basis->one; ++i) {
      const Index at = (row * c.basis->one + i) * c.feats + j;
      if constexpr (tangents)
        N::to(of[i], of_tangent + at, of_x + at);
      else
        N::to(of[i], of_x + at, nullptr);
    }
  }
}

}  // namespace

void contract(const ContractionChunk& of, real* y, real* y_tangent) {
  for_lanes(of.first, of.last, [&](auto lanes, Index j) {
    if (of.tangent != nullptr)
      contract_channels<lanes, true>(of, j, y, y_tangent);
    else
      contract_channels<lanes, false>(of, j, y, y_tangent);
  });
}

void contract_backward(const ContractionChunk& of, const real* grad, const real* grad_tangent, real* of_x,
                       real* of_tangent, real* of_coefficients) {
  for_lanes(of.first, of.last, [&](auto lanes, Index j) {
    if (of.tangent != nullptr)
      differentiate_channels<lanes, true>(of, j, grad, grad_tangent, of_x, of_tangent, of_coefficients);
    else
      differentiate_channels<lanes, false>(of, j, grad, grad_tangent, of_x, of_tangent, of_coefficients);
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, contract, (const ContractionChunk& of, real* y, real* y_tangent), (of, y, y_tangent));
SAR_DISPATCH(void, contract_backward,
             (const ContractionChunk& of, const real* grad, const real* grad_tangent, real* of_x,
              real* of_tangent, real* of_coefficients),
             (of, grad, grad_tangent, of_x, of_tangent, of_coefficients));
