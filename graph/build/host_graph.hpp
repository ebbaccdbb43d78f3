/// HostGraph: a sharded graph of the nodes and edges that a solver has in memory, each rank its own.
///
/// Room graph/build: Graphs that are made from the arrays of a host program or from other graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/build/host_edges.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace sar::inline SAR_PRECISION {

struct HostEdgeOrder;

/// The same on every rank.
struct HostGraphOptions {
  /// For edges that are given once and go both ways, as those of a mesh: each edge e = (u, v) also becomes an
  /// edge (v, u) with the weight of e and the id E + e, where E is one more than the largest id given.
  bool add_reverse_edges = false;
  GraphOptions graph{};
};

/// Row i of every node tensor is node i of those that this rank gave, so that the host's arrays can be
/// borrowed as they lie (Tensor::borrow). src_ids() are the host's ids. They key random draws, which
/// therefore do not depend on who owns what. Rows of edge tensors are in the order of edge_ids();
/// to_graph_order() and to_host_order() translate between this order and the host's.
///
/// A directory of the ids, which a hash spreads over all ranks, finds the owners. The memory of a rank is
/// linear in its nodes, its ghosts and its edges. After the host has changed its mesh, make a new graph and
/// drop this one. Copies share everything.
class HostGraph : public GraphShardManager {
 public:
  /// `nodes`: the host's global ids of the nodes that this rank owns, any numbers in any order. A rank may
  /// have none. Collective. Throws the same on every rank, and names the values and the rank: InputError for
  /// a node that is given twice, an edge with an end that no rank gives, ids of edges that are negative or
  /// not unique, weights on some ranks only, no nodes at all, options that differ between ranks; ShapeError
  /// for arrays of different lengths.
  HostGraph(const Communicator& comm, std::span<const std::int64_t> nodes, const GlobalEdges& edges,
            const HostGraphOptions& options = {});
  /// The same for a host with a numbering of its own on each rank. Also throws InputError for a number that
  /// is neither a node of the rank nor a ghost, and for a ghost that no rank owns. Collective.
  HostGraph(const Communicator& comm, const LocalToGlobal& nodes, const LocalEdges& edges,
            const HostGraphOptions& options = {});

  /// A bipartite graph: edges.src are sources, edges.dst destinations. Row i of a tensor of sources is source
  /// i of those that this rank gave, and row i of a result is destination i. Layers take features of both
  /// ends, e.g. SAGEConv and GATConv a pair {sources, destinations}. Errors are those above; also InputError
  /// when no rank gives a source, or a destination, and for add_reverse_edges. Collective.
  HostGraph(const Communicator& comm, const GlobalEnds& nodes, const GlobalEdges& edges,
            const HostGraphOptions& options = {});
  HostGraph(const Communicator& comm, const LocalEnds& nodes, const LocalEdges& edges,
            const HostGraphOptions& options = {});

  /// Who owns which global ids of the graph, as construct_mfgs takes them: node i of this rank is
  /// book().begin(rank) + i. Of a bipartite graph, the book of the sources.
  [[nodiscard]] const PartitionBook& book() const noexcept { return src_book(); }
  [[nodiscard]] const PartitionBook& src_book() const noexcept;
  [[nodiscard]] const PartitionBook& dst_book() const noexcept;
  /// How many edges this rank gave.
  [[nodiscard]] Index num_given_edges() const noexcept;

  /// From a row for each edge that this rank gave, [given edges, ...], to a row for each in-edge of its
  /// nodes, [num_edges(), ...]. Rows travel to the owners of the destinations. With add_reverse_edges, a
  /// reverse edge gets the row of the edge that it reverses, or that edge's row of `reverse_rows` (a vector
  /// along an edge changes its sign). Collective. Throws, the same on every rank, ShapeError for another
  /// number of rows, InputError when the shape of a row differs between ranks, also on ranks without edges.
  [[nodiscard]] Tensor to_graph_order(const Tensor& rows, const Tensor& reverse_rows = {}) const;
  /// The inverse: from [num_edges(), ...] to [given edges, ...]. With `reverse`, the rows of the reverse
  /// edges. Collective. Throws as to_graph_order does, and InputError for `reverse` without
  /// add_reverse_edges.
  [[nodiscard]] Tensor to_host_order(const Tensor& rows, bool reverse = false) const;

 private:
  struct Parts;
  explicit HostGraph(Parts parts);

  std::shared_ptr<const HostEdgeOrder> order_;
};

}  // namespace sar
