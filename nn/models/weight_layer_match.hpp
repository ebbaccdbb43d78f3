// SPDX-License-Identifier: MIT

/// Matches the tensors of a layer of a file with those of a layer of a model.
#pragma once

#include <sar/core/threads/parallel.hpp>
#include <sar/nn/models/weight_layers.hpp>
#include <sar/nn/models/weight_spelling.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
