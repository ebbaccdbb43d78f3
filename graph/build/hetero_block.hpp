/// HeteroBlock: a message flow graph of a graph with several types, relation by relation.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// A block by types, as DGL's on a heterograph: for each node type the nodes that a layer reads, of which the
/// first on each rank are those that it computes, and for each edge type the block's edges. HeteroGraphConv
/// and multi_update_all run on it as on the graph; rows of sources go in, rows of destinations come out.
/// In-degrees are those in the block, out-degrees those of the relation in the whole graph. Ids of nodes and
/// edges are those within the type, so dropout and the like draw as on the whole graph.
///
///     const HomogeneousForm& form = graph.to_homogeneous();
///     for (const MessageFlowGraph& mfg : construct_mfgs(form.graph, seeds, 2)) {
///       const HeteroBlock block(graph, mfg);
///       h = block.join(conv(block, block.split(h)));
///     }
///
/// Seeds are nodes of the homogeneous form; so one set of blocks serves seeds of all types, and node types or
/// relations that no seed depends on are empty in it.
class HeteroBlock : public HeteroGraph {
 public:
  /// `block`: of graph.to_homogeneous().graph. Collective; two all-to-all exchanges for each message flow
  /// graph. Throws InputError, the same on every rank, when `graph` is a block itself, or the message flow
  /// graph has rows or edges that the graph has not.
  HeteroBlock(const HeteroGraph& graph, const MessageFlowGraph& block);

  /// Which sources of the message flow graph are the sources of the type here, ascending: numbers, not rows
  /// of the whole graph. Throws InputError for an unknown type.
  [[nodiscard]] const Array<Index>& sources(const std::string& type) const;
  /// The rows of each type, from rows of the message flow graph's sources. Copies. Differentiable. Local.
  /// Throws ShapeError for another number of rows.
  [[nodiscard]] Rows split(const Variable& sources) const;
  /// The rows of the message flow graph's destinations from those of each type, whose widths are equal. A
  /// type that is not there has zeros. Copies. Differentiable. Local. Throws InputError for an unknown type
  /// and where there are no rows at all, ShapeError when numbers of rows do not fit.
  [[nodiscard]] Variable join(const Rows& destinations) const;

 private:
  struct Places;
  struct Made;
  explicit HeteroBlock(Made made);
  static Made make(const HeteroGraph& graph, const MessageFlowGraph& block);

  std::shared_ptr<const Places> places_;
};

}  // namespace sar
