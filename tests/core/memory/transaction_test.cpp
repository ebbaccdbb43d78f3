// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <optional>
#include <stdexcept>
#include <vector>

using namespace sar;

namespace {

struct Failure {};

/// Runs body() in a transaction that ends with an exception.
template <class Body>
void fail_after(const Body& body) {
  try {
    const Transaction transaction;
    body();
    throw Failure();
  } catch (const Failure&) {
  }
}

TEST_CASE(
    "a transaction that is left by an exception restores what has changed in it, another one keeps it") {
  Recoverable<int> number = 1;
  Recoverable<std::vector<int>> list = std::vector<int>{1, 2};
  Tensor values = Tensor::full({3}, 4);
  const auto change = [&] {
    number = 5;
    ++number.change();
    list.change().push_back(3);
    values.save();
    values.fill(7);
  };
  fail_after(change);
  CHECK(number == 1);
  CHECK(list.get() == std::vector<int>{1, 2});
  CHECK(values.data()[2] == 4);
  {
    const Transaction transaction;
    change();
  }
  CHECK(number == 6);
  CHECK(list.get() == std::vector<int>{1, 2, 3});
  CHECK(values.data()[2] == 7);
  change();  // without a transaction
  CHECK(number == 6);
  CHECK_FALSE(Transaction::is_open());
}

TEST_CASE(
    "an inner transaction restores its own changes, the outer one also those of inner ones that succeeded") {
  Recoverable<int> number = 1;
  Tensor rows = Tensor::zeros({2, 2});
  fail_after([&] {
    number = 2;
    fail_after([&] { number = 3; });
    CHECK(number == 2);
    {
      const Transaction succeeds;
      number = 4;
      rows.slice_rows(1, 2).save();
      rows.row(1)[0] = 5;
    }
    CHECK(number == 4);
    rows.save();  // overlaps with the row that is saved already
    rows.fill(6);
  });
  CHECK(number == 1);
  for (const real value : rows.values()) CHECK(value == 0);
}

TEST_CASE("what ends within a transaction is not restored; copies are values of their own") {
  Recoverable<int> number = 1;
  fail_after([&] {
    std::optional<Recoverable<int>> ends = number;
    *ends = 2;
    CHECK(number == 1);
    ends.reset();
    Tensor(Shape{4}).save();
  });
  CHECK(number == 1);
}

TEST_CASE("a transaction keeps one copy of each state, and nothing at its end") {
  const Tensor values = Tensor::zeros({1 << 14});
  const std::size_t before = live_bytes();
  {
    const Transaction outer;
    for (int step = 0; step < 100; ++step) {
      const Transaction inner;
      values.save();
      values.save();
    }
    CHECK(live_bytes() >= before + values.bytes());
    CHECK(live_bytes() < before + 2 * values.bytes());
  }
  CHECK(live_bytes() == before);
}

}  // namespace
