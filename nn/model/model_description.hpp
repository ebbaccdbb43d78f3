/// What a network is, as plain data and as text in JSON.
#pragma once

#include <sar/core/tensor.hpp>

#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// A network of GraphModel. docs/models.md says what each key does and which types read it; the text of a
/// small one is
///
///     {"sar_model": 1, "type": "sage", "in_feats": 8, "hidden": 64, "out_feats": 3, "layers": 3}
///
/// A text for `norm`, `activation` or `aggregator` that is empty stands for the usual one of the type.
struct ModelDescription {
  std::string type = "sage";     ///< one of types()
  Index in_feats = 0;            ///< width of the rows of nodes
  Index hidden = 64;             ///< width between layers: heads * features of a head
  Index out_feats = 0;           ///< width of the result
  Index layers = 3;              ///< convolutions
  std::string norm = {};         ///< of stacks: none (the usual one), batch, layer
  std::string activation = {};   ///< one of activations(); usual are elu where heads are, else relu
  double dropout = 0;            ///< behind that; gcn, gat, gatv2: also of the input
  std::string aggregator = {};   ///< sage: mean (the usual one), gcn, pool, lstm; gin: sum, mean, max, min
  Index heads = 4;               ///< gat, gatv2: of each layer but the last
  Index out_heads = 1;           ///< gat, gatv2: of the last layer, whose mean is the result
  double attention_dropout = 0;  ///< gat, gatv2: of the coefficients
  Index residual = 0;            ///< gat, gatv2: the first layer with a residual connection, from 1; 0: none
  Index edge_feats = 0;          ///< mesh_graph_net: width of the rows of edges; 0 where the type reads none
  Index mlp_layers = 2;          ///< mesh_graph_net: hidden layers of each of its networks
  bool normalize = false;        ///< mesh_graph_net: features and result, by running statistics
  std::string weights = {};      ///< in a file of its own: the file of the weights, relative to that one

  /// Throws InputError, beginning with `where`, which names the key, what was given and what was expected:
  /// for a text that is no JSON, another version of the format, keys that are missing, unknown or of another
  /// type of network, and values as in checked().
  [[nodiscard]] static ModelDescription from_json(const std::string& text,
                                                  const std::string& where = "the description");
  /// All keys that the type reads, on one line. Throws as checked().
  [[nodiscard]] std::string to_json() const;
  /// With the usual texts in place of empty ones. Throws InputError, as from_json(), for a type, norm,
  /// activation or aggregator that there is not, for widths and numbers of heads outside 1 to 2^24, for less
  /// than 1 or more than 1000 layers, for a dropout outside [0, 1), and for a hidden width that is no
  /// multiple of the heads.
  [[nodiscard]] ModelDescription checked(const std::string& where = "the description") const;

  /// What `type` and `activation` may be.
  [[nodiscard]] static const std::vector<std::string>& types();
  [[nodiscard]] static const std::vector<std::string>& activations();
};

}  // namespace sar
