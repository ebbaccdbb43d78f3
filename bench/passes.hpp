// SPDX-License-Identifier: MIT

/// The passes of operations on a graph, timed in turn and compared with the first operation.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <functional>
#include <string>
#include <vector>

namespace sar::bench {

/// Values of either sign, the same in every run; it wants a gradient.
Variable leaf(const Shape& shape, unsigned seed);

struct Operation {
  std::string name;
  std::function<Variable()> run;
  bool mixed = false;  ///< in mixed precision
};

/// x with its rows in bfloat16.
Variable bfloat16_leaf(const Variable& x);

/// Collective. Prints NAME_forward, NAME_backward and NAME (both) of each operation: milliseconds of the
/// slowest rank, the fastest of `repetitions`, and as the ratio the time divided by that of the first
/// operation in the same pass. `operands` are the leaves that receive gradients; `gradient` is that of each
/// result.
void compare_passes(const Communicator& comm, const std::vector<Operation>& operations,
                    std::vector<Variable> operands, const Tensor& gradient, int repetitions);

}  // namespace sar::bench
