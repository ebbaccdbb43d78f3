// SPDX-License-Identifier: MIT

/// assign_nodes on the sbm graph (homophily 0.8): the share of the edges that each method cuts, beside random
/// (reference), and its speed in edges per second, beside a copy of the edges.
///     bench_assign [nodes] [degree] [parts] [classes] [metis and scotch: 0 or 1]      on one rank or several
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/partition/partition.hpp>

#include <cstdlib>
#include <span>
#include <vector>

using namespace sar;

namespace {

double cut_share(const Communicator& comm, const NodeData& data, const Array<std::int32_t>& mine) {
  const auto part_of = comm.all_gather(std::span<const std::int32_t>(mine));
  Index cut = 0;
  for (std::size_t e = 0; e < data.edges.src.size(); ++e)
    cut += part_of[static_cast<std::size_t>(data.edges.src[e])] !=
           part_of[static_cast<std::size_t>(data.edges.dst[e])];
  return static_cast<double>(comm.all_reduce(cut)) / static_cast<double>(data.num_edges);
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  sbm.homophily = 0.8;
  sbm.classes = argc > 4 ? std::atoll(argv[4]) : 16;
  const AssignmentOptions options{.parts = argc > 3 ? std::atoi(argv[3]) : 2};
  const bool others = argc <= 5 || std::atoi(argv[5]) != 0;
  const NodeData data = make_sbm(comm, sbm);
  release_cached_memory();

  const auto edges = static_cast<double>(data.num_edges) / 1e6;
  double random_cut = 0;
  for (const auto method :
       {PartitionMethod::random, PartitionMethod::ldg, PartitionMethod::metis, PartitionMethod::scotch}) {
    if (method == PartitionMethod::metis && !(others && has_metis())) continue;
    if (method == PartitionMethod::scotch && !(others && has_scotch())) continue;
    Array<std::int32_t> mine;
    EdgeList copy;
    comm.barrier();
    const double seconds = comm.all_reduce(
        bench::seconds_of([&] { mine = assign_nodes(comm, sbm.nodes, data.edges, method, options); }),
        ReduceOp::max);
    const double copying = comm.all_reduce(bench::seconds_of([&] { copy = data.edges; }), ReduceOp::max);
    const double cut = cut_share(comm, data, mine);
    if (method == PartitionMethod::random) random_cut = cut;
    if (comm.rank() != 0) continue;
    const std::string name = to_string(method);
    bench::print({.name = name + "_cut",
                  .ranks = comm.size(),
                  .seconds = seconds,
                  .rate = cut,
                  .unit = "share of the edges",
                  .reference = random_cut});
    bench::print({.name = name,
                  .ranks = comm.size(),
                  .seconds = seconds,
                  .rate = edges / seconds,
                  .unit = "million edges/s",
                  .reference = edges / copying});
  }
  return 0;
}
