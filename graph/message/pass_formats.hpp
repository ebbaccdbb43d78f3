/// In which formats the rows of an operation travel, as GraphOptions::halo_format has it. For the sources of
/// graph/ only.
#pragma once

#include <sar/comm/rows/wire_format.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <cstdint>
#include <memory>

namespace sar::inline SAR_PRECISION {

/// Which draws round the rows of an operation, in all of its passes.
struct HaloDraws {
  RandomKey rows;
  RandomKey gradients;
  std::uint64_t operation = 0;  ///< of its step
  bool step_was_started = false;
};

/// Those of the next operation of this thread, if its rows are rounded.
HaloDraws next_halo_draws(const GraphOptions& options);

/// `options`, or with exact rows where an ExactHaloRows is alive.
GraphOptions options_of_operation(GraphOptions options);

/// The formats of one pass, for rows of `row_size` numbers.
class PassFormats {
 public:
  /// `push`: gradients travel. Throws InputError for error feedback outside of a step.
  PassFormats(const ShardedGraph& graph, const GraphOptions& options, const HaloDraws& draws, Index row_size,
              bool push);

  [[nodiscard]] const WireFormat& rows() const noexcept { return *rows_; }
  [[nodiscard]] const WireFormat& gradients() const noexcept { return *gradients_; }

 private:
  std::unique_ptr<const WireFormat> int8_rows_, int8_gradients_, feedback_;
  const WireFormat* rows_;
  const WireFormat* gradients_;
};

}  // namespace sar::inline SAR_PRECISION
