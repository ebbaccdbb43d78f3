// SPDX-License-Identifier: MIT

/// HeteroBlock: a message flow graph of a heterogeneous graph, split into its relations.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>

#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A block with types, as DGL's blocks of heterographs. For each node type it has the nodes that a layer
/// reads; on each rank the first of them are the nodes that the layer computes. For each edge type it has the
/// block's edges. HeteroGraphConv and multi_update_all accept it like a graph: they take rows of the sources
/// and return rows of the destinations. In-degrees are those in the block, out-degrees those of the relation
/// in the whole graph. Node and edge ids are the ids within the type, so that random draws, for example of
/// dropout, are those on the whole graph.
///
///     const HomogeneousForm& form = graph.to_homogeneous();
///     for (const MessageFlowGraph& mfg : construct_mfgs(form.graph, seeds, 2)) {
///       const HeteroBlock block(graph, mfg);
///       h = block.join(conv(block, block.split(h)));
///     }
///
/// Seeds are nodes of the homogeneous form, so that one set of blocks can hold seeds of all types. Node types
/// and relations that no seed depends on are empty.
class HeteroBlock : public Graph {
 public:
  /// `block` must be made from graph.to_homogeneous().graph. Throws InputError on every rank if `graph` is a
  /// block itself, or if the message flow graph has rows or edges that the graph does not have. Collective:
  /// an all-to-all exchange of the types of halo rows, and one of a number per rank for each node type.
  HeteroBlock(const Graph& graph, const MessageFlowGraph& block);

  /// Returns, in ascending order, which sources of the message flow graph have this type, as indices among
  /// these sources. Throws InputError for an unknown type.
  [[nodiscard]] const Array<Index>& sources(const std::string& type) const;
  /// Local. Returns, for each edge of a relation of the block, in its edge order, its row in the edge order
  /// of the relation in the whole graph: gather_rows(data, block.edge_rows(type)) are the rows of its edges.
  /// Keeps 8 bytes for each edge of the relation, for all blocks of the graph. Throws InputError for an
  /// unknown type, and if edge ids were dropped.
  [[nodiscard]] Array<Index> edge_rows(const EdgeType& type) const;
  [[nodiscard]] Array<Index> edge_rows(const std::string& type) const;
  /// Local. Returns the rows of each type from rows of the message flow graph's sources. Copies.
  /// Differentiable. Throws ShapeError if the number of rows does not match.
  [[nodiscard]] Rows split(const Variable& sources) const;
  /// Local. Returns the rows of the message flow graph's destinations from rows of each type, all of equal
  /// width. A missing type counts as zeros. Copies. Differentiable. Throws InputError for an unknown type
  /// and if there are no rows at all, ShapeError if numbers of rows do not match.
  [[nodiscard]] Variable join(const Rows& destinations) const;

 private:
  struct Places;
  struct Made;
  explicit HeteroBlock(Made made);
  static Made make(const Graph& graph, const MessageFlowGraph& block);

  std::shared_ptr<const Places> places_;
};
}}  // namespace sar
