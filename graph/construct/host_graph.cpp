// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/construct/host_edge_order.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the nodes of a graph with one set of nodes, or of one end of a bipartite graph. Throws InputError
/// if there are none. Collective.
template <class Nodes>
HostNodes<Nodes> some_nodes(const Communicator& comm, const Nodes& given, const char* what) {
  HostNodes<Nodes> nodes = host_nodes(comm, given, what);
  require<InputError>(nodes.book.num_nodes() > 0, "HostGraph: none of the ", comm.size(), " ranks gives a ",
                      what, ", expected one at least");
  return nodes;
}

}  // namespace

struct HostGraph::Parts {
  GraphShardManager graph;
  std::shared_ptr<const HostEdgeOrder> order;

  /// For one set of nodes. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& nodes, const HostEdges<Id>& edges,
                    const HostGraphOptions& options) {
    check_host_nodes(comm, nodes, "node");
    check_host_edges(comm, edges);
    agree_on_options(comm, options);
    const HostNodes<Nodes> both = some_nodes(comm, nodes, "node");
    return make(comm, both, both, edges, options);
  }
  /// For a set of sources and a set of destinations. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& src_nodes, const Nodes& dst_nodes,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    check_host_nodes(comm, src_nodes, "source");
    check_host_nodes(comm, dst_nodes, "destination");
    check_host_edges(comm, edges);
    agree_on_options(comm, options);
    require<InputError>(!options.add_reverse_edges,
                        "HostGraph: add_reverse_edges is set for a set of sources and a set of destinations, "
                        "expected one set of nodes");
    const HostNodes<Nodes> src = some_nodes(comm, src_nodes, "source");
    const HostNodes<Nodes> dst = some_nodes(comm, dst_nodes, "destination");
    return make(comm, src, dst, edges, options);
  }

 private:
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const HostNodes<Nodes>& src, const HostNodes<Nodes>& dst,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    BroughtEdges brought = bring_host_edges(comm, src, dst, edges, options.add_reverse_edges);
    const auto src_ids = own_nodes(src.nodes), dst_ids = own_nodes(dst.nodes);
    GraphShardManager graph(comm, src.book, dst.book, std::move(brought.edges), &src == &dst, options.graph,
                            {src_ids.begin(), src_ids.end()}, {dst_ids.begin(), dst_ids.end()});
    brought.find_places(graph.edge_ids());
    return {std::move(graph), std::make_shared<const HostEdgeOrder>(std::move(brought.order))};
  }

  static void agree_on_options(const Communicator& comm, const HostGraphOptions& options) {
    comm.require_equal(CollectiveCall("HostGraph")
                           .equal(options.graph)
                           .equal("add_reverse_edges", options.add_reverse_edges ? 1 : 0));
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
  return topology().src_book;
}

const PartitionBook& HostGraph::dst_book() const noexcept {
  return topology().dst_book;
}

Index HostGraph::num_given_edges() const noexcept {
  return order_->num_given;
}

Tensor HostGraph::to_graph_order(const Tensor& rows, const Tensor& reverse_rows) const {
  return order_->to_graph_order(*this, rows, reverse_rows);
}

Tensor HostGraph::to_host_order(const Tensor& rows, bool reverse) const {
  return order_->to_host_order(*this, rows, reverse);
}

}}  // namespace sar
