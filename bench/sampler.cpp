// SPDX-License-Identifier: MIT

/// Sampling the blocks of mini-batches on the sbm graph: edges per second of sample_blocks, beside the rate
/// at which the feature rows of the same edges are gathered (reference: a row for each edge, as a step reads
/// them); and seeds per second of sampling and of gathering the features of the first block's sources.
///     bench_sampler [nodes] [degree] [features] [batch size]               on one rank or several
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/graph/sampling/data_loader.hpp>

#include <cstdlib>
#include <numeric>
#include <vector>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  sbm.features = argc > 3 ? std::atoll(argv[3]) : 128;
  const Index batch_size = argc > 4 ? std::atoll(argv[4]) : 1024;
  NodeData data = make_sbm(comm, sbm);
  const Graph graph = construct_full_graph(comm, data);
  std::vector<Index> seeds(static_cast<std::size_t>(data.book.num_nodes(comm.rank())));
  std::iota(seeds.begin(), seeds.end(), data.book.begin(comm.rank()));
  DataLoader loader(NeighborSampler(graph, {15, 10, 5}), seeds, {.batch_size = batch_size});

  constexpr int most_steps = 20;  // fewer where the epoch is shorter
  int steps = 0;
  double sampling = 0, gathering = 0, rows_of_edges = 0, edges = 0;
  Index sampled = 0;
  loader.start_epoch(1);
  for (int step = 0; step <= most_steps; ++step) {
    std::optional<MiniBatch> batch;
    const double sample_seconds = bench::seconds_of([&] { batch = loader.next(); });
    if (!batch) break;
    const double gather_seconds =
        bench::seconds_of([&] { (void)gather_rows(Variable(data.features), batch->blocks[0].src_rows()); });
    Array<Index> sources;  // of as many edges as were sampled; any rows do
    Index count = 0;
    for (const MessageFlowGraph& block : batch->blocks) count += block.num_edges();
    const Array<Index>& rows = batch->blocks[0].src_rows();
    for (Index e = 0; e < count; ++e) sources.push_back(rows[e % static_cast<Index>(rows.size())]);
    const double copy_seconds =
        bench::seconds_of([&] { (void)gather_rows(Variable(data.features), std::move(sources)); });
    if (step == 0) continue;  // to warm up
    ++steps;
    sampling += sample_seconds;
    gathering += gather_seconds;
    rows_of_edges += copy_seconds;
    edges += static_cast<double>(count);
    sampled += std::ssize(batch->seeds);
  }
  double slowest[] = {sampling, gathering, rows_of_edges};
  comm.all_reduce(std::span<double>(slowest), ReduceOp::max);
  edges = comm.all_reduce(edges);
  const auto num_seeds = static_cast<double>(comm.all_reduce(sampled));
  if (steps == 0) {
    if (comm.rank() == 0)
      std::cerr << "bench_sampler: the epoch has one batch, expected more nodes or a smaller batch size\n";
    return 2;
  }
  if (comm.rank() != 0) return 0;
  bench::print({.name = "sample_blocks",
                .ranks = comm.size(),
                .seconds = slowest[0] / steps,
                .rate = edges / slowest[0] / 1e6,
                .unit = "million edges/s",
                .reference = edges / slowest[2] / 1e6});
  bench::print({.name = "sample_and_gather",
                .ranks = comm.size(),
                .seconds = (slowest[0] + slowest[1]) / steps,
                .rate = num_seeds / (slowest[0] + slowest[1]),
                .unit = "seeds/s",
                .reference = num_seeds / slowest[1]});
}
