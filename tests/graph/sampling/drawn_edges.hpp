// SPDX-License-Identifier: MIT

/// What the tests of samplers have in common: a star, counts of drawn edges, chi-square.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace sar::test::sampling {

/// Made by all ranks at the beginning of a test, also where the first rank goes on alone: Open MPI does not
/// bear that one rank makes a communicator of itself while others make one of all.
struct Ranks {
  Communicator world = Communicator::world();
  Communicator self = Communicator::self();
};

/// A star: `leaves` nodes with an edge to node 0, on this rank alone.
inline Graph star(const Communicator& self, Index leaves) {
  EdgeList edges;
  for (Index u = 1; u <= leaves; ++u) {
    edges.src.push_back(u);
    edges.dst.push_back(0);
    edges.id.push_back(u - 1);
  }
  const PartitionBook book = PartitionBook::even(leaves + 1, 1);
  return {self, book, book, std::move(edges), true};
}

/// How often each edge of a star is drawn in `epochs` epochs.
inline std::vector<double> draws(const NeighborSampler& sampler, Index leaves, Index epochs,
                                 std::span<const Index> excluded = {}) {
  std::vector<double> count(static_cast<std::size_t>(leaves), 0);
  const Index seeds[] = {0};
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    const auto blocks = sampler.sample_blocks(seeds, static_cast<std::uint64_t>(epoch), excluded);
    for (const Index e : blocks[0].edge_ids()) ++count[static_cast<std::size_t>(e)];
  }
  return count;
}

/// (X^2 - n) / sqrt(2 n), about standard normal for n degrees of freedom, n large.
inline double chi_square(const std::vector<double>& seen, const std::vector<double>& expected,
                         double freedom) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    sum += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
  return (sum - freedom) / std::sqrt(2 * freedom);
}

/// All edges of a layer on all ranks, by id.
inline std::vector<Index> edges_of(const Communicator& comm, const MessageFlowGraph& block) {
  std::vector<Index> ids =
      comm.all_gather(std::span<const Index>(block.edge_ids().data(), block.edge_ids().size()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline std::vector<Index> seeds_of(const PartitionBook& book, int rank) {
  std::vector<Index> seeds;
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    if (v % 4 != 1) seeds.push_back(v);
  return seeds;
}

}  // namespace sar::test::sampling
