// SPDX-License-Identifier: MIT

/// HeteroGraph: a heterogeneous graph, with several node types and edge types, sharded over the ranks.
///
/// Room graph/hetero: Graphs with several node and edge types: relations that share halos, and the
/// homogeneous form.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/hetero/edge_type.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A cheap handle, like GraphShardManager: copies share everything.
///
/// Each edge type is a relation, which is a graph itself: graph[{"author", "writes", "paper"}]. Relations
/// with the same source type share one halo, the union of the rows they read, so that a row that several
/// relations read is fetched once (multi_update_all). A single relation fetches the whole union, too.
///
/// @code
/// const Variable f = Tensor::full({hetero.num_local_nodes("fluid"), 4}, 1);
/// const Variable s = Tensor::full({hetero.num_local_nodes("solid"), 4}, 1);
/// const HeteroGraph::Rows y =
///     hetero.multi_update_all({{{"fluid", "flows", "fluid"}, {fn::copy_u(f), Reduce::mean}},
///                              {{"solid", "heats", "fluid"}, {fn::copy_u(s), Reduce::sum}}},
///                             CrossReduce::sum);
/// const Variable of_fluid = y.at("fluid");
/// @endcode
class HeteroGraph {
 public:
  using Rows = std::map<std::string, Variable>;  ///< keyed by node type

  struct NodeTypeSpec {
    std::string name;
    PartitionBook book;  ///< owners of the nodes; a rank, or all ranks, may have none
    /// Original ids within the type of this rank's nodes; default: the global ids.
    Array<Index> ids{};
  };
  struct EdgeTypeSpec {
    EdgeType type;
    /// In-edges of this rank's nodes of the type `destination`. The ends are global ids within their types;
    /// edges.id is unique within the edge type.
    EdgeList edges;
  };

  /// Collective. The types are the same on every rank, in the same order. Throws InputError on every rank
  /// if there are no node types, if types are repeated, unnamed or different between ranks, if an end of a
  /// relation is not a node type, if a book has another number of parts than ranks, and as
  /// GraphShardManager, with the edge type at the start of the message.
  HeteroGraph(const Communicator& comm, std::vector<NodeTypeSpec> nodes, std::vector<EdgeTypeSpec> edges,
              const GraphOptions& options = {});

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GraphOptions& options() const noexcept;
  [[nodiscard]] const std::vector<std::string>& node_types() const noexcept;
  [[nodiscard]] const std::vector<EdgeType>& edge_types() const noexcept;

  /// Local. Returns the graph of an edge type. Throws InputError that lists the available types.
  [[nodiscard]] const GraphShardManager& operator[](const EdgeType& type) const;
  /// The same by canonical name, "author:writes:paper", or by relation name if it is unique.
  [[nodiscard]] const GraphShardManager& operator[](const std::string& type) const;

  /// Returns whether this is a HeteroBlock (graph/construct/hetero_block.hpp): its nodes are those that a
  /// layer reads, and the first ones of each type on every rank are those that the layer computes.
  [[nodiscard]] bool is_block() const noexcept;

  // Properties of node types. All throw InputError for an unknown type.
  [[nodiscard]] Index num_nodes(const std::string& type) const;        ///< of the whole graph
  [[nodiscard]] Index num_local_nodes(const std::string& type) const;  ///< of this rank
  /// Number of destinations on this rank: all local nodes, except in a block.
  [[nodiscard]] Index num_local_destinations(const std::string& type) const;
  [[nodiscard]] const PartitionBook& book(const std::string& type) const;
  /// Returns the original ids within the type of this rank's nodes.
  [[nodiscard]] const Array<Index>& node_ids(const std::string& type) const;
  /// Return the named tensors of this rank's nodes of a type. These frames are the srcdata() and dstdata() of
  /// the relations. A block has separate frames for sources and destinations; its ndata throws InputError.
  [[nodiscard]] Frame& ndata(const std::string& type) const;
  [[nodiscard]] Frame& srcdata(const std::string& type) const;
  [[nodiscard]] Frame& dstdata(const std::string& type) const;
  /// Returns the named tensors of this rank's edges of a type, in the edge order of its relation.
  [[nodiscard]] Frame& edata(const EdgeType& type) const { return (*this)[type].edata(); }
  [[nodiscard]] Frame& edata(const std::string& type) const { return (*this)[type].edata(); }

  /// A message and its reduction, for multi_update_all.
  struct MessageReduce {
    Message message;
    Reduce reduce;
  };
  struct NamedMessageReduce {
    NamedMessage message;
    NamedReduce reduce;
  };
  /// Collective. Computes, for each node type that one of these relations reaches, the cross reduction over
  /// their results in the order of edge_types(), as in DGL. Differentiable in all operands. Relations that
  /// read the same source variable fetch its halo rows together, once, and send its gradients once.
  ///
  /// In mode rematerialize, the backward pass fetches the rows again where a gradient depends on their
  /// values, and recomputes one relation at a time, so that memory does not grow with the number of
  /// relations. The other modes keep the rows. If all halo rows need more than max_halo_bytes, relations
  /// fetch one after the other, in stages.
  ///
  /// Throws as update_all, InputError for an unknown edge type, ShapeError if relations into one node type
  /// have results of different shapes.
  [[nodiscard]] Rows multi_update_all(const std::map<EdgeType, MessageReduce>& messages,
                                      CrossReduce cross_reduce) const;
  /// The same with frames: reads fields of ndata and edata and writes the field reduce.out of the
  /// destinations' dstdata. Also throws InputError if relations into the same node type name different
  /// fields.
  void multi_update_all(const std::map<EdgeType, NamedMessageReduce>& messages,
                        CrossReduce cross_reduce) const;

  /// For implementing operations: the computation of a relation from rows of its sources. `graph` has the
  /// relation's edges, edge data and destinations. `rows` are its source rows: the local ones, possibly
  /// followed by halo rows that are already fetched. The function must compute the same when it is called
  /// again in the backward pass. Captured variables receive their gradients without being declared.
  struct RelationCall {
    EdgeType type;
    std::function<Variable(const GraphShardManager& graph, const Variable& rows)> compute;
    /// Whether its records keep the rows or values computed from them. If false, the function is not called
    /// again.
    bool keeps_rows = true;
  };
  /// Collective. For implementing operations: runs calls of relations whose sources are all of one type,
  /// with rows x [local sources, ...], and passes each result to `take`. Halo rows of x are fetched as in
  /// multi_update_all. Throws InputError if sources are of several types or calls differ between ranks,
  /// ShapeError unless x has one row per local source.
  void call(const Variable& x, std::span<const RelationCall> calls,
            FunctionRef<void(std::size_t call, Variable result)> take) const;

  /// Returns the homogeneous form of the graph. It is made at the first call, which is collective, and
  /// cached; call it on all ranks. Throws InputError for more than 65535 edge types, if edge ids were
  /// dropped, and for a block.
  [[nodiscard]] const HomogeneousForm& to_homogeneous() const;

 protected:
  /// The nodes of one type in a block.
  struct BlockNodes {
    std::string name;
    PartitionBook src_book, dst_book;
    std::shared_ptr<const Array<Index>> ids;  ///< original ids within the type of this rank's sources
  };
  /// Collective. For implementing blocks: `relations` are the graphs of the edge types; relations from the
  /// same node type share their halo.
  HeteroGraph(const Communicator& comm, std::vector<BlockNodes> nodes, std::vector<EdgeType> edge_types,
              const std::vector<std::shared_ptr<const ShardedGraph>>& relations, const GraphOptions& options);

 private:
  struct State;
  [[nodiscard]] bool fetches_together(const Variable& x, std::span<const RelationCall> calls) const;
  /// Returns the relation with the halo rows among its source rows. It is made at the first call, which is
  /// collective, and cached.
  [[nodiscard]] const GraphShardManager& holding_halo(const EdgeType& type) const;

  std::shared_ptr<State> state_;
};

}}  // namespace sar
