/// The random rounding of HaloFormat::int8.
///
/// A source row x of original id v is rounded with draws of
///
///     (seed, step, k, v, column)          k: operations of this thread since start_halo_step()
///
/// in the forward pass and again where the backward pass fetches it, so that every reader has the same row,
/// however the graph is divided. The gradient of a halo row is the sum over one reader's edges, which no
/// other division of the graph has; its draws are of (seed, step, k, the reader and its number of the row,
/// column).
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// A training step, or an evaluation, begins on this thread: operations of all graphs count from 0 again. A
/// program that calls this with the number of the step gets the same numbers when it is run again, and when
/// it goes on from a checkpoint. Without a call, step 0 of seed 0 goes on for ever, which is as random.
/// Local; all ranks should give the same numbers.
void start_halo_step(std::uint64_t seed, std::uint64_t step) noexcept;

/// While alive, rows travel exactly on this thread, whatever the options, and operations are not counted: for
/// what is computed once and kept.
class ExactHaloRows {
 public:
  ExactHaloRows() noexcept;
  ~ExactHaloRows();
  ExactHaloRows(const ExactHaloRows&) = delete;
  ExactHaloRows& operator=(const ExactHaloRows&) = delete;

 private:
  bool before_;
};

}  // namespace sar::inline SAR_PRECISION
