// SPDX-License-Identifier: MIT

// The functions are written once, for any type of numbers. Derivatives come from numbers that carry theirs
// (Jet): J t from one slope in the direction t, J from slopes in x, y and z, and the derivative of g . (J t)
// from slopes in x, y and z of numbers with a slope in the direction t.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index vector_grain = 256;

/// A value and its derivatives in N directions.
template <class T, int N>
struct Jet {
  T value{};
  std::array<T, N> slopes{};

  Jet() = default;
  Jet(double constant)
      : value(constant) {}  // NOLINT(google-explicit-constructor): numbers mix with constants
};

template <class T>
inline constexpr bool is_jet = false;
template <class T, int N>
inline constexpr bool is_jet<Jet<T, N>> = true;

/// f(x) for f and its derivative at the value of x.
template <class T, int N>
Jet<T, N> chained(const Jet<T, N>& x, const T& f, const T& slope) {
  Jet<T, N> y;
  y.value = f;
  for (std::size_t k = 0; k < N; ++k) y.slopes[k] = slope * x.slopes[k];
  return y;
}

template <class T, int N>
Jet<T, N> operator+(const Jet<T, N>& a, const Jet<T, N>& b) {
  Jet<T, N> y;
  y.value = a.value + b.value;
  for (std::size_t k = 0; k < N; ++k) y.slopes[k] = a.slopes[k] + b.slopes[k];
  return y;
}
template <class T, int N>
Jet<T, N> operator*(const Jet<T, N>& a, const Jet<T, N>& b) {
  Jet<T, N> y;
  y.value = a.value * b.value;
  for (std::size_t k = 0; k < N; ++k) y.slopes[k] = a.slopes[k] * b.value + a.value * b.slopes[k];
  return y;
}
template <class T, int N>
Jet<T, N> operator*(double a, const Jet<T, N>& b) {
  return chained(b, a * b.value, T(a));
}
template <class T, int N>
Jet<T, N> operator+(double a, const Jet<T, N>& b) {
  return chained(b, a + b.value, T(1));
}
template <class T, int N>
Jet<T, N> operator-(const Jet<T, N>& a, const Jet<T, N>& b) {
  return a + -1.0 * b;
}

double power(double x, double exponent) {
  return std::pow(x, exponent);
}
double root(double x) {
  return std::sqrt(x);
}
double inverse(double x) {
  return 1 / x;
}
double sine(double x) {
  return std::sin(x);
}
double cosine(double x) {
  return std::cos(x);
}
double tangent_h(double x) {
  return std::tanh(x);
}
template <class T, int N>
Jet<T, N> power(const Jet<T, N>& x, double exponent) {
  return chained(x, power(x.value, exponent), exponent * power(x.value, exponent - 1));
}
template <class T, int N>
Jet<T, N> inverse(const Jet<T, N>& x) {
  const T y = inverse(x.value);
  return chained(x, y, -1.0 * (y * y));
}
template <class T, int N>
Jet<T, N> root(const Jet<T, N>& x) {
  const T y = root(x.value);
  return chained(x, y, 0.5 * inverse(y));
}
template <class T, int N>
Jet<T, N> cosine(const Jet<T, N>& x);
template <class T, int N>
Jet<T, N> sine(const Jet<T, N>& x) {
  return chained(x, sine(x.value), cosine(x.value));
}
template <class T, int N>
Jet<T, N> cosine(const Jet<T, N>& x) {
  return chained(x, cosine(x.value), -1.0 * sine(x.value));
}
template <class T, int N>
Jet<T, N> tangent_h(const Jet<T, N>& x) {
  const T y = tangent_h(x.value);
  return chained(x, y, 1.0 + -1.0 * (y * y));
}

/// The transformed distance for the sum s of both radii.
template <class T>
T transformed(const T& r, double s, DistanceTransform transform) {
  if (transform == DistanceTransform::none) return r;
  if (transform == DistanceTransform::agnesi) {
    constexpr double a = 1.0805, q = 0.9183, p = 4.5791;
    const T z = (2 / s) * r;
    return inverse(1.0 + a * power(z, q) * inverse(1.0 + power(z, q - p)));
  }
  const double t = 0.75 * s, middle = 25.0 / 24 * s, width = 7.0 / 12 * s;
  return t + 0.5 * ((-t + r) * (1.0 + tangent_h(4 / width * (-middle + r))));
}

/// Real spherical harmonics of a unit vector.
template <class T>
void harmonics(const T& x, const T& y, const T& z, int max_l, T* out) {
  out[0] = T(1);
  if (max_l == 0) return;
  out[1] = root(3) * x;
  out[2] = root(3) * y;
  out[3] = root(3) * z;
  if (max_l == 1) return;
  const T across = x * x + z * z, xz = x * z, difference = z * z - x * x;
  out[4] = root(15) * xz;
  out[5] = root(15) * (x * y);
  out[6] = root(5) * (y * y - 0.5 * across);
  out[7] = root(15) * (y * z);
  out[8] = root(15) / 2 * difference;
  if (max_l == 2) return;
  const T around = 4 * (y * y) - across;
  out[9] = root(70) / 4 * (2 * (xz * z) + difference * x);
  out[10] = root(105) * (xz * y);
  out[11] = root(42) / 4 * (around * x);
  out[12] = root(7) / 2 * (y * (2 * (y * y) - 3 * across));
  out[13] = root(42) / 4 * (around * z);
  out[14] = root(105) / 2 * (difference * y);
  out[15] = root(70) / 4 * (difference * z - 2 * (xz * x));
}

/// The row of a vector d of positive length.
template <class T>
void write_row(const HarmonicFunctions& f, const std::array<T, 3>& d, double radii, T* out) {
  const T r = root(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), by_length = inverse(r);
  double length = 0;
  if constexpr (std::is_same_v<T, double>)
    length = r;
  else if constexpr (is_jet<decltype(r.value)>)
    length = r.value.value;
  else
    length = r.value;
  if (f.num_basis > 0 && length < f.cutoff) {
    const double p = f.power;
    const T x = 1 / f.cutoff * r;
    T inside = T(1);
    for (int k = 0; k < f.power; ++k) inside = inside * x;
    const T cut = 1.0 + inside * (-(p + 1) * (p + 2) / 2 + x * (p * (p + 2) + (-p * (p + 1) / 2) * x));
    const T t = transformed(r, radii, f.transform), angle = std::numbers::pi / f.cutoff * t;
    const T factor = std::sqrt(2 / f.cutoff) * (cut * inverse(t));
    const T s = sine(angle), c = cosine(angle);
    T of_sine = s, of_cosine = c;
    for (Index k = 0; k < f.num_basis; ++k) {
      out[k] = factor * of_sine;
      const T next = of_sine * c + of_cosine * s;
      of_cosine = of_cosine * c - of_sine * s;
      of_sine = next;
    }
  }
  const T back = -1.0 * by_length;
  harmonics(d[0] * back, d[1] * back, d[2] * back, f.max_l, out + f.num_basis);
}

/// Calls visit(row, d, s) for rows of vectors that are not 0.
template <class Visit>
void for_vectors(const Tensor& d, const Tensor& radii, const Visit& visit) {
  parallel_for(d.num_rows(), vector_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const std::array<double, 3> x{d.row(i)[0], d.row(i)[1], d.row(i)[2]};
      if (x[0] != 0 || x[1] != 0 || x[2] != 0)
        visit(i, x, radii.defined() ? static_cast<double>(radii.row(i)[0]) : 0);
    }
  });
}

using Directed = Jet<double, 1>;  // a slope in the direction t

Directed directed(double x, real t) {
  Directed y(x);
  y.slopes[0] = static_cast<double>(t);
  return y;
}

/// J t
Tensor tangents_of(const HarmonicFunctions& f, const Tensor& d, const Tensor& radii, const Tensor& t) {
  Tensor out = Tensor::zeros({d.num_rows(), f.columns()});
  for_vectors(d, radii, [&](Index i, const std::array<double, 3>& x, double s) {
    const real* const to = t.row(i);
    std::vector<Directed> row(static_cast<std::size_t>(f.columns()));
    write_row<Directed>(f, {directed(x[0], to[0]), directed(x[1], to[1]), directed(x[2], to[2])}, s,
                        row.data());
    for (std::size_t k = 0; k < row.size(); ++k) out.row(i)[k] = static_cast<real>(row[k].slopes[0]);
  });
  return out;
}

/// g J for a number type T = double, the derivative of g . (J t) for Directed numbers.
template <class T, class Number, class Slope>
Tensor gradients_of(const HarmonicFunctions& f, const Tensor& d, const Tensor& radii, const Tensor& g,
                    const Number& number, const Slope& slope) {
  Tensor out = Tensor::zeros(d.shape());
  for_vectors(d, radii, [&](Index i, const std::array<double, 3>& x, double s) {
    std::array<Jet<T, 3>, 3> at;
    for (std::size_t c = 0; c < 3; ++c) {
      at[c].value = number(i, c, x[c]);
      at[c].slopes[c] = T(1);
    }
    std::vector<Jet<T, 3>> row(static_cast<std::size_t>(f.columns()));
    write_row(f, at, s, row.data());
    const real* const of_row = g.row(i);
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < row.size(); ++k)
        sum += static_cast<double>(of_row[k]) * slope(row[k].slopes[c]);
      out.row(i)[c] = static_cast<real>(sum);
    }
  });
  return out;
}

Variable tangent_rows(const Variable& d, const Variable& t, const Tensor& radii, const HarmonicFunctions& f) {
  const Tensor at = d.value(), direction = t.value();
  Tensor out = tangents_of(f, at, radii, direction);
  if (!recording({&d, &t})) return out;
  return record(std::move(out),
                [at, direction, radii, f, dd = d.gradient(), dt = t.gradient()](const Tensor& grad) {
                  if (dt != nullptr) dt->add(harmonic_row_gradients(at, radii, grad, f));
                  if (dd != nullptr)
                    dd->add(gradients_of<Directed>(
                        f, at, radii, grad,
                        [&](Index i, std::size_t c, double x) { return directed(x, direction.row(i)[c]); },
                        [](const Directed& slope) { return slope.slopes[0]; }));
                });
}

}  // namespace

std::vector<double> radial_functions_at(double r, const HarmonicFunctions& functions, double radii) {
  HarmonicFunctions f = functions;
  f.max_l = 0;
  std::vector<double> row(static_cast<std::size_t>(f.columns()));
  write_row<double>(f, {r, 0, 0}, radii, row.data());
  row.pop_back();
  return row;
}

Tensor harmonic_row_values(const Tensor& d, const Tensor& radii, const HarmonicFunctions& f) {
  Tensor out = Tensor::zeros({d.num_rows(), f.columns()});
  for (Index i = 0; i < d.num_rows(); ++i) out.row(i)[f.num_basis] = 1;
  for_vectors(d, radii, [&](Index i, const std::array<double, 3>& x, double s) {
    std::vector<double> row(static_cast<std::size_t>(f.columns()));
    write_row(f, x, s, row.data());
    real* const to = out.row(i);
    for (std::size_t k = 0; k < row.size(); ++k) to[k] = static_cast<real>(row[k]);
  });
  return out;
}

Tensor harmonic_row_gradients(const Tensor& d, const Tensor& radii, const Tensor& g,
                              const HarmonicFunctions& f) {
  return gradients_of<double>(
      f, d, radii, g, [](Index, std::size_t, double x) { return x; }, [](double slope) { return slope; });
}

Variable harmonic_rows(const Variable& d, const Tensor& radii, const HarmonicFunctions& functions) {
  if (d.is_dual())
    return make_dual(harmonic_rows(d.primal(), radii, functions),
                     tangent_rows(d.primal(), d.tangent(), radii, functions));
  const Tensor at = d.value();
  require<ShapeError>(at.shape().dims() == 2 && at.row_size() == 3, "harmonic_rows of vectors of shape ",
                      at.shape(), ", expected [n, 3]");
  require<ShapeError>((functions.transform == DistanceTransform::none) ||
                          (radii.defined() && radii.shape() == Shape{at.num_rows(), 1}),
                      "harmonic_rows with a distance transform, expected radii of shape [", at.num_rows(),
                      ", 1]");
  Tensor out = harmonic_row_values(at, radii, functions);
  if (!recording({&d})) return out;
  return record(std::move(out), [at, radii, functions, dd = d.gradient()](const Tensor& grad) {
    dd->add(harmonic_row_gradients(at, radii, grad, functions));
  });
}
}}  // namespace sar
