// SPDX-License-Identifier: MIT

/// Predicts memory, traffic and time of a training, for the rank that needs most.
#pragma once

#include "plan_options.hpp"
#include "plan_rates.hpp"
#include "plan_shape.hpp"
#include "plan_traffic.hpp"

#include <string>
#include <vector>

namespace sar::tools {

/// Accounted bytes of one rank at the peak of a training step, by kind.
struct Memory {
  double rows = 0;        ///< tensors with one row per node, labels, masks and ids
  double graph = 0;       ///< index arrays
  double parameters = 0;  ///< parameters, their gradients and the two moments of Adam
  double stages = 0;      ///< halo rows and gradients in flight

  [[nodiscard]] double total() const { return rows + graph + parameters + stages; }
};

/// Returns the memory of a part, as predict() has it.
Memory memory_of(const TrainOptions& o, const Rates& rates, const Place& at);

/// Returns the bytes that the rank of a part receives in a training step, with the sums of gradients: of all
/// parts together, what all ranks send.
double sent_bytes_of(const TrainOptions& o, const Rates& rates, const Place& at);

/// Predicted needs of a training. Each number is the maximum over the ranks, unless it says otherwise.
struct Prediction {
  Memory memory;
  double received_bytes = 0;    ///< bytes received in a training step; about as many are sent
  double sent_bytes_all = 0;    ///< bytes sent by all ranks together in a training step
  double evaluation_bytes = 0;  ///< bytes received in a forward pass for evaluation
  double compute = 0;           ///< seconds of a training step: kernels, packing, adding
  double memory_seconds = 0;    ///< the seconds of `compute` that move bytes between memory and cores
  double wire = 0;              ///< seconds of a training step on the network
  double seconds = 0;           ///< seconds of a training step
  double evaluation = 0;        ///< seconds of a forward pass for evaluation
  double stages = 1;            ///< stages of a pass over the widest layer
  double messages = 0;          ///< of a training step
};

/// Returns the bytes per second that a rank moves between memory and cores: as given, or as measured.
double memory_rate_of(const Machine& machine, const Rates& rates);

/// Predicts the needs of a training from the measured rates and the sizes of the parts. The memory of a part
/// is
///     rows and graph of its nodes and in-edges (Rates) + 16 bytes per parameter (double: 32)
///     + index arrays of the halo + max(halo rows of the stages in flight, buffer that sums the gradients of parameters).
/// The time of a training step is
///     max(compute, wire) + min(compute, wire) / stages + time to sum the gradients of parameters,
/// because everything except the first and the last stage overlaps. Here
///     S       = forward + backward + packing and unpacking of received rows + rows that stages add to
///               + fixed cost of a step * log2(ranks) / log2(measured ranks)
///     M       = min(S, bytes moved / measured memory bandwidth)
///     compute = (S - M) / (speedup by cores) + M * measured memory bandwidth / memory bandwidth
///     wire    = bytes received / bandwidth of the link + messages * latency.
/// Throws InputError if max_halo_bytes is smaller than one row.
Prediction predict(const PlanOptions& o, const Rates& rates, const GraphShape& shape);

/// Returns proposed changes of the options with what they gain, a sentence each.
std::vector<std::string> advise(const PlanOptions& o, const Rates& rates, const GraphShape& shape,
                                const Prediction& now);

}  // namespace sar::tools
