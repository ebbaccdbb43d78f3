// SPDX-License-Identifier: MIT

/// Description of a network, as plain data and as JSON.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/nn/models/model_type.hpp>
#include <sar/nn/modules/linear.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class JsonValue;

/// Describes a network of GraphModel or Potential. docs/models.md explains each key and lists the types that
/// read it. A small example:
///
///     {"sar_model": 1, "type": "sage", "in_feats": 8, "hidden": 64, "out_feats": 3, "layers": 3}
///
/// An empty `norm`, `activation`, `residual`, `jk`, `aggregator` or `gcn_norm` means the default of the type.
/// A stack computes the formula of LayerStack.
struct ModelDescription {
  static constexpr Index max_layers = 10'000;

  std::string type = "sage";     ///< the name of one of model_types()
  Index in_feats = 0;            ///< width of the node features
  Index hidden = 64;             ///< width between layers: heads * features of a head
  Index out_feats = 0;           ///< width of the result
  Index layers = 3;              ///< convolutions
  std::string norm = {};         ///< stacks: none (default), batch, layer
  std::string activation = {};   ///< one of activations(); default: elu for types with heads, relu otherwise
  double dropout = 0;            ///< after the activation
  /// stacks: dropout of the input; default: `dropout` for gcn, gat and gatv2 without jk and pre_linear, 0
  /// otherwise
  std::optional<double> input_dropout = {};
  std::string aggregator = {};   ///< sage: mean (default), gcn, pool, lstm; gin: sum, mean, max, min
  std::string gcn_norm = {};     ///< gcn: degrees (default), weights, in_weights; see GraphConvNorm
  Index heads = 4;               ///< attention: heads of each layer but the last; with jk also of the last
  Index out_heads = 1;           ///< gat, gatv2: heads of the last layer; the result is their mean
  std::vector<Index> heads_of_layers = {};  ///< the same as a list, in JSON "heads": [8, 8, 1]; empty: heads
                                            ///< and out_heads
  double attention_dropout = 0;             ///< gat, gatv2, hetero-gat: of the attention coefficients
  /// stacks: residual connection of each layer: none (default), identity, linear; or the number of the first
  /// layer with one, counted from 1, which is an identity where the widths are equal and linear elsewhere
  std::string residual = {};
  std::string jk = {};           ///< stacks: what a final linear layer reads: none (default: there is no such
                                 ///< layer), last, sum, max, cat; see JumpingKnowledge
  bool pre_linear = false;       ///< stacks: a linear layer before the first convolution, in_feats -> hidden
  /// stacks: reduction over the nodes of each graph of a SampleBatch, before the final linear layer: none
  /// (default: a result for each node), sum, mean, max; with it, jk is last unless it is set
  std::string readout = {};
  Index head_layers = 1;         ///< with readout: linear layers behind it, with the activation between them
  Index edge_feats = 0;          ///< width of the edge features: mesh_graph_net; gin: 0 (default), or the
                                 ///< layers are GINEConv
  Index mlp_layers = 2;          ///< mesh_graph_net: hidden layers of each of its networks
  bool normalize = false;        ///< mesh_graph_net: normalize features and results by running statistics
  std::string weights = {};      ///< in a .json file: path of the weight file, relative to the .json file

  // Types with relations:
  Index num_bases = 0;  ///< rgcn: matrices that the edge types share; 0: one for each type
  Index num_rels = 0;   ///< rgcn without edge_types: edge types; otherwise their number
  std::vector<std::string> node_types = {};  ///< of the graph
  std::vector<EdgeType> edge_types = {};
  /// Widths of the node types whose rows a linear layer maps to in_feats; the others have in_feats.
  std::map<std::string, Index> inputs = {};

  // painn and mace, where `hidden` are the channels; in the units of the data that it was trained on:
  std::vector<std::string> species = {};   ///< names, such as "Si", by their number from 0 on
  double cutoff = 5;                       ///< pairs of atoms farther apart do not interact
  Index num_basis = 20;                    ///< radial basis functions
  std::string radial_basis = "sinc";       ///< one of radial_bases
  std::string cutoff_function = "cosine";  ///< one of cutoff_functions
  double zbl_inner = 0;                    ///< the distances of Zbl, in Angstrom, which is added to the
  double zbl_outer = 0;                    ///< network's energy in eV; 0: there is none
  double norm_epsilon = 0.01;              ///< PaiNNOptions::norm_epsilon
  Index committee = 1;                     ///< PaiNNOptions::committee
  std::vector<double> deviation_scales{1, 1};  ///< factors of deviations of energies and forces
  std::vector<double> energy_shifts = {};  ///< energy of an atom of each species alone; empty: 0
  std::vector<double> energy_scales = {};  ///< factor of the network's result for each species; empty: 1

  // mace, see MACEOptions:
  Index max_l = 3;                          ///< degree of the harmonics and of the messages
  Index hidden_l = 1;                       ///< degree of the rows between layers
  Index correlation = 3;                    ///< factors of the products
  bool residual_first = false;              ///< whether the first layer has a residual connection
  bool density = false;                     ///< whether messages are divided by a density of neighbors
  Index cutoff_power = 5;                   ///< HarmonicFunctions::power
  std::string distance_transform = "none";  ///< one of distance_transforms
  Index radial_hidden = 64;                 ///< width of the radial network's hidden layers
  Index radial_layers = 3;                  ///< and their number
  Index readout_hidden = 16;                ///< width of the last readout's hidden layer
  double neighbors = 1;                     ///< MACEOptions::neighbors
  /// Of each species, in Angstrom; read with a distance transform or with zbl_power
  std::vector<double> covalent_radii = {};
  Index zbl_power = 0;   ///< Zbl between covalent radii, with this power; 0: there is none
  double zbl_scale = 1;  ///< its factor

  /// Parses a description. Throws InputError for text that is not JSON, another format version, keys that are
  /// missing, unknown or of another network type, and values that checked() rejects. The message begins with
  /// `where` and names the key, the given value and the expected one. `gcn_norm` stays empty if it is not
  /// given, so that load_model() can set it by the names of the weights.
  [[nodiscard]] static ModelDescription from_json(const std::string& text,
                                                  const std::string& where = "the description");
  /// Returns all keys that the type reads, as JSON on one line. Throws as checked().
  [[nodiscard]] std::string to_json() const;
  /// Returns `activation "elu", here "relu"` for each key of which `other` has another value, which weights
  /// do not show: not for dropouts, widths of inputs and outputs, and gcn_norm.
  [[nodiscard]] std::vector<std::string> differences(const ModelDescription& other) const;
  /// Returns the description with defaults in place of empty strings. Throws InputError, as from_json(), for
  /// an unknown type, norm, activation, residual, jk, readout, aggregator or gcn_norm, for widths and numbers
  /// of heads outside 1 to 2^24, for numbers of layers outside 1 to max_layers (mesh_graph_net may have
  /// 0), for a dropout outside [0, 1), and as check_layer_sizes().
  [[nodiscard]] ModelDescription checked(const std::string& where = "the description") const;

  /// Returns the same with the widths of some data.
  [[nodiscard]] ModelDescription with_widths(Index in, Index out) const;

  /// Returns whether layers have a batch norm; gin has one inside.
  [[nodiscard]] bool has_batch_norm() const { return norm == "batch" || type == "gin"; }
  /// Returns whether covalent_radii are read.
  [[nodiscard]] bool reads_radii() const { return distance_transform != "none" || zbl_power > 0; }

  /// Returns the first layer with a residual connection if `residual` is a number, otherwise 0.
  [[nodiscard]] Index first_residual() const;

  /// Return the values of `type` for a graph without types, and the valid values of `activation`.
  [[nodiscard]] static const std::vector<std::string>& types();
  [[nodiscard]] static const std::vector<std::string>& activations();
  /// The valid values of `norm`, `jk`, `readout` and `gcn_norm`.
  static inline const std::vector<std::string> norms{"none", "batch", "layer"};
  static inline const std::vector<std::string> jks{"none", "last", "sum", "max", "cat"};
  static inline const std::vector<std::string> readouts{"none", "sum", "mean", "max"};
  static inline const std::vector<std::string> gcn_norms{"degrees", "weights", "in_weights"};
  /// The names of RadialBasis, of CutoffFunction and of DistanceTransform, in their order.
  static inline const std::vector<std::string> radial_bases{"sinc", "gaussian", "bessel"};
  static inline const std::vector<std::string> cutoff_functions{"cosine", "polynomial"};
  static inline const std::vector<std::string> distance_transforms{"none", "agnesi", "soft"};
};

/// Returns all types, in the order in which they are listed for users.
[[nodiscard]] const std::vector<ModelType>& model_types();

/// Returns the type with this name. Throws InputError if there is none.
[[nodiscard]] const ModelType& model_type(const std::string& name);

/// Returns the names of the types for which `holds` is true, as "gat, gatv2 or hgt".
[[nodiscard]] std::string model_types_where(const std::function<bool(const ModelType&)>& holds);

/// Local. Returns the class of the layers of a network if they do not read edge weights, as "GATv2Conv",
/// otherwise "".
[[nodiscard]] std::string layers_without_weights(const ModelDescription& description);

/// Local. Throws InputError if the edges have weights and the layers of the network do not read them.
void require_weights_read(const ModelDescription& description, bool has_weights);

/// Returns the name of a node type as the name of a module, which has no dots: a dot is %2E.
[[nodiscard]] std::string module_name(const std::string& node_type);

/// Returns the function of a valid `activation`.
[[nodiscard]] Activation activation_of(const std::string& name);

/// Local. Returns whether a linear layer follows the convolutions.
[[nodiscard]] bool has_head(const ModelDescription& description);

/// Local. Returns whether a stack has a result for each graph of a SampleBatch.
[[nodiscard]] bool has_readout(const ModelDescription& description);

/// Local. Returns the sizes of a stack's convolutions, from the first to the last; no layer is cached.
[[nodiscard]] std::vector<LayerSize> layer_sizes(const ModelDescription& description);

/// Local. Returns a lower bound of the number of weights, those of its matrices, of a network with a checked
/// description.
[[nodiscard]] double least_weights(const ModelDescription& description);

/// Local. Throws InputError, beginning with `where`, unless the heads and residual connections of a stack
/// fit its widths: a hidden width that is a multiple of the heads of each layer whose heads are side by
/// side, as many heads as layers in a list, no heads that would be averaged where a linear layer follows,
/// equal widths of a layer with an identity.
void check_layer_sizes(const ModelDescription& description, const std::string& where);

/// Local. Returns a summary of a stack, such as "gat: 1433 -> 64 (8 heads of 8) -> 7 (the mean of 8
/// heads)".
[[nodiscard]] std::string describe_layers(const ModelDescription& description);

/// Key of the version of the format in descriptions.
inline constexpr const char* version_key = "sar_model";

/// Local. Throws InputError for a description in another version of the format, in which other keys may be
/// valid. For implementation files.
void require_version(const JsonValue& file);

/// Key of the description in the metadata of a .safetensors file.
inline constexpr const char* model_key = "sar.model";

/// Adds all keys that the type reads.
void add_arguments(CollectiveCall& call, const ModelDescription& description);
}}  // namespace sar
