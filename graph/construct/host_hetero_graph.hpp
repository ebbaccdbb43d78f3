// SPDX-License-Identifier: MIT

/// HostHeteroGraph: a heterogeneous graph of nodes and edges that a solver has in memory, distributed over
/// its ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/host_edges.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct HostEdgeOrder;

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

/// The equivalent of HostGraph with types, for example two meshes and the edges that couple them. Row i of
/// every tensor of a node type is the i-th node that this rank gave, so that the host's arrays can be
/// borrowed without a copy. node_ids() are the host's ids.
///
/// @code
/// const EdgeType across{"solid", "heats", "fluid"};
/// const std::vector<std::int64_t> fluid{comm.rank()}, solid{comm.rank()};
/// const HostHeteroGraph graph(comm, {{"fluid", fluid}, {"solid", solid}},
///                             {{across, {.src = solid, .dst = fluid}}});
/// const Variable s = Tensor::full({graph.num_local_nodes("solid"), 4}, 1);
/// const Variable y = graph[across].update_all(fn::copy_u(s), fn::sum);
/// @endcode
class HostHeteroGraph : public HeteroGraph {
 public:
  /// Collective. Each edge is given by one rank, whichever. Types are the same on every rank, in the same
  /// order. Throws on every rank what HeteroGraph and HostGraph throw, with a message that begins with the
  /// edge type, and InputError for add_reverse_edges between two types.
  HostHeteroGraph(const Communicator& comm, const std::vector<GlobalNodeType>& nodes,
                  const std::vector<GlobalEdgeType>& edges, const GraphOptions& options = {});
  /// Collective. The same for a host with its own numbering of each node type on each rank.
  HostHeteroGraph(const Communicator& comm, const std::vector<LocalNodeType>& nodes,
                  const std::vector<LocalEdgeType>& edges, const GraphOptions& options = {});

  /// Collective. As in HostGraph, for the edges of a type.
  [[nodiscard]] Tensor to_graph_order(const EdgeType& type, const Tensor& rows,
                                      const Tensor& reverse_rows = {}) const;
  [[nodiscard]] Tensor to_host_order(const EdgeType& type, const Tensor& rows, bool reverse = false) const;

 private:
  struct Parts;
  explicit HostHeteroGraph(Parts parts);

  std::shared_ptr<const std::vector<HostEdgeOrder>> orders_;  // one per edge type
};

}}  // namespace sar
