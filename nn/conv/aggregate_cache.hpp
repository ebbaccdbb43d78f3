// SPDX-License-Identifier: MIT

/// A cache for the aggregate of constant features.
#pragma once

#include <sar/graph/message/graph.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Caches the aggregate of constant rows between calls. It implements the option `cached` of
/// SAGEConv, GraphConv, GINConv and the multi-hop convolutions, for layers whose aggregate does not depend
/// on dropout or parameters. The result is exact: rows are fetched and aggregated as without the cache, but
/// only once.
///
/// A different graph, different graph options or a different tensor on any rank invalidates the cache on
/// all ranks. Rows that require a gradient are rejected. Rows that were overwritten in place are rejected
/// too; a fingerprint of the values detects them.
class AggregateCache {
 public:
  /// `layer` is the layer's name in error messages.
  AggregateCache(bool enabled, std::string layer) : enabled_(enabled), layer_(std::move(layer)) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  /// Returns the cached value if the graph and the operands are those of the previous call, and otherwise
  /// calls aggregate(), which must be a function of the operands on this graph. Undefined operands are
  /// ignored. Layers call this inside Communicator::agree. Throws InputError on every rank if an operand
  /// requires a gradient, or if it is the tensor of the previous call with changed values.
  [[nodiscard]] Variable operator()(const Graph& graph, std::initializer_list<const Variable*> operands,
                                    FunctionRef<Variable()> aggregate);

 private:
  /// An operand of the cached value. The tensor is kept alive so that no other tensor can get its address.
  struct Constant {
    TypedRows rows;
    std::uint64_t fingerprint = 0;
  };
  /// Returns whether the cached value belongs to these operands. Throws InputError as above.
  [[nodiscard]] bool is_valid(const Graph& graph, std::initializer_list<const Variable*> operands) const;

  bool enabled_;
  std::string layer_;
  std::weak_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  std::vector<Constant> operands_;
  TypedRows value_;  // undefined: the cache is empty
};

}}  // namespace sar
