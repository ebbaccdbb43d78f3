/// How what arrives at a node type from several relations is combined.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// As DGL's cross-type reducers, of results [nodes, ...] of R relations.
enum class CrossReduce {
  sum,
  mean,   ///< the sum divided by R
  max,    ///< element by element; of equal ones, the first relation takes the gradient
  min,    ///< as max
  stack,  ///< [nodes, R, ...]
};

/// Combines the results of R relations as they come; only stack keeps all of them. Local.
class CrossReducer {
 public:
  CrossReducer(CrossReduce op, std::size_t num_relations) : op_(op), num_relations_(num_relations) {}

  /// The result of relation k < num_relations, each once, in any order. Throws ShapeError when its shape is
  /// another one than the others'.
  void take(std::size_t k, Variable y);
  /// After all of them. Differentiable; max and min keep 2 bytes an element, the others nothing.
  [[nodiscard]] Variable result();

 private:
  void take_extremum(std::size_t k, Variable y);
  void take_row(std::size_t k, const Variable& y);

  CrossReduce op_;
  std::size_t num_relations_;
  Shape shape_;                         // of each result
  Variable sum_;                        // sum, mean
  Tensor out_;                          // max, min, stack
  Array<std::uint16_t> from_;           // max, min: the relation that an element is from
  std::vector<GradientPtr> gradients_;  // max, min, stack: of the results
};

}  // namespace sar
