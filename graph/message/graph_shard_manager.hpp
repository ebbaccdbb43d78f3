// SPDX-License-Identifier: MIT

/// GraphShardManager: one rank's view of a graph that is sharded over all ranks of a communicator.
///
/// Rank p owns contiguous ranges of the source and of the destination nodes (PartitionBook) and keeps the
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
#include <sar/graph/message/started_sum.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class LocalScope;
class MessageFlowGraph;
struct GraphTopology;
struct ShardedGraph;

/// A cheap handle to an immutable graph and its frames. Copies share both; the options belong to the handle.
///
/// @code
/// const Variable h(Tensor::full({graph.num_nodes(), 8}, 1), /*requires_grad=*/true);
/// const Variable w(Tensor::full({graph.num_edges(), 1}, 1), /*requires_grad=*/true);
/// Tape tape;
/// const Variable y = graph.update_all(fn::u_mul_e(h, w), fn::sum);  // fetches the halo rows of h
/// tape.backward(sum(y, graph.comm()));                              // sends their gradients back
/// @endcode
class GraphShardManager {
 public:
  /// Collective. `edges`: the in-edges of the destinations of this rank, in any order; parallel edges are
  /// allowed. For a homogeneous graph, pass the same book twice. If `is_block`, the destinations of a rank
  /// are the first of its sources, as in DGL's blocks and in every homogeneous graph. `src_ids`, `dst_ids`:
  /// original ids of this rank's nodes, which key random draws; empty: the global ids. Throws InputError on
  /// every rank if an end of an edge does not exist or a destination belongs to another rank.
  GraphShardManager(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                    EdgeList edges, bool is_block, const GraphOptions& options = {},
                    Array<Index> src_ids = {}, Array<Index> dst_ids = {});
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
  [[nodiscard]] Frame& srcdata() const { return *frames_->src; }
  [[nodiscard]] Frame& dstdata() const { return *frames_->dst; }
  [[nodiscard]] Frame& edata() const { return *frames_->edge; }
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
  /// Of this handle. Throws InputError unless pipeline_depth >= 1, max_halo_bytes >= 0 and edge_chunk >= 1,
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
  // Degrees are counted at the first request and kept; several threads may ask.
  /// Number of in-edges of each local destination, from nodes of all ranks.
  [[nodiscard]] const Array<Index>& in_degrees() const;
  /// Number of out-edges of each local source, to all ranks.
  [[nodiscard]] const Array<Index>& out_degrees() const;
  /// Original ids of this rank's nodes, keys of random draws.
  [[nodiscard]] const Array<Index>& src_ids() const noexcept;
  [[nodiscard]] const Array<Index>& dst_ids() const noexcept;

  /// Edge rows of this rank are in this order: by shard, destination, source, id. Throws InputError after
  /// drop_edge_ids().
  [[nodiscard]] const Array<Index>& edge_ids() const;
  /// Frees the edge ids of this graph, for all handles: 8 of about 16 bytes per edge. Afterwards, edge_ids(),
  /// local_edge_rows(), max and min, dropout of edges and of attention coefficients, EdgeBatch::ids(),
  /// edge_sequences() and samplers throw InputError. Sums, means, attention and message flow graphs do not
  /// need the ids. Local, but call it on all ranks, and only if no record on a tape reads the ids.
  void drop_edge_ids();
  /// EdgeList::weight in edge order [local edges]; undefined when no rank's edges have weights.
  [[nodiscard]] const Tensor& edge_weight() const noexcept;

  /// Local. Returns a handle in mode one_shot: all halo rows are fetched in one stage.
  [[nodiscard]] GraphShardManager get_full_partition_graph() const;

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
class LocalScope : NonCopyable {
 public:
  explicit LocalScope(std::shared_ptr<Frames> frames);
  ~LocalScope();

 private:
  std::shared_ptr<Frames> frames_;
  std::vector<Frame> before_;  // of the sources, the destinations and the edges
};

}}  // namespace sar
