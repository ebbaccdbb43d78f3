// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/edge_softmax_kernel.hpp>

using namespace sar;
using namespace sar::test;

TEST_CASE("edges to nodes and back: sums by destination and by source") {
  const TwoShards g;
  const Index width = 3;
  const Tensor x = numbers({g.num_edges(), width}, 1);
  const auto add = [&](real* node, Index edge) {
    for (Index j = 0; j < width; ++j) node[j] += x.row(edge)[j];
  };
  for (const NormBy by : {NormBy::dst, NormBy::src}) {
    const bool by_dst = by == NormBy::dst;
    Tensor sums = Tensor::zeros({by_dst ? g.num_dst : g.num_src(), width});
    Tensor want = Tensor::zeros(sums.shape());
    for (const auto& [v, u, e] : g.edges) add(want.row(by_dst ? v : u), e);
    EdgesToNodes to_nodes(by, width, 0, by_dst ? sums.data() : nullptr, add);
    CHECK(!to_nodes.needs_source_in_backward());
    if (by_dst) {
      to_nodes.accumulate({g.local, 0, g.num_local, nullptr});
      to_nodes.accumulate({g.remote, 0, g.remote.num_src_rows, nullptr});
    } else {
      sums.fill(99);
      g.backward(to_nodes, sums, sums);
    }
    CHECK(largest_error(sums, want) < small);

    Tensor out(x.shape()), want_out(x.shape());
    const auto apply = [&](const real* node, Index edge) { std::copy_n(node, width, out.row(edge)); };
    for (const auto& [v, u, e] : g.edges) std::copy_n(sums.row(by_dst ? v : u), width, want_out.row(e));
    NodesToEdges to_edges(by, width, by_dst ? sums.data() : nullptr, apply);
    if (by_dst) {
      to_edges.accumulate({g.local, 0, g.num_local, nullptr});
      to_edges.accumulate({g.remote, 0, g.remote.num_src_rows, nullptr});
    } else {
      g.forward(to_edges, sums);
    }
    CHECK(largest_error(out, want_out) == 0);
  }
}
