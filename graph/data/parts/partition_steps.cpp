// SPDX-License-Identifier: MIT

// A part is ordered by locality_order of the edges inside it; its in-edges are a range of the rank's sorted
// list.

#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/graph_steps.hpp>
#include <sar/graph/data/parts/partition_steps.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Positions of the edges whose destinations are nodes of a part, in a list ordered by destination.
struct Range {
  std::size_t begin, end;
};
Range edges_of_part(const EdgeList& edges, const PartitionBook& parts, int part) {
  const auto position = [&](Index node) {
    return static_cast<std::size_t>(std::ranges::lower_bound(edges.dst, node) - edges.dst.begin());
  };
  return {position(parts.begin(part)), position(parts.end(part))};
}

/// A range of the list. The whole list is moved, not copied.
EdgeList take(EdgeList& edges, Range range) {
  if (range.begin == 0 && range.end == edges.src.size()) return std::move(edges);
  EdgeList taken;
  for (const auto column : {&EdgeList::src, &EdgeList::dst, &EdgeList::id}) {
    const auto part = std::span(edges.*column).subspan(range.begin, range.end - range.begin);
    (taken.*column).assign(part.begin(), part.end());
  }
  return taken;
}

/// The order of the nodes of a part, which are numbered type after type: those of type t are
/// [first[t], first[t + 1]). Local.
Array<Index> order_of_part(const GraphData& graph, std::span<const PartitionBook> books, int part,
                           std::span<const Index> first) {
  Array<Index> src, dst;
  const auto for_each_inside = [&](const auto& take_edge) {
    for (const EdgeTypeData& type : graph.edge_types) {
      const std::size_t s = graph.place_of(type.src_type), d = graph.place_of(type.dst_type);
      const Index begin = books[s].begin(part), end = books[s].end(part);
      const Range range = edges_of_part(type.edges, books[d], part);
      for (std::size_t e = range.begin; e < range.end; ++e)
        if (begin <= type.edges.src[e] && type.edges.src[e] < end)
          take_edge(first[s] + type.edges.src[e] - begin,
                    first[d] + type.edges.dst[e] - books[d].begin(part));
    }
  };
  std::size_t count = 0;
  for_each_inside([&](Index, Index) { ++count; });
  src.reserve(count);
  dst.reserve(count);
  for_each_inside([&](Index from, Index to) {
    src.push_back(from);
    dst.push_back(to);
  });
  return locality_order(first.back(), src, dst);
}

}  // namespace

void order_nodes(const Communicator& comm, std::span<const PartitionBook> books, GraphData& graph) {
  std::vector<Array<Index>> new_ids, original_ids;
  for (const NodeTypeData& nodes : graph.node_types) {
    new_ids.emplace_back(nodes.original_ids.size());
    original_ids.emplace_back(nodes.original_ids.size());
  }
  comm.agree([&] {
    const PartitionBook owners = PartitionBook::even(books.front().num_parts(), comm.size());
    for (Index p = owners.begin(comm.rank()); p < owners.end(comm.rank()); ++p) {
      const auto part = static_cast<int>(p);
      const std::vector<Index> first =
          offsets_of_sizes(books, [&](const PartitionBook& book) { return book.num_nodes(part); });
      std::vector<Index> next(first.begin(), first.end() - 1);
      for (const Index node : order_of_part(graph, books, part, first)) {
        const std::size_t t =
            static_cast<std::size_t>(std::ranges::upper_bound(first, node) - first.begin()) - 1;
        const NodeTypeData& nodes = graph.node_types[t];
        const Index own = nodes.book.begin(comm.rank()), begin = books[t].begin(part) - own - first[t];
        const Index before = begin + node, after = begin + next[t]++;
        new_ids[t][before] = own + after;
        original_ids[t][after] = nodes.original_ids[before];
      }
    }
  });
  for (std::size_t t = 0; t < new_ids.size(); ++t)
    graph.node_types[t].original_ids = std::move(original_ids[t]);
  for (EdgeTypeData& type : graph.edge_types) {
    const std::size_t src = graph.place_of(type.src_type), dst = graph.place_of(type.dst_type);
    const Index first = graph.node_types[dst].book.begin(comm.rank());
    for (Index& node : type.edges.dst) node = new_ids[dst][node - first];
    replace_ids(comm, graph.node_types[src].book, new_ids[src], type.edges.src);
  }
  sort_edges(comm, graph);
}

GraphData take_part(const Communicator& comm, std::span<const PartitionBook> books, int part, bool is_last,
                    GraphData& graph) {
  GraphData taken;
  taken.name = graph.name;
  for (std::size_t t = 0; t < books.size(); ++t) {
    const NodeTypeData& nodes = graph.node_types[t];
    NodeTypeData& own = taken.node_types.emplace_back(
        NodeTypeData{.name = nodes.name, .book = books[t], .unread = nodes.unread});
    if (part < 0) continue;
    const Index first = nodes.book.begin(comm.rank());
    own.original_ids.assign(nodes.original_ids.begin() + (books[t].begin(part) - first),
                            nodes.original_ids.begin() + (books[t].end(part) - first));
  }
  for (EdgeTypeData& type : graph.edge_types) {
    EdgeList edges = std::exchange(type.edges, {});
    EdgeTypeData& own = taken.edge_types.emplace_back(type);
    if (part >= 0) own.edges = take(edges, edges_of_part(edges, books[graph.place_of(type.dst_type)], part));
    if (!is_last) type.edges = std::move(edges);
  }
  return taken;
}

}}  // namespace sar
