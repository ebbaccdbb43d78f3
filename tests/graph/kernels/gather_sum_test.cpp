#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/gather_sum.hpp>

using namespace sar;
using namespace sar::test;

TEST_CASE("sums of gathered rows, for widths of vectors and of what is left of them") {
  const TwoShards g;
  const GraphShard& shard = g.local;
  for (const Index width : {1, 3, 8, 17, 40, 200}) {
    const Tensor x = numbers({g.num_local, width}, 1), weight = numbers(Shape{g.num_edges()}, 2),
                 scale = numbers(Shape{g.num_dst}, 3), start = numbers({g.num_dst, width}, 4);
    for (const bool accumulate : {false, true}) {
      Tensor out = start.clone(), want = accumulate ? start.clone() : Tensor::zeros(start.shape());
      gather_sum({.num_rows = shard.num_rows(),
                  .begin = shard.row_begin.data(),
                  .end = shard.row_begin.data() + 1,
                  .col = shard.src.data(),
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

TEST_CASE("blocks of rows cover all rows once") {
  const Array<local_index> offsets{0, 5, 5, 1000, 1001, 5000};
  std::vector<int> visits(6, 0);
  for_row_blocks(offsets.data(), 6, 1 << 12, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) ++visits[i];
  });
  CHECK(visits == std::vector<int>(6, 1));
}
