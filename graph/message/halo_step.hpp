// SPDX-License-Identifier: MIT

/// The random rounding of HaloFormat::int8.
///
/// A source row x of original id v is rounded with draws of
///
///     (seed, step, k, v, column)          k: operations of the step so far
///
/// in the forward pass, and with the same draws if the backward pass fetches it again. All readers therefore
/// get the same row, for every partition. The gradient of a halo row is a sum over the edges of one reader,
/// so it depends on the partition; its draws are keyed by (seed, step, k, reader, halo number of the row,
/// column).
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/message/graph_options.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Sets the seed and step of the random rounding for operations of this thread during its lifetime; nested
/// scopes restore the previous step. A program that numbers its steps gets the same draws when it is run
/// again, when it resumes from a checkpoint, and when several trainings share the thread. Only forward passes
/// count as operations. Without a HaloStep, all operations of the thread belong to step 0 of seed 0; the
/// rounding is equally random. Local; all ranks should pass the same numbers.
class HaloStep : NonCopyable {
 public:
  /// Operations count from 0.
  HaloStep(std::uint64_t seed, std::uint64_t number);
  /// Continues step 0 of seed 0 after `operations` operations, and adds the following operations to
  /// `operations`.
  explicit HaloStep(Recoverable<std::uint64_t>& operations);
  ~HaloStep();

  /// Operations of this thread so far without a HaloStep. A program that writes the number to its checkpoints
  /// has the same draws after it resumes.
  static Recoverable<std::uint64_t>& operations_of_thread();

 private:
  friend struct HaloDraws;
  std::uint64_t seed_ = 0, number_ = 0;
  Recoverable<std::uint64_t> own_operations_;
  Recoverable<std::uint64_t>* operations_ = &own_operations_;
  HaloStep* outer_;
};

/// While alive, halo rows are sent exactly on this thread, whatever the options, and operations are not
/// counted. For results that are computed once and kept.
class ExactHaloRows : NonCopyable {
 public:
  ExactHaloRows() noexcept;
  ~ExactHaloRows();

 private:
  bool before_;
};

/// Keys of the random draws that round the rows and the gradients of one operation, the same in all its
/// passes.
struct HaloDraws {
  RandomKey rows;
  RandomKey gradients;

  /// Returns the keys of the next operation of this thread; default keys for HaloFormat::exact. Counts the
  /// operation.
  static HaloDraws of_next_operation(const GraphOptions& options);
};

/// Returns `options`, with exact halo rows while an ExactHaloRows is alive on this thread.
GraphOptions options_of_operation(GraphOptions options);

}}  // namespace sar
