// SPDX-License-Identifier: MIT

/// SampleBatch: some graph samples as one graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/samples/graph_samples.hpp>

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

}}  // namespace sar
