// SPDX-License-Identifier: MIT

/// What a timeline costs: a scope while no trace runs, and a training step of three SAGE layers with a trace,
/// to the same without (in turns, the slowest rank counts).
///     bench_trace [nodes] [degree] [width] [threads]
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/data.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const Index width = argc > 3 ? std::atoll(argv[3]) : 128;
  const ThreadLimit threads(argc > 4 ? std::atoi(argv[4]) : 1);
  sbm.features = width;

  constexpr int scopes = 10'000'000;
  const auto [off] = bench::best_seconds(5, [] {
    for (int i = 0; i < scopes; ++i) {
      const TraceScope scope("nothing");
      asm volatile("" ::: "memory");  // the next scope looks again
    }
  });

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);
  Generator gen(0);
  ModuleList<SAGEConv> convs;
  convs.emplace_back(width, width, gen);
  convs.emplace_back(width, width, gen);
  convs.emplace_back(width, data.num_classes, gen);
  const auto step = [&] {
    Tape tape;
    Variable h = data.features;
    for (std::size_t layer = 0; layer < 3; ++layer) h = convs[layer](graph, h);
    tape.backward(cross_entropy(h, data.labels, data.train_mask, comm));
    gather_grads(comm, convs);
    for (Variable parameter : convs.parameters()) parameter.zero_grad();
  };

  std::array<std::vector<double>, 2> seconds;
  for (int repetition = 0; repetition < 12; ++repetition)
    for (const bool traced : {false, true}) {
      comm.barrier();
      if (traced) start_trace(steady_nanoseconds());
      const double slowest = comm.all_reduce(bench::seconds_of(step), ReduceOp::max);
      stop_trace();
      if (repetition > 0) seconds[traced ? 1 : 0].push_back(slowest);
    }
  for (auto& series : seconds) std::sort(series.begin(), series.end());
  const auto median = [&](std::size_t i) { return seconds[i][seconds[i].size() / 2]; };
  if (comm.rank() == 0) {
    bench::print({.name = "scope_without_trace",
                  .ranks = comm.size(),
                  .seconds = off / scopes,
                  .rate = scopes / off,
                  .unit = "1/s"});
    bench::print({.name = "step_with_trace",
                  .ranks = comm.size(),
                  .seconds = median(1),
                  .rate = 1 / median(1),
                  .unit = "1/s",
                  .reference = 1 / median(0)});
  }
  return 0;
}
