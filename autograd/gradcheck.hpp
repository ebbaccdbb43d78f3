// SPDX-License-Identifier: MIT

/// Compares gradients of the tape with central differences.
#pragma once

#include <sar/autograd/variable.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Options of gradcheck(). For step and tolerance, 0 selects a default that suits the precision of `real`.
struct GradcheckOptions {
  /// Step of the central difference. Default: 1e-5 in double precision, 1e-2 in single. Inputs should be of
  /// order 1.
  double step = 0;
  /// Maximum accepted |tape - difference| / max(1, |difference|). Default: 1e-7 in double precision, 1e-3 in
  /// single.
  double tolerance = 0;
  /// 0: check element by element. Otherwise the number of random directions to check, in each of which all
  /// elements of all inputs move at once: two evaluations per direction, whatever the size of the inputs.
  int directions = 0;
  /// Maximum number of elements to check per input (evenly spaced), if directions is 0.
  Index max_elements = 1000;
  /// Seed of the random weights that reduce the result to a scalar, and of the directions.
  std::uint64_t seed = 1;
  /// For collective functions: sums a number over all ranks. All ranks then call gradcheck() with the same
  /// options and their own inputs. Requires directions > 0.
  std::function<double(double)> sum_over_ranks;
};

/// Compares d sum(w fn(inputs)) / d inputs, with random weights w, for the inputs that require gradients.
/// `fn` must be deterministic, and differentiable within a step of the inputs. The inputs' values are changed
/// in place during the calls, and restored. Returns the largest error. Throws Error, with the input, the
/// element and both values, if the error exceeds the tolerance.
double gradcheck(const std::function<Variable(const std::vector<Variable>&)>& fn,
                 std::vector<Variable> inputs, const GradcheckOptions& options = {});

}}  // namespace sar
