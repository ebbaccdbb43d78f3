#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/build/edge_ends.hpp>
#include <sar/graph/build/host_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index grain = Index{1} << 14;

template <class Id>
void check_arrays(int rank, const HostEdges<Id>& edges) {
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

/// The ranges of ids when each rank has `size` of them. Collective.
PartitionBook gather_book(const Communicator& comm, Index size) {
  std::vector<Index> offsets{0};
  for (const Index count : comm.all_gather(size)) offsets.push_back(offsets.back() + count);
  return PartitionBook(std::move(offsets));
}

/// The nodes of one end of the edges, which may be those of the other end, too. Collective.
template <class Nodes>
HostNodes<Nodes> host_nodes(const Communicator& comm, const Nodes& nodes, const char* what) {
  const PartitionBook book = gather_book(comm, static_cast<Index>(own_nodes(nodes).size()));
  require<InputError>(book.num_nodes() > 0, "HostGraph: none of the ", comm.size(), " ranks gives a ", what,
                      ", expected one at least");
  return {nodes, what, book};
}

/// The edges of this rank in global ids, the reverse ones after the others. Collective.
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

  if (add_reverse)
    comm.agree([&] {
      const std::size_t size = list.src.size();
      for (Array<Index>* column : {&list.src, &list.dst, &list.id}) column->resize(2 * size);
      for (std::size_t k = 0; k < size; ++k) {
        list.src[size + k] = list.dst[k];
        list.dst[size + k] = list.src[k];
        list.id[size + k] = next_id + list.id[k];
      }
      list.weight.insert(list.weight.end(), list.weight.begin(), list.weight.end());
    });
  return list;
}

RowRoute route_to_owners(const Communicator& comm, const PartitionBook& book, const EdgeList& edges) {
  Array<std::int32_t> owners;
  comm.agree([&] {
    owners.resize(edges.dst.size());
    parallel_for(edges.size(), grain, [&](Index first, Index last) {
      for (auto k = first; k < last; ++k) owners[k] = book.owner(edges.dst[k]);
    });
  });
  return {comm, owners};
}

/// The columns of `edges` at the owners of the destinations; each is freed when it has been sent. Collective.
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

/// The position in `order` of each of `ids`, where both have the same different ids. Uses an array from the
/// smallest to the largest id where ids are dense, and a hash table otherwise.
Array<std::int32_t> places_of(const Array<Index>& ids, const Array<Index>& order) {
  Array<std::int32_t> places(ids.size());
  if (ids.empty()) return places;
  const auto size = static_cast<Index>(order.size());
  const auto for_all = [&](const auto& body) {
    parallel_for(size, grain, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) body(i);
    });
  };
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

struct HostGraph::EdgeOrder {
  Index num_given;
  bool reversed;
  RowRoute route;              // of the given edges, then of their reverse
  Array<std::int32_t> places;  // in the graph's order, of each edge that arrived
};

struct HostGraph::Parts {
  GraphShardManager graph;
  std::shared_ptr<const EdgeOrder> order;

  /// Of one set of nodes. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& nodes, const HostEdges<Id>& edges,
                    const HostGraphOptions& options) {
    check(comm, nodes, "node");
    check_arrays(comm.rank(), edges);
    agree_on_options(comm, options);
    const HostNodes<Nodes> both = host_nodes(comm, nodes, "node");
    return make(comm, both, both, edges, options);
  }
  /// Of a set of sources and a set of destinations. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& src_nodes, const Nodes& dst_nodes,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    check(comm, src_nodes, "source");
    check(comm, dst_nodes, "destination");
    check_arrays(comm.rank(), edges);
    agree_on_options(comm, options);
    require<InputError>(!options.add_reverse_edges,
                        "HostGraph: add_reverse_edges is set for a set of sources and a set of destinations, "
                        "expected one set of nodes");
    const HostNodes<Nodes> src = host_nodes(comm, src_nodes, "source");
    const HostNodes<Nodes> dst = host_nodes(comm, dst_nodes, "destination");
    return make(comm, src, dst, edges, options);
  }

 private:
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const HostNodes<Nodes>& src, const HostNodes<Nodes>& dst,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    const bool weighted = comm.all_reduce(edges.weight.defined() ? 1 : 0, ReduceOp::max) == 1;
    require<InputError>(!weighted || edges.weight.defined() || edges.src.empty(), "HostGraph: rank ",
                        comm.rank(), " gives ", edges.src.size(),
                        " edges without weights, other ranks give weights");
    EdgeList list =
        host_edges(comm, src, dst, edges, weighted && !edges.src.empty(), options.add_reverse_edges);
    const RowRoute route = route_to_owners(comm, dst.book, list);
    list = bring(route, std::move(list), weighted);
    const Array<Index> arrived = list.id;
    const auto src_ids = own_nodes(src.nodes), dst_ids = own_nodes(dst.nodes);
    GraphShardManager graph(comm, src.book, dst.book, std::move(list), &src == &dst, options.graph,
                            {src_ids.begin(), src_ids.end()}, {dst_ids.begin(), dst_ids.end()});
    auto order =
        std::make_shared<EdgeOrder>(EdgeOrder{static_cast<Index>(edges.src.size()), options.add_reverse_edges,
                                              route, places_of(arrived, graph.edge_ids())});
    return {std::move(graph), std::move(order)};
  }

  static void check(const Communicator&, std::span<const Index>, const char*) {}
  static void check(const Communicator& comm, const LocalToGlobal& nodes, const char* what) {
    require<ShapeError>(
        0 <= nodes.num_owned && nodes.num_owned <= static_cast<Index>(nodes.global_ids.size()),
        "HostGraph: rank ", comm.rank(), " owns ", nodes.num_owned, " ", what, "s (num_owned) and gives ",
        nodes.global_ids.size(), " global_ids, expected one for each ", what, " and each ghost");
  }
  static void agree_on_options(const Communicator& comm, const HostGraphOptions& options) {
    CollectiveCall("HostGraph")
        .equal(options.graph)
        .equal("add_reverse_edges", options.add_reverse_edges ? 1 : 0)
        .require_equal(comm);
  }
};

HostGraph::HostGraph(Parts parts)
    : GraphShardManager(std::move(parts.graph)), order_(std::move(parts.order)) {}

HostGraph::HostGraph(const Communicator& comm, std::span<const std::int64_t> nodes, const GlobalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(comm.agree([&] { return Parts::make(comm, nodes, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const LocalToGlobal& nodes, const LocalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(comm.agree([&] { return Parts::make(comm, nodes, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const GlobalEnds& nodes, const GlobalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(
          comm.agree([&] { return Parts::make(comm, nodes.sources, nodes.destinations, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const LocalEnds& nodes, const LocalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(
          comm.agree([&] { return Parts::make(comm, nodes.sources, nodes.destinations, edges, options); })) {}

const PartitionBook& HostGraph::src_book() const noexcept {
  return shards()->src_book;
}

const PartitionBook& HostGraph::dst_book() const noexcept {
  return shards()->dst_book;
}

Index HostGraph::num_given_edges() const noexcept {
  return order_->num_given;
}

Tensor HostGraph::to_graph_order(const Tensor& rows, const Tensor& reverse_rows) const {
  return comm().agree([&] {
    const Index given = order_->num_given;
    const bool both = reverse_rows.defined();
    require<ShapeError>(rows.defined() && rows.num_rows() == given, "to_graph_order: rows of shape ",
                        rows.shape(), " on rank ", comm().rank(), ", which gave ", given, " edges");
    require<ShapeError>(!both || (order_->reversed && reverse_rows.shape() == rows.shape()),
                        "to_graph_order: rows of shape ", rows.shape(), " and reverse rows of shape ",
                        reverse_rows.shape(), " on rank ", comm().rank(),
                        order_->reversed ? ", expected the same shape" : ", but there are no reverse edges");
    CollectiveCall("to_graph_order")
        .equal("shape of a row", rows.shape())
        .equal("choice of reverse rows", both ? 1 : 0)
        .require_equal(comm());
    Tensor sent = rows;
    if (order_->reversed) {
      sent = Tensor(rows.shape().with_rows(2 * given));
      sent.slice_rows(0, given).copy_from(rows);
      sent.slice_rows(given, 2 * given).copy_from(both ? reverse_rows : rows);
    }
    Tensor arrived(rows.shape().with_rows(num_edges()));
    Tensor ordered(arrived.shape());
    const Index row_bytes = rows.row_size() * Index{sizeof(real)};
    order_->route.forward(reinterpret_cast<const std::byte*>(std::as_const(sent).data()), row_bytes,
                          reinterpret_cast<std::byte*>(arrived.data()));
    parallel_for(num_edges(), grain, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i)
        std::copy_n(arrived.row(i), arrived.row_size(), ordered.row(order_->places[i]));
    });
    return ordered;
  });
}

Tensor HostGraph::to_host_order(const Tensor& rows, bool reverse) const {
  return comm().agree([&] {
    const Index given = order_->num_given;
    require<ShapeError>(rows.defined() && rows.num_rows() == num_edges(), "to_host_order: rows of shape ",
                        rows.shape(), " on rank ", comm().rank(), ", which has ", num_edges(),
                        " edges of the graph");
    require<InputError>(order_->reversed || !reverse,
                        "to_host_order: reverse rows are asked for, but there are no reverse edges");
    CollectiveCall("to_host_order")
        .equal("shape of a row", rows.shape())
        .equal("choice of reverse rows", reverse ? 1 : 0)
        .require_equal(comm());
    Tensor arrived(rows.shape());
    parallel_for(num_edges(), grain, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i)
        std::copy_n(rows.row(order_->places[i]), rows.row_size(), arrived.row(i));
    });
    Tensor back(rows.shape().with_rows(order_->route.num_rows()));
    order_->route.back(reinterpret_cast<const std::byte*>(std::as_const(arrived).data()),
                       rows.row_size() * Index{sizeof(real)}, reinterpret_cast<std::byte*>(back.data()));
    return order_->reversed ? back.slice_rows(reverse ? given : 0, reverse ? 2 * given : given) : back;
  });
}

}  // namespace sar
