// SPDX-License-Identifier: MIT

/// Networks built from a description, and their files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/weight_names.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The network of a ModelDescription. sage, gcn, gat, gatv2 and gin are a LayerStack, which says the formula,
/// of SAGEConv, GraphConv, GATConv, GATv2Conv, or GINConv with a learned eps and the network Linear, batch
/// norm, ReLU, Linear (with edge_feats GINEConv). Edge weights are used if the graph has them.
/// mesh_graph_net is a MeshGraphNet with `layers` blocks. rgcn, hgt, hetero-sage and hetero-gat are a
/// LayerStack on the rows of all node types of a graph; rows of the types in `inputs` are mapped to in_feats
/// first, by a linear layer for each type.
///
/// Parameters: convs.i.* for sage, layers.i.* for the other stacks; lins.i.* of linear residual connections,
/// bns.i.* of batch norms, norms.i.* of layer norms, lin_in.* and lin.* of the linear layers before and
/// after, mlp.i.* of those behind a readout; network.* for mesh_graph_net; input.TYPE.weight and
/// input.TYPE.bias for `inputs`, where a dot in a TYPE is %2E.
///
/// @code
/// GraphModel model({.type = "gcn", .in_feats = 64, .hidden = 16, .out_feats = 4, .layers = 2}, comm, gen);
/// const Variable y = model(graph, features);
/// save_model(comm, "gcn.safetensors", model);          // load_model() makes the network again
/// @endcode
///
/// With node and edge types:
///
/// @code
/// GraphModel model({.type = "rgcn",
///                    .in_feats = 4,
///                    .hidden = 8,
///                    .out_feats = 3,
///                    .layers = 2,
///                    .node_types = {"fluid", "solid"},
///                    .edge_types = {{"fluid", "flows", "fluid"}, {"solid", "heats", "fluid"}}},
///                   comm, gen);
/// const Variable f = Tensor::full({hetero.num_nodes("fluid"), 4}, 1);
/// const Variable s = Tensor::full({hetero.num_nodes("solid"), 4}, 1);
/// const Variable y = model(hetero, {{"fluid", f}, {"solid", s}}).at("fluid");
/// @endcode
class GraphModel : public Module {
 public:
  using Rows = Graph::Rows;

  /// Local. `cached` as of LayerStack: the first convolution caches the aggregate of its input, which must
  /// then be constant. Throws InputError as ModelDescription::checked(), for a potential, and for rgcn, hgt,
  /// hetero-sage and hetero-gat without node and edge types.
  GraphModel(const ModelDescription& description, const Communicator& comm, Generator& gen,
             bool cached = false);

  /// Collective. x [local sources, in_feats] -> [local destinations, out_feats]. edges: [num_edges of the
  /// graph, edge_feats] in the graph's edge order, or {} if edge_feats is 0. Throws the same
  /// exception on every rank: ShapeError if shapes do not match, InputError for edge weights that the layers
  /// do not read: those of gatv2, mesh_graph_net, and gin with edge_feats; for a type that needs Rows.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& x, const Variable& edges = {});

  /// Collective. With node and edge types, x: rows of every node type, [local nodes, width of `inputs`, or
  /// in_feats] -> rows of every node type, [local nodes, out_feats]. The graph has the node and edge types of
  /// the description, in this order; weights that its edges have are used. Throws the same exception on every
  /// rank: InputError for other types or missing rows, for edge weights with hgt, whose layers do not read
  /// them, and for a type that reads no relations; ShapeError if shapes do not match.
  [[nodiscard]] Rows operator()(const Graph& graph, const Rows& x);

  /// Collective. A network with a readout: x [local nodes of the batch, in_feats], edges as above -> [samples
  /// of this rank, out_feats]. Throws as above, and InputError for a network without a readout.
  [[nodiscard]] Variable operator()(const SampleBatch& batch, const Variable& x, const Variable& edges = {});

  /// Returns the description with defaults in place of empty strings.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }

  /// Returns the network of a mesh_graph_net, for update_statistics() and losses of normalized results, or
  /// null for other types.
  [[nodiscard]] MeshGraphNet* mesh_graph_net() noexcept { return mesh_ ? &*mesh_ : nullptr; }

 private:
  struct Inputs : Module {
    using Module::register_module;
    std::map<std::string, std::unique_ptr<Linear>> of_type;
  };
  void check(const Graph& graph, const Variable& x, const Variable& edges) const;
  void check(const Graph& graph, const Rows& x) const;

  ModelDescription description_;
  Inputs inputs_;
  std::optional<LayerStack> stack_;
  std::optional<MeshGraphNet> mesh_;
};

/// Collective. Loads a network and its weights and sets it to evaluation mode. The file is a .safetensors
/// file with a description in its metadata, or a .json description whose key "weights" names the weight
/// file. Weights may have the names of other programs, as in load_model_weights(); a gcn whose description
/// does not say its gcn_norm gets gcn_norm_of_weights(). Rank 0 reads the files. Throws InputError on every
/// rank for an unreadable or damaged file, for a file without a description, and as
/// ModelDescription::from_json() and load_model_weights() do.
[[nodiscard]] std::unique_ptr<GraphModel> load_model(const Communicator& comm, const std::string& path,
                                                     const WeightNames& names = {});

/// Collective. Writes the weights and the description of `model` to a .safetensors file. Errors as in
/// save_weights().
void save_model(const Communicator& comm, const std::string& path, const GraphModel& model);

}}  // namespace sar
