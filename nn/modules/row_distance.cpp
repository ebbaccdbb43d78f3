// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

double difference(const real* a, const real* b, Index j) {
  return static_cast<double>(a[j]) - static_cast<double>(b[j]);
}

double modulus(double re, double im) {
  return std::sqrt(re * re + im * im);
}

double distance(const real* a, const real* b, Index width, RowComparison kind) {
  double sum = 0;
  if (kind == RowComparison::l1) {
    for (Index j = 0; j < width; ++j) sum += std::abs(difference(a, b, j));
    return sum;
  }
  if (kind == RowComparison::l2) {
    for (Index j = 0; j < width; ++j) sum += difference(a, b, j) * difference(a, b, j);
    return std::sqrt(sum);
  }
  const Index half = width / 2;
  for (Index j = 0; j < half; ++j) sum += modulus(difference(a, b, j), difference(a, b, half + j));
  return sum;
}

/// Computes out = grad times the derivative of the distance with respect to a. The derivative for b is its
/// negative.
void slopes(const real* a, const real* b, Index width, RowComparison kind, double grad, real* out) {
  if (kind == RowComparison::modulus) {
    const Index half = width / 2;
    for (Index j = 0; j < half; ++j) {
      const double re = difference(a, b, j), im = difference(a, b, half + j), length = modulus(re, im);
      const double factor = length > 0 ? grad / length : 0;
      out[j] = static_cast<real>(factor * re);
      out[half + j] = static_cast<real>(factor * im);
    }
    return;
  }
  const double length = kind == RowComparison::l2 ? distance(a, b, width, kind) : 1;
  const double factor = length > 0 ? grad / length : 0;
  for (Index j = 0; j < width; ++j) {
    const double d = difference(a, b, j);
    const double slope = kind == RowComparison::l2 ? d : static_cast<double>((d > 0) - (d < 0));
    out[j] = static_cast<real>(factor * slope);
  }
}

Index grain_of(Index width) {
  return std::max<Index>((1 << 15) / std::max<Index>(width, 1), 1);
}

}  // namespace

Variable row_distance(const Variable& a, const Variable& b, RowComparison kind) {
  const Tensor x = a.value(), y = b.value();
  require<ShapeError>(x.shape().dims() == 2 && x.shape() == y.shape(), "row_distance of shapes ", x.shape(),
                      " and ", y.shape(), ", expected equal ones [n, width]");
  if (kind == RowComparison::l2 && any_dual({&a, &b})) {  // (a - b) . (da - db) / y, 0 where y = 0
    const Variable distances = row_distance(a.primal(), b.primal(), kind);
    const Variable apart = a - b, projection = sum(apart.primal() * apart.tangent(), ReduceDim::columns);
    const Variable one = Tensor::full({1}, 1), zero = Tensor::zeros({1});
    return make_dual(distances,
                     where(distances.value(), projection, zero) / where(distances.value(), distances, one));
  }
  const Index width = x.row_size();
  Tensor out({x.num_rows(), Index{1}});
  parallel_for_each(x.num_rows(), grain_of(width), [&](Index i) {
    out.data()[i] = static_cast<real>(distance(x.row(i), y.row(i), width, kind));
  });
  if (!recording({&a, &b})) return out;
  return record(std::move(out), [a, b, kind, width](const Tensor& grad) {
    const Tensor& of_a = a.value();
    const Tensor& of_b = b.value();
    const auto add = [&](const Variable& to, double sign) {
      if (!to.requires_grad()) return;
      Tensor result(to.shape());
      parallel_for_each(of_a.num_rows(), grain_of(width), [&](Index i) {
        slopes(of_a.row(i), of_b.row(i), width, kind, sign * static_cast<double>(grad.data()[i]),
               result.row(i));
      });
      to.gradient()->add(std::move(result));
    };
    add(a, 1);
    add(b, -1);
  });
}

Variable edge_vectors(const Variable& x, const Variable& y, const Variable& s) {
  if (any_dual({&x, &y, &s})) {
    const Variable shift = s.defined() ? tangent_or_zeros(s) : s;
    return make_dual(edge_vectors(x.primal(), y.primal(), s.primal()),
                     edge_vectors(tangent_or_zeros(x), tangent_or_zeros(y), shift));
  }
  const Tensor from = x.value(), to = y.value();
  require<ShapeError>(from.shape() == to.shape() && (!s.defined() || s.shape() == from.shape()),
                      "edge_vectors of shapes ", from.shape(), " and ", to.shape(), " with shifts of shape ",
                      s.shape(), ", expected equal ones");
  Tensor out(from.shape());
  const real* shift = s.defined() ? std::as_const(s).value().data() : nullptr;
  parallel_for_each(out.size(), Index{1} << 14, [&](Index i) {
    const double t = shift != nullptr ? static_cast<double>(shift[i]) : 0;
    out.data()[i] =
        static_cast<real>(static_cast<double>(from.data()[i]) + t - static_cast<double>(to.data()[i]));
  });
  if (!recording({&x, &y, &s})) return out;
  return record(std::move(out),
                [dx = x.gradient(), dy = y.gradient(), ds = s.gradient()](const Tensor& grad) {
                  if (dy != nullptr)
                    dy->add([&](Tensor& sum, bool accumulate) { scale_shift(grad, -1, 0, sum, accumulate); });
                  if (dx != nullptr) dx->add(grad);
                  if (ds != nullptr) ds->add(grad);
                });
}

Variable unit_complex(const Variable& angle) {
  if (angle.is_dual()) {
    const Index columns = angle.shape().row_size();
    const Variable y = unit_complex(angle.primal()), change = angle.tangent();
    return make_dual(y, concat_columns({-(slice_columns(y, columns, 2 * columns) * change),
                                        slice_columns(y, 0, columns) * change}));
  }
  const Tensor& angles = angle.value();
  const Index width = angles.row_size();
  Tensor out({angles.num_rows(), 2 * width});
  for (Index i = 0; i < angles.num_rows(); ++i)
    for (Index j = 0; j < width; ++j) {
      out.row(i)[j] = std::cos(angles.row(i)[j]);
      out.row(i)[width + j] = std::sin(angles.row(i)[j]);
    }
  if (!recording({&angle})) return out;
  return record(out, [angle, out, width](const Tensor& grad) {
    Tensor result(angle.shape());
    for (Index i = 0; i < result.num_rows(); ++i) {
      const real* g = grad.row(i);
      const real* u = out.row(i);
      for (Index j = 0; j < width; ++j) result.row(i)[j] = g[width + j] * u[j] - g[j] * u[width + j];
    }
    angle.gradient()->add(std::move(result));
  });
}

}}  // namespace sar
