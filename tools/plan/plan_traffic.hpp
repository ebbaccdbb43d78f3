// SPDX-License-Identifier: MIT

/// Traffic of a pass: bytes received by a rank, stages, and rows that the stages add to.
#pragma once

#include "model_cost.hpp"
#include "plan_shape.hpp"
#include "train/options/train_options.hpp"

namespace sar::tools {

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

/// Returns the model of the options for these numbers of features and classes.
ModelSize model_size(const TrainOptions& o, const Widths& widths);

/// Returns the bytes of a halo row of `width` numbers in a message.
[[nodiscard]] inline Index wire_bytes(const TrainOptions& o, Index width) {
  return o.mixed_precision ? width * bytes_of(NumberType::bfloat16)
                           : sar::wire_bytes(o.graph_options.halo_format, width);
}

/// Returns the stages for rows of `row_bytes` bytes; `fetch_and_push`: gradients are sent while rows are
/// received.
StageRows stages_of(const TrainOptions& o, const Place& at, double row_bytes, bool fetch_and_push);

Pass pass_of(const TrainOptions& o, const ModelSize& model, const Place& at, bool with_backward);

/// Returns the bytes that the passes over nodes and edges move between memory and cores. Each edge reads a
/// row and its index; each node reads its input and writes and reads its sum and its output, in the backward
/// pass twice; halo rows are copied three times and added once.
double memory_bytes(const ModelSize& model, const PartShape& part, const Pass& pass, bool with_backward);

}  // namespace sar::tools
