// SPDX-License-Identifier: MIT

// One random draw for each edge, from the smaller and the larger original id of its ends: O(E / P) time. The
// original ids of sources are fetched once from their owners; the edges are read in order.

#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/random/random_stream.hpp>
#include <sar/graph/data/edge_split.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

EdgeSplit split_edges(const Communicator& comm, const NodeData& data, const EdgeSplitOptions& options) {
  return comm.agree([&] {
    const double valid = options.valid, test = options.test;
    require<InputError>(valid >= 0 && test >= 0 && valid + test < 1, "split_edges: shares of ", valid,
                        " for validation and ", test,
                        " for test, expected 0 or more, and less than 1 together");
    const CallScope compared(
        comm,
        CollectiveCall("split_edges").equal("valid", valid).equal("test", test).equal("seed", options.seed));
    const EdgeList& edges = data.edges;
    const Array<Index> src_ids = fetch_values(comm, data.book, std::span<const Index>(data.original_ids),
                                              std::span<const Index>(edges.src));
    const Random random({options.seed, RandomStream::edge_split + 0, 0});
    const auto nodes = static_cast<std::uint64_t>(data.num_nodes());
    EdgeSplit split;
    for (Index e = 0; e < edges.size(); ++e) {
      const Index u = src_ids[e], v = data.original_ids[edges.dst[e] - data.book.begin(comm.rank())];
      const auto [low, high] = std::minmax({static_cast<std::uint64_t>(u), static_cast<std::uint64_t>(v)});
      const double draw = random.uniform(low * nodes + high);
      (draw < test ? split.test : draw < test + valid ? split.valid : split.train).append(edges, e);
    }
    return split;
  });
}

}}  // namespace sar
