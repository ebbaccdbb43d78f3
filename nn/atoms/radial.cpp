// SPDX-License-Identifier: MIT

// Radial functions: groups of 16 rows, then the columns, vectorized over the rows of the group. The sine and
// the cosine of pi r / c are computed once for each row, those of its multiples by rotation, in double
// precision. Gaussians have an exponential each, in `real`. Bytes moved: operands are read and results
// are written once.
#include <sar/core/simd/vector_exp.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/radial.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index group = 16;
constexpr Index row_grain = 1024;

/// The sum of (-1)^n x^(2n) / (2n + first)! over n = 0 .. terms - 1, by Horner's rule.
template <int first, int terms>
[[gnu::always_inline]] inline double alternating_series(double squares) {
  double sum = 1;
  for (int n = terms - 1; n > 0; --n) {
    const double k = 2 * n + first;
    sum = 1 - sum * squares * (1 / (k * (k - 1)));
  }
  return sum;
}

/// Sine and cosine of pi x for x in [0, 1], from their series in [0, pi / 2]: 11 terms are exact to rounding
/// in double precision, 8 to 1e-10.
[[gnu::always_inline]] inline void sine_and_cosine(double x, double& sine, double& cosine) {
  constexpr int terms = sizeof(real) == 8 ? 11 : 8;
  const double angle = std::numbers::pi * std::min(x, 1 - x), squares = angle * angle;
  const double of_cosine = alternating_series<0, terms>(squares);
  sine = angle * alternating_series<1, terms>(squares);
  cosine = x > 0.5 ? -of_cosine : of_cosine;
}

/// A group of up to `group` vectors. Lanes beyond them have the length 0.
struct Lanes {
  double unit[3][group]{};                 ///< d / r
  double length[group]{};                  ///< r, at most c
  double inverse[group]{};                 ///< 1 / r
  double sine[group]{}, cosine[group]{};   ///< of pi r / c
  double inside[group]{}, apart[group]{};  ///< 1 or 0: r < c, r > 0

  Lanes(const RadialFunctions& f, const real* d, Index count) {
    double component[3][group]{};
    for (Index e = 0; e < count; ++e)
      for (Index c = 0; c < 3; ++c) component[c][e] = static_cast<double>(d[3 * e + c]);
    const auto& [x, y, z] = component;
    for (Index e = 0; e < group; ++e) {
      const double r = std::sqrt(x[e] * x[e] + y[e] * y[e] + z[e] * z[e]);
      apart[e] = r > 0 ? 1.0 : 0.0;
      inside[e] = r < f.cutoff ? 1.0 : 0.0;
      inverse[e] = apart[e] / (r + (1 - apart[e]));
      for (Index c = 0; c < 3; ++c) unit[c][e] = component[c][e] * inverse[e];
      length[e] = std::min(r, f.cutoff);
      sine_and_cosine(length[e] / f.cutoff, sine[e], cosine[e]);
    }
  }
  /// The product of these lanes of three components with the unit vector.
  void dot_unit(const double (&t)[3][group], double* out) const {
    for (Index e = 0; e < group; ++e)
      out[e] = unit[0][e] * t[0][e] + unit[1][e] * t[1][e] + unit[2][e] * t[2][e];
  }
};

/// fc and its first two derivatives in r.
struct Cutoff {
  double value[group], first[group], second[group];

  Cutoff(const RadialFunctions& f, const Lanes& x) {
    const double a = (f.cutoff_function == CutoffFunction::cosine ? std::numbers::pi : 1) / f.cutoff;
    for (Index e = 0; e < group; ++e) {
      const double inside = x.inside[e], apart = inside * x.apart[e];
      if (f.cutoff_function == CutoffFunction::cosine) {
        value[e] = inside * 0.5 * (1 + x.cosine[e]);
        first[e] = apart * -0.5 * a * x.sine[e];
        second[e] = apart * -0.5 * a * a * x.cosine[e];
      } else {
        const double s = a * x.length[e], s4 = s * s * s * s;
        value[e] = inside * (1 - s4 * s * s * (28 - 48 * s + 21 * s * s));
        first[e] = apart * a * -168 * s4 * s * (1 - s) * (1 - s);
        second[e] = apart * a * a * -168 * s4 * (1 - s) * (5 - 7 * s);
      }
    }
  }
};

/// A basis function and its first two derivatives in r.
struct BasisValue {
  double b, b1, b2;
};

/// The bases sinc and bessel.
class Waves {
 public:
  Waves(const RadialFunctions& f, const Lanes& x)
      : x_(x),
        a_(std::numbers::pi / f.cutoff),
        factor_(f.basis == RadialBasis::bessel ? std::sqrt(2 / f.cutoff) : 1) {
    for (Index e = 0; e < group; ++e) {
      sine_[e] = factor_ * x.sine[e];
      cosine_[e] = factor_ * x.cosine[e];
    }
  }
  /// The function k + 1; called for k = 0, 1, ...
  template <int order>
  BasisValue next(Index k, Index e) {
    const double w = static_cast<double>(k + 1) * a_, inverse = x_.inverse[e];
    const double sine = sine_[e], cosine = cosine_[e];
    const double b = sine * inverse + (1 - x_.apart[e]) * (factor_ * w);
    const double b1 = order > 0 ? (w * cosine - b) * inverse : 0;
    const double b2 = order > 1 ? (-w * w * sine - 2 * b1) * inverse : 0;
    sine_[e] = sine * x_.cosine[e] + cosine * x_.sine[e];
    cosine_[e] = cosine * x_.cosine[e] - sine * x_.sine[e];
    return {b, b1, b2};
  }

 private:
  const Lanes& x_;
  double a_, factor_;
  double sine_[group], cosine_[group];  // of k pi r / c, times the factor
};

class Gaussians {
 public:
  Gaussians(const RadialFunctions& f, const Lanes& x)
      : x_(x), by_width_(static_cast<double>(std::max<Index>(f.num_basis - 1, 1)) / f.cutoff) {}
  template <int order>
  BasisValue next(Index k, Index e) const {
    const double z = by_width_ * x_.length[e] - static_cast<double>(k);
    const auto b = static_cast<double>(lanes::exp(static_cast<real>(-0.5 * z * z)));
    return {b, order > 0 ? -z * b * by_width_ : 0, order > 1 ? (z * z - 1) * b * by_width_ * by_width_ : 0};
  }

 private:
  const Lanes& x_;
  double by_width_;
};

/// Calls each(k, h, h1, h2) for the columns k = 0 .. K with the values and the first two derivatives in r of
/// the radial functions of a group, [group] each. `h1` and `h2` are not set for orders below 1 and 2.
template <int order, class Basis, class Each>
void for_each_function(const RadialFunctions& f, const Lanes& x, Basis basis, const Each& each) {
  const Cutoff cut(f, x);
  double h[group], h1[group], h2[group];
  for (Index k = 0; k < f.num_basis; ++k) {
    for (Index e = 0; e < group; ++e) {
      const auto [b, b1, b2] = basis.template next<order>(k, e);
      h[e] = b * cut.value[e];
      if constexpr (order > 0) h1[e] = b1 * cut.value[e] + b * cut.first[e];
      if constexpr (order > 1) h2[e] = b2 * cut.value[e] + 2 * b1 * cut.first[e] + b * cut.second[e];
    }
    each(k, h, h1, h2);
  }
  each(f.num_basis, cut.value, cut.first, cut.second);
}
template <int order, class Each>
void for_each_function(const RadialFunctions& f, const Lanes& x, const Each& each) {
  if (f.basis == RadialBasis::gaussian)
    for_each_function<order>(f, x, Gaussians(f, x), each);
  else
    for_each_function<order>(f, x, Waves(f, x), each);
}

/// Calls body(first row, rows, lanes) for groups of rows.
template <class Body>
void for_groups(const RadialFunctions& f, const Tensor& d, const Body& body) {
  parallel_for(d.num_rows(), row_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; i += group) {
      const Index count = std::min(group, end - i);
      body(i, count, Lanes(f, d.data() + i * 3, count));
    }
  });
}

/// Rows of three components, component by component; lanes beyond `count` are 0.
void load_components(const real* rows, Index stride, Index count, double (&to)[3][group]) {
  for (Index c = 0; c < 3; ++c) {
    for (Index e = 0; e < count; ++e) to[c][e] = static_cast<double>(rows[e * stride + c]);
    for (Index e = count; e < group; ++e) to[c][e] = 0;
  }
}

/// sum += the columns k of rows of g, times h
void add_column(const real* g, Index stride, Index count, const double* h, double* sum) {
  for (Index e = 0; e < count; ++e) sum[e] += static_cast<double>(g[e * stride]) * h[e];
}

}  // namespace

void radial_rows(const RadialFunctions& f, const Tensor& d, Tensor& out) {
  const Index width = f.columns();
  for_groups(f, d, [&](Index first, Index count, const Lanes& x) {
    real* const to = out.row(first);
    for_each_function<0>(f, x, [&](Index k, const double* h, const double*, const double*) {
      for (Index e = 0; e < count; ++e) to[e * width + k] = static_cast<real>(h[e]);
    });
    for (Index c = 0; c < 3; ++c)
      for (Index e = 0; e < count; ++e) to[e * width + width - 3 + c] = static_cast<real>(x.unit[c][e]);
  });
}

void radial_rows_tangent(const RadialFunctions& f, const Tensor& d, const Tensor& t, Tensor& out) {
  const Index width = f.columns();
  for_groups(f, d, [&](Index first, Index count, const Lanes& x) {
    double change[3][group], along[group];
    load_components(t.row(first), 3, count, change);
    x.dot_unit(change, along);
    real* const to = out.row(first);
    for_each_function<1>(f, x, [&](Index k, const double*, const double* h1, const double*) {
      for (Index e = 0; e < count; ++e) to[e * width + k] = static_cast<real>(h1[e] * along[e]);
    });
    for (Index c = 0; c < 3; ++c)
      for (Index e = 0; e < count; ++e)
        to[e * width + width - 3 + c] =
            static_cast<real>((change[c][e] - along[e] * x.unit[c][e]) * x.inverse[e]);
  });
}

void radial_rows_backward(const RadialFunctions& f, const Tensor& d, const Tensor& g, Tensor& out) {
  const Index width = f.columns();
  for_groups(f, d, [&](Index first, Index count, const Lanes& x) {
    const real* const from = g.row(first);
    double of_direction[3][group], along[group], slope[group]{};
    load_components(from + width - 3, width, count, of_direction);
    x.dot_unit(of_direction, along);
    for_each_function<1>(f, x, [&](Index k, const double*, const double* h1, const double*) {
      add_column(from + k, width, count, h1, slope);
    });
    for (Index e = 0; e < count; ++e)
      for (Index c = 0; c < 3; ++c)
        out.data()[3 * (first + e) + c] = static_cast<real>(
            slope[e] * x.unit[c][e] + (of_direction[c][e] - along[e] * x.unit[c][e]) * x.inverse[e]);
  });
}

void radial_rows_tangent_backward(const RadialFunctions& f, const Tensor& d, const Tensor& t, const Tensor& g,
                                  Tensor& out) {
  const Index width = f.columns();
  for_groups(f, d, [&](Index first, Index count, const Lanes& x) {
    const real* const from = g.row(first);
    double change[3][group], of_direction[3][group], t_along[group], g_along[group];
    double slope[group]{}, curvature[group]{};
    load_components(t.row(first), 3, count, change);
    load_components(from + width - 3, width, count, of_direction);
    x.dot_unit(change, t_along);
    x.dot_unit(of_direction, g_along);
    for_each_function<2>(f, x, [&](Index k, const double*, const double* h1, const double* h2) {
      add_column(from + k, width, count, h1, slope);
      add_column(from + k, width, count, h2, curvature);
    });
    for (Index e = 0; e < count; ++e) {
      const double inverse = x.inverse[e], tu = t_along[e], gu = g_along[e];
      double gt = 0;
      for (Index c = 0; c < 3; ++c) gt += of_direction[c][e] * change[c][e];
      for (Index c = 0; c < 3; ++c) {
        const double u = x.unit[c][e], g_c = of_direction[c][e], t_c = change[c][e];
        const double of_radial = curvature[e] * tu * u + slope[e] * (t_c - tu * u) * inverse;
        const double of_unit = (3 * gu * tu - gt) * u - g_c * tu - t_c * gu;
        out.data()[3 * (first + e) + c] = static_cast<real>(of_radial + of_unit * inverse * inverse);
      }
    }
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, radial_rows, (const RadialFunctions& f, const Tensor& d, Tensor& out), (f, d, out));
SAR_DISPATCH(void, radial_rows_tangent,
             (const RadialFunctions& f, const Tensor& d, const Tensor& t, Tensor& out), (f, d, t, out));
SAR_DISPATCH(void, radial_rows_backward,
             (const RadialFunctions& f, const Tensor& d, const Tensor& g, Tensor& out), (f, d, g, out));
SAR_DISPATCH(void, radial_rows_tangent_backward,
             (const RadialFunctions& f, const Tensor& d, const Tensor& t, const Tensor& g, Tensor& out),
             (f, d, t, g, out));
