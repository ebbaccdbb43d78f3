/// Predictions in every time step of a simulation.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// A network on a graph that computes again and again what the forward pass without a tape computes, with the
/// same bits. It is made once, and keeps the memory of a pass. The weights are read in each call, so that
/// training may go on in between.
///
/// Cost. The first call is a forward pass without a tape. It takes memory, which later calls use again: from
/// the second call on, the networks of GraphModel and MeshGraphNet allocate nothing on one thread, but for
/// what MPI does inside its own calls. Functions of the caller's own may take small objects, and loops of
/// messages with attention or of a message function take memory on each further thread. Later calls do not
/// compare the calls of the ranks again, either: an all_reduce of 40 bytes is left before the first exchange
/// of rows, and one at the end. There is one before each exchange where the function communicates in other
/// ways, too (with this communicator), where halo_format is int8, and in the network of another Predictor. On one rank there is no
/// communication. The result is computed in the caller's memory, where the last operation allows that.
///
/// The function may make other calls of the library than in the call before, the same ones on all ranks.
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

}}  // namespace sar
