// SPDX-License-Identifier: MIT
#include <sar/core/rows/optimizer_step.hpp>

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

const Shape shape{40'000};

std::vector<double> doubles(const Tensor& x) {
  return {x.values().begin(), x.values().end()};
}

TEST_CASE("SGD steps against the formula, with and without momentum") {
  for (const bool with_momentum : {false, true}) {
    CAPTURE(with_momentum);
    Tensor p = random_tensor(shape, 1), b = with_momentum ? random_tensor(shape, 2) : Tensor();
    const Tensor g = random_tensor(shape, 3);
    std::vector<double> expected = doubles(p), buffer = doubles(with_momentum ? b : Tensor::zeros(shape));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      buffer[i] = (with_momentum ? 0.9 * buffer[i] : 0) + g.values()[i] + 0.1 * expected[i];
      expected[i] -= 0.05 * buffer[i];
    }
    sgd_step(p, g, b, real(0.05), real(0.9), real(0.1));
    CHECK(relative_error(p, expected) < tolerance());
    if (with_momentum) CHECK(relative_error(b, buffer) < tolerance());
  }
}

TEST_CASE("an Adam step against the formula") {
  Tensor p = random_tensor(shape, 1), m = random_tensor(shape, 2), v = random_tensor(shape, 3, 0.1, 1);
  const Tensor g = random_tensor(shape, 4);
  std::vector<double> expected = doubles(p), first = doubles(m), second = doubles(v);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double gradient = g.values()[i] + 0.1 * expected[i];
    first[i] = 0.9 * first[i] + 0.1 * gradient;
    second[i] = 0.8 * second[i] + 0.2 * gradient * gradient;
    expected[i] = 0.99 * expected[i] - 0.05 * first[i] / (std::sqrt(second[i]) / 0.6 + 1e-3);
  }
  adam_step(p, g, m, v,
            {.beta1 = real(0.9),
             .rest1 = real(0.1),
             .beta2 = real(0.8),
             .rest2 = real(0.2),
             .eps = real(1e-3),
             .rate = real(0.05),
             .root_of_correction = real(0.6),
             .decay = real(0.1),
             .keep = real(0.99)});
  CHECK(relative_error(p, expected) < tolerance());
  CHECK(relative_error(m, first) < tolerance());
  CHECK(relative_error(v, second) < tolerance());
}

}  // namespace
