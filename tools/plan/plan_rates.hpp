// SPDX-License-Identifier: MIT

/// Local. The rates that a plan is made of, and their file.
#pragma once

#include "plan_traffic.hpp"

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

/// Returns the text of a file of rates, in JSON.
std::string to_text(const Rates& rates);
/// Returns the rates of a text, which was read from `file`. Throws InputError for what to_text() does not
/// write.
Rates parse_rates(const std::string& text, const std::string& file);

}  // namespace sar::tools
