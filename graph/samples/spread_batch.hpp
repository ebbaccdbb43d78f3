// SPDX-License-Identifier: MIT

/// SpreadBatch: some graph samples as one graph whose nodes are spread evenly over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/samples/graph_samples.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

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
