/// Matches the tensors of a weight file of another program with the tensors of a model.
#pragma once

#include <sar/config.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Changes to the names in a file, applied before matching.
struct WeightNames {
  std::string strip_prefix = {};  ///< prefix to remove from names that begin with it
  /// Applied next: a name, or its beginning up to a dot, that equals `from` is replaced by `to`. The longest
  /// matching `from` wins.
  std::map<std::string, std::string> rename = {};
};

/// The properties of a tensor that matching compares.
struct NamedShape {
  std::string name;
  std::vector<Index> shape;  ///< [] and [1] are the same
};

/// How a tensor of the file is converted to the tensor of the model.
enum class WeightLayout {
  same,
  transposed,
  one_head,  ///< [D] in the file is copied to each of the heads in [H D]
  added,     ///< added to the bias of the sources and subtracted from the bias of the destinations
};

/// The names of a tensor of the file and of its partner in the model.
struct WeightLink {
  std::string file, model;
  WeightLayout layout = WeightLayout::same;
  Index size = 0;  ///< number of elements in the file
};

/// Finds a partner for every tensor of the file and of the model, in three steps:
///
/// - If the names, after applying `names`, are those of the model, they are used as they are.
/// - Otherwise a prefix common to all names (module., model., net., gnn., _orig_mod.) is removed, unless
///   names.rename handles it, and tensors with the same beginning ("conv1", "convs.0") form a layer.
/// - Each layer of the model, in order, takes the first remaining layer of the file that has its shapes under
///   the names of the model, of PyTorch Geometric or of older releases of DGL.
///
/// Throws InputError, beginning with `place`, if a tensor has no partner, if layers with different beginnings
/// have the same shapes, so that their order is ambiguous, or if a `from` matches no name. Local.
std::vector<WeightLink> match_weights(const std::vector<NamedShape>& file,
                                      const std::vector<NamedShape>& model, const WeightNames& names,
                                      const std::string& place);

}}  // namespace sar
