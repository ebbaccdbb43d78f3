// SPDX-License-Identifier: MIT

/// Traffic of a step: bytes received by a rank, stages, and rows that the stages add to.
#pragma once

#include "plan_shape.hpp"
#include "train/options/train_options.hpp"

#include <span>

namespace sar::tools {

/// The rows that a pass over the edges exchanges, forward or backward, as a training step on one rank records
/// it.
struct EdgePass {
  Index width = 0;  ///< numbers per row
  bool is_backward = false;
  bool fetches = false;  ///< rows to their readers; of a backward pass, the rows that it reads again
  bool pushes = false;   ///< gradients to the owners

  /// Returns how often rows travel. A mode that keeps rows does not fetch them again.
  [[nodiscard]] int times(HaloMode mode) const {
    return (fetches && (!is_backward || mode == HaloMode::rematerialize) ? 1 : 0) + (pushes ? 1 : 0);
  }
};

/// Halo rows held at one time.
struct StageRows {
  double fetch = 0, push = 0;  ///< rows of a fetch stage, and of a stage that pushes gradients
  double number = 1;           ///< stages in a pass
};

/// Returns the stages that graph/message/driver.cpp makes: a quarter of the rows of the largest part, or
/// an eighth if gradients are sent while rows are received; at least 1 MiB and at most `max_bytes` (0: no
/// limit).
StageRows stage_rows(double nodes_of_largest, double halo_nodes, double row_bytes, double max_bytes,
                     bool fetch_and_push);

/// A part, and the numbers that determine the stages of all parts.
struct Place {
  const PartShape& part;
  int ranks;
  double nodes_of_largest;
};

/// Traffic of a forward pass, or of a forward and a backward pass.
struct Pass {
  double bytes = 0;     ///< bytes received
  double unpacked = 0;  ///< bytes of the received rows in memory
  double added_to = 0;  ///< bytes of result rows that stages add to, summed over the stages
  double messages = 0, stages = 1;
};

/// Returns the bytes of a halo row of `width` numbers in a message.
[[nodiscard]] inline Index wire_bytes(const TrainOptions& o, Index width) {
  return o.mixed_precision ? width * bytes_of(NumberType::bfloat16)
                           : sar::wire_bytes(o.graph_options.halo_format, width);
}

/// Returns the stages for rows of `row_bytes` bytes; `fetch_and_push`: gradients are sent while rows are
/// received.
StageRows stages_of(const TrainOptions& o, const Place& at, double row_bytes, bool fetch_and_push);

Pass pass_of(const TrainOptions& o, std::span<const EdgePass> edges, const Place& at, bool with_backward);

/// Returns the bytes that the passes over nodes and edges move between memory and cores. Each edge reads a
/// row and its index; each node reads its input and writes and reads its sum and its output, in the backward
/// pass twice; halo rows are copied three times and added once.
double memory_bytes(const ModelDescription& model, std::span<const EdgePass> edges, const PartShape& part,
                    const Pass& pass, bool with_backward);

}  // namespace sar::tools
