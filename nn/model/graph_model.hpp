/// Networks that a description says, and files of them.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/mesh_graph_net.hpp>
#include <sar/nn/model/layer_stack.hpp>
#include <sar/nn/model/model_description.hpp>
#include <sar/nn/model/stack_convolution.hpp>
#include <sar/nn/model/weight_names.hpp>
#include <sar/nn/module.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The network that a ModelDescription says. With f the activation, of each layer but the last
///
///     sage, gin:         y = dropout(f(norm(conv(x))))
///     gcn, gat, gatv2:   the same, with a dropout of the input in front of the first layer, too
///
/// and of the last y = conv(x). conv is SAGEConv, GraphConv, GATConv, GATv2Conv, or GINConv with a learned
/// eps around the network Linear, batch norm, ReLU, Linear. Heads lie side by side; those of the last layer
/// are averaged. Weights of the graph's edges are used where it has any, but not by gatv2.
///
/// mesh_graph_net is a MeshGraphNet with `layers` blocks.
///
/// Parameters: convs.i.* of sage, layers.i.* of other stacks, bns.i.* of batch norms, norms.i.* of layer
/// norms; network.* of mesh_graph_net.
class GraphModel : public Module {
 public:
  /// Throws InputError as ModelDescription::checked(). Local.
  GraphModel(const ModelDescription& description, const Communicator& comm, Generator& gen);

  /// x [local sources, in_feats] -> [local destinations, out_feats]; edges [num_edges of the graph,
  /// edge_feats] in the graph's edge order, or {} where edge_feats is 0. Throws ShapeError, the same on every
  /// rank, when shapes do not fit. Collective.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& x,
                                    const Variable& edges = {});

  /// With the usual texts in place of empty ones.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }

  /// Forgets the gradients of biases in front of a batch norm, which subtracts them again. They are zero but
  /// for rounding, which Adam would scale up to full steps. After the backward pass, in front of
  /// gather_grads. Local.
  void forget_noise();

  /// The network of a mesh_graph_net, for update_statistics() and losses of normalized results; none of other
  /// types.
  [[nodiscard]] MeshGraphNet* mesh_graph_net() noexcept { return mesh_ ? &*mesh_ : nullptr; }

 private:
  void make_stack(const Communicator& comm, Generator& gen);
  void make_mesh(const Communicator& comm, Generator& gen);
  void check(const GraphShardManager& graph, const Variable& x, const Variable& edges) const;

  ModelDescription description_;
  std::vector<StackConvolution> convolutions_;  // their modules are in the stack
  std::optional<LayerStack> stack_;
  std::optional<MeshGraphNet> mesh_;
};

/// The key of the description in the metadata of a .safetensors file.
inline constexpr const char* model_key = "sar.model";

/// The network and its weights, in evaluation mode, from a .safetensors file with a description in its
/// metadata, or from the description itself, a .json file whose key "weights" names the file of the weights.
/// Names of weights may be those of other programs, as load_model_weights() reads them. Rank 0 reads. Throws
/// InputError, the same on every rank, for a file that cannot be read or is damaged, for one without a
/// description, and as ModelDescription::from_json() and load_model_weights(). Collective.
[[nodiscard]] std::unique_ptr<GraphModel> load_model(const Communicator& comm, const std::string& path,
                                                     const WeightNames& names = {});

/// Writes the weights of `model` with its description as a .safetensors file. Collective, errors as those of
/// save_weights().
void save_model(const Communicator& comm, const std::string& path, const GraphModel& model);

}  // namespace sar
