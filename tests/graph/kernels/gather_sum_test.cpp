// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/core/numbers.hpp>
#include <sar/graph/kernels/gather_sum.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("sums of gathered rows, for widths of vectors and of what is left of them") {
  const TwoShards g;
  const GraphShard& shard = g.local;
  for (const Index width : {1, 3, 8, 17, 24, 40, 47, 60, 70, 100, 135, 200, 260}) {
    const Tensor x = numbers({g.num_local, width}, 1), weight = numbers(Shape{g.num_edges()}, 2),
                 scale = numbers(Shape{g.num_dst}, 3), start = numbers({g.num_dst, width}, 4);
    for (const bool accumulate : {false, true}) {
      Tensor out = start.clone(), want = accumulate ? start.clone() : Tensor::zeros(start.shape());
      gather_sum({.edges = {.num_rows = shard.num_rows(),
                            .begin = shard.row_begin.data(),
                            .end = shard.row_begin.data() + 1,
                            .other = shard.src.data()},
                  .weight = weight.data(),
                  .row_scale = scale.data(),
                  .x = x.data(),
                  .x_rows = g.num_local,
                  .out = out.data(),
                  .width = width,
                  .accumulate = accumulate});
      for (const auto& [v, u, e] : g.edges)
        for (Index j = 0; e < shard.num_edges() && j < width; ++j)
          want.row(v)[j] += scale.data()[v] * weight.data()[e] * x.row(u)[j];
      CHECK(largest_error(out, want) < small);
    }
  }
}

TEST_CASE("rows that lie elsewhere in a larger table give the same bits") {
  const TwoShards g;
  const GraphShard& shard = g.local;
  for (const Index width : {1, 19, 128, 260}) {
    const Tensor x = numbers({g.num_local, width}, 1), weight = numbers(Shape{g.num_edges()}, 2),
                 scale = numbers(Shape{g.num_local}, 3);
    Tensor table = numbers({3 * g.num_local + 2, width}, 4);
    Array<Index> place(g.num_local);
    for (Index i = 0; i < g.num_local; ++i) {
      place[i] = 3 * (g.num_local - 1 - i) + 1;
      std::copy_n(x.row(i), width, table.row(place[i]));
    }
    for (const bool weighted : {false, true}) {
      Tensor out({g.num_dst, width}), want({g.num_dst, width});
      GatherSum task{.edges = {.num_rows = shard.num_rows(),
                               .begin = shard.row_begin.data(),
                               .end = shard.row_begin.data() + 1,
                               .other = shard.src.data()},
                     .weight = weighted ? weight.data() : nullptr,
                     .col_scale = weighted ? scale.data() : nullptr,
                     .x = x.data(),
                     .x_rows = g.num_local,
                     .out = want.data(),
                     .width = width};
      gather_sum(task);
      task.x = table.data();
      task.x_row = place.data();
      task.out = out.data();
      gather_sum(task);
      CHECK(std::ranges::equal(out.values(), want.values()));
    }
  }
}

TEST_CASE("blocks of rows cover all rows once") {
  const Array<local_index> offsets{0, 5, 5, 1000, 1001, 5000, 5002};
  std::vector<int> visits(6, 0);
  for_row_blocks({.num_rows = 6, .begin = offsets.data(), .end = offsets.data() + 1}, 1 << 12,
                 [&](Index first, Index last) {
                   for (Index i = first; i < last; ++i) ++visits[i];
                 });
  CHECK(visits == std::vector<int>(6, 1));
}

namespace {

/// The sums of a task with the exact accumulator; into `sums` if it is not null.
void exact_sum(GatherSum task, Index heads, ExactSum* sums = nullptr) {
  task.accumulator = Accumulator::exact;
  task.heads = heads;
  if (sums != nullptr) task.out = sums;
  gather_sum(task);
}

/// Rows of edges to sources i mod `sources`; x = 1 + (source mod 4).
struct ManyEdges {
  Array<local_index> begin, col;
  Tensor x;
  ManyEdges(const std::vector<Index>& row_edges, Index sources, Index width) : x({sources, width}) {
    begin.resize(row_edges.size() + 1);
    begin[0] = 0;
    for (std::size_t i = 0; i < row_edges.size(); ++i)
      begin[i + 1] = begin[i] + static_cast<local_index>(row_edges[i]);
    col.resize(begin[row_edges.size()]);
    for (std::size_t k = 0; k < col.size(); ++k) col[k] = static_cast<local_index>(k % sources);
    for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(1 + i / width % 4);
  }
  [[nodiscard]] GatherSum task() const {
    return {.edges = {.num_rows = static_cast<Index>(begin.size()) - 1,
                      .begin = begin.data(),
                      .end = begin.data() + 1,
                      .other = col.data()},
            .x = x.data(),
            .x_rows = x.num_rows(),
            .width = x.row_size()};
  }
  [[nodiscard]] double sum(Index row) const {
    double all = 0;
    for (Index k = begin[row]; k < begin[row + 1]; ++k) all += x.row(col[k])[0];
    return all;
  }
};

}  // namespace

TEST_CASE("rows of hubs, in real and exact") {
  const std::vector<Index> row_edges{3, 200'000, 0, 1024, 1025, 70'000, 5};
  for (const Index width : {1, 19, 47, 64, 260, 300}) {
    CAPTURE(width);
    const ManyEdges g(row_edges, 97, width);
    for (const bool accumulate : {false, true}) {
      Tensor out({g.task().edges.num_rows, width});
      out.fill(10);
      Array<ExactSum> exact(out.size(), ExactSum{10, 0});
      Tensor rounded({g.task().edges.num_rows, width});
      rounded.fill(10);
      GatherSum task = g.task();
      task.accumulate = accumulate;
      task.out = out.data();
      gather_sum(task);
      if (accumulate) exact_sum(task, 1, exact.data());
      task.out = rounded.data();
      exact_sum(task, 1);
      for (Index i = 0; i < task.edges.num_rows; ++i)
        for (const Index j : {Index{0}, width - 1}) {
          const double want = g.sum(i) + (accumulate ? 10 : 0);
          CHECK(out.row(i)[j] == want);  // integers below 2^24
          CHECK(rounded.row(i)[j] == want);
          if (accumulate) CHECK(exact[i * width + j].value() == want);
        }
    }
  }
}

TEST_CASE("20 million edges of one row") {
  const ManyEdges g({20'000'000, 1}, 1, 1);
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    Tensor out({2, 1});
    GatherSum task = g.task();
    task.out = out.data();
    gather_sum(task);
    CHECK(out.row(0)[0] == 20'000'000);
    CHECK(out.row(1)[0] == 1);
  }
}

TEST_CASE("a number that is too large for ones to count loses those of its block only") {
  constexpr Index edges = 60'000;  // no hub
  ManyEdges g({edges}, edges, 1);
  g.x.fill(1);
  g.x.data()[0] = 1 << 24;
  Tensor out({1, 1});
  GatherSum task = g.task();
  task.out = out.data();
  gather_sum(task);
  CHECK(std::abs(double{out.data()[0]} - ((1 << 24) + edges - 1)) <= 1024);
}

TEST_CASE("exact sums: an infinite weight of one head leaves those of the others finite") {
  constexpr Index edges = 150, width = 33, heads = 3;
  ManyEdges g({edges}, edges, width);
  g.x.fill(1);
  std::vector<real> weight(static_cast<std::size_t>(edges) * heads, 1);
  weight[100 * heads] = std::numeric_limits<real>::infinity();
  GatherSum task = g.task();
  task.weight = weight.data();
  Tensor out({1, width});
  task.out = out.data();
  exact_sum(task, heads);
  for (Index j = 0; j < width; ++j) {
    CAPTURE(j);
    if (j < width / heads)
      CHECK(std::isinf(out.row(0)[j]));
    else
      CHECK(out.row(0)[j] == edges);
  }
}

TEST_CASE("exact sums do not depend on the order of the edges") {
  // terms from 2^-16 to 2^16, of both signs, for heads with weights of their own
  constexpr Index edges = 3000, width = 22, heads = 2;
  std::mt19937 gen(1);
  const auto number = [&] {
    const int power[] = {8, 0, -8};
    return std::ldexp(std::uniform_real_distribution<real>(-1, 1)(gen), power[gen() % 3]);
  };
  ManyEdges g({edges, 5, 0}, 700, width);
  for (Index i = 0; i < g.x.size(); ++i) g.x.data()[i] = number();
  std::vector<real> weight(static_cast<std::size_t>(edges + 5) * heads);
  for (real& w : weight) w = number();
  // The second half of the edges of row 0 cancels all of the first but one: a sum in doubles leaves an error.
  for (Index k = 1; k < edges / 2; ++k) {
    const Index other = k + edges / 2;
    g.col[other] = g.col[k];
    for (Index h = 0; h < heads; ++h) weight[other * heads + h] = -weight[k * heads + h];
  }
  g.x.row(g.col[0])[0] = weight[0] = real{0x1p-20};
  g.col[edges / 2] = g.col[0];
  weight[edges / 2 * heads] = 0;
  GatherSum task = g.task();
  task.weight = weight.data();
  Tensor out({3, width});
  task.out = out.data();
  exact_sum(task, heads);
  CHECK(std::as_const(out).row(0)[0] == real{0x1p-40});

  std::vector<local_index> order(edges + 5), col(edges + 5);
  std::iota(order.begin(), order.end(), 0);
  for (int turn = 0; turn < 5; ++turn) {
    std::shuffle(order.begin(), order.begin() + edges, gen);
    for (std::size_t k = 0; k < col.size(); ++k) col[k] = g.task().edges.other[order[k]];
    task.edges.other = col.data();
    task.edges.position_of = order.data();
    Tensor shuffled({3, width});
    task.out = shuffled.data();
    exact_sum(task, heads);
    CHECK(std::ranges::equal(std::as_const(out).values(), std::as_const(shuffled).values()));
    // in two parts
    const std::vector<local_index> middle{edges / 3, g.task().edges.begin[1] + 1, g.task().edges.begin[2]};
    Array<ExactSum> sums(out.size());
    GatherSum part = task;
    part.edges.end = middle.data();
    exact_sum(part, heads, sums.data());
    part.edges.begin = middle.data();
    part.edges.end = task.edges.end;
    exact_sum(part, heads, sums.data());
    for (Index i = 0; i < out.size(); ++i)
      CHECK(static_cast<real>(sums[i].value()) == std::as_const(out).data()[i]);
  }
}
