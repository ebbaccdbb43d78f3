/// EdgeBatch: what a user-defined message sees of the graph, a block of edges at a time.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>

#include <functional>
#include <string>

namespace sar::inline SAR_PRECISION {

/// A block of edges of one worker. Tensors it gives have a row per edge of the block; what it gives without
/// a copy (ids().span()) lives as long as the call of the function.
///
/// The sources' rows are those of the block's shard only: ask for them here, and for the same variables in
/// every block. A variable that is computed inside the message function is one of a block and cannot be asked
/// for; compute it before, or from what src(), dst() and edata() return.
class EdgeBatch {
 public:
  virtual ~EdgeBatch() = default;
  EdgeBatch(const EdgeBatch&) = delete;
  EdgeBatch& operator=(const EdgeBatch&) = delete;

  [[nodiscard]] virtual Index num_edges() const = 0;
  /// x[u] for the source u of each edge; x [local sources, ...].
  [[nodiscard]] virtual Variable src(const Variable& x) const = 0;
  /// x[v] for the destination v of each edge; x [local destinations, ...].
  [[nodiscard]] virtual Variable dst(const Variable& x) const = 0;
  /// x[e] for each edge; x [local edges, ...] in the graph's edge order.
  [[nodiscard]] virtual Variable edata(const Variable& x) const = 0;
  // The same for fields of the graph's frames. Throw InputError for a field that does not exist.
  [[nodiscard]] virtual Variable src(const std::string& field) const = 0;
  [[nodiscard]] virtual Variable dst(const std::string& field) const = 0;
  [[nodiscard]] virtual Variable edata(const std::string& field) const = 0;
  /// Original ids of the edges: keys of random draws, such as dropout(x, p, key, edges.ids()). Throws
  /// InputError where the graph has dropped them (GraphShardManager::drop_edge_ids).
  [[nodiscard]] virtual RowIds ids() const = 0;
  /// Numbers of the edges in the graph's edge order, for data that is no Variable.
  [[nodiscard]] virtual RowIds rows() const = 0;

 protected:
  EdgeBatch() = default;
};

/// A differentiable function of a block of edges: one row per edge.
///
/// It is called once with no edges when the operation starts, to learn the message's shape and what it reads;
/// then for every block, and again in the backward pass, where blocks are others and come in another order: a
/// row must depend on its own edge only. It must compute the same each time (random draws keyed by ids(), for
/// example), ask for the same variables, must not communicate, and is kept until the tape has gone back: what
/// it refers to must live as long. Capture by value ([=], [h, this]) unless everything outlives the tape; a
/// Variable is a cheap handle.
///
/// Several threads call it at once, each for a block of its own, so it must not change what it refers to.
/// Gradients are the library's concern: a captured Variable may want one, and operations, Linear and other
/// modules without a state can be used. A function that counts, logs or draws from a generator needs
/// GraphOptions::serial_messages: one thread calls it at a time. Results do not depend on either.
using MessageFunction = std::function<Variable(const EdgeBatch& edges)>;

}  // namespace sar
