// SPDX-License-Identifier: MIT

/// The rates that a plan is made of, how they are measured, and their file.
#pragma once

#include "plan_traffic.hpp"
#include "source_widths.hpp"
#include "train/options/train_options.hpp"

#include <sar/comm/communicator.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// A cost: per_node * nodes + per_edge * in-edges.
struct Linear2 {
  double per_node = 0, per_edge = 0;

  [[nodiscard]] double operator()(double nodes, double edges) const {
    return per_node * nodes + per_edge * edges;
  }
};

/// Measured costs of one rank without halo.
struct Rates {
  std::string model;  ///< description of the measured model
  int threads = 1;
  int ranks = 1;                 ///< ranks of the measurement, which run at the same time
  double nodes = 0, degree = 0;  ///< of the measured graph
  // seconds on `threads` threads
  Linear2 forward = {}, backward = {}, evaluation = {};  ///< backward: including the optimizer
  double copied_bytes = 0;                               ///< bytes copied per second
  double byte_seconds = 0;  ///< per byte of received rows: packing, messages, additions
  double added_byte_seconds = 0;  ///< per byte of result rows that a stage adds to
  double step_seconds = 0;        ///< fixed cost of a step with several ranks
  // bytes, without the parameters
  Linear2 peak = {};      ///< of a training step
  Linear2 fetch = {};     ///< while a forward pass waits for halo rows
  Linear2 push = {};      ///< while a backward pass sends gradients of halo rows
  Linear2 rest = {};      ///< while the gradients of parameters are added up
  Linear2 index = {};     ///< the graph's share of them
  double parameters = 0;  ///< numbers
  std::vector<EdgePass> edges = {};  ///< passes over the edges in a training step

  /// Returns the bytes read or written per second: a copied byte is both (STREAM's copy).
  [[nodiscard]] double memory_rate() const { return 2 * copied_bytes; }
};

/// Local. Returns the text of a file of rates, in JSON.
std::string to_text(const Rates& rates);
/// Local. Returns the rates of a text, which was read from `file`. Throws InputError for what to_text() does
/// not write.
Rates parse_rates(const std::string& text, const std::string& file);

// Rates are measured on this machine, by a short training of the model on a small generated graph of the same
// shape. The training runs the code of `train`.

/// Returns one line with the model and everything else that the rates depend on.
std::string describe_model(const TrainOptions& o, const Widths& widths);

/// Local. Measures what is counted in bytes and numbers, by trainings of this process alone on at most
/// `nodes` nodes of in-degree `degree`.
Rates measure_memory(const TrainOptions& o, const Widths& widths, double nodes, double degree);

/// Collective. Measures the rates by trainings on at most `nodes` nodes of in-degree `degree`, with sparse
/// features if some are stored: each rank alone (about two seconds), then all ranks together, with the same
/// parts, with the same parts in small stages, and with very small parts. The additional time of the joint
/// trainings is the cost of the exchange. On one rank the exchange is estimated as three copies of each
/// received byte and one copy of each byte that a stage adds to.
Rates measure_rates(const Communicator& comm, const TrainOptions& o, const Widths& widths, double nodes,
                    double degree);

/// Collective. Reads the rates from `file`; if there is no such file, measures the rates and writes them
/// there. An empty name means: measure. All ranks get the rates of rank 0. Throws InputError, the same on
/// every rank, if the file has no rates or rates of another model, or cannot be written.
Rates read_or_measure(const Communicator& comm, const std::string& file, const TrainOptions& o,
                      const Widths& widths, double nodes, double degree);

}  // namespace sar::tools
