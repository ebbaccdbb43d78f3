/// HostGraph: a sharded graph from what a solver has in memory, on each rank its own nodes and edges.
///
/// Room graph/build: Graphs that are made from the arrays of a host program or from other graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace sar {

/// The edges that a rank gives, as the host's arrays: edge k goes from src[k] to dst[k]. Each directed edge
/// of the graph is given once, by any rank; it travels to the owner of its destination. Parallel edges and
/// self loops are edges like others. Nothing here is kept.
template <class Id>
struct HostEdges {
  std::span<const Id> src, dst;
  /// Names of the edges, keys of random draws on edges: not negative, below 2^61, different on all ranks
  /// together. Without: 0, 1, ... by rank and position.
  std::span<const std::int64_t> ids{};
  Tensor weight{};  ///< [edges], borrowed or not; on all ranks that have edges, or undefined on all
};

/// Ends are global ids of nodes.
using GlobalEdges = HostEdges<std::int64_t>;
/// Ends are numbers in the rank's own numbering (LocalToGlobal).
using LocalEdges = HostEdges<std::int32_t>;

/// A rank's own numbering: first its nodes, 0 .. num_owned - 1, then its ghosts, nodes of other ranks that
/// its edges come from (or go to). Nothing here is kept.
struct LocalToGlobal {
  Index num_owned = 0;
  std::span<const std::int64_t> global_ids{};  ///< of the nodes and the ghosts, in this order
};

/// The same on every rank.
struct HostGraphOptions {
  /// For edges that are given once and go both ways, as those of a mesh: each edge e = (u, v) is an edge
  /// (v, u), too, with the weight of e and the id E + e, where E is one more than the largest id given.
  bool add_reverse_edges = false;
  GraphOptions graph{};
};

/// Row i of every node tensor is node i of those that this rank gave, so that its arrays can be borrowed as
/// they lie (Tensor::borrow). src_ids() are the host's ids: they key random draws, so that these do not
/// depend on who owns what. Rows of edge tensors are in the order of the graph, as edge_ids() tells;
/// to_graph_order() and to_host_order() translate.
///
/// Owners are found by a directory of the ids that is spread over all ranks by a hash; memory of a rank is
/// linear in its nodes, its ghosts and its edges. After the host has changed its mesh, make the graph anew
/// and drop this one: nothing of it stays behind. Copies share everything.
class HostGraph : public GraphShardManager {
 public:
  /// `nodes`: global ids of the nodes that this rank owns, any numbers in any order. A rank may have none.
  /// Collective. Throws, the same on every rank, InputError naming the values and the rank
  /// for a node that two ranks give or one rank gives twice, an edge with an end that no rank gives, ids of
  /// edges that are negative or not unique, weights on some ranks only, no nodes at all, options that differ
  /// between ranks; ShapeError for arrays of different lengths.
  HostGraph(const Communicator& comm, std::span<const std::int64_t> nodes, const GlobalEdges& edges,
            const HostGraphOptions& options = {});
  /// The same for a host with a numbering of its own on each rank. Throws InputError, too, for a number that
  /// is neither an own node nor a ghost, and for a ghost that no rank owns.
  HostGraph(const Communicator& comm, const LocalToGlobal& nodes, const LocalEdges& edges,
            const HostGraphOptions& options = {});

  /// Who owns which partitioned ids (those that construct_mfgs takes): node i of this rank is
  /// book().begin(rank) + i.
  [[nodiscard]] const PartitionBook& book() const noexcept;
  /// Edges that this rank gave.
  [[nodiscard]] Index num_given_edges() const noexcept;

  /// From a row for each edge that this rank gave, [given edges, ...], to a row for each in-edge of its
  /// nodes, [num_edges(), ...]. Rows travel to the owners of the destinations. With add_reverse_edges, a
  /// reverse edge has the row of the edge that it reverses, or its row of `reverse_rows` (a vector along an
  /// edge changes its sign). Collective. Throws, the same on every rank, ShapeError for another number of
  /// rows, InputError when the shape of a row differs between ranks (without edges, too).
  [[nodiscard]] Tensor to_graph_order(const Tensor& rows, const Tensor& reverse_rows = {}) const;
  /// The way back: from [num_edges(), ...] to [given edges, ...]; `reverse`: the rows of the reverse edges.
  /// Collective. Throws as to_graph_order, and InputError for the reverse of edges that have none.
  [[nodiscard]] Tensor to_host_order(const Tensor& rows, bool reverse = false) const;

 private:
  struct EdgeOrder;
  struct Parts;
  explicit HostGraph(Parts parts);

  std::shared_ptr<const EdgeOrder> order_;
};

}  // namespace sar
