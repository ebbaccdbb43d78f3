// SPDX-License-Identifier: MIT

/// NeighborSampler: message flow graphs of randomly drawn in-edges for mini-batch training, as
/// dgl.dataloading.NeighborSampler.
///
/// Room graph/sampling: Mini-batches: seeds and the neighbors that a step reads, clusters, many small graphs,
/// pairs of nodes.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// How the in-edges of a layer are drawn.
enum class NeighborMethod {
  uniform,  ///< each node draws as many as the fan-out among its own, by itself
  /// LABOR-0: nodes share the draws of their common sources, so that a layer reads fewer different rows.
  /// A node keeps as many edges as the fan-out in the mean, and at least one. Without `replace` and `prob`.
  labor
};

/// Options of a NeighborSampler; the same on every rank, except `prob`.
struct NeighborSamplerOptions {
  NeighborMethod method = NeighborMethod::uniform;
  /// Draws in-edges with replacement. A node with in-edges then always gets as many edges as the fan-out.
  bool replace = false;
  /// [local edges of NeighborSampler::graph()] in edge order: an edge is drawn with a probability
  /// proportional to it, without `replace` sequentially from the remaining edges (numpy.random.choice). Edges
  /// with probability 0 are never drawn, even if all in-edges have it. If undefined on every rank, all edges
  /// are equally likely.
  Tensor prob = {};
  /// Draws anew in each batch, as DGL does. Otherwise, a node that occurs in several batches of an epoch has
  /// the same neighbors in all of them, and batches read fewer different rows.
  bool redraw = false;
  std::uint64_t seed = 0;
};

struct CandidateEdges;

/// Draws in-edges of the nodes that each layer computes: at most as many per node as the fan-out, or all of
/// them for a fan-out of -1. The draws of a node are a function of (seed, epoch, layer, original id of the
/// node), with `redraw` also of the batch, and its in-edges are considered in the order of their edge ids.
/// The message flow graphs are therefore the same for every number of ranks and threads. For typed edges
/// there is one fan-out per type, and the in-edges of each type are drawn independently: the draws depend on
/// the type, too. With a single type, they are those without types.
///
/// The message flow graphs are distributed like the whole graph: the owner of a node computes it once per
/// layer, whatever the number of seeds and ranks that depend on it. Batch norm, dropout and losses are
/// therefore also the same for every number of ranks.
///
/// @code
/// const NeighborSampler sampler(graph, {10, -1}, {.seed = 1});  // -1: all in-edges
/// const std::vector<Index> seeds{data.book.begin(comm.rank())};
/// const std::vector<MessageFlowGraph> blocks = sampler.sample_blocks(seeds);
/// @endcode
///
/// Of a graph with several types, the sampler draws in the homogeneous form and gives blocks with types:
///
/// @code
/// const NeighborSampler by_type(hetero, std::vector<Index>{10, 5});  // of each edge type
/// const NodesByType first{{"fluid", {hetero.book("fluid").begin(comm.rank())}}};
/// const std::vector<MessageFlowGraph> typed = by_type.sample_blocks(first);
/// @endcode
class NeighborSampler {
 public:
  /// Collective. `fan_outs`: one per layer, the first layer first; with several edge types, of each type.
  /// Memory: 4 bytes per in-edge of this rank (8 or 12 with prob; with labor 8 per halo row, and 4 per
  /// in-edge if there are parallel edges), with several types 2 more. Throws InputError on every rank for an
  /// empty list, a fan-out below -1, fan-outs or options that differ between ranks, a block, and for
  /// probabilities that are negative, not finite, all 0, or not one per local edge of graph().
  NeighborSampler(const Graph& graph, std::vector<Index> fan_outs,
                  const NeighborSamplerOptions& options = {});
  /// Collective. `fan_outs`: per layer, one for each edge type of the graph, by canonical or relation name,
  /// as DGL's dicts. Throws as the other constructors, and InputError for an unknown, repeated or missing
  /// type.
  NeighborSampler(const Graph& graph, std::span<const std::map<std::string, Index>> fan_outs,
                  const NeighborSamplerOptions& options = {});
  /// Collective. For a graph without types whose edges have some: `fan_outs`: per layer, one per edge type;
  /// `etypes`: the types of the local edges. It gives blocks without types. Memory: 2 more bytes per in-edge.
  /// Throws as the other constructors, InputError if the layers have no fan-outs or different numbers of them
  /// and for types without a fan-out, ShapeError unless there is one type per local edge.
  NeighborSampler(const Graph& graph, std::vector<std::vector<Index>> fan_outs, const EdgeTypes& etypes,
                  const NeighborSamplerOptions& options = {});

  /// Returns the message flow graphs of all layers, the first layer first, as construct_mfgs does. `seeds`:
  /// distinct global ids of nodes of this rank, in the order of the last layer's destinations. `excluded`:
  /// sorted, distinct edge rows of this rank that no layer uses. In-degrees are those in the layer,
  /// out-degrees those in the whole graph. `batch`: its number in the epoch, which `redraw` reads. Throws
  /// InputError on every rank for a seed that is not a node, belongs to another rank or is given twice, for
  /// excluded edges that do not exist or do not ascend, and for a negative batch.
  /// Collective: two messages per layer to each rank whose rows the layer reads.
  [[nodiscard]] std::vector<MessageFlowGraph> sample_blocks(std::span<const Index> seeds,
                                                            std::uint64_t epoch = 0,
                                                            std::span<const Index> excluded = {},
                                                            Index batch = 0) const;

  /// The same of nodes by type.
  [[nodiscard]] std::vector<MessageFlowGraph> sample_blocks(const NodesByType& seeds, std::uint64_t epoch = 0,
                                                            std::span<const Index> excluded = {},
                                                            Index batch = 0) const;
  /// Collective. Returns the ids in graph() of nodes by type. Throws InputError for an unknown type and for a
  /// node that does not exist or belongs to another rank.
  [[nodiscard]] std::vector<Index> nodes_of(const NodesByType& nodes) const;

  /// The graph in which edges are drawn: the given one, or its homogeneous form if it has several types.
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  /// Returns the fan-outs of the layers; with edge types, those of all types of a layer are adjacent.
  [[nodiscard]] const std::vector<Index>& fan_outs() const noexcept { return fan_outs_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

 private:
  struct Sampled {
    Graph graph;
    std::optional<Graph> typed;
  };
  static Sampled sampled(const Graph& graph);
  NeighborSampler(Sampled of, std::size_t num_layers, const NeighborSamplerOptions& options);
  void prepare(const EdgeTypes* etypes, const NeighborSamplerOptions& options);

  Graph graph_;
  std::optional<Graph> typed_;  // with several types: what blocks have the types of
  std::vector<Index> fan_outs_;
  std::size_t num_layers_;
  NeighborMethod method_;
  bool replace_, redraw_;
  std::uint64_t seed_;
  std::shared_ptr<const CandidateEdges> candidates_;
};

}}  // namespace sar
