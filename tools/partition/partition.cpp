// SPDX-License-Identifier: MIT

/// Partitions a graph once, for many trainings; see --help.
///     mpirun -n 2 partition path/to/dataset --parts 8 --out parts
/// The number of ranks that partition and the number of parts are independent.
///
/// Room tools/partition: The program `partition`.
#include "formats/open_source.hpp"
#include "heartbeat.hpp"
#include "partition_options.hpp"
#include "partition_report.hpp"
#include "program.hpp"
#include "source_widths.hpp"

#include <sar/data.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace sar::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Prints a line for each phase (name, size, seconds), and every ten seconds how much of it is done.
class Progress {
 public:
  Progress(const Communicator& comm, Heartbeat& heartbeat)
      : speaks_(comm.rank() == 0), heartbeat_(heartbeat) {}

  void operator()(const std::string& phase, Index done, Index total) {
    if (!speaks_) return;
    if (done == 0) {
      begin_ = told_ = Clock::now();
      heartbeat_.phase(phase);
    }
    if (done == total) {
      std::printf("%-28s %12td   %.1f s\n", phase.c_str(), total, seconds_since(begin_));
    } else if (seconds_since(told_) > 10) {
      std::printf("  %s: %.0f %% after %.0f s\n", phase.c_str(),
                  100 * static_cast<double>(done) / static_cast<double>(total), seconds_since(begin_));
      told_ = Clock::now();
    }
    std::fflush(stdout);
  }

 private:
  bool speaks_;
  Heartbeat& heartbeat_;
  Clock::time_point begin_, told_;
};

/// Throws InputError, before the graph is read, when the results could not be written. Collective.
void check_outputs(const Communicator& comm, const PartitionOptions& o) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    require<InputError>(!o.out.empty(), "the name of the output directory is empty");
    if (!o.report.empty()) check_writable(o.report);
    std::error_code error;
    require<InputError>(!std::filesystem::exists(std::filesystem::symlink_status(o.out, error)), o.out,
                        ": already exists, expected a new directory");
    check_writable(std::filesystem::path(o.out + "/").parent_path().string());
  });
}

void partition(const Communicator& comm, PartitionOptions& o) {
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(comm));
  check_outputs(comm, o);
  Heartbeat heartbeat(comm.rank() == 0 ? &std::cout : nullptr);
  heartbeat.phase("reading the graph");
  const std::unique_ptr<GraphSource> source = formats::open_source(comm, o.input, o.source);
  require<InputError>(o.graph.parts <= source->num_nodes(), o.input, ": there are ", source->num_nodes(),
                      " nodes for --parts ", o.graph.parts, ", expected at least one for each part");
  print_notes(*source, source->description());
  if (source->has_listed_pairs())
    say(comm, "WARNING: ", source->name(),
        ": the split lists pairs of nodes, which a partition directory does not store; train --task link "
        "splits its edges by --split-edges");
  const Widths widths = complete_widths(o.widths, *source, o.graph.data);
  const auto begin = Clock::now();
  const PartitionReport report = partition_graph(*source, o.out, o.graph, Progress(comm, heartbeat));
  const Measured measured = tools::measured(comm, seconds_since(begin));
  comm.agree([&] {
    if (comm.rank() != 0) return;
    std::optional<PredictedTraining> predicted;
    if (report.node_types.size() <= 1 && report.edge_types.size() <= 1)
      predicted = predict_training(report, o.train, widths);
    const PredictedTraining* const of_parts = predicted ? &*predicted : nullptr;
    print_report(report, of_parts, measured);
    if (!o.report.empty()) write_report(o.report, report, o.graph, of_parts, measured);
  });
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::PartitionOptions>(
      "Partitions a graph into parts, from which train reads.", "partition", argc, argv,
      sar::tools::partition);
}
