// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/atoms/cell.hpp>

#include <cmath>
#include <cstddef>
#include <string>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

double dot(const Vector3& a, const Vector3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector3 unit(const Vector3& a) {
  const double length = std::hypot(a[0], a[1], a[2]);
  return {a[0] / length, a[1] / length, a[2] / length};
}

/// Returns a unit vector that is orthogonal to a: to the axis that is farthest from a, too.
Vector3 orthogonal(const Vector3& a) {
  std::size_t axis = 0;
  for (std::size_t k = 1; k < 3; ++k)
    if (std::abs(a[k]) < std::abs(a[axis])) axis = k;
  Vector3 e{};
  e[axis] = 1;
  return unit(cross(a, e));
}

std::string text_of(const Cell& cell) {
  std::string text;
  for (const Vector3& v : cell.vectors)
    text += concat(text.empty() ? "(" : ", (", v[0], ", ", v[1], ", ", v[2], ")");
  return text;
}

}  // namespace

double Cell::volume() const noexcept {
  return std::abs(dot(vectors[0], cross(vectors[1], vectors[2])));
}

void add_arguments(CollectiveCall& call, const Cell& cell) {
  for (std::size_t k = 0; k < 3; ++k) {
    call.equal("periodic direction", cell.periodic[k]);
    for (const double x : cell.vectors[k]) call.equal("cell", x);
  }
}

CellBasis::CellBasis(const Cell& cell) : periodic_(cell.periodic), vectors_(cell.vectors) {
  std::size_t count = 0, first = 0, missing = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    for (const double x : cell.vectors[k])
      require<InputError>(!periodic_[k] || std::isfinite(x), "a cell with the vectors ", text_of(cell));
    if (periodic_[k] && count++ == 0) first = k;
    if (!periodic_[k]) missing = k;
  }
  if (count == 0) vectors_ = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  if (count == 1) vectors_[(first + 1) % 3] = orthogonal(vectors_[first]);
  if (count == 1) missing = (first + 2) % 3;
  if (count == 1 || count == 2)
    vectors_[missing] = unit(cross(vectors_[(missing + 1) % 3], vectors_[(missing + 2) % 3]));

  constexpr double least_sine = 1e-8;  // a product of sines of angles between vectors and planes
  double lengths = 1;
  for (const Vector3& v : vectors_) lengths *= std::hypot(v[0], v[1], v[2]);
  const double det = dot(vectors_[0], cross(vectors_[1], vectors_[2]));
  require<InputError>(std::abs(det) > least_sine * lengths && std::isfinite(det),
                      "a cell whose periodic vectors are linearly dependent: ", text_of(cell));
  for (std::size_t k = 0; k < 3; ++k) {
    inverse_[k] = cross(vectors_[(k + 1) % 3], vectors_[(k + 2) % 3]);
    for (double& x : inverse_[k]) x /= det;
  }
}

Vector3 CellBasis::coordinates(const Vector3& x) const noexcept {
  return {dot(x, inverse_[0]), dot(x, inverse_[1]), dot(x, inverse_[2])};
}

Vector3 CellBasis::position(const Vector3& f) const noexcept {
  Vector3 x{};
  for (std::size_t j = 0; j < 3; ++j)
    x[j] = f[0] * vectors_[0][j] + f[1] * vectors_[1][j] + f[2] * vectors_[2][j];
  return x;
}

double CellBasis::height(std::size_t k) const noexcept {
  return 1 / std::hypot(inverse_[k][0], inverse_[k][1], inverse_[k][2]);
}

Vector3 CellBasis::without_translation(const Vector3& d) const noexcept {
  Vector3 n = coordinates(d);
  for (std::size_t k = 0; k < 3; ++k) n[k] = periodic_[k] ? std::round(n[k]) : 0;
  const Vector3 t = position(n);
  return {d[0] - t[0], d[1] - t[1], d[2] - t[2]};
}

}}  // namespace sar
