// SPDX-License-Identifier: MIT

/// HostGraph: a sharded graph of nodes and edges that a solver has in memory, distributed over its ranks.
///
/// Room graph/construct: Graphs made from the arrays of a host program or from other graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/host_edges.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

struct HostEdgeOrder;

/// Options of a HostGraph; the same on every rank.
struct HostGraphOptions {
  /// For undirected edges that are given once, as in a mesh: adds for each edge e = (u, v) an edge (v, u)
  /// with the same weight and the id E + e, where E is one more than the largest given id.
  bool add_reverse_edges = false;
  GraphOptions graph{};
};

/// Row i of every node tensor is the i-th node that this rank gave, so that the host's arrays can be borrowed
/// without a copy (Tensor::borrow). src_ids() are the host ids; they key random draws, which therefore do
/// not depend on the owners. Rows of edge tensors are in the order of edge_ids(); to_graph_order() and
/// to_host_order() convert between this order and the host's.
///
/// Owners are found by a directory of the ids that is hashed over all ranks. The memory of a rank is linear
/// in its nodes, ghosts and edges. If the host's mesh changes, make a new graph and drop this one. Copies
/// share everything.
///
/// @code
/// const std::int64_t me = comm.rank(), next = (me + 1) % comm.size();
/// const std::vector<std::int64_t> nodes{me}, src{me}, dst{next};  // host ids
/// const HostGraph graph(comm, nodes, {.src = src, .dst = dst});
/// const Tensor x = Tensor::full({graph.num_nodes(), 3}, 1);       // row i is nodes[i]
/// const Variable y = graph.update_all(fn::copy_u(x), fn::sum);
/// @endcode
class HostGraph : public GraphShardManager {
 public:
  /// Collective. `nodes`: the host ids of the nodes that this rank owns, in any order. Any ids are allowed,
  /// and a rank may have none. Throws the same exception on every rank, which names the values and the
  /// rank: InputError for a node that is given twice, an edge with an end that no rank gives, edge ids that
  /// are negative or not unique, weights on some ranks only, no nodes at all or options that differ between
  /// ranks; ShapeError for arrays of different lengths.
  HostGraph(const Communicator& comm, std::span<const std::int64_t> nodes, const GlobalEdges& edges,
            const HostGraphOptions& options = {});
  /// Collective. The same for a host with its own numbering on each rank. Also throws InputError for an
  /// index that is neither a node of the rank nor a ghost, and for a ghost that no rank owns.
  HostGraph(const Communicator& comm, const LocalToGlobal& nodes, const LocalEdges& edges,
            const HostGraphOptions& options = {});

  /// Collective. Makes a bipartite graph: edges.src are sources, edges.dst destinations. Row i of a source
  /// tensor is the i-th source that this rank gave, and row i of a result is its i-th destination. Layers
  /// take features of both ends, for example SAGEConv and GATConv a pair {sources, destinations}. Errors as
  /// above; also throws InputError if there is no source or no destination on any rank, and for
  /// add_reverse_edges.
  HostGraph(const Communicator& comm, const GlobalEnds& nodes, const GlobalEdges& edges,
            const HostGraphOptions& options = {});
  HostGraph(const Communicator& comm, const LocalEnds& nodes, const LocalEdges& edges,
            const HostGraphOptions& options = {});

  /// Returns the owners of the global ids of the graph, as construct_mfgs needs them: node i of this rank is
  /// book().begin(rank) + i. For a bipartite graph, the book of the sources.
  [[nodiscard]] const PartitionBook& book() const noexcept { return src_book(); }
  [[nodiscard]] const PartitionBook& src_book() const noexcept;
  [[nodiscard]] const PartitionBook& dst_book() const noexcept;
  /// Returns the number of edges that this rank gave.
  [[nodiscard]] Index num_given_edges() const noexcept;

  /// Collective. Returns a row for each in-edge of this rank's nodes, [num_edges(), ...], from a row for
  /// each edge that this rank gave, [given edges, ...]. Rows are sent to the owners of the destinations.
  /// With add_reverse_edges, a reverse edge gets the row of the original edge, or the corresponding row of
  /// `reverse_rows` (for example, a vector along an edge changes its sign). Throws the same exception on
  /// every rank: ShapeError if the number of rows does not match, InputError if the shape of a row differs
  /// between ranks, including ranks without edges.
  [[nodiscard]] Tensor to_graph_order(const Tensor& rows, const Tensor& reverse_rows = {}) const;
  /// Collective. Returns the inverse: [given edges, ...] from [num_edges(), ...]. With `reverse`, returns
  /// the rows of the reverse edges. Throws as to_graph_order, and InputError for `reverse` without
  /// add_reverse_edges.
  [[nodiscard]] Tensor to_host_order(const Tensor& rows, bool reverse = false) const;

 private:
  struct Parts;
  explicit HostGraph(Parts parts);

  std::shared_ptr<const HostEdgeOrder> order_;
};

}}  // namespace sar
