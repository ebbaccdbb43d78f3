// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"
#include "support/effort.hpp"

#include <doctest/doctest.h>

#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/binary.hpp>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index width = 5;
using Result = BinaryKernel::Result;

/// u * v with one of the results.
struct Product {
  TwoShards g;
  Tensor x = numbers({g.num_src(), width}, 1), y = numbers({g.num_dst, width}, 2);
  Array<local_index> argmax = Array<local_index>(g.num_dst * width);

  BinaryKernel::Operands operands(Result result) {
    return {.row = MessageRow(MessageOp::mul, x.shape(), y.shape()),
            .lhs = MessageTarget::u,
            .rhs = MessageTarget::v,
            .result = result,
            .u = {.width = width},
            .v = {.width = width, .values = y.data()},
            .e = {},
            .edge_ids = g.edge_ids.data(),
            .argmax = argmax.data()};
  }
  Tensor forward(Result result) {
    Tensor out = Tensor::full({result == Result::edges ? g.num_edges() : g.num_dst, width}, 99);
    const auto kernel = make_binary_kernel(operands(result));
    kernel->set_output(out, false);
    g.forward(*kernel, x);
    return out;
  }
  /// dx, dy
  std::pair<Tensor, Tensor> backward(Result result, const Tensor& grad) {
    Tensor dx = Tensor::full(x.shape(), 99), dy = Tensor::zeros(y.shape());
    auto o = operands(result);
    o.v.grad = dy.data();
    o.wants_u = true;
    o.grad_out = grad.data();
    const auto kernel = make_binary_kernel(std::move(o));
    CHECK(kernel->needs_source_in_backward());
    g.backward(*kernel, x, dx);
    return {dx, dy};
  }
};

}  // namespace

TEST_CASE("sum of products, one product per edge, and their gradients") {
  Product p;
  for (const Result result : {Result::sum, Result::edges}) {
    const bool by_edge = result == Result::edges;
    const Tensor out = p.forward(result), grad = numbers(out.shape(), 3);
    const auto [dx, dy] = p.backward(result, grad);
    Tensor want = Tensor::zeros(out.shape()), want_dx = Tensor::zeros(dx.shape()),
           want_dy = Tensor::zeros(dy.shape());
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j) {
        const real g = grad.row(by_edge ? e : v)[j];
        want.row(by_edge ? e : v)[j] += p.x.row(u)[j] * p.y.row(v)[j];
        want_dx.row(u)[j] += g * p.y.row(v)[j];
        want_dy.row(v)[j] += g * p.x.row(u)[j];
      }
    CHECK(largest_error(out, want) < small);
    CHECK(largest_error(dx, want_dx) < small);
    CHECK(largest_error(dy, want_dy) < small);
  }
}

TEST_CASE(
    "largest and smallest product: the argmax is the edge with the smallest id, and takes the gradient") {
  Product p;
  for (Index j = 0; j < p.x.size(); ++j)
    p.x.data()[j] = std::round(2 * p.x.data()[j]);  // many equal products
  for (const real sign : {real{1}, real{-1}}) {
    const Result result = sign > 0 ? Result::max : Result::min;
    const Tensor out = p.forward(result), grad = numbers(out.shape(), 3);
    Tensor want = Tensor::zeros(out.shape());
    std::vector<Index> who(want.size(), -1);
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j) {
        const real m = p.x.row(u)[j] * p.y.row(v)[j];
        real& best = want.row(v)[j];
        Index& edge = who[v * width + j];
        if (edge >= 0 && sign * m < sign * best) continue;
        if (edge >= 0 && m == best && p.g.edge_ids[e] > p.g.edge_ids[edge]) continue;
        best = m;
        edge = e;
      }
    CHECK(largest_error(out, want) == 0);
    CHECK(std::equal(who.begin(), who.end(), p.argmax.begin(), p.argmax.end()));
    const auto [dx, dy] = p.backward(result, grad);
    Tensor want_dx = Tensor::zeros(dx.shape());
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j)
        if (who[v * width + j] == e) want_dx.row(u)[j] += grad.row(v)[j] * p.y.row(v)[j];
    CHECK(largest_error(dx, want_dx) < small);
  }
}

namespace {

/// copy_u: the operands of the largest, or of the smallest, source row of each destination.
BinaryKernel::Operands extremum(Result result, Index columns, Array<local_index>& argmax, const Index* ids) {
  const Shape row{1, columns};
  return {.row = MessageRow(MessageOp::copy, row, row),
          .lhs = MessageTarget::u,
          .rhs = MessageTarget::u,
          .result = result,
          .u = {.width = columns},
          .v = {},
          .e = {},
          .edge_ids = ids,
          .argmax = argmax.data(),
          .wants_u = true};
}

}  // namespace

TEST_CASE("the argmax of copy_u takes the gradient, in rows of any width") {
  const TwoShards g;
  for (const Index columns : {1, 5, 16, 33, 64, 96, 128, 160})
    for (const Result result : {Result::max, Result::min}) {
      CAPTURE(columns);
      const Tensor x = numbers({g.num_src(), columns}, 1), grad = numbers({g.num_dst, columns}, 3);
      Tensor out(grad.shape()), dx = Tensor::full(x.shape(), 99), want = Tensor::zeros(x.shape());
      Array<local_index> argmax(out.size());
      auto o = extremum(result, columns, argmax, g.edge_ids.data());
      const auto forward = make_binary_kernel(o);
      forward->set_output(out, false);
      g.forward(*forward, x);
      o.grad_out = grad.data();
      g.backward(*make_binary_kernel(o), x, dx);
      const real sign = result == Result::max ? 1 : -1;
      for (Index v = 0; v < g.num_dst; ++v)
        for (Index j = 0; j < columns; ++j) {
          const TwoShards::Edge* who = nullptr;  // of equal ones, the last: its id is the smallest
          for (const TwoShards::Edge& edge : g.edges)
            if (edge.dst == v && (who == nullptr || sign * x.row(edge.src)[j] >= sign * x.row(who->src)[j]))
              who = &edge;
          CHECK(out.row(v)[j] == (who != nullptr ? x.row(who->src)[j] : 0));
          if (who != nullptr) want.row(who->src)[j] += grad.row(v)[j];
        }
      CHECK(largest_error(dx, want) < small);
    }
}

TEST_CASE(
    "the argmax of copy_u takes the gradient in blocks of sources, one with many out-edges among them") {
  constexpr Index num_dst = 50, num_src = 3000, hub = 2000, in_degree = 900;
  constexpr Index part = 700;  // where a stage begins that is not the first
  std::mt19937 random(3);
  std::vector<LocalEdge> edges;
  for (Index v = 0; v < num_dst; ++v)
    for (Index k = 0; k < in_degree; ++k) {
      const Index u = k < 70 ? hub : static_cast<Index>(random() % num_src);
      edges.push_back({static_cast<local_index>(v), static_cast<local_index>(u), std::ssize(edges), 1});
    }
  std::sort(edges.begin(), edges.end(), [](const LocalEdge& a, const LocalEdge& b) {
    return std::tie(a.dst, a.src, a.id) < std::tie(b.dst, b.src, b.id);
  });
  const GraphShard shard = build_shard(edges.data(), std::ssize(edges), 0, num_dst, num_src, true);
  for (const Index columns : {1, 5, 64}) {
    CAPTURE(columns);
    const Tensor grad = numbers({num_dst, columns}, 3), start = numbers({num_src, columns}, 4);
    Array<local_index> argmax(grad.size());
    for (auto& edge : argmax) edge = static_cast<local_index>(random() % edges.size());
    Tensor sum = Tensor::zeros(start.shape());
    for (Index v = 0; v < num_dst; ++v)
      for (Index j = 0; j < columns; ++j) {
        auto& edge = argmax[v * columns + j];  // an in-edge of v
        edge = static_cast<local_index>(v * in_degree + edge % in_degree);
        sum.row(shard.src[edge])[j] += grad.row(v)[j];
      }
    auto o = extremum(Result::max, columns, argmax, nullptr);
    o.grad_out = grad.data();
    for (const bool accumulate : {false, true}) {
      Tensor want = sum.clone();
      for (Index i = 0; accumulate && i < want.size(); ++i) want.data()[i] += start.data()[i];
      Tensor found[2];
      for (const int threads : {1, 2}) {
        const ThreadLimit limit(threads);
        Tensor& dx = found[threads - 1];
        dx = start.clone();
        const auto kernel = make_binary_kernel(o);
        kernel->backward(Stage{shard, 0, part, nullptr}, dx.data(), accumulate);
        kernel->backward(Stage{shard, part, num_src, nullptr}, dx.row(part), accumulate);
        CHECK(largest_error(dx, want) < small);
      }
      CHECK(std::ranges::equal(found[0].values(), found[1].values()));
    }
  }
}

TEST_CASE("a source that is the largest one of many destinations") {
  const Index edges = full_run() ? 20'000'000 : 500'000;
  GraphShard shard;
  shard.num_src_rows = 1;
  shard.num_dst = edges;
  shard.src.resize(edges, 0);
  for (Index v = 0; v <= edges; ++v) shard.row_begin.push_back(static_cast<local_index>(v));
  Array<local_index> argmax(edges);
  for (Index v = 0; v < edges; ++v) argmax[v] = static_cast<local_index>(v);
  const Tensor grad = Tensor::full({edges, 1}, 1);
  auto o = extremum(Result::max, 1, argmax, nullptr);
  o.grad_out = grad.data();
  Tensor dx({1, 1});
  make_binary_kernel(o)->backward(Stage{shard, 0, 1, nullptr}, dx.data(), false);
  CHECK(dx.data()[0] == static_cast<real>(edges));
}
