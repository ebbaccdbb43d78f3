/// HeteroGraph: a graph with several node types and edge types, sharded over the ranks.
///
/// Room graph/hetero: Graphs with several types of nodes and edges: their relations, which share halos, and
/// their form as one homogeneous graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
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

namespace sar::inline SAR_PRECISION {

/// A cheap handle, as GraphShardManager: copies share everything.
///
/// Each edge type is a relation, a graph of its own: graph[{"author", "writes", "paper"}]. Relations with the
/// same source type share one halo: a rank's halo rows are those of the union of what the relations read, so
/// that rows that several of them read travel once (multi_update_all). A relation by itself fetches the
/// union, too.
class HeteroGraph {
 public:
  using Rows = std::map<std::string, Variable>;  ///< by node type

  struct NodeTypeSpec {
    std::string name;
    PartitionBook book;  ///< who owns which nodes; a rank, or all of them, may have none
    /// Original ids within the type of this rank's nodes; empty: the partitioned ones.
    Array<Index> ids{};
  };
  struct EdgeTypeSpec {
    EdgeType type;
    /// In-edges of this rank's nodes of the type `destination`. The ends are partitioned ids within their
    /// types; edges.id is unique within the edge type.
    EdgeList edges;
  };

  /// The types are the same on every rank, in the same order. Collective. Throws InputError, the same on
  /// every rank, for no node types, types given twice or without a name, types that differ between ranks, a
  /// relation whose ends are no node types, a book of another number of parts than ranks, and as
  /// GraphShardManager does, with the name of the edge type in front.
  HeteroGraph(const Communicator& comm, std::vector<NodeTypeSpec> nodes, std::vector<EdgeTypeSpec> edges,
              const GraphOptions& options = {});

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GraphOptions& options() const noexcept;
  [[nodiscard]] const std::vector<std::string>& node_types() const noexcept;
  [[nodiscard]] const std::vector<EdgeType>& edge_types() const noexcept;

  /// The graph of an edge type. Throws InputError that names the types there are. Local.
  [[nodiscard]] const GraphShardManager& operator[](const EdgeType& type) const;
  /// By the canonical name, "author:writes:paper", or the relation where one edge type only has it.
  [[nodiscard]] const GraphShardManager& operator[](const std::string& type) const;
  /// Whether there is exactly this edge type.
  [[nodiscard]] bool contains(const EdgeType& type) const noexcept;

  /// Whether it is a HeteroBlock (graph/build/hetero_block.hpp): from the nodes that a layer reads, which are
  /// its nodes here, to those that it computes, which are the first of each type on every rank.
  [[nodiscard]] bool is_block() const noexcept;

  // Of node types. All throw InputError for an unknown one.
  [[nodiscard]] Index num_nodes(const std::string& type) const;        ///< of the whole graph
  [[nodiscard]] Index num_local_nodes(const std::string& type) const;  ///< of this rank
  /// Of this rank: all nodes, but for a block.
  [[nodiscard]] Index num_local_destinations(const std::string& type) const;
  [[nodiscard]] const PartitionBook& book(const std::string& type) const;
  /// Original ids within the type of this rank's nodes.
  [[nodiscard]] const Array<Index>& node_ids(const std::string& type) const;
  /// Named tensors of this rank's nodes of a type. The relations' srcdata() and dstdata() are these frames. A
  /// block has two frames for a type and no ndata: it throws InputError.
  [[nodiscard]] Frame& ndata(const std::string& type) const;
  [[nodiscard]] Frame& srcdata(const std::string& type) const;
  [[nodiscard]] Frame& dstdata(const std::string& type) const;
  /// Named tensors of this rank's edges of a type, in the edge order of its relation.
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
  /// As DGL's: for each node type that one of these relations reaches, the cross reduction over their
  /// results, in the order of edge_types(). Differentiable in all operands. Relations that read the same
  /// variable of sources fetch its halo rows together, once, and send its gradients once. In mode
  /// rematerialize, the backward pass fetches them again where a gradient depends on their values, and
  /// computes these relations again, one after the other, so that memory does not grow with the number of
  /// relations; in the others, the rows are kept. Where max_halo_bytes is set and all halo rows take more,
  /// relations fetch one after the other, stage by stage. Collective. Throws as update_all, InputError for an
  /// unknown edge type, ShapeError when relations give a node type results of different shapes.
  [[nodiscard]] Rows multi_update_all(const std::map<EdgeType, MessageReduce>& messages,
                                      CrossReduce cross_reduce) const;
  /// On frames: fields are those of ndata and edata; writes the field reduce.out of the destinations' dstdata.
  /// Also throws InputError when relations into the same node type have different names for it.
  void multi_update_all(const std::map<EdgeType, NamedMessageReduce>& messages,
                        CrossReduce cross_reduce) const;

  /// For authors of operations: what a relation computes from rows of its sources. `graph` has the relation's
  /// edges, edge data and destinations; `rows` are its source rows: the local ones, perhaps followed by halo
  /// rows that need not travel any more. It must do the same where it is called again in the backward pass.
  /// Variables that the function captures receive their gradients without being declared.
  struct RelationCall {
    EdgeType type;
    std::function<Variable(const GraphShardManager& graph, const Variable& rows)> compute;
    /// Whether its record keeps values that it computes of the rows, or the rows. It is not called again if
    /// not.
    bool keeps_rows = true;
  };
  /// For authors of operations: computes calls of relations whose sources are all of one type, with rows x
  /// [local sources, ...], and gives the results to `take`, one after the other. Halo rows of x travel as in
  /// multi_update_all. Collective. Throws InputError when sources are of several types or calls differ
  /// between ranks, ShapeError when x has not a row for each local source.
  void call(const Variable& x, std::span<const RelationCall> calls,
            FunctionRef<void(std::size_t call, Variable result)> take) const;

  /// The graph as one homogeneous graph. Made at the first call and kept; collective then, so call it on all
  /// ranks. Throws InputError for more than 65535 edge types, edges whose ids were dropped, and for a block.
  [[nodiscard]] const HomogeneousForm& to_homogeneous() const;

 protected:
  /// A node type of a block.
  struct BlockNodes {
    std::string name;
    PartitionBook src_book, dst_book;
    std::shared_ptr<const Array<Index>> ids;  ///< original ids within the type of this rank's sources
  };
  /// For makers of blocks: `relations` are the graphs of the edge types; those from the same node type have
  /// their halo in common. Collective.
  HeteroGraph(const Communicator& comm, std::vector<BlockNodes> nodes, std::vector<EdgeType> edge_types,
              const std::vector<std::shared_ptr<const ShardedGraph>>& relations, const GraphOptions& options);

 private:
  struct State;
  [[nodiscard]] bool fetches_together(const Variable& x, std::span<const RelationCall> calls) const;
  /// The relation with halo rows among its source rows. Made at the first call and kept; collective then.
  [[nodiscard]] const GraphShardManager& holding_halo(const EdgeType& type) const;

  std::shared_ptr<State> state_;
};

}  // namespace sar
