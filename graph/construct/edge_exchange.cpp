// SPDX-License-Identifier: MIT

// exchange_edges sends column after column in chunks: 8 bytes per edge and column. edge_order is a counting
// sort by destination, then a sort of each node's in-edges that have been copied to one place: O(E
// log(degree)) time, one random read of 24 bytes per edge. The other functions pass over the sorted list
// once.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/edge_exchange.hpp>

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// With host ids, a rank looks its own nodes up in a hash table, in parallel, and collects every other id
// once. With local numbers, the ghosts are this list. The directory (comm/rows/node_directory.hpp) is
// asked for the list, 16 bytes per id; the answers then replace the placeholders -1 - position in one pass
// over the edges.

namespace {

using GlobalColumns = std::span<const EndColumn<std::int64_t>>;
using LocalColumns = std::span<const EndColumn<std::int32_t>>;

/// Writes the global ids of the nodes that this rank owns to each column. For any other node, writes -1 -
/// (position in the returned list of ids), which the directory is then asked for.
Array<Index> look_up(std::span<const Index> nodes, int, Index first, GlobalColumns columns) {
  Array<Index> asked;
  IdTable numbers(static_cast<Index>(nodes.size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) numbers.insert(nodes[i], first + static_cast<Index>(i));
  for (const auto& [given, global, goes] : columns) {
    global.resize(given.size());
    parallel_for_each(static_cast<Index>(given.size()), edges_per_task,
                      [&](Index k) { global[k] = numbers.find(given[k]); });
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (global[k] != IdTable::none) continue;
      const Index next = -1 - static_cast<Index>(asked.size());
      global[k] = numbers.insert(given[k], next);
      if (global[k] == next) asked.push_back(given[k]);
    }
  }
  return asked;
}

Array<Index> look_up(const LocalToGlobal& nodes, int rank, Index first, LocalColumns columns) {
  const auto size = static_cast<Index>(nodes.global_ids.size());
  for (const auto& [given, global, goes] : columns) {
    global.resize(given.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
      const Index i = given[k];
      require<InputError>(0 <= i && i < size, "HostGraph: edge ", k, " of rank ", rank, " ", goes, " node ",
                          i, " of the local numbering, expected 0 to ", size - 1, " (", nodes.num_owned,
                          " nodes and ", size - nodes.num_owned, " ghosts)");
      global[k] = i < nodes.num_owned ? first + i : -1 - (i - nodes.num_owned);
    }
  }
  const auto ghosts = nodes.global_ids.subspan(nodes.num_owned);
  return {ghosts.begin(), ghosts.end()};
}

void require_found(int rank, const char* what, const GlobalEdges& edges, GlobalColumns columns,
                   const Array<Index>&, const Array<Index>& found) {
  if (std::find(found.begin(), found.end(), -1) == found.end()) return;
  for (std::size_t k = 0; k < edges.src.size(); ++k)
    for (const auto& [given, global, goes] : columns)
      require<InputError>(global[k] >= 0 || found[-1 - global[k]] >= 0, "HostGraph: edge ", k, " of rank ",
                          rank, " goes from node ", edges.src[k], " to node ", edges.dst[k],
                          ", but no rank gives ", what, " ", given[k]);
}

void require_found(int rank, const char* what, const LocalEdges&, LocalColumns, const Array<Index>& asked,
                   const Array<Index>& found) {
  for (std::size_t g = 0; g < found.size(); ++g)
    require<InputError>(found[g] >= 0, "HostGraph: ghost ", g, " of rank ", rank, " is ", what, " ", asked[g],
                        ", but no rank gives this ", what);
}

}  // namespace

template <class Nodes, class Id>
void find_ends(const Communicator& comm, const HostNodes<Nodes>& nodes, const HostEdges<Id>& edges,
               std::span<const EndColumn<Id>> columns) {
  const NodeDirectory directory(comm, nodes.book, own_nodes(nodes.nodes), nodes.what);
  Array<Index> asked;
  comm.agree([&] { asked = look_up(nodes.nodes, comm.rank(), nodes.book.begin(comm.rank()), columns); });
  const Array<Index> found = directory.find(asked);
  comm.agree([&] {
    require_found(comm.rank(), nodes.what, edges, columns, asked, found);
    for (const EndColumn<Id>& column : columns)
      for (Index& end : column.global)
        if (end < 0) end = found[-1 - end];
  });
}

template void find_ends(const Communicator&, const HostNodes<std::span<const Index>>&, const GlobalEdges&,
                        GlobalColumns);
template void find_ends(const Communicator&, const HostNodes<LocalToGlobal>&, const LocalEdges&,
                        LocalColumns);

namespace {

/// Sends column[e] to rank owners[e] and appends the `arriving` received values.
template <class T>
void exchange_column(const Communicator& comm, const Array<std::int32_t>& owners, Index arriving,
                     Array<T>& column, Array<T>& mine) {
  mine.reserve(mine.size() + static_cast<std::size_t>(arriving));
  route_chunks(
      comm, static_cast<Index>(owners.size()), sizeof(T), [&](Index e) { return owners[e]; },
      [&](const RowRoute& route, Index first, Index last) {
        const auto arrived = route.forward(std::span<const T>(column).subspan(first, last - first));
        mine.insert(mine.end(), arrived.begin(), arrived.end());
      });
  column = {};
}

template <class T>
void permute(const Array<Index>& order, Array<T>& column) {
  Array<T> selected(order.size());
  parallel_for_each(static_cast<Index>(order.size()), edges_per_task,
                    [&](Index i) { selected[i] = column[order[i]]; });
  column = std::move(selected);
}

/// Reduces the list to edges order[0], order[1], ...
void take_in_order(const Array<Index>& order, EdgeList& edges) {
  for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id}) permute(order, *column);
  if (!edges.weight.empty()) permute(order, edges.weight);
}

}  // namespace

void exchange_edges(const Communicator& comm, const PartitionBook& book, EdgeList&& edges, bool weighted,
                    EdgeList& mine) {
  Array<std::int32_t> owners(edges.dst.size());
  parallel_for_each(edges.size(), edges_per_task, [&](Index e) { owners[e] = book.owner(edges.dst[e]); });
  std::vector<Index> arriving(comm.size(), 0);
  for (const std::int32_t owner : owners) ++arriving[owner];
  comm.all_reduce(std::span<Index>(arriving));
  const Index here = arriving[comm.rank()];
  exchange_column(comm, owners, here, edges.src, mine.src);
  exchange_column(comm, owners, here, edges.dst, mine.dst);
  exchange_column(comm, owners, here, edges.id, mine.id);
  if (weighted) exchange_column(comm, owners, here, edges.weight, mine.weight);
}

void append_reverse(Index next_id, EdgeList& edges) {
  const std::size_t count = edges.src.size();
  for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id}) column->resize(2 * count);
  for (std::size_t e = 0; e < count; ++e) {
    edges.src[count + e] = edges.dst[e];
    edges.dst[count + e] = edges.src[e];
    edges.id[count + e] = next_id + edges.id[e];
  }
  const Array<real> weights = edges.weight;
  edges.weight.insert(edges.weight.end(), weights.begin(), weights.end());
}

void append_self_loops(Index first_node, const Array<Index>& original_ids, Index first_id, bool weighted,
                       EdgeList& edges) {
  for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id})
    column->reserve(column->size() + original_ids.size());
  for (std::size_t i = 0; i < original_ids.size(); ++i) {
    edges.src.push_back(first_node + static_cast<Index>(i));
    edges.dst.push_back(first_node + static_cast<Index>(i));
    edges.id.push_back(first_id + original_ids[i]);
  }
  if (weighted) edges.weight.insert(edges.weight.end(), original_ids.size(), real{1});
}

Array<Index> edge_order(Index dst_begin, Index dst_end, const EdgeList& edges) {
  // by destination, then by (source, id) within each destination
  auto order = grouped(std::views::iota(Index{0}, std::ssize(edges.dst)), dst_end - dst_begin,
                       [&](Index e) { return edges.dst[e] - dst_begin; });

  struct InEdge {
    Index src, id, position;
  };
  parallel_for(dst_end - dst_begin, 1 << 10, [&](Index first, Index last) {
    std::vector<InEdge> of_node;  // contiguous, while the edges are scattered
    for (Index v = first; v < last; ++v) {
      of_node.clear();
      for (const Index e : order.of(v)) of_node.push_back({edges.src[e], edges.id[e], e});
      std::sort(of_node.begin(), of_node.end(), [](const InEdge& a, const InEdge& b) {
        return a.src != b.src ? a.src < b.src : a.id < b.id;
      });
      std::ranges::transform(of_node, order.items.begin() + order.begin[v], &InEdge::position);
    }
  });
  return std::move(order.items);
}

void sort_edges(Index dst_begin, Index dst_end, EdgeList& edges) {
  take_in_order(edge_order(dst_begin, dst_end, edges), edges);
}

void keep_remaining_self_loops(Index dst_begin, Index dst_end, EdgeList& edges) {
  sort_edges(dst_begin, dst_end, edges);
  Array<Index> kept;
  const auto is_loop = [&](Index e) { return edges.src[e] == edges.dst[e]; };
  for (Index e = 0; e < edges.size();) {
    if (!is_loop(e)) {
      kept.push_back(e++);
      continue;
    }
    Index end = e + 1;  // of the loops of this node; the added one is the last
    while (end < edges.size() && is_loop(end) && edges.dst[end] == edges.dst[e]) ++end;
    kept.push_back(end - e > 1 ? end - 2 : e);
    e = end;
  }
  take_in_order(kept, edges);
}

void drop_duplicates(Index dst_begin, Index dst_end, EdgeList& edges) {
  sort_edges(dst_begin, dst_end, edges);
  Array<Index> kept;
  for (Index e = 0; e < edges.size(); ++e)
    if (e == 0 || edges.src[e] != edges.src[e - 1] || edges.dst[e] != edges.dst[e - 1]) kept.push_back(e);
  take_in_order(kept, edges);
}
}}  // namespace sar
