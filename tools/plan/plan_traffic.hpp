/// What travels to a worker in a pass, in which stages, and what these add to.
#pragma once

#include "model_cost.hpp"
#include "plan_shape.hpp"
#include "train/train_options.hpp"

namespace sar::tools {

/// A part, and what the stages of all parts depend on.
struct Place {
  const PartShape& part;
  int ranks;
  double nodes_of_largest;
};

/// A forward pass, or a forward and a backward pass.
struct Pass {
  double bytes = 0;     ///< received
  double unpacked = 0;  ///< the same rows in memory
  double added_to = 0;  ///< bytes of rows that stages add to, for each stage anew
  double messages = 0, stages = 1;
};

/// The model of the options on a graph of these widths.
ModelSize model_size(const TrainOptions& o, Index features, Index classes);

/// The stages of rows of `row_bytes` bytes; `fetch_and_push`: where gradients leave while rows arrive.
StageRows stages_of(const TrainOptions& o, const Place& at, double row_bytes, bool fetch_and_push);

Pass pass_of(const TrainOptions& o, const ModelSize& model, const Place& at, bool with_backward);

}  // namespace sar::tools
