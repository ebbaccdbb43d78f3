/// The types of convolutions that a description can stack.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/module.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Properties of the stacks of one type.
struct StackType {
  std::string name;
  std::string list;             ///< name of the list of convolutions in weight names
  bool attends = false;         ///< the convolution has heads
  bool drops_inputs = false;    ///< dropout before every convolution, as in the papers
  bool caches = false;          ///< the convolution has the option `cached`
  std::string bias = {};        ///< parameter that a convolution adds to all rows of its result; may be empty
  std::string inner_bias = {};  ///< bias inside a convolution that an inner batch norm cancels; may be empty
};

/// Returns the types that a ModelDescription can name.
[[nodiscard]] const std::vector<StackType>& stack_types();

/// The widths of a layer: rows of `in` values -> rows of out() values.
struct LayerSize {
  Index in = 0;
  Index head = 0;  ///< features per head
  Index heads = 1;
  bool mean = false;  ///< the result is the mean of the heads; otherwise they are side by side
  bool residual = false;
  bool cached = false;  ///< caches the aggregate of its input

  [[nodiscard]] Index out() const noexcept { return mean ? head : heads * head; }
};

/// Returns the layer sizes of a checked description, from the first to the last layer; no layer is cached.
/// Local.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelDescription& description, bool attends);

/// A convolution of any class.
struct StackConvolution {
  std::unique_ptr<Module> module;
  /// x [local sources, in] -> [local destinations, out]. Edge weights are used if the graph has them, except
  /// by gatv2.
  std::function<Variable(const GraphShardManager&, const Variable&)> apply;
};

/// Creates a convolution of a checked description. Throws InputError as the convolution does. Local; calling
/// the convolution is collective.
[[nodiscard]] StackConvolution make_convolution(const ModelDescription& description, const LayerSize& size,
                                                const Communicator& comm, Generator& gen);

/// Returns [n, heads * features] from [n, heads, features], or the mean of the heads [n, features]. Local.
[[nodiscard]] Variable join_heads(Variable y, bool mean);

}}  // namespace sar
