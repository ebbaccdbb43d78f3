// SPDX-License-Identifier: MIT
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/node_pairs.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Pairs of each rank: its own ones, loops, repeated ones, all to node 0; none on rank 1.
NodePairList pairs_of(int rank, Index nodes) {
  NodePairList pairs;
  for (Index i = 0; rank != 1 && i < 9 + rank; ++i) {
    pairs.src.push_back((5 * i + 3 * rank) % nodes);
    pairs.dst.push_back(i % 3 == 0 ? 0 : pairs.src.back() * (i % 2));
  }
  return pairs;
}

}  // namespace

TEST_CASE("rows of both ends, and their gradients, for any owners of the nodes") {
  const Communicator world = Communicator::world();
  const Index nodes = 11;
  const Tensor h = random_values({nodes, 3}, 4);
  for (const PartitionBook& book : row_splits(nodes, world.size()))
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
      const NodePairList mine = pairs_of(world.rank(), nodes);
      const NodePairs pairs(world, book, mine.src, mine.dst, {.mode = mode, .max_halo_bytes = 16});
      REQUIRE(pairs.num_pairs() == mine.size());
      const Variable x(my_rows(h, book, world.rank()), true);
      Tape tape;
      const Variable src = pairs.src(x), dst = pairs.dst(x);
      Tensor seed(src.shape());
      for (Index i = 0; i < mine.size(); ++i)
        for (Index j = 0; j < 3; ++j) {
          CHECK(src.value().row(i)[j] == h.row(mine.src[i])[j]);
          CHECK(dst.value().row(i)[j] == h.row(mine.dst[i])[j]);
          seed.row(i)[j] = static_cast<real>(i + 1);
        }
      tape.backward(src + dst * real{0.5}, seed);
      Tensor expected = Tensor::zeros(h.shape());
      for (int p = 0; p < world.size(); ++p) {
        const NodePairList all = pairs_of(p, nodes);
        for (Index i = 0; i < all.size(); ++i)
          for (Index j = 0; j < 3; ++j) {
            expected.row(all.src[i])[j] += static_cast<real>(i + 1);
            expected.row(all.dst[i])[j] += static_cast<real>(i + 1) / 2;
          }
      }
      CHECK(error_of_rows(x.grad(), expected, book.begin(world.rank())) < 1e-6);
    }
}

TEST_CASE("pairs between two sets of nodes, and no pairs at all") {
  const Communicator world = Communicator::world();
  const PartitionBook users = PartitionBook::even(4, world.size()),
                      items = PartitionBook::even(7, world.size());
  const std::vector<Index> user{3}, item{6}, none;
  const NodePairs pairs(world, users, items, user, item);
  const Tensor u = random_values({4, 2}, 1), v = random_values({7, 2}, 2);
  CHECK(pairs.src(my_rows(u, users, world.rank())).value().data()[1] == u.row(3)[1]);
  CHECK(pairs.dst(my_rows(v, items, world.rank())).value().data()[1] == v.row(6)[1]);
  const NodePairs empty(world, users, none, none);
  CHECK(empty.src(my_rows(u, users, world.rank())).shape() == Shape{0, 2});
}

TEST_CASE("pairs: what is wrong on one rank is an error on all") {
  const Communicator world = Communicator::world();
  const PartitionBook book = PartitionBook::even(4, world.size());
  const bool last = world.rank() == world.size() - 1;
  const std::vector<Index> good{0, 1}, bad{0, last ? 4 : 1}, negative{last ? -1 : 0, 1};
  const std::vector<Index> one{2};
  CHECK(thrown_by_all<InputError>(world, [&] { const NodePairs pairs(world, book, bad, good); }) ==
        "NodePairs: source 4, expected a node from 0 to 3");
  CHECK(thrown_by_all<InputError>(world, [&] { const NodePairs pairs(world, book, good, negative); }) ==
        "NodePairs: destination -1, expected a node from 0 to 3");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          const NodePairs pairs(world, book, good, last ? one : good);
        }) == "NodePairs: 1 destinations for 2 sources");
  const NodePairs pairs(world, book, good, good);
  CHECK_THROWS_AS((void)pairs.src(Tensor::zeros({book.num_nodes(world.rank()) + (last ? 1 : 0), 2})),
                  ShapeError);
}
