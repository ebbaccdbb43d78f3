// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/tensor/columns.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace sar;

TEST_CASE("fields in arrays of their own become columns, and columns fields") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    std::vector<T> u(10000), v(10000), w(3);
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = static_cast<T>(i), v[i] = static_cast<T>(2 * i + 1);
    const Tensor x = from_columns({u, v});
    CHECK(x.shape() == Shape{10000, 2});
    bool equal = true;
    for (Index i = 0; i < x.num_rows(); ++i)
      equal = equal && x.row(i)[0] == static_cast<real>(i) && x.row(i)[1] == static_cast<real>(2 * i + 1);
    CHECK(equal);
    std::vector<T> a(u.size()), b(u.size());
    copy_to_columns(x, {b, a});
    CHECK(a == v);
    CHECK(b == u);
    const std::vector<std::span<T>> both{a, b};
    copy_to_columns(x, both);
    CHECK(a == u);
    CHECK(b == v);
    const std::vector<std::span<const T>> one{u};
    CHECK(from_columns(one).shape() == Shape{10000, 1});
    CHECK_THROWS_WITH_AS((void)from_columns({u, w}),
                         "from_columns: column 1 has 3 values, expected 10000 as in column 0", ShapeError);
    CHECK_THROWS_AS((void)from_columns(std::vector<std::span<const T>>()), ShapeError);
    CHECK_THROWS_WITH_AS(copy_to_columns(x, {a}),
                         "copy_to_columns: there are 1 columns for a tensor of shape [10000, 2], expected "
                         "one for each value of a row",
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        copy_to_columns(x, {a, w}),
        "copy_to_columns: column 1 has 3 values for a tensor of shape [10000, 2], expected 10000",
        ShapeError);
  };
  check(float{});
  check(double{});
}

template <class T>
struct Particle {
  char kind;
  T mass;
  T position[3];
  std::array<std::array<T, 2>, 2> stress;
};

TEST_CASE_TEMPLATE("arrays of structs are columns, both ways", T, float, double) {
  const Index n = 5000;
  std::vector<Particle<T>> particles(n);
  for (Index i = 0; i < n; ++i) {
    particles[i].kind = 'p';
    particles[i].mass = static_cast<T>(i);
    particles[i].position[2] = static_cast<T>(-i);
    particles[i].stress[1][0] = static_cast<T>(2 * i);
  }
  const std::vector<Particle<T>>& given = particles;
  const Tensor x =
      from_columns({host_column(given, &Particle<T>::mass), host_column(given, &Particle<T>::position, 2),
                    host_column(given, &Particle<T>::stress, 2)});
  REQUIRE(x.shape() == Shape{n, 3});
  bool equal = true;
  for (Index i = 0; i < n; ++i) {
    const real v = static_cast<real>(i);
    equal = equal && x.row(i)[0] == v && x.row(i)[1] == -v && x.row(i)[2] == 2 * v;
  }
  CHECK(equal);
  copy_to_columns(
      x, {host_column(particles, &Particle<T>::position, 1), host_column(particles, &Particle<T>::mass),
          host_column(particles, &Particle<T>::stress, 3)});
  for (Index i = 0; i < n; ++i) {
    const auto& p = particles[i];
    const T v = static_cast<T>(i);
    equal = equal && p.kind == 'p' && p.position[0] == 0 && p.position[1] == v && p.position[2] == -v &&
            p.mass == -v && p.stress[1][0] == 2 * v && p.stress[1][1] == 2 * v;
  }
  CHECK(equal);
  CHECK(from_columns({host_column(std::vector<Particle<T>>{}, &Particle<T>::mass)}).shape() == Shape{0, 1});
  CHECK_THROWS_WITH_AS((void)host_column(particles, &Particle<T>::position, 3),
                       "host_column: component 3 of a member with 3 numbers", ShapeError);
}

TEST_CASE_TEMPLATE("padded and column-major matrices, columns of both precisions", T, float, double) {
  std::vector<T> padded{1, 2, 0, 3, 4, 0, 5, 6};  // rows of 2 values, padded to 3
  const Tensor x = from_columns(host_columns(padded, 3, 2, 3));
  CHECK(std::ranges::equal(x.values(), std::vector<real>{1, 2, 3, 4, 5, 6}));
  std::vector<T> by_column(8, 9);  // 2 columns of 3 values and one of padding
  copy_to_columns(x, host_columns(by_column, 3, 2, 1, 4));
  CHECK(by_column == std::vector<T>{1, 3, 5, 9, 2, 4, 6, 9});
  CHECK(std::ranges::equal(from_columns(host_columns(std::as_const(by_column), 3, 2, 1, 4)).values(),
                           x.values()));

  const std::vector<float> a{1, 2};
  const std::vector<double> b{3, 4};
  CHECK(std::ranges::equal(from_columns({a, b}).values(), std::vector<real>{1, 3, 2, 4}));
  CHECK(from_columns({ConstHostColumn(padded, 3), ConstHostColumn(std::span(padded).subspan(1), 3)})
            .num_rows() == 3);

  CHECK_THROWS_WITH_AS(ConstHostColumn(padded, 0), "a column of a host has the stride 0, expected 1 or more",
                       ShapeError);
  CHECK_THROWS_WITH_AS(
      (void)host_columns(padded, 3, 3, 3),
      "host_columns: an array of 8 numbers for 3 rows and 3 columns with strides 3 and 1, expected 9 "
      "at least",
      ShapeError);
}

TEST_CASE_TEMPLATE("rows of arrays with ghosts, by lists of either integer", Id, std::int32_t, std::int64_t) {
  const Index ny = 70, nx = 90;  // with one ghost layer on each side
  std::vector<float> u(ny * nx);
  std::vector<double> v(ny * nx);
  for (Index i = 0; i < ny * nx; ++i) u[i] = static_cast<float>(i), v[i] = static_cast<double>(-i);
  const Array<Index> interior = box_rows({ny, nx}, {1, 1}, {ny - 1, nx - 1});
  const std::vector<Id> rows(interior.begin(), interior.end());
  const Tensor x = from_columns({u, v}, rows);
  REQUIRE(x.shape() == Shape{(ny - 2) * (nx - 2), 2});
  Tensor expected(x.shape());
  for (Index y = 1, i = 0; y < ny - 1; ++y)
    for (Index k = 1; k < nx - 1; ++k, ++i)
      expected.row(i)[0] = static_cast<real>(y * nx + k), expected.row(i)[1] = -expected.row(i)[0];
  CHECK(std::ranges::equal(x.values(), std::as_const(expected).values()));

  copy_to_columns(x, {v, u}, rows);
  bool equal = true;
  for (Index y = 0; y < ny; ++y)
    for (Index k = 0; k < nx; ++k) {
      const bool ghost = y == 0 || k == 0 || y == ny - 1 || k == nx - 1;
      const auto i = static_cast<double>(y * nx + k);
      equal =
          equal && v[y * nx + k] == (ghost ? -i : i) && u[y * nx + k] == static_cast<float>(ghost ? i : -i);
    }
  CHECK(equal);
  CHECK(from_columns({u, v}, std::vector<Id>{}).shape() == Shape{0, 2});  // a rank without rows

  const std::vector<double> before = v;
  CHECK_THROWS_WITH_AS((void)from_columns({u, std::vector<float>(5)}, std::vector<Id>{4, 5}),
                       "from_columns: rows[1] is 5, but column 1 has 5 rows", InputError);
  CHECK_THROWS_WITH_AS((void)from_columns({u}, std::vector<Id>{-1}),
                       "from_columns: rows[0] is -1, but column 0 has 6300 rows", InputError);
  CHECK_THROWS_WITH_AS(copy_to_columns(Tensor::full({3, 1}, 7), {v}, std::vector<Id>{3, 8, 3}),
                       "copy_to_columns: rows[2] is 3 as one before it, expected each row once", InputError);
  CHECK_THROWS_WITH_AS(copy_to_columns(Tensor::full({3, 1}, 7), {v}, std::vector<Id>{3, 8}),
                       "copy_to_columns: 2 rows for a tensor of shape [3, 1], expected 3", ShapeError);
  CHECK(v == before);
  CHECK_THROWS_WITH_AS((void)box_rows({5, 4}, {0, 1}, {5, 5}),
                       "box_rows: cells 1 to 5 (the end not included) of extent 1, which has 4", ShapeError);
}

// what only another precision could use as it lies cannot be borrowed
template <class Pointer>
concept Borrowable = requires(Pointer values) {
  Tensor::borrow(values, Shape{1});
};
static_assert(Borrowable<real*> && Borrowable<const real*> && Borrowable<std::vector<real>&>);
static_assert(!Borrowable<other_precision*> && !Borrowable<const other_precision*> &&
              !Borrowable<std::vector<other_precision>&>);

}  // namespace
