// SPDX-License-Identifier: MIT

// A graph of ends is built as any graph: n pairs of a rank are sorted by destination in O(n log n) time,
// and the owners learn which rows the rank reads, 4 bytes per distinct row.
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/sampling/node_pairs.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Returns a graph whose destinations are the pairs, with one in-edge for each, from its end.
Graph graph_of_ends(const Communicator& comm, const PartitionBook& book, const char* name,
                    std::span<const Index> ends, std::size_t num_pairs, const GraphOptions& options) {
  return comm.agree([&] {
    require<ShapeError>(ends.size() == num_pairs, "NodePairs: ", ends.size(), " destinations for ", num_pairs,
                        " sources");
    for (const Index end : ends)
      require<InputError>(end >= 0 && end < book.num_nodes(), "NodePairs: ", name, " ", end,
                          ", expected a node from 0 to ", book.num_nodes() - 1);
    const PartitionBook pairs = gather_book(comm, static_cast<Index>(num_pairs));
    EdgeList edges;
    edges.src.assign(ends.begin(), ends.end());
    edges.dst = consecutive(pairs.begin(comm.rank()), std::ssize(ends));
    edges.id = edges.dst;
    return Graph(comm, book, pairs, std::move(edges), false, options);
  });
}

}  // namespace

NodePairs::NodePairs(const Communicator& comm, const PartitionBook& book, std::span<const Index> src,
                     std::span<const Index> dst, const GraphOptions& options)
    : NodePairs(comm, book, book, src, dst, options) {}

NodePairs::NodePairs(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                     std::span<const Index> src, std::span<const Index> dst, const GraphOptions& options)
    : src_(graph_of_ends(comm, src_book, "source", src, src.size(), options)),
      dst_(graph_of_ends(comm, dst_book, "destination", dst, src.size(), options)) {}
}}  // namespace sar
