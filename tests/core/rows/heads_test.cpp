// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/rows/rows.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

TEST_CASE("dot products of heads and their gradients against naive loops") {
  for (const Index columns : {Index{1}, Index{7}, Index{40}}) {
    CAPTURE(columns);
    const Index rows = 50, heads = 3;
    const Tensor x = random_tensor({rows, heads, columns}, 1), a = random_tensor({1, heads, columns}, 2);
    const Tensor grad = random_tensor({rows, heads}, 3);
    std::vector<double> dots(rows * heads), dx(x.size()), da(a.size());
    for (Index i = 0; i < rows; ++i)
      for (Index h = 0; h < heads; ++h)
        for (Index d = 0; d < columns; ++d) {
          const Index at = h * columns + d;
          dots[i * heads + h] += static_cast<double>(a.data()[at]) * x.row(i)[at];
          dx[i * heads * columns + at] = static_cast<double>(grad.row(i)[h]) * a.data()[at];
          da[at] += static_cast<double>(grad.row(i)[h]) * x.row(i)[at];
        }
    Tensor out({rows, heads}), out_x(x.shape());
    head_dots(x, a, out);
    CHECK(relative_error(out, dots) < tolerance());
    head_dots_backward_x(grad, a, out_x);
    CHECK(relative_error(out_x, dx) < tolerance());
    head_dots_backward_x(grad, a, out_x, true);
    for (double& value : dx) value *= 2;
    CHECK(relative_error(out_x, dx) < tolerance());
    std::vector<double> out_a(a.size());
    head_dots_backward_a(grad, x, out_a);
    for (Index j = 0; j < a.size(); ++j) CHECK(out_a[j] == doctest::Approx(da[j]).epsilon(tolerance()));
  }
}

TEST_CASE("heads that do not fit are refused") {
  Tensor out({2, 3});
  CHECK_THROWS_AS(head_dots(Tensor::zeros({2, 3, 4}), Tensor::zeros({1, 3, 5}), out), ShapeError);
  CHECK_THROWS_AS(head_dots(Tensor::zeros({2, 4, 4}), Tensor::zeros({1, 4, 4}), out), ShapeError);
}

}  // namespace
