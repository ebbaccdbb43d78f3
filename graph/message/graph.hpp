// SPDX-License-Identifier: MIT

/// Graph: one rank's view of a graph that is sharded over all ranks of a communicator.
///
/// A graph has node types and edge types. An edge type is a relation: edges from nodes of one type to nodes
/// of the same or another type. Most graphs have one of each, and nothing needs to name them.
///
/// For each relation, rank p owns contiguous ranges of the source and of the destination nodes
/// (PartitionBook) and keeps the in-edges of its destination nodes as two shards: from its own nodes, and
/// from the halo. Message passing goes from stage to stage of the halo (Sequential Aggregation, arXiv
/// 2111.06483). A graph on one process is the case P = 1.
///
/// Room graph/message: Message passing on a graph that is spread over the ranks: the driver and the
/// operations that run on it. Below nn, this is the only room where Variables and communication come
/// together.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/message/started_sum.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class LocalScope;
class MessageFlowGraph;
struct GraphTopology;
struct GraphTypes;
struct HomogeneousForm;
struct ShardedGraph;
enum class CrossReduce;

/// The nodes of a type, for the constructor of Graph.
struct NodeTypeSpec {
  std::string name;
  PartitionBook book;  ///< owners of the nodes; a rank, or all ranks, may have none
  /// Original ids within the type of this rank's nodes; default: the global ids.
  Array<Index> ids{};
};

/// The edges of a type, for the constructor of Graph.
struct EdgeTypeSpec {
  EdgeType type;
  /// In-edges of this rank's nodes of the type `destination`. The ends are global ids within their types;
  /// edges.id is unique within the edge type.
  EdgeList edges;
};

/// A cheap handle to an immutable graph and its frames. Copies share both; the options belong to the handle.
///
/// With one relation:
///
/// @code
/// const Variable h(Tensor::full({graph.num_nodes(), 8}, 1), /*requires_grad=*/true);
/// const Variable w(Tensor::full({graph.num_edges(), 1}, 1), /*requires_grad=*/true);
/// Tape tape;
/// const Variable y = graph.update_all(fn::u_mul_e(h, w), fn::sum);  // fetches the halo rows of h
/// tape.backward(sum(y, graph.comm()));                              // sends their gradients back
/// @endcode
///
/// With several, each is a graph itself, graph[{"author", "writes", "paper"}]. Relations with the same source
/// type share one halo, the union of the rows they read, so that a row that several relations read is fetched
/// once (multi_update_all). A single relation fetches the whole union, too. What asks for one relation, such
/// as update_all(), throws InputError that lists the edge types.
///
/// @code
/// const Variable f = Tensor::full({hetero.num_nodes("fluid"), 4}, 1);
/// const Variable s = Tensor::full({hetero.num_nodes("solid"), 4}, 1);
/// const Graph::Rows by_type =
///     hetero.multi_update_all({{{"fluid", "flows", "fluid"}, {fn::copy_u(f), Reduce::mean}},
///                             {{"solid", "heats", "fluid"}, {fn::copy_u(s), Reduce::sum}}},
///                            CrossReduce::sum);
/// const Variable of_fluid = by_type.at("fluid");
/// @endcode
class Graph {
 public:
  using Rows = std::map<std::string, Variable>;  ///< keyed by node type

  /// Collective. `edges`: the in-edges of the destinations of this rank, in any order; parallel edges are
  /// allowed. For a homogeneous graph, pass the same book twice. If `is_block`, the destinations of a rank
  /// are the first of its sources, as in DGL's blocks and in every homogeneous graph. `src_ids`, `dst_ids`:
  /// original ids of this rank's nodes, which key random draws; empty: the global ids. Throws InputError on
  /// every rank if an end of an edge does not exist or a destination belongs to another rank.
  Graph(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
        EdgeList edges, bool is_block, const GraphOptions& options = {}, Array<Index> src_ids = {},
        Array<Index> dst_ids = {});
  /// Collective. With node and edge types. They are the same on every rank, in the same order. Throws
  /// InputError on every rank if there are no node types, if types are repeated, unnamed or different between
  /// ranks, if an end of a relation is not a node type, if a book has another number of parts than ranks, and
  /// as above, with the edge type at the start of the message.
  Graph(const Communicator& comm, std::vector<NodeTypeSpec> nodes, std::vector<EdgeTypeSpec> edges,
        const GraphOptions& options = {});

  /// Collective. Computes a message per edge and reduces the messages at each destination: [local
  /// destinations, ...]
  ///
  ///     out[v] = base[v] + reduce over the in-edges of v of the message
  ///
  /// `base`, of the same shape, is optional; a sum or mean reuses its memory if no other handle refers to
  /// it. Differentiable in all operands and in base. Messages are not stored.
  ///
  /// Communication: if the message reads u, the forward pass fetches the halo rows of u once. If u requires
  /// a gradient, the backward pass pushes it once. In mode rematerialize, the backward pass also fetches
  /// the rows again if a gradient depends on the values of u.
  ///
  /// Throws the same exception on every rank, before rows are sent: ShapeError if the number of rows does not
  /// match the graph or operands do not broadcast, InputError if message, widths, required gradients or
  /// options differ between ranks.
  [[nodiscard]] Variable update_all(const Message& message, Reduce reduce, Variable base = {}) const;
  /// Collective. Starts the same and returns while the halo rows are in flight: finish() of the result
  /// computes. What runs in between, such as the self term of a layer, overlaps with communication, forward
  /// and backward.
  [[nodiscard]] StartedSum start_update_all(const Message& message, Reduce reduce) const;
  /// The same with a user-defined message: any differentiable function of a chunk of at most
  /// options().edge_chunk edges. Memory does not depend on the number of edges. Captured variables, such as
  /// parameters, receive gradients without being declared. The backward pass computes the messages again.
  /// Several threads call the function at once, unless options().serial_messages is set. Communication as
  /// above, for the variables that the function passes to edges.src(). Collective, but the function must not
  /// communicate. Its exceptions are thrown on all ranks, and the graph remains usable. Throws ShapeError on
  /// every rank if the function does not return one row per edge, or if the shape of a row changes.
  [[nodiscard]] Variable update_all(const MessageFunction& message, Reduce reduce) const;
  /// On frames: reads fields of srcdata, dstdata and edata, writes the field reduce.out of dstdata. Throws,
  /// the same on every rank, InputError when a field does not exist or names do not match.
  void update_all(const NamedMessage& message, const NamedReduce& reduce) const;
  /// The same with a user-defined message; writes the field reduce.out of dstdata.
  void update_all(const MessageFunction& message, const NamedReduce& reduce) const;

  /// Collective. The message of every in-edge of this rank's destinations: [local edges, ...], in edge
  /// order. Communication, errors and gradients as update_all.
  [[nodiscard]] Variable apply_edges(const Message& message) const;
  [[nodiscard]] Variable apply_edges(const MessageFunction& message) const;
  /// Writes the field message.message of edata.
  void apply_edges(const NamedMessage& message) const;
  void apply_edges(const MessageFunction& message, const std::string& out) const;

  /// Named tensors of this rank's sources, destinations and edges, shared by all copies of this handle. In a
  /// homogeneous graph srcdata and dstdata are the same frame.
  [[nodiscard]] Frame& srcdata() const { return *frames().src; }
  [[nodiscard]] Frame& dstdata() const { return *frames().dst; }
  [[nodiscard]] Frame& edata() const { return *frames().edge; }
  /// srcdata of a homogeneous graph. Throws InputError on others, message flow graphs among them.
  [[nodiscard]] Frame& ndata() const;
  /// While it lives, changes of the frames are undone at its end: auto scope = graph.local_scope();
  [[nodiscard]] LocalScope local_scope() const;
  /// Collective. The part of data given per edge id, [edges of the whole graph, ...] on every rank, that
  /// belongs to this rank's edges: [local edges, ...] in edge order. Throws ShapeError, the same on every
  /// rank, when an edge id has no row.
  [[nodiscard]] Tensor local_edge_rows(const Tensor& by_edge_id) const;

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GraphOptions& options() const noexcept { return options_; }
  /// Of this handle. Throws InputError unless pipeline_depth >= 1, max_halo_bytes >= 0 and
  /// edge_chunk >= 1, and for a halo_format that does not go with the precision or with the other options.
  void set_options(const GraphOptions& options);

  // Sizes on this rank. Of a graph that was made with types, num_nodes() and num_edges() count all types
  // together; of one that was made without, num_nodes() counts the sources.
  [[nodiscard]] Index num_src_nodes() const;
  [[nodiscard]] Index num_dst_nodes() const;
  [[nodiscard]] Index num_nodes() const;
  [[nodiscard]] Index num_edges() const;
  // Sizes of the whole graph.
  [[nodiscard]] Index num_global_src_nodes() const;
  [[nodiscard]] Index num_global_dst_nodes() const;
  [[nodiscard]] Index num_global_nodes() const;
  [[nodiscard]] Index num_global_edges() const;

  /// Bytes of the graph's own index arrays on this rank now. Some are made when an operation first needs
  /// them.
  [[nodiscard]] std::size_t index_bytes() const;

  /// Returns whether the destinations of each rank are the first of its sources, or for a graph with types
  /// whether it is a block with types (graph/construct/message_flow_graph.hpp).
  [[nodiscard]] bool is_block() const;
  // Degrees are counted at the first request and kept; several threads may ask.
  /// Number of in-edges of each local destination, from nodes of all ranks.
  [[nodiscard]] const Array<Index>& in_degrees() const;
  /// Number of out-edges of each local source, to all ranks.
  [[nodiscard]] const Array<Index>& out_degrees() const;
  /// Original ids of this rank's nodes, keys of random draws.
  [[nodiscard]] const Array<Index>& src_ids() const;
  [[nodiscard]] const Array<Index>& dst_ids() const;

  /// Edge rows of this rank are in this order: by shard, destination, source, id. Throws InputError after
  /// drop_edge_ids().
  [[nodiscard]] const Array<Index>& edge_ids() const;
  /// Frees the edge ids of this graph, for all handles: 8 of about 16 bytes per edge. Afterwards, edge_ids(),
  /// local_edge_rows(), max and min, dropout of edges and of attention coefficients, EdgeBatch::ids(),
  /// edge_sequences() and samplers throw InputError. Sums, means, attention and message flow graphs do not
  /// need the ids. Local, but call it on all ranks, and only if no record on a tape reads the ids.
  void drop_edge_ids();
  /// EdgeList::weight in edge order [local edges]; undefined when no rank's edges have weights.
  [[nodiscard]] const Tensor& edge_weight() const;

  /// Local. Returns a handle in mode one_shot: all halo rows are fetched in one stage.
  [[nodiscard]] Graph get_full_partition_graph() const;

  // Types. A graph that was made without has the node type "_N" and the edge type {"_N", "_E", "_N"}, as in
  // DGL; a bipartite one has "_U", "_V" and {"_U", "_E", "_V"}.
  [[nodiscard]] const std::vector<std::string>& node_types() const;
  [[nodiscard]] const std::vector<EdgeType>& edge_types() const;
  /// Whether there are one node type and one edge type.
  [[nodiscard]] bool is_homogeneous() const;
  /// Local. Returns the graph of an edge type, with the options of this handle. Throws InputError that lists
  /// the available types.
  [[nodiscard]] Graph operator[](const EdgeType& type) const;
  /// The same by canonical name, "author:writes:paper", or by relation name if it is unique.
  [[nodiscard]] Graph operator[](const std::string& type) const;
  /// Local. Returns the graph of the only edge type. Throws InputError if there are others.
  [[nodiscard]] const Graph& relation() const;

  // Properties of node types. All throw InputError for an unknown type.
  [[nodiscard]] Index num_nodes(const std::string& type) const;  ///< of this rank
  /// Number of destinations on this rank: all its nodes, except in a block.
  [[nodiscard]] Index num_dst_nodes(const std::string& type) const;
  [[nodiscard]] Index num_global_nodes(const std::string& type) const;
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
    std::function<Variable(const Graph& graph, const Variable& rows)> compute;
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

  /// Returns the homogeneous form of the graph, with the options of the handle that asks first. It is made at
  /// the first call, which is collective, and cached; call it on all ranks. Throws InputError for more than
  /// 65535 edge types, if edge ids were dropped, and for a block.
  [[nodiscard]] const HomogeneousForm& to_homogeneous() const;

  /// For authors of operations: the relation behind this handle, for driver.hpp.
  [[nodiscard]] const std::shared_ptr<const ShardedGraph>& shards() const;
  /// For authors of operations: its edges.
  [[nodiscard]] const GraphTopology& topology() const;

 protected:
  /// The nodes of one type in a block.
  struct BlockNodes {
    std::string name;
    PartitionBook src_book, dst_book;
    std::shared_ptr<const Array<Index>> ids;  ///< original ids within the type of this rank's sources
  };
  /// Collective. For implementing blocks: `relations` are the graphs of the edge types; relations from the
  /// same node type share their halo.
  Graph(const Communicator& comm, std::vector<BlockNodes> nodes, std::vector<EdgeType> edge_types,
        const std::vector<std::shared_ptr<const ShardedGraph>>& relations, const GraphOptions& options);

 private:
  friend class MessageFlowGraph;
  friend struct GraphTypes;
  Graph(std::shared_ptr<const ShardedGraph> relation, const GraphOptions& options);
  Graph(std::shared_ptr<const ShardedGraph> relation, const GraphOptions& options, Frames frames);
  explicit Graph(std::shared_ptr<GraphTypes> types);

  [[nodiscard]] Frames& frames() const { return *relation().frames_; }
  [[nodiscard]] GraphTypes& types() const;
  [[nodiscard]] Graph relation_number(std::size_t k) const;
  [[nodiscard]] bool fetches_together(const Variable& x, std::span<const RelationCall> calls) const;
  /// Returns the relation with the halo rows among its source rows. It is made at the first call, which is
  /// collective, and cached.
  [[nodiscard]] Graph holding_halo(const EdgeType& type) const;

  GraphOptions options_;
  std::shared_ptr<const ShardedGraph> relation_;  // null if there are several relations, or none
  std::shared_ptr<Frames> frames_;                // of the relation
  std::shared_ptr<GraphTypes> types_;             // null: those of the relation
};

/// The name of Graph in the Python library SAR.
using GraphShardManager = Graph;

/// When this ends, the frames of a graph are again as they were.
class LocalScope : NonCopyable {
 public:
  explicit LocalScope(std::shared_ptr<Frames> frames);
  ~LocalScope();

 private:
  std::shared_ptr<Frames> frames_;
  std::vector<Frame> before_;  // of the sources, the destinations and the edges
};

/// Collective. The part of data given per edge id that belongs to this rank's edges: [local edges, ...] in
/// edge order, as Graph::local_edge_rows, but no rank has the rows of all edges. Rank p has
/// those of the ids that `ids` gives it as `mine`, [ids.num_nodes(p), ...]. A rank asks for about 4 MiB of
/// rows at a time. Throws ShapeError when `mine` has not the rows that `ids` says or the ranks' rows differ
/// in width, and InputError when an edge id has no row or the graph has dropped its ids; the same on every
/// rank.
Tensor fetch_edge_rows(const Graph& graph, const PartitionBook& ids, const Tensor& mine);
}}  // namespace sar
