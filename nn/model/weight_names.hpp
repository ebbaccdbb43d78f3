/// Weights in files of other programs: which tensor of the file is which of the model.
#pragma once

#include <sar/config.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// What is said about the names in a file.
struct WeightNames {
  std::string strip_prefix = {};  ///< is taken off the names that begin with it
  /// Then a name `from`, or its beginning up to a dot, becomes `to`. Of several, the longest `from` counts.
  std::map<std::string, std::string> rename = {};
};

/// What is compared of a tensor.
struct NamedShape {
  std::string name;
  std::vector<Index> shape;  ///< [] and [1] are the same
};

/// How a tensor of the file becomes that of the model.
enum class WeightLayout {
  same,
  transposed,
  one_head,  ///< [D] in the file stands for each of the heads in [H D]
  added,     ///< to the bias of the sources, and subtracted from that of the destinations
};

/// A tensor of the file and its partner in the model, by their names.
struct WeightLink {
  std::string file, model;
  WeightLayout layout = WeightLayout::same;
  Index size = 0;  ///< number of elements in the file
};

/// Finds a partner for every tensor of the file and of the model. Where the names are those of the model
/// after `names` were applied, nothing is guessed. Otherwise a prefix that all names have (module., model.,
/// net., gnn., _orig_mod.) is ignored, unless names.rename says what becomes of it; the tensors of a layer
/// are those with the same beginning ("conv1", "convs.0"); and the layers of the model take, one after the
/// other, the first layer of the file that has their shapes under the names of the model or under those of
/// PyTorch Geometric or older releases of DGL. Throws InputError, beginning with `place`, when a tensor stays
/// without a partner, when layers of different beginnings have the same shapes, so that their order cannot be
/// told, and for a `from` that no name has. Local.
std::vector<WeightLink> match_weights(const std::vector<NamedShape>& file,
                                      const std::vector<NamedShape>& model, const WeightNames& names,
                                      const std::string& place);

}  // namespace sar
