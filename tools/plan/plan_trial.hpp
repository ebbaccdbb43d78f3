/// A short training of the model on a small generated graph of the same shape: what a node and an edge take
/// on this machine. It runs the code of `train`, so that the figures follow every change of a kernel or of
/// what is kept.
#pragma once

#include "train/train_options.hpp"

#include <sar/comm/communicator.hpp>

#include <string>

namespace sar::tools {

/// per_node * nodes + per_edge * in-edges
struct Linear2 {
  double per_node = 0, per_edge = 0;

  [[nodiscard]] double operator()(double nodes, double edges) const {
    return per_node * nodes + per_edge * edges;
  }
};

/// Of one worker without halo.
struct Rates {
  std::string model;  ///< what they were measured with
  int threads = 1;
  int ranks = 1;                 ///< that computed and exchanged rows at the same time
  double nodes = 0, degree = 0;  ///< of the graph that they were measured on
  // seconds on `threads` threads
  Linear2 forward = {}, backward = {}, evaluation = {};  ///< backward: with the step of the optimizer
  double copied_bytes = 0;                               ///< a second, on `threads` threads
  double byte_seconds = 0;  ///< for each byte of the rows that a rank receives: packing, messages, adding
  double added_byte_seconds = 0;  ///< for each byte of the rows of results that a stage adds to
  double step_seconds = 0;        ///< of a step of several ranks, however small it is
  // bytes besides the parameters
  Linear2 peak = {};      ///< of a training step
  Linear2 fetch = {};     ///< while a forward pass waits for halo rows
  Linear2 push = {};      ///< while a backward pass sends gradients of halo rows
  Linear2 rest = {};      ///< while the gradients of parameters are added up
  Linear2 index = {};     ///< of which the graph
  double parameters = 0;  ///< numbers
};

/// The model and what else the rates depend on, in a line.
std::string describe_model(const TrainOptions& o, Index features, Index classes);

/// Trains on at most `nodes` nodes of in-degree `degree` each, all ranks at the same time: each on its own,
/// which takes about two seconds, and, if there are several, together on parts of that size, on such parts in
/// small stages, and on very small ones. What these take beyond the first is the exchange. With one rank,
/// three copies of each byte and one of each that a stage adds to stand for it. Collective.
Rates measure_rates(const Communicator& comm, const TrainOptions& o, Index features, Index classes,
                    double nodes, double degree);

/// The rates in the file, or measured and written there; an empty name: measured. All ranks get those of
/// rank 0. Collective. Throws InputError, the same on every rank, for a file that is no file of rates
/// or is of another model, and when it cannot be written.
Rates read_or_measure(const Communicator& comm, const std::string& file, const TrainOptions& o,
                      Index features, Index classes, double nodes, double degree);

}  // namespace sar::tools
