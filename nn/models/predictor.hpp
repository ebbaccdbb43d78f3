// SPDX-License-Identifier: MIT

/// Predictions in every time step of a simulation.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// Repeated predictions with one network on one graph. A call returns the same bits as a forward pass without
/// a tape. The predictor keeps the memory of a pass between calls. Each call reads the current weights, so
/// that the network may be trained between calls.
///
/// Memory: the first call allocates; later calls reuse the memory. With one thread, the networks of
/// GraphModel and MeshGraphNet allocate nothing from the second call on, except inside MPI. User-defined
/// networks may allocate small objects; attention and user-defined messages allocate on each additional
/// thread. The result is computed in the caller's memory if the last operation supports it.
///
/// Synchronization: the first call compares the calls of the ranks. Later calls need an all_reduce of 40
/// bytes before the first exchange of rows and one at the end. There is one before every exchange if the
/// network also communicates in other ways on this communicator, if halo_format is int8, or inside the
/// network of another Predictor. One rank does not communicate.
///
/// The network may make different calls in each prediction, as long as they are the same on all ranks.
///
/// @code
/// GraphModel model({.type = "sage", .in_feats = 64, .hidden = 16, .out_feats = 4, .layers = 2}, comm, gen);
/// Predictor predict(model, graph);
/// Tensor out({graph.num_nodes(), 4});
/// for (int step = 0; step < 3; ++step) predict(data.features, {}, out);
/// @endcode
class Predictor {
 public:
  /// x [local sources, ...], rows of edges or {} -> [local destinations, ...].
  using Network = std::function<Variable(const Graph& graph, const Variable& x, const Variable& edges)>;
  struct Widths {
    Index in_feats = 0;    ///< of x
    Index out_feats = 0;   ///< of the result
    Index edge_feats = 0;  ///< of the rows of edges; 0: the network reads none
  };

  /// Collective. `model` must outlive the predictor, which keeps a handle of `graph` with its options.
  Predictor(GraphModel& model, const Graph& graph);
  /// Collective. Of any network whose layers are in `module`. Throws InputError for an empty function and
  /// unless the widths are positive (edge_feats: not negative), the same on every rank.
  Predictor(Module& module, Network network, const Widths& widths, const Graph& graph);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// Collective. x [local sources, in_feats], edges [local edges, edge_feats] or {} -> out [local
  /// destinations, out_feats], memory of the caller (Tensor::borrow) that is not part of x or edges. In
  /// evaluation mode; afterwards each part of the module has its mode of before. Throws ShapeError for
  /// other shapes and for a network whose result has another one, InputError for an `out` that was borrowed
  /// for reading, the same on every rank. Then `out` may have been written; the predictor can be used
  /// afterwards.
  void operator()(const Tensor& x, const Tensor& edges, Tensor& out);

  /// Local. Blocks of memory that the last call took anew on this thread.
  [[nodiscard]] std::size_t allocations() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}}  // namespace sar
