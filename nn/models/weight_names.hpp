// SPDX-License-Identifier: MIT

/// Layers of tensors by their names, and the tensors of a weight file of another program matched with those
/// of a model.
#pragma once

#include <sar/config.hpp>
#include <sar/core/threads/parallel.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Groups the tensors of a network into layers by their names, and matches them with those of a model.

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

// The names and layouts that DGL and PyTorch Geometric give to the tensors of their layers.

/// How a tensor of the file is converted to the tensor of the model.
enum class WeightLayout {
  same,
  transposed,
  one_head,  ///< [D] in the file is copied to each of the heads in [H D]
  added,     ///< added to the bias of the sources and subtracted from the bias of the destinations
};

/// A tensor's name in another library and in the model, both without the name of the layer. A `from` with a
/// final dot is the beginning of a name.
struct WeightSpelling {
  std::string from, to;
  WeightLayout layout = WeightLayout::same;
};

/// The name of a layer, or of a list of numbered layers, in other programs and in the model.
struct LayerSpelling {
  std::string from, to;
};

/// A tensor that the library has once for both ends of an edge, in files under one name or under two. Of two,
/// `from` is then an equal copy of the tensor that is taken for `to`; a single one, `from`, is also taken for
/// `to`, unless the file has another tensor of that end with other values.
struct SharedSpelling {
  std::string from, to;
  std::string saved;        ///< name of `to` in a file that has both ends
  std::string beside = {};  ///< tensor that the model's layer must have
};

/// Returns the names that are recognized; the first one that fits is taken.
[[nodiscard]] const std::vector<WeightSpelling>& weight_spellings();

/// Returns the names of layers that are taken before others of the same shapes.
[[nodiscard]] const std::vector<LayerSpelling>& layer_spellings();

/// Returns the names of shared tensors, for what weight_spellings() does not match.
[[nodiscard]] const std::vector<SharedSpelling>& shared_spellings();

/// Returns whether a tensor of the shape `file` can be converted to one of the shape `model`.
[[nodiscard]] bool has_layout(WeightLayout layout, const std::vector<Index>& file,
                              const std::vector<Index>& model);

/// Returns whether a name begins with a part of a layer that the libraries call so: "lin_l" of
/// "lin_l.weight".
[[nodiscard]] bool begins_with_part(const std::string& name);

// Matches the tensors of a layer of a file with those of a layer of a model.

/// A tensor of the file and its partner in the model. Several links may have the same tensor of the file, or
/// of the model.
struct WeightLink {
  std::string file, model;
  WeightLayout layout = WeightLayout::same;
  Index size = 0;          ///< number of elements in the file
  std::string saved = {};  ///< name under which a file with the names of this one has the tensor of the model
};

/// Returns whether two tensors of the file, given by their names, have the same type, shape and values.
using SameValues = FunctionRef<bool(const std::string&, const std::string&)>;

struct LayerMatch {
  std::vector<WeightLink> links;
  std::vector<const NamedShape*> file, model;  ///< without a partner
  std::vector<std::string> missing;            ///< counters of the model that the file may lack
  std::vector<const NamedShape*> zeros;        ///< biases of the model that the file may lack, beside another
  std::string difference;  ///< two tensors of the file that should be equal, for messages; may be empty

  [[nodiscard]] bool is_complete() const { return file.empty() && model.empty(); }
};

/// Local. Links the tensors by the names of the model, weight_spellings() and shared_spellings().
[[nodiscard]] LayerMatch match_layer(const WeightLayer& file, const WeightLayer& model,
                                     SameValues same_values);

/// What the caller says about the names in a file. Patterns have the wildcards of a shell: * for any text, ?
/// for one character.
struct WeightNames {
  std::vector<std::string> drop = {};  ///< patterns of names in the file to ignore, applied first
  std::string strip_prefix = {};       ///< prefix to remove from names that begin with it
  /// Applied next: a name, or its beginning up to a dot, that equals `from` is replaced by `to`. The longest
  /// matching `from` wins.
  std::map<std::string, std::string> rename = {};
  std::vector<std::string> missing = {};  ///< patterns of names in the model to leave at their initial values
};

/// Local. Returns whether the caller ignores a name of the file.
[[nodiscard]] bool is_dropped(const std::string& name, const WeightNames& names);

/// A bias of the model that the file lacks: it becomes 0. `other` is added to the same rows; a file under the
/// names of this one gets the sum of both.
struct ZeroBias {
  std::string name, other;
};

struct WeightMatch {
  std::vector<WeightLink> links;
  std::vector<std::string> missing;  ///< names of the model that keep their initial values
  std::vector<ZeroBias> zeros = {};
};

/// Local. Finds a partner for every tensor of the file and of the model, in three steps:
///
/// - If the names, after applying `names`, are those of the model, they are used as they are.
/// - Otherwise `_orig_mod.` and a prefix common to all names (module., model., net., gnn.) are removed,
/// except
///   from names that names.rename changed, and tensors with the same beginning ("conv1", "convs.0") form a
///   layer.
/// - Each layer of the model, in order, takes the first remaining layer of the file that has its shapes under
///   the names of the model, of PyTorch Geometric or of DGL; in a model with linear layers beside its
///   convolutions, one that is called so or as layer_spellings() say, else any. What a file has twice, with
///   equal values, is taken once: a tensor that the model has once, or a layer that is also an attribute of
///   another module.
///
/// A counter num_batches_tracked may be missing, and one of two biases that are added to the same rows
/// (mark_added_biases). Throws InputError, beginning with `place`, if another tensor has no partner, if
/// layers with different beginnings have the same shapes, so that their order is ambiguous, or if a pattern
/// or a `from` matches no name. same_values() gets names of `file`.
WeightMatch match_weights(const std::vector<NamedShape>& file, const std::vector<NamedShape>& model,
                          const WeightNames& names, const std::string& place, SameValues same_values);
}}  // namespace sar
