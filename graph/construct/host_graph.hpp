// SPDX-License-Identifier: MIT

/// HostGraph: a sharded graph of nodes and edges that a solver has in memory, distributed over its ranks.
///
/// Room graph/construct: Graphs made from the arrays of a host program or from other graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/host_edges.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct HostEdgeOrder;

/// Options of a HostGraph; the same on every rank.
struct HostGraphOptions {
  /// For undirected edges that are given once, as in a mesh: adds for each edge e = (u, v) an edge (v, u)
  /// with the same weight and the id E + e, where E is one more than the largest given id.
  bool add_reverse_edges = false;
  GraphOptions graph{};
};

/// The nodes of a type that a rank owns. Each type has its own ids and owners: fluid node 5 and structure
/// node 5 are different nodes. A rank, or all ranks, may have none.
template <class Nodes>
struct HostNodeType {
  std::string name;
  Nodes nodes;
};
/// The edges of a type that a rank gives, from nodes of the type `source` to nodes of the type `destination`.
template <class Id>
struct HostEdgeType {
  EdgeType type;
  HostEdges<Id> edges;
  /// As HostGraphOptions::add_reverse_edges, if source and destination have the same type. The same on every
  /// rank.
  bool add_reverse_edges = false;
};

using GlobalNodeType = HostNodeType<std::span<const std::int64_t>>;
using GlobalEdgeType = HostEdgeType<std::int64_t>;
using LocalNodeType = HostNodeType<LocalToGlobal>;
using LocalEdgeType = HostEdgeType<std::int32_t>;

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
///
/// With types, for example two meshes and the edges that couple them:
///
/// @code
/// const EdgeType across{"solid", "heats", "fluid"};
/// const std::vector<std::int64_t> fluid{comm.rank()}, solid{comm.rank()};
/// const HostGraph graph(comm, {{"fluid", fluid}, {"solid", solid}},
///                       {{across, {.src = solid, .dst = fluid}}});
/// const Variable s = Tensor::full({graph.num_nodes("solid"), 4}, 1);
/// const Variable y = graph[across].update_all(fn::copy_u(s), fn::sum);
/// @endcode
class HostGraph : public Graph {
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

  /// Collective. With node and edge types. Types are the same on every rank, in the same order, and each edge
  /// is given by one rank, whichever. Throws on every rank what Graph throws and as above, with a message
  /// that begins with the edge type, and InputError for add_reverse_edges between two types.
  HostGraph(const Communicator& comm, const std::vector<GlobalNodeType>& nodes,
            const std::vector<GlobalEdgeType>& edges, const GraphOptions& options = {});
  HostGraph(const Communicator& comm, const std::vector<LocalNodeType>& nodes,
            const std::vector<LocalEdgeType>& edges, const GraphOptions& options = {});

  using Graph::book;
  /// Returns the owners of the global ids of the graph, as construct_mfgs needs them: node i of this rank is
  /// book().begin(rank) + i. For a bipartite graph, the book of the sources.
  [[nodiscard]] const PartitionBook& book() const { return src_book(); }
  [[nodiscard]] const PartitionBook& src_book() const;
  [[nodiscard]] const PartitionBook& dst_book() const;
  /// Returns the number of edges that this rank gave, of all types.
  [[nodiscard]] Index num_given_edges() const noexcept;
  [[nodiscard]] Index num_given_edges(const EdgeType& type) const;

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
  /// Collective. The same for the edges of a type.
  [[nodiscard]] Tensor to_graph_order(const EdgeType& type, const Tensor& rows,
                                      const Tensor& reverse_rows = {}) const;
  [[nodiscard]] Tensor to_host_order(const EdgeType& type, const Tensor& rows, bool reverse = false) const;

 private:
  struct Parts;
  explicit HostGraph(Parts parts);
  /// Calls `use` with the order and the graph of a type, which the ranks compare. Collective.
  template <class Use>
  Tensor of_type(const char* call, const EdgeType& type, const Use& use) const;

  std::shared_ptr<const std::vector<HostEdgeOrder>> orders_;  // one per edge type
};
}}  // namespace sar
