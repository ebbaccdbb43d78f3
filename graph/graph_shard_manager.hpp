/// GraphShardManager: one worker's view of a graph that is sharded over all workers of a communicator.
///
/// Worker p owns contiguous ranges of the source and of the destination nodes (PartitionBook) and keeps the
/// in-edges of its destination nodes as shards, one per worker that owns their sources. Message passing walks
/// the shards one after the other (Sequential Aggregation, arXiv 2111.06483). A graph on one process is the
/// case P = 1.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/message.hpp>
#include <sar/graph/node_data.hpp>
#include <sar/graph/partition_book.hpp>

#include <memory>

namespace sar {

/// How message passing walks the shards; the results agree to rounding. The same on every rank.
enum class Mode {
  rematerialize,  ///< shard after shard; source rows are forgotten and fetched again where the gradient needs
                  ///< them
  sequential,     ///< shard after shard; source rows that the gradient needs are kept
  one_shot,       ///< the local shard, and all others in one communication round; rows kept as in sequential
};

/// The same on every rank.
struct GraphOptions {
  Mode mode = Mode::rematerialize;
  /// Pieces of halo rows in flight while one is used; at least 1. Costs one buffer each.
  int pipeline_depth = 1;
  /// A shard whose halo rows need more bytes is walked in several pieces; 0: no limit.
  Index max_halo_bytes = 0;
};

class DistributedBlock;
struct ShardedGraph;

/// A cheap handle to an immutable graph. Copies share it; the options belong to the handle.
class GraphShardManager {
 public:
  /// `edges`: in-edges of the destinations this rank owns, in any order, parallel edges allowed. A graph of
  /// one kind of nodes has the same book twice. When `dst_is_prefix`, the destinations of a rank are the
  /// first of its sources (always so for one kind of nodes; in DGL's terms, a block). `src_ids` and `dst_ids`
  /// are the original ids of this rank's nodes, which key random draws; empty: the partitioned ids.
  /// Collective. Throws InputError, the same on every rank, when an edge's end does not exist or its
  /// destination is not owned.
  GraphShardManager(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                    EdgeList edges, bool dst_is_prefix, const GraphOptions& options = {},
                    Array<Index> src_ids = {}, Array<Index> dst_ids = {});
  /// out[v] = reduce over the in-edges of v of the message: [local destinations, ...]. With `base` [the same
  /// shape] the result is base + that, computed in base's memory when no one else holds it (sum, mean).
  /// Differentiable in u, e and base. Communication: forward one fetch of the halo rows of u; backward one
  /// push of gradients, when u wants a gradient; one more fetch when e does (rematerialize mode only).
  /// Collective. Throws, before rows travel and the same on every rank, ShapeError when u or e has another
  /// number of rows than the graph has local sources or edges, InputError when ranks differ in message,
  /// width, wish for gradients or options.
  [[nodiscard]] Variable update_all(const Message& message, Reduce reduce, Variable base = {}) const;
  /// The same with a base that is computed while the first halo rows travel: the self term of a layer.
  [[nodiscard]] Variable update_all(const Message& message, Reduce reduce,
                                    FunctionRef<Variable()> make_base) const;

  [[nodiscard]] const Communicator& comm() const noexcept;
  [[nodiscard]] const GraphOptions& options() const noexcept { return options_; }
  /// Of this handle. Throws InputError unless pipeline_depth >= 1 and max_halo_bytes >= 0.
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

  [[nodiscard]] bool dst_is_prefix() const noexcept;
  /// Number of in-edges of each local destination, from all shards.
  [[nodiscard]] const Array<Index>& in_degrees() const noexcept;
  /// Number of out-edges of each local source, to all workers.
  [[nodiscard]] const Array<Index>& out_degrees() const noexcept;
  /// Original ids of this rank's nodes, keys of random draws.
  [[nodiscard]] const Array<Index>& src_ids() const noexcept;
  [[nodiscard]] const Array<Index>& dst_ids() const noexcept;

  /// Edge rows of this rank are in this order: by shard, destination, source, id.
  [[nodiscard]] const Array<Index>& edge_ids() const noexcept;
  /// EdgeList::weight in edge order [local edges]; undefined when the edges had no weights.
  [[nodiscard]] const Tensor& edge_weight() const noexcept;

  /// This rank's part as one piece: all sources of its in-edges at once, brought by a single communication
  /// round. The same as mode one_shot. Local.
  [[nodiscard]] DistributedBlock get_full_partition_graph() const;

 private:
  GraphOptions options_;
  std::shared_ptr<const ShardedGraph> state_;
};

/// The result of get_full_partition_graph(); used like any graph.
class DistributedBlock : public GraphShardManager {
 private:
  friend class GraphShardManager;
  explicit DistributedBlock(GraphShardManager graph) : GraphShardManager(std::move(graph)) {}
};

/// The graph of a loaded or generated dataset: one kind of nodes. Takes data.edges, which is empty
/// afterwards. Collective.
GraphShardManager construct_full_graph(const Communicator& comm, NodeData& data,
                                       const GraphOptions& options = {});

}  // namespace sar
