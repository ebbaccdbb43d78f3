// SPDX-License-Identifier: MIT

/// Groups the tensors of a network into layers by their names.
#pragma once

#include <sar/config.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The properties of a tensor that matching compares.
struct NamedShape {
  std::string name;
  std::vector<Index> shape;  ///< [] and [1] are the same
  /// Of the model: the other bias that is added to the same rows, if a file may have only one of both.
  std::string other_bias = {};
};

/// The tensors of a layer.
struct WeightLayer {
  std::string prefix;  ///< "convs.1"; empty: the network is a single layer
  std::string stem;    ///< "convs" of "convs.1", "conv" of "conv1"
  Index number = -1;
  bool is_renamed = false;  ///< by the caller's WeightNames
  /// Keyed by the rest of the name after the prefix and its dot. Parts of a relation begin with
  /// "mods.RELATION.", where RELATION is the name of the relation, or "SOURCE__NAME__DESTINATION" if the
  /// layer has several of that name.
  std::map<std::string, const NamedShape*> leaves = {};

  /// Returns "convs" for the stem "encoder.convs".
  [[nodiscard]] std::string list() const { return stem.substr(stem.rfind('.') + 1); }
  [[nodiscard]] bool is_norm() const {
    return leaves.contains("running_mean") || leaves.contains("module.running_mean");
  }
};

/// Groups tensors into layers, in the order of their first tensors. The prefix of a layer ends with the first
/// component that is a number or ends with one, before a part that the libraries name ("lin_l"), or else
/// before the last component. Relations may have the names of DGL's HeteroGraphConv, of PyG's HeteroConv and
/// of its to_hetero(). A layer that is nothing but lin.weight and lin.bias is a linear layer called `lin`.
/// The layers refer to `tensors`.
[[nodiscard]] std::vector<WeightLayer> layers_of(const std::vector<NamedShape>& tensors);

/// Local. Makes layers lins.N of the residual connections inside layers N of attention: res.weight of PyG,
/// res_fc.weight and res_fc.bias of DGL.
void split_residuals(std::vector<WeightLayer>& layers);

/// Local. Names the other bias of each residual connection, lins.N.bias, and of its convolution, where both
/// have the same shape: a file may have only one of them, because their sum counts.
void mark_added_biases(std::vector<NamedShape>& model);
}}  // namespace sar
