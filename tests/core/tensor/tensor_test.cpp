// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sar;

TEST_CASE("a shape knows its size, its rows and its text") {
  const Shape shape{2708, 4, 16};
  CHECK(shape.dims() == 3);
  CHECK(shape[1] == 4);
  CHECK(shape.size() == 2708 * 64);
  CHECK(shape.row_size() == 64);
  CHECK(shape.to_string() == "[2708, 4, 16]");
  CHECK((std::ostringstream() << shape).str() == "[2708, 4, 16]");
  CHECK(shape.with_rows(5) == Shape{5, 4, 16});
  CHECK(shape == Shape{2708, 4, 16});
  CHECK_FALSE(shape == Shape{2708, 64});
  CHECK_FALSE(Shape{3} == Shape{3, 1});
}

TEST_CASE("one-dimensional and empty shapes") {
  CHECK(Shape{7}.row_size() == 1);
  CHECK(Shape{7}.size() == 7);
  CHECK(Shape{0, 16}.size() == 0);
  CHECK(Shape{0, 16}.row_size() == 16);
  CHECK(Shape{16, 0}.size() == 0);
  CHECK(Shape().dims() == 0);
  CHECK(Shape().size() == 0);
}

TEST_CASE("impossible shapes are refused") {
  constexpr Index huge = std::numeric_limits<Index>::max() / 2;
  CHECK_THROWS_WITH_AS((Shape{1, 2, 3, 4, 5}), "a tensor has 1 to 4 dimensions, not 5", ShapeError);
  CHECK_THROWS_AS((Shape(std::span<const Index>())), ShapeError);
  CHECK_THROWS_WITH_AS((Shape{3, -1}), "negative extent -1 in a tensor shape", ShapeError);
  CHECK_THROWS_AS((Shape{huge, 4}), ShapeError);
  CHECK_THROWS_AS((Shape{huge, 0, 4}), ShapeError);  // row_size() would overflow
  CHECK_THROWS_AS((void)Shape().with_rows(3), ShapeError);
  CHECK_THROWS_AS((void)Shape({3, 2}).with_rows(-1), ShapeError);
}

TEST_CASE("a default tensor is undefined; one without rows is not") {
  CHECK_FALSE(Tensor().defined());
  CHECK(Tensor().size() == 0);
  CHECK(Tensor().num_rows() == 0);
  CHECK_FALSE(Tensor().clone().defined());
  const Tensor none({0, 3});
  CHECK(none.defined());
  CHECK(none.num_rows() == 0);
  CHECK(none.row_size() == 3);
  CHECK(none.clone().shape() == Shape{0, 3});
}

TEST_CASE("construction fills as told") {
  const Tensor zeros = Tensor::zeros({3, 2});
  CHECK(std::all_of(zeros.values().begin(), zeros.values().end(), [](real x) { return x == 0; }));
  const Tensor full = Tensor::full({1000, 1000}, 2.5);  // several blocks of the parallel fill
  CHECK(std::all_of(full.values().begin(), full.values().end(), [](real x) { return x == 2.5; }));
  const Tensor given = Tensor::from({2, 2}, {1, 2, 3, 4});
  CHECK(given.row(1)[0] == 3);
  CHECK_THROWS_WITH_AS((void)Tensor::from({2, 2}, {1, 2, 3}),
                       "3 values for a tensor of shape [2, 2], expected 4", ShapeError);
}

TEST_CASE("memory is aligned to 64 bytes, small and large") {
  for (const Index n : {1, 3, 1000, 100000, 1000003})
    CHECK(reinterpret_cast<std::uintptr_t>(Tensor({n}).data()) % 64 == 0);
}

TEST_CASE("handles share, clones do not") {
  Tensor a = Tensor::from({2}, {1, 2});
  CHECK(a.unique());
  Tensor b = a;
  CHECK_FALSE(a.unique());
  b.data()[0] = 9;
  CHECK(a.data()[0] == 9);
  Tensor c = a.clone();
  c.data()[1] = 7;
  CHECK(a.data()[1] == 2);
  CHECK(c.unique());
}

TEST_CASE("row slices are views and keep the memory alive") {
  Tensor slice;
  {
    Tensor a({4, 2});
    std::iota(a.values().begin(), a.values().end(), real{0});
    slice = a.slice_rows(1, 3);
    CHECK(a.slice_rows(4, 4).num_rows() == 0);
    CHECK(slice.slice_rows(1, 2).data() == a.row(2));
    CHECK_THROWS_WITH_AS((void)a.slice_rows(3, 5), "rows 3 to 5 of a tensor of shape [4, 2]", ShapeError);
    CHECK_THROWS_AS((void)a.slice_rows(-1, 2), ShapeError);
    CHECK_THROWS_AS((void)a.slice_rows(3, 2), ShapeError);
  }
  CHECK(slice.shape() == Shape{2, 2});
  CHECK(std::vector<real>(slice.values().begin(), slice.values().end()) == std::vector<real>{2, 3, 4, 5});
}

TEST_CASE("reshape keeps memory and size") {
  Tensor a = Tensor::zeros({4, 6});
  Tensor b = a.reshape({4, 2, 3});
  CHECK(b.data() == a.data());
  CHECK(b.shape() == Shape{4, 2, 3});
  CHECK_THROWS_WITH_AS((void)a.reshape({5, 5}), "cannot reshape [4, 6] to [5, 5]", ShapeError);
}

TEST_CASE("borrowed memory is used in place, not accounted, never unique") {
  std::vector<real> mine{1, 2, 3, 4};
  const std::size_t before = live_bytes();
  Tensor t = Tensor::borrow(mine.data(), {2, 2});
  CHECK(live_bytes() == before);
  CHECK_FALSE(t.unique());
  t.row(1)[1] = 8;
  CHECK(mine[3] == 8);
  real* const none = nullptr;
  CHECK_THROWS_AS((void)Tensor::borrow(none, {2}), ShapeError);
  CHECK(Tensor::borrow(none, {0, 2}).defined());

  CHECK(std::as_const(t).data() == mine.data());
  CHECK(Tensor::borrow(mine, {4}).row(0) == mine.data());
  CHECK(Tensor::borrow(std::span(mine).first(3), {3, 1}).data() == mine.data());
  CHECK_THROWS_WITH_AS((void)Tensor::borrow(mine, {2, 3}),
                       "4 values for a tensor of shape [2, 3], expected 6", ShapeError);
  CHECK(live_bytes() == before);
}

TEST_CASE("borrowed memory with an owner lives as long as the last handle, and is never unique") {
  auto owner = std::make_shared<std::vector<real>>(4, real{3});
  const std::weak_ptr<std::vector<real>> alive = owner;
  real* const data = owner->data();
  Tensor t = Tensor::borrow(data, {2, 2}, owner);
  Tensor read = Tensor::borrow(std::as_const(*owner).data(), {4}, owner);
  owner.reset();
  CHECK(read.read_only());
  CHECK_FALSE(t.read_only());
  CHECK(t.data() == data);
  Tensor row = t.slice_rows(1, 2);
  t = Tensor();
  CHECK_FALSE(row.unique());
  CHECK(row.row(0)[1] == 3);
  CHECK(std::as_const(read).values()[3] == 3);
  CHECK_FALSE(alive.expired());
  row = Tensor();
  CHECK_FALSE(alive.expired());
  read = Tensor();
  CHECK(alive.expired());
}

TEST_CASE("what was borrowed for reading is not written") {
  const std::vector<real> mine{1, 2, 3, 4};
  Tensor t = Tensor::borrow(mine, {2, 2});
  CHECK(std::as_const(t).data() == mine.data());
  CHECK(t.read_only());
  CHECK_FALSE(t.unique());
  CHECK_FALSE(t.clone().read_only());
  const char* message =
      "a tensor of shape [2, 2] that was borrowed for reading cannot be written, expected memory that is not "
      "const";
  CHECK_THROWS_WITH_AS(t.fill(0), message, InputError);
  CHECK_THROWS_WITH_AS(t.copy_from(Tensor::zeros({2, 2})), message, InputError);
  CHECK_THROWS_WITH_AS(t.copy_from(std::span<const double>(std::vector<double>(4))), message, InputError);
  CHECK_THROWS_WITH_AS((void)t.values(), message, InputError);
  CHECK_THROWS_AS(t.slice_rows(0, 1).fill(0), InputError);
  CHECK_THROWS_AS(t.reshape({4}).fill(0), InputError);
  CHECK(mine == std::vector<real>{1, 2, 3, 4});
}

TEST_CASE("values travel from and to arrays of either precision") {
  const std::vector<double> doubles{1.5, -2.25, 1e-3, 0.1};
  const std::vector<float> floats(doubles.begin(), doubles.end());
  const auto check = [&](const auto& values) {
    using T = typename std::remove_cvref_t<decltype(values)>::value_type;
    Tensor t = Tensor::from({2, 2}, std::span<const T>(values));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(t.data()[i] == static_cast<real>(values[i]));
    t.fill(0);
    t.copy_from(values);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(t.data()[i] == static_cast<real>(values[i]));
    std::vector<T> back(4);
    t.copy_to(back);
    for (std::size_t i = 0; i < back.size(); ++i)
      CHECK(back[i] == static_cast<T>(static_cast<real>(values[i])));
    std::vector<T> wrong(3);
    CHECK_THROWS_WITH_AS(t.copy_to(wrong), "3 values for a tensor of shape [2, 2], expected 4", ShapeError);
    CHECK_THROWS_AS(t.copy_from(wrong), ShapeError);
    CHECK_THROWS_AS((void)Tensor::from({2, 2}, std::span<const T>(wrong)), ShapeError);
  };
  check(doubles);
  check(floats);
}

TEST_CASE("item and copy_from check shapes") {
  CHECK(Tensor::full({1, 1}, 3).item() == 3);
  CHECK_THROWS_AS((void)Tensor::zeros({2}).item(), ShapeError);
  Tensor a = Tensor::zeros({2, 3});
  a.copy_from(Tensor::full({2, 3}, 4));
  CHECK(a.row(1)[2] == 4);
  CHECK_THROWS_WITH_AS(a.copy_from(Tensor::zeros({3, 2})),
                       "cannot copy a tensor of shape [3, 2] into one of shape [2, 3]", ShapeError);
}
