// SPDX-License-Identifier: MIT

/// Trains a graph neural network, full batch or on mini-batches; see --help.
///     mpirun -n 4 train --graph sbm --nodes 160000 --degree 28 --batch-norm --log log.jsonl
///
/// Room tools/train/runs: The program `train`: a run, and several.
#include "heartbeat.hpp"
#include "program.hpp"
#include "train/atoms/potential_steps.hpp"
#include "train/options/add_options.hpp"
#include "train/runs/train_run.hpp"
#include "train/train_data.hpp"
#include "train/train_gcn_norm.hpp"
#include "train/train_graph.hpp"
#include "train/train_samples.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <iostream>
#include <vector>

namespace sar::tools {
namespace {

void train(const Communicator& comm, const TrainOptions& options) {
  TrainOptions o = options;
  choose_gcn_norm(comm, o);
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(comm));
  const MatmulPrecisionScope precision(o.matmul_precision);
  const MixedPrecisionScope mixed(o.mixed_precision);
  const ReproducibleScope reproducible(comm, o.graph_options.reproducible);
  const bool is_potential = o.task.type == TaskType::potential;
  if (o.describe && !is_potential) return describe_dataset(comm, o);
  if (!o.describe) check_outputs(comm, o);
  Heartbeat heartbeat(comm.rank() == 0 ? &std::cout : nullptr);
  TrainingGraph loaded = is_potential                     ? load_training_potential(comm, o, heartbeat)
                         : o.task.type == TaskType::graph ? load_training_samples(comm, o, heartbeat)
                                                          : load_training_graph(comm, o, heartbeat);
  if (o.describe) return;
  const bool samples = !o.sample.fan_outs.empty() || o.sample.is_saint() || (o.mfg && has_pairs(o.task.type));
  if (!samples && o.model.attention_dropout == 0) loaded.graph.drop_edge_ids();  // nothing reads them
  const std::vector<TrainOptions> runs =
      options_of_runs(o, splits_of_runs(o, loaded.labelled().splits.count, loaded.data.name));
  std::vector<RunResult> results;
  for (const TrainOptions& run : runs) {
    if (runs.size() > 1) check_outputs(comm, run);
    if (run.run.split != loaded.labelled().splits.chosen || (run.run.number > 0 && run.draw_split))
      loaded.take_split(run);
    if (run.run.number > 0) loaded.start_run(run);
    results.push_back(train_run(loaded, run, options.model, heartbeat));
  }
  if (runs.size() > 1) report_runs(comm, runs, results);
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::TrainOptions>(
      "Trains a graph neural network on all ranks of mpirun, full batch or on mini-batches.", "train", argc,
      argv, sar::tools::train);
}
