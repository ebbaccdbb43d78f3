// SPDX-License-Identifier: MIT

/// HomogeneousForm: a graph with types as one without, in which node and edge types are data.
///
/// Room graph/hetero: What only graphs with several node and edge types need: relations that share halos, and
/// the homogeneous form.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Equivalent to dgl.to_homogeneous: one graph with the nodes of a rank, type after type, and the edges of
/// all types. A halo row is fetched once for all relations that read it. Stages, modes, halo row formats and
/// message flow graphs work as for any graph.
///
/// The original id of a node, which keys random draws, is its original id within its type plus the offset of
/// the type. Edge ids are formed in the same way. The offset of a type is the sum of the sizes of the
/// previous types; if the ids of a type exceed its size, the next type begins after the largest id. With one
/// node type and one edge type, everything has the same bits as for the homogeneous graph.
struct HomogeneousForm {
  Graph graph;
  std::vector<std::string> node_types;
  std::vector<EdgeType> edge_types;
  /// [node types + 1]: node type t has the local rows first_row[t] .. first_row[t + 1] - 1.
  std::vector<Index> first_row;
  /// The type of each edge of `graph` as an index in edge_types, the form that RelGraphConv and HGTConv take.
  EdgeTypes etypes;
  /// [edge types + 1]: the id of an edge of type t is first_edge_id[t] plus its id within the type.
  std::vector<Index> first_edge_id;
  /// The owners of the nodes of each type.
  std::vector<PartitionBook> books = {};
  /// For edge_rows(): the graphs of the edge types, and their edges on this rank in the order of their ids.
  std::vector<std::shared_ptr<const ShardedGraph>> relations = {};
  std::vector<std::shared_ptr<const LazyArray>> edges_by_id = {};

  /// Local. Concatenates the rows of all types, [local nodes of the type, ...] with equal widths, in the
  /// order of types. Differentiable; keeps nothing. Throws InputError for a missing or unknown node type,
  /// ShapeError if numbers of rows do not match.
  [[nodiscard]] Variable concat(const std::map<std::string, Variable>& rows) const;
  /// Local. Returns the rows of one type as a view of `rows`. Differentiable. Throws InputError for an
  /// unknown type, ShapeError unless `rows` has one row per local node.
  [[nodiscard]] Variable rows_of(const Variable& rows, const std::string& node_type) const;
  /// Local. Returns the rows, in the edge order of the relation of an edge type, of this rank's edges with
  /// these ids within the type. Keeps 8 bytes for each edge of the relation. Throws InputError for an id that
  /// is none of them, and if the ids of the relation's edges were dropped.
  [[nodiscard]] Array<Index> edge_rows(std::size_t edge_type, std::span<const Index> ids) const;
  /// Local. Returns the global ids in `graph` of nodes of this rank that are given by type, type after type
  /// and in their order. Throws InputError for an unknown type, and for a node that does not exist or belongs
  /// to another rank.
  [[nodiscard]] std::vector<Index> nodes_of(const std::map<std::string, std::vector<Index>>& nodes) const;
  /// Returns the node type of each local row, as an index.
  [[nodiscard]] Array<Index> ntypes() const;
};

/// Local. Returns this rank's edges of a relation in the order of their ids, computed when they are asked
/// for.
std::shared_ptr<const LazyArray> edges_in_order_of_ids(std::shared_ptr<const ShardedGraph> relation);
}}  // namespace sar
