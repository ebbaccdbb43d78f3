/// Gradients of the tape against central differences.
#pragma once

#include <sar/autograd/variable.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// 0 stands for a value that suits the precision of `real`.
struct GradcheckOptions {
  /// Step of the difference quotient: 1e-5 in double precision, 1e-2 in single. Inputs should be of order 1.
  double step = 0;
  /// Largest accepted |tape - difference| / max(1, |difference|): 1e-7 in double precision, 1e-3 in single.
  double tolerance = 0;
  /// 0: element by element. Otherwise so many random directions, in which all elements of all inputs move at
  /// once: two evaluations each, however large the inputs.
  int directions = 0;
  /// Element by element: at most so many elements of an input, evenly spread.
  Index max_elements = 1000;
  /// Of the random weights that make a scalar of the result, and of the directions.
  std::uint64_t seed = 1;
  /// For functions that are collective over several ranks: adds a number up over the ranks. Every rank then
  /// calls gradcheck with the same options and with its own inputs; needs directions > 0.
  std::function<double(double)> sum_over_ranks;
};

/// Compares d sum(w fn(inputs)) / d inputs, w random, for the inputs that require gradients. `fn` must be
/// deterministic and differentiable within a step of the inputs; their values are moved in place while it is
/// called, and restored. Returns the largest error found; throws Error naming the input, the element, and
/// both values when it exceeds the tolerance.
double gradcheck(const std::function<Variable(const std::vector<Variable>&)>& fn,
                 std::vector<Variable> inputs, const GradcheckOptions& options = {});

}  // namespace sar
