/// The source rows of a message passing operation, and what its way back keeps of them. For authors of
/// operations.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/sequential.hpp>

#include <memory>
#include <utility>

namespace sar {

/// Copied into the record of the operation. Both walks are collective.
class SourceRows {
 public:
  /// `keep_values`: the way back reads them, and there will be one. In the modes that keep halo rows, forward
  /// keeps them then.
  SourceRows(const GraphShardManager& graph, const Variable& rows, bool keep_values)
      : graph_(graph.shards()), options_(graph.options()), shape_(rows.shape()), gradient_(rows.gradient()) {
    if (!keep_values) return;
    value_ = rows.value();
    if (options_.mode != HaloMode::rematerialize) kept_ = std::make_shared<KeptRows>();
  }

  [[nodiscard]] const ShardedGraph& graph() const noexcept { return *graph_; }

  void forward(const Variable& rows, ShardKernel& kernel, FunctionRef<void()> local_work) const {
    forward_shards(*graph_, options_, rows.value(), kernel, kept_.get(), local_work);
  }
  /// Adds to the gradient of the rows, if they want one.
  void backward(ShardKernel& kernel) const {
    const auto walk = [&](Tensor* gradient, bool accumulate) {
      backward_shards(*graph_, options_, value_, shape_, kernel, kept_.get(), gradient, accumulate);
    };
    if (gradient_ != nullptr)
      gradient_->add([&](Tensor& gradient, bool accumulate) { walk(&gradient, accumulate); });
    else
      walk(nullptr, false);
  }

 private:
  std::shared_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  Shape shape_;
  GradientPtr gradient_;
  Tensor value_;
  std::shared_ptr<KeptRows> kept_;
};

}  // namespace sar
