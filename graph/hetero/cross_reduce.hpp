// SPDX-License-Identifier: MIT

/// Cross reduction: combines the results that several relations compute for a node type.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// DGL's cross-type reducers, applied to the results [nodes, ...] of R relations.
enum class CrossReduce {
  sum,
  mean,   ///< sum divided by R
  max,    ///< elementwise; of equal values, and of several NaN, the first relation gets the gradient
  min,    ///< as max
  stack,  ///< [nodes, R, ...]
};

/// Local. Reduces the results of R relations one at a time; only stack keeps all of them.
class CrossReducer {
 public:
  CrossReducer(CrossReduce op, std::size_t num_relations) : op_(op), num_relations_(num_relations) {}

  /// Adds the result of relation k < num_relations. Call it once per relation, in any order. Throws
  /// ShapeError if its shape differs from the previous ones.
  void take(std::size_t k, Variable y);
  /// Returns the reduction after all results were added. Differentiable; max and min keep 2 bytes per
  /// element, the others nothing.
  [[nodiscard]] Variable result();

 private:
  void take_extremum(std::size_t k, Variable y);
  void take_row(std::size_t k, const Variable& y);

  CrossReduce op_;
  std::size_t num_relations_;
  Shape shape_;                         // of each result
  Variable sum_;                        // sum, mean
  Tensor out_;                          // max, min, stack
  Array<std::uint16_t> from_;           // max, min: the relation of each element
  std::vector<GradientPtr> gradients_;  // max, min, stack: one per result
};

}}  // namespace sar
