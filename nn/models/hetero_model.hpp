// SPDX-License-Identifier: MIT

/// Networks on graphs with several node and edge types that a description says, and their files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/hetero/cross_reduce.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/weight_names.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The network of a ModelDescription of type rgcn, hgt, hetero-sage or hetero-gat: a LayerStack on the rows
/// of all node types. Rows of the types in `inputs` are mapped to in_feats first, by a linear layer for each
/// type.
///
/// Parameters: layers.i.* and the other names of LayerStack, input.TYPE.weight and input.TYPE.bias; in a
/// TYPE, a dot is %2E.
///
/// @code
/// HeteroModel model({.type = "rgcn",
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
class HeteroModel : public Module {
 public:
  using Rows = Graph::Rows;

  /// Local. Throws InputError as ModelDescription::checked(), for a type without relations, and without node
  /// and edge types.
  HeteroModel(const ModelDescription& description, const Communicator& comm, Generator& gen);

  /// Collective. x: rows of every node type, [local nodes, width of `inputs`, or in_feats] -> rows of every
  /// node type, [local nodes, out_feats]. The graph has the node and edge types of the description, in this
  /// order; weights that its edges have are used. Throws the same exception on every rank: InputError for
  /// other types or missing rows, and for edge weights with hgt, whose layers do not read them; ShapeError if
  /// shapes do not match.
  [[nodiscard]] Rows operator()(const Graph& graph, const Rows& x);

  /// Returns the description with defaults in place of empty strings.
  [[nodiscard]] const ModelDescription& description() const noexcept { return description_; }

 private:
  struct Inputs : Module {
    using Module::register_module;
    std::map<std::string, std::unique_ptr<Linear>> of_type;
  };
  void check(const Graph& graph, const Rows& x) const;

  ModelDescription description_;
  Inputs inputs_;
  std::unique_ptr<LayerStack> stack_;
};

/// Collective. Loads a network and its weights as load_model() does, for the types of HeteroModel.
[[nodiscard]] std::unique_ptr<HeteroModel> load_hetero_model(const Communicator& comm,
                                                             const std::string& path,
                                                             const WeightNames& names = {});

/// Collective. Writes the weights and the description of `model` to a .safetensors file. Errors as in
/// save_weights().
void save_model(const Communicator& comm, const std::string& path, const HeteroModel& model);
}}  // namespace sar
