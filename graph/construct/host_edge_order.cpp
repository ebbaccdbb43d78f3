// SPDX-License-Identifier: MIT

/// Construction of host graphs: translates the ends of the given edges to global ids (edge_ends.hpp), assigns
/// edge ids, appends reverse edges, and sends all columns to the owners of the destinations by one RowRoute.
/// The same route later carries edge rows in both directions.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/edge_ends.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/construct/host_edge_order.hpp>
#include <sar/graph/message/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the edges of this rank in global ids, reverse edges last. Collective.
template <class Nodes, class Id>
EdgeList host_edges(const Communicator& comm, const HostNodes<Nodes>& src, const HostNodes<Nodes>& dst,
                    const HostEdges<Id>& edges, bool weighted, bool add_reverse) {
  EdgeList list;
  if (&src == &dst) {
    const EndColumn<Id> both[]{{edges.src, list.src, "comes from"}, {edges.dst, list.dst, "goes to"}};
    find_ends(comm, src, edges, std::span<const EndColumn<Id>>(both));
  } else {
    const EndColumn<Id> from[]{{edges.src, list.src, "comes from"}}, to[]{{edges.dst, list.dst, "goes to"}};
    find_ends(comm, src, edges, std::span<const EndColumn<Id>>(from));
    find_ends(comm, dst, edges, std::span<const EndColumn<Id>>(to));
  }
  comm.agree([&] {
    if (weighted) list.weight.assign(edges.weight.values().begin(), edges.weight.values().end());
  });

  const bool named = comm.all_reduce(edges.ids.empty() ? 0 : 1, ReduceOp::max) == 1;
  comm.agree([&] {
    require<InputError>(!named || edges.ids.size() == edges.src.size(), "HostGraph: rank ", comm.rank(),
                        " gives ", edges.src.size(), " edges without ids, other ranks give ids");
    list.id.assign(edges.ids.begin(), edges.ids.end());
  });
  Index next_id = 0;
  if (named) {
    require_unique_ids(comm, edges.ids, "HostGraph: ids of edges");
    next_id = 1 + comm.all_reduce(list.id.empty() ? -1 : *std::max_element(list.id.begin(), list.id.end()),
                                  ReduceOp::max);
  } else {
    const PartitionBook ids = gather_book(comm, static_cast<Index>(edges.src.size()));
    next_id = ids.num_nodes();
    list.id.resize(edges.src.size());
    std::iota(list.id.begin(), list.id.end(), ids.begin(comm.rank()));
  }

  if (add_reverse) comm.agree([&] { append_reverse(next_id, list); });
  return list;
}

RowRoute route_to_owners(const Communicator& comm, const PartitionBook& book, const EdgeList& edges) {
  Array<std::int32_t> owners;
  comm.agree([&] {
    owners.resize(edges.dst.size());
    parallel_for_each(edges.size(), edges_per_task, [&](Index k) { owners[k] = book.owner(edges.dst[k]); });
  });
  return {comm, owners};
}

/// Sends the columns of `edges` to the owners of the destinations; frees each column once it is sent.
/// Collective.
EdgeList bring(const RowRoute& route, EdgeList edges, bool weighted) {
  const auto bring_column = [&]<class T>(Array<T>& column) {
    return route.forward(std::span<const T>(std::exchange(column, {})));
  };
  EdgeList mine;
  mine.src = bring_column(edges.src);
  mine.dst = bring_column(edges.dst);
  mine.id = bring_column(edges.id);
  if (weighted) mine.weight = bring_column(edges.weight);
  return mine;
}

/// Returns the position in `order` of each id; both lists contain the same distinct ids. Uses an array over
/// the range of ids if they are dense, and a hash table otherwise.
Array<std::int32_t> places_of(const Array<Index>& ids, const Array<Index>& order) {
  Array<std::int32_t> places(ids.size());
  if (ids.empty()) return places;
  const auto size = static_cast<Index>(order.size());
  const auto for_all = [&](const auto& body) { parallel_for_each(size, edges_per_task, body); };
  const auto [smallest, largest] = std::minmax_element(ids.begin(), ids.end());
  if (const Index first = *smallest; *largest - first < 4 * size) {
    Array<std::int32_t> by_id(*largest - first + 1);
    for_all([&](Index e) { by_id[order[e] - first] = static_cast<std::int32_t>(e); });
    for_all([&](Index i) { places[i] = by_id[ids[i] - first]; });
  } else {
    IdTable table(size);
    for (Index e = 0; e < size; ++e) table.insert(order[e], e);
    for_all([&](Index i) { places[i] = static_cast<std::int32_t>(table.find(ids[i])); });
  }
  return places;
}

}  // namespace

void BroughtEdges::find_places(const Array<Index>& edge_ids) {
  order.places = places_of(arrived, edge_ids);
}

void check_host_nodes(const Communicator&, std::span<const Index>, const char*) {}
void check_host_nodes(const Communicator& comm, const LocalToGlobal& nodes, const char* what) {
  require<ShapeError>(0 <= nodes.num_owned && nodes.num_owned <= static_cast<Index>(nodes.global_ids.size()),
                      "HostGraph: rank ", comm.rank(), " owns ", nodes.num_owned, " ", what,
                      "s (num_owned) and gives ", nodes.global_ids.size(),
                      " global_ids, expected one for each ", what, " and each ghost");
}

template <class Id>
void check_host_edges(const Communicator& comm, const HostEdges<Id>& edges) {
  const int rank = comm.rank();
  const std::size_t size = edges.src.size();
  require<ShapeError>(edges.dst.size() == size, "HostGraph: rank ", rank, " gives ", size,
                      " sources of edges (src) and ", edges.dst.size(),
                      " destinations (dst), expected as many");
  require<ShapeError>(edges.ids.empty() || edges.ids.size() == size, "HostGraph: rank ", rank, " gives ",
                      size, " edges (src, dst) and ", edges.ids.size(), " ids, expected as many or none");
  require<ShapeError>(!edges.weight.defined() || edges.weight.shape() == Shape{static_cast<Index>(size)},
                      "HostGraph: rank ", rank, " gives ", size, " edges (src, dst) and weights of shape ",
                      edges.weight.shape(), ", expected [", size, "] or none");
  for (std::size_t k = 0; k < edges.ids.size(); ++k)
    require<InputError>(0 <= edges.ids[k] && edges.ids[k] < Index{1} << 61, "HostGraph: edge ", k,
                        " of rank ", rank, " has the id ", edges.ids[k], ", expected 0 to 2^61 - 1");
}

template <class Nodes, class Id>
BroughtEdges bring_host_edges(const Communicator& comm, const HostNodes<Nodes>& src,
                              const HostNodes<Nodes>& dst, const HostEdges<Id>& edges, bool add_reverse) {
  const bool weighted = comm.all_reduce(edges.weight.defined() ? 1 : 0, ReduceOp::max) == 1;
  require<InputError>(!weighted || edges.weight.defined() || edges.src.empty(), "HostGraph: rank ",
                      comm.rank(), " gives ", edges.src.size(),
                      " edges without weights, other ranks give weights");
  EdgeList list = host_edges(comm, src, dst, edges, weighted && !edges.src.empty(), add_reverse);
  const RowRoute route = route_to_owners(comm, dst.book, list);
  list = bring(route, std::move(list), weighted);
  Array<Index> arrived = list.id;
  return {
      .edges = std::move(list),
      .arrived = std::move(arrived),
      .order = {.num_given = static_cast<Index>(edges.src.size()), .reversed = add_reverse, .route = route}};
}

template void check_host_edges(const Communicator&, const GlobalEdges&);
template void check_host_edges(const Communicator&, const LocalEdges&);
template BroughtEdges bring_host_edges(const Communicator&, const HostNodes<std::span<const Index>>&,
                                       const HostNodes<std::span<const Index>>&, const GlobalEdges&, bool);
template BroughtEdges bring_host_edges(const Communicator&, const HostNodes<LocalToGlobal>&,
                                       const HostNodes<LocalToGlobal>&, const LocalEdges&, bool);

Tensor HostEdgeOrder::to_graph_order(const Graph& graph, const Tensor& rows,
                                     const Tensor& reverse_rows) const {
  return graph.comm().agree([&] {
    const Index given = num_given;
    const bool both = reverse_rows.defined();
    require<ShapeError>(rows.defined() && rows.num_rows() == given, "to_graph_order: rows of shape ",
                        rows.shape(), " on rank ", graph.comm().rank(), ", which gave ", given, " edges");
    require<ShapeError>(!both || (reversed && reverse_rows.shape() == rows.shape()),
                        "to_graph_order: rows of shape ", rows.shape(), " and reverse rows of shape ",
                        reverse_rows.shape(), " on rank ", graph.comm().rank(),
                        reversed ? ", expected the same shape" : ", but there are no reverse edges");
    graph.comm().require_equal(CollectiveCall("to_graph_order")
                                   .equal("shape of a row", rows.shape())
                                   .equal("choice of reverse rows", both ? 1 : 0));
    Tensor sent = rows;
    if (reversed) {
      sent = Tensor(rows.shape().with_rows(2 * given));
      sent.slice_rows(0, given).copy_from(rows);
      sent.slice_rows(given, 2 * given).copy_from(both ? reverse_rows : rows);
    }
    Tensor arrived(rows.shape().with_rows(graph.num_edges()));
    Tensor ordered(arrived.shape());
    const Index row_bytes = rows.row_size() * Index{sizeof(real)};
    route.forward(reinterpret_cast<const std::byte*>(std::as_const(sent).data()), row_bytes,
                  reinterpret_cast<std::byte*>(arrived.data()));
    parallel_for_each(graph.num_edges(), edges_per_task, [&](Index i) {
      std::copy_n(arrived.row(i), arrived.row_size(), ordered.row(places[i]));
    });
    return ordered;
  });
}

Tensor HostEdgeOrder::to_host_order(const Graph& graph, const Tensor& rows, bool reverse) const {
  return graph.comm().agree([&] {
    const Index given = num_given;
    require<ShapeError>(rows.defined() && rows.num_rows() == graph.num_edges(),
                        "to_host_order: rows of shape ", rows.shape(), " on rank ", graph.comm().rank(),
                        ", which has ", graph.num_edges(), " edges of the graph");
    require<InputError>(reversed || !reverse,
                        "to_host_order: reverse rows are asked for, but there are no reverse edges");
    graph.comm().require_equal(CollectiveCall("to_host_order")
                                   .equal("shape of a row", rows.shape())
                                   .equal("choice of reverse rows", reverse ? 1 : 0));
    Tensor arrived(rows.shape());
    parallel_for_each(graph.num_edges(), edges_per_task,
                      [&](Index i) { std::copy_n(rows.row(places[i]), rows.row_size(), arrived.row(i)); });
    Tensor back(rows.shape().with_rows(route.num_rows()));
    route.back(reinterpret_cast<const std::byte*>(std::as_const(arrived).data()),
               rows.row_size() * Index{sizeof(real)}, reinterpret_cast<std::byte*>(back.data()));
    return reversed ? back.slice_rows(reverse ? given : 0, reverse ? 2 * given : given) : back;
  });
}
}}  // namespace sar
