// SPDX-License-Identifier: MIT

// A call costs one all_reduce of a flag and a fingerprint of the operands, which reads them once. The
// cached value is used if it is valid on all ranks. Otherwise all ranks aggregate again, with exact halo
// rows, and cache the result only when all of them have it.
#include <sar/core/error.hpp>
#include <sar/core/tensor/fingerprint.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/conv/aggregate_cache.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
bool AggregateCache::is_valid(const Graph& graph, std::initializer_list<const Variable*> operands) const {
  for (const Variable* x : operands)
    require<InputError>(!x->is_dual(), layer_, " with cached got features or edge weights of shape ",
                        x->shape(), " with a tangent, expected constants");
  for (const Variable* x : operands)
    require<InputError>(!x->requires_grad(), layer_, " with cached got features or edge weights of shape ",
                        x->shape(), " that want a gradient, expected constants");
  if (!value_.defined() || graph_.lock() != graph.shards() || options_ != graph.options()) return false;
  auto kept = operands_.begin();
  for (const Variable* x : operands) {
    const TypedRows &before = (kept++)->rows, now = x->rows();
    if (now.at(0) != before.at(0) || now.shape() != before.shape()) return false;
  }
  for (const Constant& constant : operands_)
    require<InputError>(
        fingerprint(constant.rows) == constant.fingerprint, layer_,
        " with cached got features or edge weights of shape ", constant.rows.shape(),
        " whose values have changed since the last call, expected constants, or another tensor");
  return true;
}

Variable AggregateCache::operator()(const Graph& graph, std::initializer_list<const Variable*> operands,
                                    FunctionRef<Variable()> aggregate) {
  if (!enabled_) return aggregate();
  const Communicator& comm = graph.comm();
  const bool valid = comm.all_reduce(is_valid(graph, operands) ? 0 : 1, ReduceOp::max) == 0;
  if (valid) return value_;
  value_ = {};
  std::vector<Constant> read;
  TypedRows value = comm.agree([&] {  // all ranks cache the value, or none does
    const ExactHaloRows exact;     // the value is reused in later steps, so its rows are fetched in exact
                                   // format
    for (const Variable* x : operands) read.push_back({x->rows(), x->defined() ? fingerprint(x->rows()) : 0});
    return aggregate().rows();
  });
  graph_ = graph.shards();
  options_ = graph.options();
  operands_ = std::move(read);
  value_ = std::move(value);
  return value_;
}
}}  // namespace sar
