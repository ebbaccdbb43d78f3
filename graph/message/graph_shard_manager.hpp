/// GraphShardManager: one worker's view of a graph that is sharded over all workers of a communicator.
///
/// Worker p owns contiguous ranges of the source and of the destination nodes (PartitionBook) and keeps the
/// in-edges of its destination nodes as two shards: from its own nodes, and from the halo. Message passing
/// goes from stage to stage of the halo (Sequential Aggregation, arXiv 2111.06483). A graph on one process is
/// the case P = 1.
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
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <memory>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class DistributedBlock;
class LocalScope;
class MessageFlowGraph;
struct GraphTopology;
struct ShardedGraph;

/// A cheap handle to an immutable graph and its frames. Copies share both; the options belong to the handle.
class GraphShardManager {
 public:
  /// `edges`: in-edges of the destinations this rank owns, in any order, parallel edges allowed. A
  /// homogeneous graph has the same book twice. When `is_block`, the destinations of a rank are the first of
  /// its sources (always so in a homogeneous graph; DGL calls it a block). `src_ids` and `dst_ids`
  /// are the original ids of this rank's nodes, which key random draws; empty: the partitioned ids.
  /// Collective. Throws InputError, the same on every rank, when an edge's end does not exist or its
  /// destination is not owned.
  GraphShardManager(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                    EdgeList edges, bool is_block, const GraphOptions& options = {},
                    Array<Index> src_ids = {}, Array<Index> dst_ids = {});
  /// out[v] = reduce over the in-edges of v of the message: [local destinations, ...]. With `base` [the same
  /// shape] the result is base + that, computed in base's memory when no one else holds it (sum, mean).
  /// Differentiable in all operands and in base. No message per edge is ever stored. Communication: forward
  /// one fetch of the halo rows of u, if the message reads u; backward one push of gradients, when u wants a
  /// gradient; one more fetch in mode rematerialize only, when a gradient needs the values of u.
  /// Collective. Throws, before rows travel and the same on every rank, ShapeError when an operand has
  /// another number of rows than the graph or operands do not broadcast, InputError when ranks differ in
  /// message, width, wish for gradients or options.
  [[nodiscard]] Variable update_all(const Message& message, Reduce reduce, Variable base = {}) const;
  /// The same with a base that is computed while the first halo rows travel, and differentiated while the
  /// last gradients do: the self term of a layer. It may be undefined: then what make_base computes is only
  /// computed meanwhile. Neither make_base nor the backward passes of its operations may communicate; what
  /// they throw on any rank is thrown on all.
  [[nodiscard]] Variable update_all(const Message& message, Reduce reduce,
                                    FunctionRef<Variable()> make_base) const;
  /// The same with a message of the caller's own: any differentiable function of blocks of
  /// options().edge_block edges. Memory does not depend on the number of edges. Variables that the function
  /// captures, parameters above all, receive their gradients without being declared. The backward pass
  /// computes messages again. Several threads call the function at once, unless options().serial_messages.
  /// Communication: as above, for all variables that edges.src() was asked for.
  /// Collective, but the function must not communicate. What it throws on any rank is thrown on all; the
  /// graph can be used afterwards. Throws, the same on every rank, ShapeError when it returns another number
  /// of rows than edges, or rows of changing shape.
  [[nodiscard]] Variable update_all(const MessageFunction& message, Reduce reduce) const;
  /// On frames: reads fields of srcdata, dstdata and edata, writes the field reduce.out of dstdata. Throws,
  /// the same on every rank, InputError when a field does not exist or names do not match.
  void update_all(const NamedMessage& message, const NamedReduce& reduce) const;
  /// A message of the caller's own, which reads what it likes; writes the field reduce.out of dstdata.
  void update_all(const MessageFunction& message, const NamedReduce& reduce) const;

  /// The message of every in-edge of this rank's destinations: [local edges, ...], in edge order.
  /// Communication, errors and gradients as update_all. Collective.
  [[nodiscard]] Variable apply_edges(const Message& message) const;
  [[nodiscard]] Variable apply_edges(const MessageFunction& message) const;
  /// Writes the field message.message of edata.
  void apply_edges(const NamedMessage& message) const;
  void apply_edges(const MessageFunction& message, const std::string& out) const;

  /// Named tensors of this rank's sources, destinations and edges, shared by all copies of this handle. In a
  /// homogeneous graph srcdata and dstdata are the same frame.
  [[nodiscard]] Frame& srcdata() const { return *frames_->src; }
  [[nodiscard]] Frame& dstdata() const { return *frames_->dst; }
  [[nodiscard]] Frame& edata() const { return *frames_->edge; }
  /// srcdata of a homogeneous graph. Throws InputError on others, message flow graphs among them.
  [[nodiscard]] Frame& ndata() const;
  /// While it lives, changes of the frames are undone at its end: auto scope = graph.local_scope();
  [[nodiscard]] LocalScope local_scope() const;
  /// The part of data given per edge id, [edges of the whole graph, ...] on every rank, that belongs to this
  /// rank's edges: [local edges, ...] in edge order. Collective. Throws ShapeError, the same on every rank,
  /// when an edge id has no row.
  [[nodiscard]] Tensor local_edge_rows(const Tensor& by_edge_id) const;

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GraphOptions& options() const noexcept { return options_; }
  /// Of this handle. Throws InputError unless pipeline_depth >= 1, max_halo_bytes >= 0 and edge_block >= 1,
  /// and for a halo_format that does not go with the precision or with the other options.
  void set_options(const GraphOptions& options);

  // Sizes on this rank.
  [[nodiscard]] Index num_src_nodes() const noexcept;
  [[nodiscard]] Index num_dst_nodes() const noexcept;
  [[nodiscard]] Index num_nodes() const noexcept { return num_src_nodes(); }
  [[nodiscard]] Index num_edges() const noexcept;
  // Sizes of the whole graph.
  [[nodiscard]] Index num_global_src_nodes() const noexcept;
  [[nodiscard]] Index num_global_dst_nodes() const noexcept;
  [[nodiscard]] Index num_global_nodes() const noexcept { return num_global_src_nodes(); }
  [[nodiscard]] Index num_global_edges() const noexcept;

  /// Bytes of the graph's own index arrays on this rank now. Some are made when an operation first needs
  /// them.
  [[nodiscard]] std::size_t index_bytes() const noexcept;

  [[nodiscard]] bool is_block() const noexcept;
  [[nodiscard]] bool dst_is_prefix() const noexcept { return is_block(); }  ///< the name of version 1.0
  // Degrees are counted at the first request and kept; several threads may ask.
  /// Number of in-edges of each local destination, from nodes of all ranks.
  [[nodiscard]] const Array<Index>& in_degrees() const;
  /// In-degrees of the local sources, in a homogeneous graph or a message flow graph. Throws InputError on
  /// others.
  [[nodiscard]] const Array<Index>& src_in_degrees() const;
  /// Number of out-edges of each local source, to all workers.
  [[nodiscard]] const Array<Index>& out_degrees() const;
  /// Original ids of this rank's nodes, keys of random draws.
  [[nodiscard]] const Array<Index>& src_ids() const noexcept;
  [[nodiscard]] const Array<Index>& dst_ids() const noexcept;

  /// Edge rows of this rank are in this order: by shard, destination, source, id. Throws InputError after
  /// drop_edge_ids().
  [[nodiscard]] const Array<Index>& edge_ids() const;
  /// Frees the ids of the edges, 8 of about 16 bytes that the graph takes for an edge, for all handles of
  /// this graph. Afterwards these throw InputError: edge_ids(), local_edge_rows(), max and min, dropout of
  /// edges and of attention coefficients, EdgeBatch::ids(), edge_sequences(), samplers. Sums, means,
  /// attention and message flow graphs do without. Local, but call it on all ranks, and while no tape has a
  /// record that reads the ids.
  void drop_edge_ids();
  /// EdgeList::weight in edge order [local edges]; undefined when no rank's edges have weights.
  [[nodiscard]] const Tensor& edge_weight() const noexcept;

  /// This rank's part with all sources of its in-edges at once, brought by a single communication round. The
  /// same as mode one_shot. Local.
  [[nodiscard]] DistributedBlock get_full_partition_graph() const;

  /// For authors of operations: the graph behind this handle, for driver.hpp.
  [[nodiscard]] const std::shared_ptr<const ShardedGraph>& shards() const noexcept { return state_; }
  /// For authors of operations: its edges.
  [[nodiscard]] const GraphTopology& topology() const noexcept;

 private:
  friend class HeteroGraph;
  friend class MessageFlowGraph;
  GraphShardManager(std::shared_ptr<const ShardedGraph> state, const GraphOptions& options);
  GraphShardManager(std::shared_ptr<const ShardedGraph> state, const GraphOptions& options, Frames frames);

  GraphOptions options_;
  std::shared_ptr<const ShardedGraph> state_;
  std::shared_ptr<Frames> frames_;
};

/// When this ends, the frames of a graph are again as they were.
class LocalScope {
 public:
  explicit LocalScope(std::shared_ptr<Frames> frames);
  ~LocalScope();
  LocalScope(const LocalScope&) = delete;
  LocalScope& operator=(const LocalScope&) = delete;

 private:
  std::shared_ptr<Frames> frames_;
  std::vector<Frame> before_;  // of the sources, the destinations and the edges
};

/// The result of get_full_partition_graph(); used like any graph.
class DistributedBlock : public GraphShardManager {
 private:
  friend class GraphShardManager;
  explicit DistributedBlock(GraphShardManager graph) : GraphShardManager(std::move(graph)) {}
};

}}  // namespace sar
