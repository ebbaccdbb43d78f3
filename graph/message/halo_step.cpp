// SPDX-License-Identifier: MIT
#include <sar/graph/message/halo_step.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local HaloStep* current_step = nullptr;
thread_local bool all_exact = false;

}  // namespace

HaloStep::HaloStep(std::uint64_t seed, std::uint64_t number)
    : seed_(seed), number_(number), outer_(std::exchange(current_step, this)) {}
HaloStep::HaloStep(Recoverable<std::uint64_t>& operations)
    : operations_(&operations), outer_(std::exchange(current_step, this)) {}
HaloStep::~HaloStep() {
  current_step = outer_;
}

Recoverable<std::uint64_t>& HaloStep::operations_of_thread() {
  static thread_local Recoverable<std::uint64_t> operations;
  return operations;
}

ExactHaloRows::ExactHaloRows() noexcept : before_(std::exchange(all_exact, true)) {}
ExactHaloRows::~ExactHaloRows() {
  all_exact = before_;
}

GraphOptions options_of_operation(GraphOptions options) {
  if (all_exact) options.halo_format = HaloFormat::exact;
  return options;
}

HaloDraws HaloDraws::of_next_operation(const GraphOptions& options) {
  if (options.halo_format == HaloFormat::exact) return {};
  if (current_step == nullptr) {
    const HaloStep of_thread(HaloStep::operations_of_thread());
    return of_next_operation(options);
  }
  const HaloStep& step = *current_step;
  const std::uint64_t k = step.operations_->change()++;
  const RandomKey rows{.seed = step.seed_, .stream = RandomStream::halo_rows + 2 * k, .step = step.number_};
  RandomKey gradients = rows;
  ++gradients.stream;
  return {.rows = rows, .gradients = gradients};
}

}}  // namespace sar
