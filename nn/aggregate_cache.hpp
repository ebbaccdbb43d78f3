/// What a layer keeps of constant features from call to call.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Keeps the aggregate of constant rows, which a layer without dropout or parameters in front of it computes
/// from the same rows in every call: the option `cached` of SAGEConv, GraphConv, GINConv and the convolutions
/// of several hops. Exact: the rows are fetched and added up as without it, once. Another graph, other
/// options of it, or another tensor on any rank drop what is kept, on all ranks. Rows that want a gradient
/// are refused, and so are rows that were overwritten where they lie, which a fingerprint shows. Collective.
class AggregateCache {
 public:
  /// `layer` is for error messages.
  AggregateCache(bool enabled, std::string layer) : enabled_(enabled), layer_(std::move(layer)) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  /// aggregate(), which is a function of the operands (undefined ones do not count) on the graph; the value
  /// of the last call where these are the same. For layers, in Communicator::agree. Throws InputError, the
  /// same on every rank, when an operand wants a gradient, or when it is the tensor of the last call with
  /// other values.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph,
                                    std::initializer_list<const Variable*> operands,
                                    FunctionRef<Variable()> aggregate);

 private:
  /// A tensor that was read, held so that no other tensor can have its address.
  struct Constant {
    Tensor tensor;
    std::uint64_t fingerprint = 0;
  };
  /// Whether the value is that of these operands. Throws InputError as above.
  [[nodiscard]] bool is_valid(const GraphShardManager& graph,
                              std::initializer_list<const Variable*> operands) const;

  bool enabled_;
  std::string layer_;
  std::weak_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  std::vector<Constant> operands_;
  Tensor value_;  // undefined: nothing is kept
};

}  // namespace sar
