// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/tensor/fingerprint.hpp>
#include <sar/core/threads/parallel.hpp>

#include "support/random_tensor.hpp"

#include <set>
#include <utility>

using namespace sar;
using sar::test::random_tensor;

TEST_CASE("fingerprint: each element counts, wherever it is, and so does the order") {
  for (const Index size : {1, 2, 127, 128, 1000, 70000, 200000}) {
    CAPTURE(size);
    Tensor x = random_tensor({size}, 1);
    const std::uint64_t before = fingerprint(x);
    CHECK(fingerprint(x.clone()) == before);
    std::set<std::uint64_t> seen{before};
    for (Index i = 0; i < size; i += size / 37 + 1) {
      const real value = x.data()[i];
      x.data()[i] = value + 1;
      CHECK(seen.insert(fingerprint(x)).second);
      x.data()[i] = value;
    }
    CHECK(fingerprint(x) == before);
    if (size == 1) continue;
    std::swap(x.data()[0], x.data()[size - 1]);
    CHECK(fingerprint(x) != before);
  }
}

TEST_CASE("fingerprint: signs that change together") {
  Tensor x = random_tensor({1024, 128}, 3);
  std::set<std::uint64_t> seen{fingerprint(x)};
  for (const Index step : {1, 2, 128, 256}) {  // all, half of the columns, a column, half of it
    for (Index i = 0; i < x.size(); i += step) x.data()[i] = -x.data()[i];
    CHECK(seen.insert(fingerprint(x)).second);
  }
}

TEST_CASE("fingerprint: empty tensors, zeros of either sign, any number of threads") {
  CHECK(fingerprint(Tensor({0, 3})) == fingerprint(Tensor({0, 3})));
  CHECK(fingerprint(Tensor::full({2}, 0)) != fingerprint(Tensor::full({2}, -real{0})));
  CHECK(fingerprint(Tensor::zeros({2})) != fingerprint(Tensor::zeros({200})));
  const Tensor x = random_tensor({300, 1000}, 2);
  const std::uint64_t expected = fingerprint(x);
  const ThreadLimit one(1);
  CHECK(fingerprint(x) == expected);
}
