/// The convolutions that a description makes a stack of.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/model/model_description.hpp>
#include <sar/nn/module.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// What the stacks of one type have in common.
struct StackType {
  std::string name;
  std::string list;             ///< name of the list of convolutions, in the names of the weights
  bool attends = false;         ///< has heads
  bool drops_inputs = false;    ///< dropout in front of every convolution, as in the papers of these
  bool caches = false;          ///< the convolution has the option `cached`
  std::string bias = {};        ///< of a convolution: what it adds to all rows of its result; often none
  std::string inner_bias = {};  ///< inside of a convolution in front of a batch norm; often none
};

/// Those that a ModelDescription names.
[[nodiscard]] const std::vector<StackType>& stack_types();

/// The shape of a layer: rows of `in` numbers -> rows of out() numbers.
struct LayerSize {
  Index in = 0;
  Index head = 0;  ///< features of a head
  Index heads = 1;
  bool mean = false;  ///< of the heads; otherwise they lie side by side
  bool residual = false;
  bool cached = false;  ///< keeps the aggregate of its input

  [[nodiscard]] Index out() const noexcept { return mean ? head : heads * head; }
};

/// The layers of a stack, from the first to the last; none is cached. Of a checked description. Local.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelDescription& description, bool attends);

/// A convolution of any class.
struct StackConvolution {
  std::unique_ptr<Module> module;
  /// x [local sources, in] -> [local destinations, out]. Weights of the graph's edges are used where it has
  /// any, but not by gatv2.
  std::function<Variable(const GraphShardManager&, const Variable&)> apply;
};

/// A convolution of a checked description. Throws InputError as the convolution does. Local; to apply it is
/// collective.
[[nodiscard]] StackConvolution make_convolution(const ModelDescription& description, const LayerSize& size,
                                                const Communicator& comm, Generator& gen);

/// [n, heads, features] -> [n, heads * features], or the mean of the heads [n, features]. Local.
[[nodiscard]] Variable join_heads(Variable y, bool mean);

}  // namespace sar
