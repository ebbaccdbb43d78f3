#include <sar/core/columns.hpp>
#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <array>
#include <span>
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

}  // namespace
