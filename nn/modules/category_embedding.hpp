// SPDX-License-Identifier: MIT

/// Embeddings of rows of categories, such as the atoms of molecules.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/graph/samples/graph_samples.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/module.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The sum of an embedding for each column (AtomEncoder and BondEncoder of OGB):
///
///     y_i = sum_c W_c[x_ic]
///
/// for integers x [n, C], of which column c has values from 0 to sizes[c] - 1.
///
/// Parameter: weight, the matrices W_c [sizes[c], width] one below another; each is initialized
/// Xavier-uniform, as OGB does.
///
/// @code
/// const CategoryEmbedding atoms({119, 5}, 16, gen);  // elements, and five chiralities
/// const Variable y = atoms(IntegerRows{2, Array<Index>{6, 0, 8, 1}});
/// @endcode
class CategoryEmbedding : public Module {
 public:
  /// Throws InputError unless there is a column, and widths and sizes are positive.
  CategoryEmbedding(std::vector<Index> sizes, Index width, Generator& gen);

  /// Local. x [n, C] -> [n, width]. Keeps the integers. Throws ShapeError for another number of columns and
  /// InputError for a value that is no category; the message begins with `place`.
  [[nodiscard]] Variable operator()(const IntegerRows& x, const std::string& place = "categories") const;

  [[nodiscard]] const std::vector<Index>& sizes() const noexcept { return sizes_; }
  [[nodiscard]] Index width() const { return weight_.shape()[1]; }

 private:
  std::vector<Index> sizes_;
  Array<Index> first_;  // row of the weight at which each column begins
  Variable weight_;
};

}}  // namespace sar
