// SPDX-License-Identifier: MIT

/// EdgeBatch: the edges that a user-defined message function processes in one call.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/graph/kernels/message_op.hpp>

#include <functional>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A chunk of the edges of one rank. Its tensors have one row per edge of the chunk. Results without a copy
/// (ids().span()) live until the function returns.
///
/// Ask for rows of the sources here, with the same variables in every call: only the source rows of the
/// current stage are in memory. Variables that the message function computes belong to one chunk and cannot
/// be passed to src(), dst() or edata(). Compute them before the operation, or from the results of these
/// functions.
class EdgeBatch : NonCopyable {
 public:
  virtual ~EdgeBatch() = default;

  [[nodiscard]] virtual Index num_edges() const = 0;
  /// x[u] for the source u of each edge; x [local sources, ...].
  [[nodiscard]] virtual Variable src(const Variable& x) const = 0;
  /// x[v] for the destination v of each edge; x [local destinations, ...].
  [[nodiscard]] virtual Variable dst(const Variable& x) const = 0;
  /// x[e] for each edge; x [local edges, ...] in the graph's edge order.
  [[nodiscard]] virtual Variable edata(const Variable& x) const = 0;
  // The same for fields of the graph's frames. Throws InputError for a field that does not exist.
  [[nodiscard]] Variable src(const std::string& name) const { return src(field(MessageTarget::u, name)); }
  [[nodiscard]] Variable dst(const std::string& name) const { return dst(field(MessageTarget::v, name)); }
  [[nodiscard]] Variable edata(const std::string& name) const { return edata(field(MessageTarget::e, name)); }
  /// Returns the original ids of the edges, the keys of random draws such as dropout(x, p, key, edges.ids()).
  /// Throws InputError if the graph has dropped them (Graph::drop_edge_ids).
  [[nodiscard]] virtual RowIds ids() const = 0;
  /// Returns the indices of the edges in the graph's edge order, for data that is not a Variable.
  [[nodiscard]] virtual RowIds rows() const = 0;

 protected:
  EdgeBatch() = default;
  [[nodiscard]] virtual const Variable& field(MessageTarget of, const std::string& name) const = 0;
};

/// A differentiable function of a chunk of edges that returns one row per edge.
///
/// The function is called once without edges when the operation starts, which determines the message's shape
/// and the variables it reads. It is then called for every chunk, and again in the backward pass with other
/// chunks in another order. Therefore:
///
/// - A row must depend on its own edge only.
/// - Every call must compute the same values (key random draws by ids(), for example), read the same
///   variables and not communicate.
/// - Whatever the function refers to must live until the backward pass is done. Capture by value ([=], [h,
///   this]) unless everything outlives the tape; a Variable is a cheap handle.
///
/// Several threads call the function concurrently, each with its own chunk, so it must not modify what it
/// refers to. The library handles gradients: captured Variables may require one, and operations, Linear and
/// other stateless modules may be used. A function that counts, logs or draws from a generator needs
/// GraphOptions::serial_messages, with which one thread at a time calls it. Results depend neither on threads
/// nor on chunks.
using MessageFunction = std::function<Variable(const EdgeBatch& edges)>;

}}  // namespace sar
