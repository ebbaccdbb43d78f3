#include <sar/core/error.hpp>
#include <sar/graph/message/pass_formats.hpp>

#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr std::uint64_t halo_stream = std::uint64_t{1} << 42;  // and twice the operation; + 1 for gradients

struct Step {
  std::uint64_t seed = 0, number = 0, operations = 0;
  bool started = false;
};
thread_local Step current_step;
thread_local bool all_exact = false;

/// Of the operation in the last step; 0 at first.
Tensor& errors_of(const ShardedGraph& graph, const HaloDraws& draws, Index row_size) {
  require<InputError>(draws.step_was_started,
                      "halo_error_feedback is set, but no training step was begun with start_halo_step()");
  const Shape shape{graph.remote.num_src_rows, row_size};
  Tensor& errors = graph.gradient_errors[draws.operation];
  if (!errors.defined() || errors.shape() != shape) errors = Tensor::zeros(shape);
  return errors;
}

}  // namespace

void start_halo_step(std::uint64_t seed, std::uint64_t step) noexcept {
  current_step = {.seed = seed, .number = step, .operations = 0, .started = true};
}

ExactHaloRows::ExactHaloRows() noexcept : before_(std::exchange(all_exact, true)) {}
ExactHaloRows::~ExactHaloRows() {
  all_exact = before_;
}

GraphOptions options_of_operation(GraphOptions options) {
  if (all_exact) {
    options.halo_format = HaloFormat::exact;
    options.halo_error_feedback = false;
  }
  return options;
}

HaloDraws next_halo_draws(const GraphOptions& options) {
  if (options.halo_format == HaloFormat::exact) return {};
  const std::uint64_t k = current_step.operations++;
  const RandomKey rows{.seed = current_step.seed, .stream = halo_stream + 2 * k, .step = current_step.number};
  RandomKey gradients = rows;
  ++gradients.stream;
  return {.rows = rows, .gradients = gradients, .operation = k, .step_was_started = current_step.started};
}

PassFormats::PassFormats(const ShardedGraph& graph, const GraphOptions& options, const HaloDraws& draws,
                         Index row_size, bool push) {
  switch (options.halo_format) {
    case HaloFormat::exact:
      rows_ = &wire_format<real>();
      gradients_ = rows_;
      return;
    case HaloFormat::bf16:
      rows_ = &bfloat16_format();
      gradients_ = rows_;
      break;
    case HaloFormat::int8:
      int8_rows_ = make_int8_format(
          row_size,
          {.key = Random(draws.rows).key(), .owned_ids = {graph.src_ids().data(), graph.src_ids().size()}});
      int8_gradients_ =
          make_int8_format(row_size, {.key = Random(draws.gradients).key(),
                                      .owned_ids = {},
                                      .first_halo_id = static_cast<Index>(graph.comm.rank()) << 32});
      rows_ = int8_rows_.get();
      gradients_ = int8_gradients_.get();
      break;
  }
  if (!push || !options.halo_error_feedback) return;
  feedback_ = make_error_feedback(*gradients_, errors_of(graph, draws, row_size).data());
  gradients_ = feedback_.get();
}

}  // namespace sar
