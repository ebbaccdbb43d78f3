// SPDX-License-Identifier: MIT
#include "passes.hpp"

#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/core/threads/mixed_precision.hpp>

namespace sar::bench {
namespace {

struct Seconds {
  double forward = std::numeric_limits<double>::infinity();
  double backward = std::numeric_limits<double>::infinity();
};

void report(const Communicator& comm, const std::string& name, double seconds, double reference) {
  seconds = comm.all_reduce(seconds, ReduceOp::max);
  reference = comm.all_reduce(reference, ReduceOp::max);
  if (comm.rank() == 0)
    print({.name = name,
           .ranks = comm.size(),
           .seconds = seconds,
           .rate = seconds * 1e3,
           .unit = "ms",
           .reference = reference * 1e3});
}

}  // namespace

Variable leaf(const Shape& shape, unsigned seed) {
  Tensor values(shape);
  for (real& x : values.values()) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<real>(seed >> 8) / (1 << 23) - 1;
  }
  return {values, true};
}

Variable bfloat16_leaf(const Variable& x) {
  return {TypedRows(x.value(), NumberType::bfloat16), true};
}

void compare_passes(const Communicator& comm, const std::vector<Operation>& operations,
                    std::vector<Variable> operands, const Tensor& gradient, int repetitions) {
  std::vector<Seconds> best(operations.size());
  for (int repetition = 0; repetition <= repetitions; ++repetition)
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (Variable& operand : operands) operand.zero_grad();
      const MixedPrecisionScope precision(operations[i].mixed);
      const TypedRows seed =
          TypedRows(gradient).as(operations[i].mixed ? NumberType::bfloat16 : NumberType::reals);
      Tape tape;
      Variable out;
      comm.barrier();
      const double forward = seconds_of([&] { out = operations[i].run(); });
      comm.barrier();
      const double backward = seconds_of([&] { tape.backward(out, seed); });
      if (repetition == 0) continue;  // the first builds the transpose
      best[i].forward = std::min(best[i].forward, forward);
      best[i].backward = std::min(best[i].backward, backward);
    }
  const Seconds& first = best.front();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::string& name = operations[i].name;
    report(comm, name + "_forward", best[i].forward, first.forward);
    report(comm, name + "_backward", best[i].backward, first.backward);
    report(comm, name, best[i].forward + best[i].backward, first.forward + first.backward);
  }
}}  // namespace sar::bench
