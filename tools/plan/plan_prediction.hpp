/// What a training will need: memory, bytes and time of its largest worker.
#pragma once

#include "plan_options.hpp"
#include "plan_shape.hpp"
#include "plan_trial.hpp"

#include <string>
#include <vector>

namespace sar::tools {

/// Bytes of the account of one worker at the peak of a training step, and what they consist of.
struct Memory {
  double rows = 0;        ///< tensors with a row for each node, labels, masks and ids
  double graph = 0;       ///< index arrays
  double parameters = 0;  ///< with their gradients and the two moments of Adam
  double stages = 0;      ///< halo rows and gradients in flight

  [[nodiscard]] double total() const { return rows + graph + parameters + stages; }
};

/// Of the worker with most of each.
struct Prediction {
  Memory memory;
  double received_bytes = 0;    ///< in a training step; about as many are sent
  double sent_bytes_all = 0;    ///< by all workers together
  double evaluation_bytes = 0;  ///< received in a forward pass for evaluation
  double compute = 0;           ///< seconds of a training step: kernels, packing, adding
  double wire = 0;              ///< seconds that the network takes for it
  double seconds = 0;           ///< of a training step
  double evaluation = 0;        ///< seconds of a forward pass for evaluation
  double stages = 1;            ///< of a pass over the widest layer
  double messages = 0;          ///< of a training step
};

/// For each part the memory is
///     rows and graph of its nodes and in-edges (Rates) + 16 bytes a parameter (double: 32)
///     + index arrays of the halo + the halo rows of the stages that are held at a time, or, if that is more, the buffer
///     in which gradients of parameters are added up
/// and the time of a training step
///     max(compute, wire) + min(compute, wire) / stages
/// because everything but the first and the last stage overlaps, and the time of adding up the gradients of
/// parameters;
///     compute = forward and backward pass, the exchange of the rows that are received, what stages add to, and
///               a step between ranks (Rates; the last one times log2(ranks) / log2(those that it was measured
///               with)), by cores and their efficiency
///     wire    = bytes received / rate of the link + messages * latency.
/// Throws InputError for a budget of halo rows (max_halo_bytes) that is smaller than a row.
Prediction predict(const PlanOptions& o, const Rates& rates, const GraphShape& shape);

/// A change of the plan, and what it brings.
struct Advice {
  std::string text;
};
std::vector<Advice> advise(const PlanOptions& o, const Rates& rates, const GraphShape& shape,
                           const Prediction& now);

}  // namespace sar::tools
