// SPDX-License-Identifier: MIT

/// Matches the tensors of a weight file of another program with those of a model by their names.
#pragma once

#include <sar/config.hpp>
#include <sar/core/threads/parallel.hpp>

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

/// How a tensor of the file is converted to the tensor of the model.
enum class WeightLayout {
  same,
  transposed,
  one_head,  ///< [D] in the file is copied to each of the heads in [H D]
  added,     ///< added to the bias of the sources and subtracted from the bias of the destinations
};

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
  std::vector<std::string> missing;  ///< names of the model that the file has not
  /// Those of `missing` that are biases of layers whose weights the file has, which become 0; none if the
  /// caller ignores a bias of the file. Others keep their initial values.
  std::vector<std::string> absent_biases = {};
  std::vector<ZeroBias> zeros = {};
};

/// Local. Finds a partner for every tensor of the file and of the model, in three steps:
///
/// - If the names, after applying `names`, are those of the model, they are used as they are.
/// - Otherwise `_orig_mod.` and a prefix common to all names (module., model., net., gnn.) are removed,
///   except from names that names.rename changed, and tensors with the same beginning ("conv1", "convs.0")
///   form a layer.
/// - Each layer of the model, in order, takes the first remaining layer of the file that has its shapes under
///   the names of the model, of PyTorch Geometric or of DGL; in a model with linear layers beside its
///   convolutions, one that has its name there, else any. What a file has twice, with equal values, is taken
///   once: a tensor that the model has once, or a layer that is also an attribute of another module.
///
/// A counter num_batches_tracked may be missing, and one of two biases that are added to the same rows: that
/// of a residual connection, lins.N.bias, and that of its convolution. Throws InputError, beginning with
/// `place`, if another tensor has no partner, if layers with different beginnings have the same shapes, so
/// that their order is ambiguous, or if a pattern or a `from` matches no name. same_values() gets names of
/// `file`.
WeightMatch match_weights(const std::vector<NamedShape>& file, const std::vector<NamedShape>& model,
                          const WeightNames& names, const std::string& place, SameValues same_values);
}}  // namespace sar
