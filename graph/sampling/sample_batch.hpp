// SPDX-License-Identifier: MIT

/// SampleBatch: some graph samples as one graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

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
}}  // namespace sar
