// SPDX-License-Identifier: MIT

/// The names and layouts that DGL and PyTorch Geometric give to the tensors of their layers.
#pragma once

#include <sar/config.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
