// SPDX-License-Identifier: MIT

/// GraphSamples: many small graphs with their data, of which each is one sample of a training: molecules,
/// parts of programs, structures of atoms. Their batches as one graph, and the loader of batches.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Rows of integers, such as the chemical element of each atom.
struct IntegerRows {
  Index columns = 1;
  Array<Index> values;  ///< [rows * columns]

  [[nodiscard]] Index num_rows() const noexcept { return std::ssize(values) / columns; }
  [[nodiscard]] Index row_size() const noexcept { return columns; }
  [[nodiscard]] Index* data() noexcept { return values.data(); }
  [[nodiscard]] const Index* data() const noexcept { return values.data(); }
  [[nodiscard]] Index* row(Index i) noexcept { return data() + i * columns; }
  [[nodiscard]] const Index* row(Index i) const noexcept { return data() + i * columns; }
};

/// The fields of the nodes, the edges or the graphs, by name, with one row for each.
struct SampleFields {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, IntegerRows> integers;

  [[nodiscard]] bool empty() const noexcept { return tensors.empty() && integers.empty(); }
};

/// The graphs of this rank, one after another. Each graph is whole on one rank; a rank may have none, and
/// then has its fields with 0 rows. The edges of a graph are sorted by destination, then by source
/// (sort_edges).
///
/// @code
/// GraphSamples samples;
/// samples.add(0, 3, std::vector<Index>{0, 1, 2}, std::vector<Index>{1, 2, 0});  // a triangle
/// samples.add(1, 2, std::vector<Index>{0, 1}, std::vector<Index>{1, 0});
/// samples.nodes.tensors["x"] = Tensor::full({samples.num_nodes(), 4}, 1);
/// sort_edges(samples);
/// @endcode
struct GraphSamples {
  Array<Index> ids;                           ///< [graphs] number in the dataset: keys draws, names results
  Array<Index> node_begin{0}, edge_begin{0};  ///< [graphs + 1] first node and edge of each graph
  Array<local_index> src, dst;                ///< [edges] nodes of the same graph, counted from 0
  SampleFields nodes, edges, graphs;

  [[nodiscard]] Index num_graphs() const noexcept { return std::ssize(ids); }
  [[nodiscard]] Index num_nodes() const noexcept { return node_begin.back(); }
  [[nodiscard]] Index num_edges() const noexcept { return edge_begin.back(); }
  [[nodiscard]] Index num_nodes(Index g) const noexcept { return node_begin[g + 1] - node_begin[g]; }
  [[nodiscard]] Index num_edges(Index g) const noexcept { return edge_begin[g + 1] - edge_begin[g]; }

  /// Local. Adds a graph of so many nodes with the edges (src[k], dst[k]), whose nodes count from 0. Fields
  /// are set for all graphs afterwards. Throws InputError for an id outside [0, 2^31), for lists of
  /// different lengths and for an edge whose end is no node.
  void add(Index id, Index num_nodes, std::span<const Index> src, std::span<const Index> dst);

  /// Local. Throws InputError, which begins with `place` and names the graph, unless ids are in [0, 2^31),
  /// ends of edges are nodes of their graph, edges are sorted, and fields have a row for each node, edge or
  /// graph.
  void check(const std::string& place = "graph samples") const;

  /// Local. Returns the graphs at these positions, in their order, with their fields.
  [[nodiscard]] GraphSamples select(std::span<const Index> positions) const;
};

/// Local. Returns the number of node or edge `i` of the graph with this id, which keys its random draws. It
/// depends neither on batches nor on ranks.
[[nodiscard]] constexpr Index id_in_samples(Index graph_id, Index i) noexcept {
  return (graph_id << 31) + i;
}

/// Local. Returns names and row shapes of all fields as text, to compare ranks.
[[nodiscard]] std::string describe_fields(const GraphSamples& samples);

// Changes of the edges of graph samples. All functions are local.

/// Local. Sorts the edges of each graph by destination, then by source, with their fields; equal edges keep
/// their order. Throws InputError for ends outside of their graph and for fields of the edges without a row
/// for each.
void sort_edges(GraphSamples& samples);

/// Local. Adds an edge (v, u) for each edge (u, v), with the same fields, and sorts the edges. Throws as
/// sort_edges.
void add_reverse_edges(GraphSamples& samples);

/// Local. Adds an edge (v, v) for each node v, with fields of zeros, and sorts the edges. Throws as
/// sort_edges.
void add_self_loops(GraphSamples& samples);

// SampleBatch: some graph samples as one graph.

/// The samples of all ranks as one graph, whose adjacency matrix is block-diagonal (dgl.batch). Each sample
/// is whole on one rank, so that there are no halo rows: message passing computes what it computes on each
/// sample alone. Rows of node and edge tensors are those of the samples, one after another, and so the
/// fields of samples() are node and edge tensors of graph(). Norms over the nodes and losses with `comm`
/// are computed over all samples of all ranks. A copy is a handle to the same batch.
///
/// @code
/// GraphSamples samples;
/// samples.add(comm.rank(), 2, std::vector<Index>{0}, std::vector<Index>{1});  // one sample on each rank
/// samples.nodes.tensors["x"] = Tensor::full({2, 4}, 1);
/// const SampleBatch batch(comm, std::move(samples));
/// const Variable h = batch.graph().update_all(fn::copy_u(batch.samples().nodes.tensors.at("x")), fn::sum);
/// const Variable y = readout_nodes(batch, h, Reduce::sum);  // [samples of this rank, 4]
/// @endcode
class SampleBatch {
 public:
  /// Collective. `samples`: those of this rank. Throws InputError, the same on every rank, as
  /// GraphSamples::check(), for names or widths of fields that differ between ranks, and if no rank has a
  /// sample.
  SampleBatch(const Communicator& comm, GraphSamples samples, const GraphOptions& options = {});

  [[nodiscard]] const Graph& graph() const noexcept { return state_->graph; }
  [[nodiscard]] const GraphSamples& samples() const noexcept { return *state_->samples; }
  [[nodiscard]] Index num_graphs() const noexcept { return samples().num_graphs(); }  ///< of this rank
  [[nodiscard]] Index num_global_graphs() const noexcept { return state_->num_global_graphs; }
  /// The sample of each local node, as its position in samples().
  [[nodiscard]] const Array<Index>& graph_of_nodes() const noexcept { return *state_->graph_of_nodes; }
  /// For authors of operations: the same, kept alive by the returned handle.
  [[nodiscard]] const std::shared_ptr<const Array<Index>>& shared_graph_of_nodes() const noexcept {
    return state_->graph_of_nodes;
  }
  /// For authors of operations: samples(), kept alive by the returned handle.
  [[nodiscard]] const std::shared_ptr<const GraphSamples>& shared_samples() const noexcept {
    return state_->samples;
  }

 private:
  struct State {
    std::shared_ptr<const GraphSamples> samples;
    std::shared_ptr<const Array<Index>> graph_of_nodes;
    Graph graph;
    Index num_global_graphs;
  };
  static State make(const Communicator& comm, GraphSamples samples, const GraphOptions& options);

  std::shared_ptr<const State> state_;
};

// SpreadBatch: some graph samples as one graph whose nodes are spread evenly over the ranks.

/// The samples of all ranks as one graph with a block-diagonal adjacency matrix, as SampleBatch, on other
/// ranks than those that have the samples. Of N nodes in the order of the samples, rank p of P gets those
/// from about N p / P on. A sample with more than N / P nodes is cut there, and its parts exchange halo rows;
/// the others are moved as a whole, to the rank that has the larger part of them. A sample may so be too
/// large for one rank to compute, though not to hold. A copy is a handle to the same batch.
///
/// @code
/// GraphSamples samples;
/// if (comm.rank() == 0) samples.add(0, 3, std::vector<Index>{2, 0, 1}, std::vector<Index>{0, 1, 2});
/// samples.nodes.tensors["x"] = Tensor::full({samples.num_nodes(), 4}, 1);
/// const SpreadBatch batch(comm, samples);
/// const Variable h = batch.graph().update_all(fn::copy_u(batch.nodes().tensors.at("x")), fn::sum);
/// const Tensor y = batch.to_samples(h.value());  // [samples.num_nodes(), 4]
/// @endcode
class SpreadBatch {
 public:
  /// Collective. Sends each node and each in-edge of it, with their fields, to a rank. `samples`: those of
  /// this rank. Throws InputError as SampleBatch.
  SpreadBatch(const Communicator& comm, const GraphSamples& samples, const GraphOptions& options = {});

  [[nodiscard]] const Graph& graph() const noexcept { return state_->graph; }
  [[nodiscard]] const SampleFields& nodes() const noexcept { return state_->nodes; }  ///< of local nodes
  /// The fields of the local edges, in the graph's edge order.
  [[nodiscard]] const SampleFields& edges() const noexcept { return state_->edges; }
  /// The sample of each local node: its number among those of all ranks, first those of rank 0.
  [[nodiscard]] const Array<Index>& graph_of_nodes() const noexcept { return state_->graph_of_nodes; }
  [[nodiscard]] Index num_global_graphs() const noexcept { return state_->num_global_graphs; }

  /// The route from the nodes of this rank's samples to the local nodes.
  [[nodiscard]] const RowRoute& route() const noexcept { return state_->route; }
  /// Collective. Returns rows of the local nodes to the ranks that have the samples: the rows of the nodes of
  /// this rank's samples. Throws ShapeError, the same on every rank, for another number of rows.
  [[nodiscard]] Tensor to_samples(const Tensor& rows) const;

 private:
  struct State {
    RowRoute route;
    Graph graph;
    SampleFields nodes, edges;
    Array<Index> graph_of_nodes;
    Index num_global_graphs;
  };
  static State make(const Communicator& comm, const GraphSamples& samples, const GraphOptions& options);

  std::shared_ptr<const State> state_;
};

// SampleLoader: iterates over graph samples in mini-batches, as dgl.dataloading.GraphDataLoader.

/// The input of a training step.
struct SampleMiniBatch {
  Index number = 0;        ///< index in its epoch, from 0
  Array<Index> positions;  ///< of this rank's samples among those that the loader was given
  SampleBatch batch;
};

/// Iterates over samples of all ranks in batches, once per epoch. Which samples a batch has depends on their
/// ids, on the seed and on the epoch, not on the ranks. A rank computes those of its own samples.
///
/// @code
/// GraphSamples samples;
/// samples.add(comm.rank(), 2, std::vector<Index>{0}, std::vector<Index>{1});
/// SampleLoader loader(comm, std::make_shared<const GraphSamples>(std::move(samples)), std::vector<Index>{0},
///                     {.batch_size = 1});
/// loader.start_epoch(1);
/// Index graphs = 0;
/// while (const auto next = loader.next()) graphs += next->batch.num_global_graphs();
/// @endcode
class SampleLoader {
 public:
  /// Collective. `positions`: distinct samples of this rank, in any order; a rank may give none. Throws
  /// InputError on every rank as GraphSamples::check() and SeedBatches, for a position that does not exist
  /// or is given twice, and for fields that differ between ranks.
  SampleLoader(const Communicator& comm, std::shared_ptr<const GraphSamples> samples,
               std::span<const Index> positions, const DataLoaderOptions& options = {},
               const GraphOptions& graph_options = {});

  [[nodiscard]] Index num_batches() const noexcept { return batches_.num_batches(); }  ///< per epoch
  [[nodiscard]] Index num_samples() const noexcept { return batches_.num_seeds(); }    ///< of all ranks
  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0) { batches_.start_epoch(epoch, first_batch); }
  /// Collective. Returns the next batch, or nothing after the last one. Throws InputError on every rank if
  /// epochs or batches of the ranks differ.
  [[nodiscard]] std::optional<SampleMiniBatch> next();
  /// Collective. As next(), of which it returns the positions alone: for a batch of another kind, such as a
  /// SpreadBatch.
  [[nodiscard]] std::optional<Array<Index>> next_positions();

 private:
  [[nodiscard]] std::optional<Array<Index>> positions_at_hand(const char* call) const;

  Communicator comm_;
  std::shared_ptr<const GraphSamples> samples_;
  Array<Index> positions_;
  SeedBatches batches_;
  GraphOptions graph_options_;
};
}}  // namespace sar
