/// Predictions in every time step of a simulation.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/model/graph_model.hpp>
#include <sar/nn/module.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace sar::inline SAR_PRECISION {

/// A network on a graph that computes again and again what the forward pass without a tape computes, with the
/// same bits. It is made once, and keeps the memory of a pass. The weights are read in each call, so that
/// training may go on in between.
///
/// Cost. The first call is a forward pass without a tape. It takes memory, which later calls use again. With
/// SAGE, GCN and, on one thread, MeshGraphNet, the third call and all later ones allocate nothing, but for
/// what MPI does inside its own calls; attention and functions of the caller's own still take small objects,
/// and loops of a message function on several threads take memory on each of them. Later calls do not compare
/// the calls of the ranks again, either: an all_reduce of 40 bytes is left before the rows of a halo travel,
/// and one at the end. On one rank there is no communication. The result is computed in the caller's memory,
/// where the last operation allows that.
class Predictor {
 public:
  /// x [local sources, ...], rows of edges or {} -> [local destinations, ...].
  using Network =
      std::function<Variable(const GraphShardManager& graph, const Variable& x, const Variable& edges)>;
  struct Widths {
    Index in_feats = 0;    ///< of x
    Index out_feats = 0;   ///< of the result
    Index edge_feats = 0;  ///< of the rows of edges; 0: the network reads none
  };

  /// `model` must outlive the predictor, which keeps a handle of `graph` with its options. Collective.
  Predictor(GraphModel& model, const GraphShardManager& graph);
  /// Of any network whose layers are in `module`. Throws InputError for an empty function and unless the
  /// widths are positive (edge_feats: not negative), the same on every rank. Collective.
  Predictor(Module& module, Network network, const Widths& widths, const GraphShardManager& graph);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// x [local sources, in_feats], edges [local edges, edge_feats] or {} -> out [local destinations,
  /// out_feats], memory of the caller (Tensor::borrow) that is not part of x or edges. In evaluation mode; a
  /// module in training mode is again so as a whole afterwards. Throws ShapeError for other shapes and for a
  /// network whose result has another one, InputError for an `out` that was borrowed for reading, the same on
  /// every rank. Then `out` may have been written; the predictor can be used afterwards. Collective.
  void operator()(const Tensor& x, const Tensor& edges, Tensor& out);

  /// Blocks of memory that the last call took anew on this thread. Local.
  [[nodiscard]] std::size_t allocations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sar
