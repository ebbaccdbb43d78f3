// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/rows/loss.hpp>

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

TEST_CASE("softmax and log_softmax are those of double precision, for large logits too") {
  for (const Index width : {2, 7, 16, 33, 47, 9001})
    for (const double offset : {0.0, 300.0, -300.0}) {
      CAPTURE(width);
      CAPTURE(offset);
      const Tensor x = random_tensor({11, width}, 1, offset - 8, offset + 8);
      const Tensor grad = random_tensor({11, width}, 2);
      std::vector<double> p, logp, dp, dlogp;
      for (Index i = 0; i < 11; ++i) {
        double sum = 0, dot = 0, grad_sum = 0;
        for (Index j = 0; j < width; ++j) sum += std::exp(x.row(i)[j] - offset);
        for (Index j = 0; j < width; ++j) {
          p.push_back(std::exp(x.row(i)[j] - offset) / sum);
          logp.push_back(x.row(i)[j] - offset - std::log(sum));
          dot += p.back() * grad.row(i)[j];
          grad_sum += grad.row(i)[j];
        }
        for (Index j = 0; j < width; ++j) {
          const double y = p[static_cast<std::size_t>(i * width + j)];
          dp.push_back(y * (grad.row(i)[j] - dot));
          dlogp.push_back(grad.row(i)[j] - y * grad_sum);
        }
      }
      Tensor y(x.shape());
      softmax_rows(x, y);
      CHECK(relative_error(y, p) < tolerance() / 10);
      Tensor dx = grad.clone();
      softmax_rows_backward(y, dx, dx);
      CHECK(relative_error(dx, dp) < tolerance() / 10);
      log_softmax_rows(x, y);
      CHECK(relative_error(y, logp) < tolerance() / 10);
      dx = grad.clone();
      log_softmax_rows_backward(y, dx, dx);
      CHECK(relative_error(dx, dlogp) < tolerance() / 10);
    }
}

TEST_CASE("softmax of one column, of no rows, of no columns") {
  const Tensor column = random_tensor({5, 1}, 1);
  Tensor one({5, 1});
  softmax_rows(column, one);
  CHECK(one.row(3)[0] == 1);
  log_softmax_rows(column, one);
  CHECK(one.row(3)[0] == 0);
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}}) {
    Tensor x = Tensor::zeros(shape);
    softmax_rows(x, x);
    log_softmax_rows(x, x);
    log_softmax_rows_backward(x, x, x, true);
    CHECK(x.size() == 0);
  }
}

TEST_CASE("gradients of softmax are added when asked for, and shapes are checked") {
  const Tensor y = Tensor::from({1, 2}, {real(0.25), real(0.75)}), grad = Tensor::from({1, 2}, {4, 0});
  Tensor out = Tensor::from({1, 2}, {10, 20});
  softmax_rows_backward(y, grad, out, true);
  CHECK(out.data()[0] == doctest::Approx(10.75));
  CHECK(out.data()[1] == doctest::Approx(19.25));
  Tensor wrong({2, 2});
  CHECK_THROWS_AS(softmax_rows(y, wrong), ShapeError);
  CHECK_THROWS_AS(log_softmax_rows_backward(y, wrong, out), ShapeError);
}

}  // namespace
