// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/linear.hpp>

using namespace sar;
using namespace sar::test;

TEST_CASE("weighted sums, scaled by destination, and their gradients") {
  const TwoShards g;
  Index heads = 1, width = 19;
  SUBCASE("a number of an edge") {}
  SUBCASE("three numbers") {
    heads = 3, width = 21;
  }
  SUBCASE("heads of whole vectors") {
    heads = 7, width = 7 * 32;
  }
  SUBCASE("heads of part of a vector") {
    heads = 12, width = 12 * 8;
  }
  SUBCASE("no columns") {
    width = 0;
  }
  SUBCASE("three heads without columns") {
    heads = 3, width = 0;
  }
  const Index dim = width / heads;
  const Tensor x = numbers({g.num_src(), width}, 1), w = numbers(Shape{g.num_edges(), heads}, 2),
               scale = numbers(Shape{g.num_dst}, 3), grad = numbers({g.num_dst, width}, 4),
               base = numbers({g.num_dst, width}, 5);
  for (const bool has_base : {false, true}) {
    Tensor out = has_base ? base.clone() : Tensor::full({g.num_dst, width}, 99);
    LinearKernel forward(
        {.width = width, .heads = heads, .edge_weight = w.data(), .dst_scale = scale.data()});
    forward.set_output(out, has_base);
    g.forward(forward, x);

    Tensor dx = Tensor::full(x.shape(), 99), dw = Tensor::full(w.shape(), 99);
    LinearKernel backward({.width = width,
                           .heads = heads,
                           .edge_weight = w.data(),
                           .dst_scale = scale.data(),
                           .grad_out = grad.data(),
                           .grad_edge_weight = dw.data()});
    CHECK(backward.needs_source_in_backward());
    g.backward(backward, x, dx);

    Tensor want = has_base ? base.clone() : Tensor::zeros(out.shape());
    Tensor want_dx = Tensor::zeros(x.shape()), want_dw = Tensor::zeros(w.shape());
    for (const auto& [v, u, e] : g.edges)
      for (Index j = 0; j < width; ++j) {
        const real s = scale.data()[v];
        const Index h = j / dim;
        want.row(v)[j] += s * w.row(e)[h] * x.row(u)[j];
        want_dx.row(u)[j] += s * w.row(e)[h] * grad.row(v)[j];
        want_dw.row(e)[h] += s * x.row(u)[j] * grad.row(v)[j];
      }
    CHECK(largest_error(out, want) < small);
    CHECK(largest_error(dx, want_dx) < small);
    CHECK(largest_error(dw, want_dw) < small);
  }
}
