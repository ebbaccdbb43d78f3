// SPDX-License-Identifier: MIT
#include <sar/core/rows/layer_norm.hpp>

#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

using namespace sar;
using sar::test::random_tensor;
using sar::test::relative_error;
using sar::test::tolerance;

TEST_CASE("layer normalization, its sums and its gradient against the formulas") {
  constexpr double eps = 1e-5;
  for (const Index columns : {2, 7, 16, 33, 40, 130, 600})
    for (const bool affine : {false, true}) {
      CAPTURE(columns);
      CAPTURE(affine);
      const Index rows = 300;
      const Tensor x = random_tensor({rows, columns}, 1, 2, 4), grad = random_tensor({rows, columns}, 2);
      const Tensor weight = affine ? random_tensor({columns}, 3) : Tensor();
      const Tensor bias = affine ? random_tensor({columns}, 4) : Tensor();
      const auto n = static_cast<double>(columns);
      std::vector<double> y, dx, sums(2 * columns);
      for (Index i = 0; i < rows; ++i) {
        double mean = 0, var = 0, mean_h = 0, mean_hx = 0;
        for (Index j = 0; j < columns; ++j) mean += x.row(i)[j] / n;
        for (Index j = 0; j < columns; ++j) var += (x.row(i)[j] - mean) * (x.row(i)[j] - mean) / n;
        const auto xhat = [&](Index j) { return (x.row(i)[j] - mean) / std::sqrt(var + eps); };
        const auto h = [&](Index j) {
          return static_cast<double>(grad.row(i)[j]) * (affine ? weight.data()[j] : 1);
        };
        for (Index j = 0; j < columns; ++j) {
          y.push_back(xhat(j) * (affine ? weight.data()[j] : 1) + (affine ? bias.data()[j] : 0));
          sums[j] += grad.row(i)[j] * xhat(j);
          sums[columns + j] += grad.row(i)[j];
          mean_h += h(j) / n;
          mean_hx += h(j) * xhat(j) / n;
        }
        for (Index j = 0; j < columns; ++j)
          dx.push_back((h(j) - mean_h - xhat(j) * mean_hx) / std::sqrt(var + eps));
      }

      Tensor out(x.shape());
      layer_norm(x, weight, bias, eps, out);
      CHECK(relative_error(out, y) < tolerance());
      std::vector<double> found(2 * columns);
      layer_norm_backward_sums(x, grad, eps, found);
      for (Index j = 0; j < 2 * columns; ++j)
        CHECK(found[j] == doctest::Approx(sums[j]).epsilon(10 * tolerance()));
      Tensor g = grad.clone();
      layer_norm_backward_x(x, weight, eps, g);
      if (columns > 2) CHECK(relative_error(g, dx) < tolerance());  // of 2 columns it is rounding alone
    }
}

}  // namespace
