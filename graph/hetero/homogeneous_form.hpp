/// HomogeneousForm: a graph of many types as one graph, in which the type of a node or an edge is data.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/hetero/edge_type.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// As dgl.to_homogeneous: the nodes of a rank, type after type, are the nodes of one graph, and the edges of
/// all types are its edges. A source row travels once for all relations that read it, and stages, modes,
/// formats and message flow graphs are those of any graph.
///
/// The original id of a node, which keys random draws, is its original id within its type plus the numbers of
/// nodes of the types before; so are the ids of edges. Where ids within a type go beyond its number, the
/// next type begins after the largest one. With one node type and one edge type, everything is as in the
/// homogeneous graph, bit for bit.
struct HomogeneousForm {
  GraphShardManager graph;
  std::vector<std::string> node_types;
  std::vector<EdgeType> edge_types;
  /// [node types + 1]: the local rows of node type t are first_row[t] to first_row[t + 1], the end not
  /// included.
  std::vector<Index> first_row;
  /// The number in edge_types of the type of each edge of `graph`, as RelGraphConv and HGTConv take them.
  EdgeTypes etypes;
  /// [edge types + 1]: the ids of the edges of type t are first_edge_id[t] plus those within the type.
  std::vector<Index> first_edge_id;

  /// The rows of all types, type after type, from [local nodes of the type, ...] for each; widths are equal.
  /// Differentiable; keeps nothing. Local. Throws InputError when a node type has no rows here or an unknown
  /// one has, ShapeError when numbers of rows do not fit.
  [[nodiscard]] Variable concat(const std::map<std::string, Variable>& rows) const;
  /// The rows of one type: shares the memory of `rows`. Differentiable. Local. Throws InputError for an
  /// unknown type, ShapeError when `rows` has not a row for each local node.
  [[nodiscard]] Variable rows_of(const Variable& rows, const std::string& node_type) const;
  /// The number of the node type of each local row.
  [[nodiscard]] Array<Index> ntypes() const;
};

}  // namespace sar
