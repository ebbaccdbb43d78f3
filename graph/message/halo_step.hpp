/// The random rounding of HaloFormat::int8.
///
/// A source row x of original id v is rounded with draws of
///
///     (seed, step, k, v, column)          k: operations of the step so far
///
/// in the forward pass and again where the backward pass fetches it, so that every reader has the same row,
/// however the graph is divided. The gradient of a halo row is the sum over one reader's edges, which no
/// other division of the graph has; its draws are of (seed, step, k, the reader and its number of the row,
/// column).
#pragma once

#include <sar/config.hpp>
#include <sar/core/random/random.hpp>
#include <sar/graph/message/graph_options.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// While alive, operations of this thread draw in this step of one training or evaluation; afterwards, in the
/// step in which they drew before. A program that numbers its steps gets the same draws when it is run again,
/// when it goes on from a checkpoint, and when other trainings take turns with it on the thread. Only forward
/// passes begin operations. Without a HaloStep, all operations of the thread are those of one step 0 of seed
/// 0, which is as random. Local; all ranks should give the same numbers.
class HaloStep {
 public:
  /// Operations count from 0.
  HaloStep(std::uint64_t seed, std::uint64_t number) noexcept;
  /// Step 0 of seed 0, which goes on after the operations that its owner has counted, and counts on there.
  explicit HaloStep(std::uint64_t& operations) noexcept;
  ~HaloStep();
  HaloStep(const HaloStep&) = delete;
  HaloStep& operator=(const HaloStep&) = delete;

 private:
  friend struct HaloDraws;
  std::uint64_t seed_ = 0, number_ = 0, own_operations_ = 0;
  std::uint64_t* operations_ = &own_operations_;
  HaloStep* outer_;
};

/// While alive, halo rows are sent exactly on this thread, whatever the options, and operations are not counted.
/// For results that are computed once and kept.
class ExactHaloRows {
 public:
  ExactHaloRows() noexcept;
  ~ExactHaloRows();
  ExactHaloRows(const ExactHaloRows&) = delete;
  ExactHaloRows& operator=(const ExactHaloRows&) = delete;

 private:
  bool before_;
};

/// Keys of the random draws that round the rows and the gradients of one operation, the same in all its passes.
struct HaloDraws {
  RandomKey rows;
  RandomKey gradients;

  /// Returns the keys of the next operation of this thread; default keys for HaloFormat::exact. Counts the operation.
  static HaloDraws of_next_operation(const GraphOptions& options);
};

/// Returns `options`, with exact halo rows while an ExactHaloRows is alive on this thread.
GraphOptions options_of_operation(GraphOptions options);

}}  // namespace sar
