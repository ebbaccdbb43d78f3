/// NeighborSampler: message flow graphs of randomly chosen in-edges, for training on mini-batches. The names
/// are DGL's (dgl.dataloading.NeighborSampler).
///
/// Room graph/sampling: Mini-batches: which seeds come together, and which of their neighbours a step reads.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The same on every rank, but for `prob`.
struct NeighborSamplerOptions {
  /// Whether an in-edge may be drawn several times. Then every node with in-edges has exactly fan-out many.
  bool replace = false;
  /// [local edges] in edge order: an edge is drawn with a probability in proportion to it, without `replace`
  /// one after the other from those that are left (numpy.random.choice). Edges of probability 0 are never
  /// drawn, also where all in-edges are. Undefined on every rank: all edges alike.
  Tensor prob = {};
  std::uint64_t seed = 0;
};

struct CandidateEdges;

/// Chooses in-edges of the nodes that each layer computes: at most fan-out many of a node, all when the
/// fan-out is -1. The draws of a node are a function of (seed, epoch, layer, original id of the node), and
/// its in-edges are taken in the order of their edge ids. So the message flow graphs are the same for every
/// number of ranks and threads; a node that several batches of an epoch need has the same neighbours in each.
/// Where edges have types, there is a fan-out for each type, and a node's in-edges of each type are drawn by
/// themselves: its draws depend on the type, too. With one type they are those without types.
///
/// The message flow graphs are spread over the ranks as the whole graph is: each node of a layer is computed
/// once, by its owner, however many seeds of whatever ranks depend on it. Batch norm, dropout and losses
/// therefore see the same for every number of ranks, too.
class NeighborSampler {
 public:
  /// `fan_outs`: of each layer, the first layer first. Takes 4 bytes for each in-edge of this rank (with prob
  /// 8 or 12). Collective. Throws InputError, the same on every rank, for no fan-outs, a fan-out less than
  /// -1, fan-outs or options that differ between ranks, a graph that is not homogeneous, and for
  /// probabilities that are negative, not finite, of another number than the local edges or 0 on all edges.
  NeighborSampler(const GraphShardManager& graph, std::vector<Index> fan_outs,
                  const NeighborSamplerOptions& options = {});
  /// `fan_outs`: of each layer, for each type of edge; `etypes`: of the local edges. As DGL's with a dict for
  /// each layer, on the homogeneous form of a graph with several edge types. Takes 2 bytes more for each
  /// in-edge. Collective. Throws as the other constructor, InputError for a layer without fan-outs or with
  /// another number of them than the first one and for types that have none, ShapeError for another number
  /// of types than local edges.
  NeighborSampler(const GraphShardManager& graph, std::vector<std::vector<Index>> fan_outs,
                  const EdgeTypes& etypes, const NeighborSamplerOptions& options = {});

  /// The graphs of all layers, the first layer first, as those of construct_mfgs. `seeds`: global ids of
  /// nodes of this rank, each once, in the order of the last layer's destinations. `excluded`: edge rows of
  /// this rank that no layer uses; sorted, each once. In-degrees are those in the layer, out-degrees those in
  /// the whole graph. Two messages to each rank of whose rows a layer reads some. Collective. Throws
  /// InputError, the same on every rank, for a seed that is no node, of another rank or given twice, and for
  /// excluded edges that are none or do not ascend.
  [[nodiscard]] std::vector<MessageFlowGraph> sample_blocks(std::span<const Index> seeds,
                                                            std::uint64_t epoch = 0,
                                                            std::span<const Index> excluded = {}) const;

  [[nodiscard]] const GraphShardManager& graph() const noexcept { return graph_; }
  /// Of the layers; with types of edges, those of all types follow each other.
  [[nodiscard]] const std::vector<Index>& fan_outs() const noexcept { return fan_outs_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

 private:
  void prepare(const EdgeTypes* etypes, const NeighborSamplerOptions& options);

  GraphShardManager graph_;
  std::vector<Index> fan_outs_;
  std::size_t num_layers_;
  bool replace_;
  std::uint64_t seed_;
  std::shared_ptr<const CandidateEdges> candidates_;
};

}  // namespace sar
