// SPDX-License-Identifier: MIT

/// What the stages of a pass cost when there is little in them: one update_all (copy_u, sum) forward and
/// backward, at the same local work and about the same number of halo rows a rank, whatever the number of
/// ranks is. One JSON line for each width:
///     messages, stages       of the rank that has most, forward and backward together
///     seconds                of a step with halo rows, the least of all repetitions; its slowest rank counts
///     local_seconds          of a step on the local edges alone, which are as many
///     overhead_microseconds  (seconds - local_seconds) * cores / ranks: of processor time, for each rank and pass
/// The last one is right as long as all cores are busy, with more ranks than cores. Run it with 2, 4, ... 64
/// ranks. stages.sh counts instructions, which other work on the machine does not change.
///     mpirun -n P bench_stages [halo rows of a rank, 126] [nodes of a rank, 2000] [cores, 2] [repetitions, 30]
///                              [widths, 16 64]
#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/graph.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

using namespace sar;

namespace {

constexpr Index degree = 8;

/// A band of local edges and, with `halo_rows`, one edge from each of so many nodes of the other ranks, in
/// turns.
Graph make_graph(const Communicator& comm, Index nodes, Index halo_rows) {
  const PartitionBook book = PartitionBook::even(nodes * comm.size(), comm.size());
  const Index first = book.begin(comm.rank());
  EdgeList edges;
  const auto add = [&](Index src, Index dst) {
    edges.src.push_back(src);
    edges.dst.push_back(dst);
    edges.id.push_back(first * 2 * degree + std::ssize(edges.id));
  };
  for (Index v = 0; v < nodes; ++v)
    for (Index k = 0; k < degree; ++k) add(first + (v + k * 37) % nodes, first + v);
  if (comm.size() > 1)
    for (Index i = 0; i < halo_rows; ++i) {
      const Index owner = (comm.rank() + 1 + i % (comm.size() - 1)) % comm.size();
      add(book.begin(static_cast<int>(owner)) + i * 7 % nodes, first + i * 11 % nodes);
    }
  return {comm, book, book, std::move(edges), true};
}

void step(const Graph& graph, Variable u, const Tensor& gradient) {
  Tape tape;
  tape.backward(graph.update_all(fn::copy_u(u), fn::sum), gradient);
  u.zero_grad();
}

}  // namespace

// Functions of their own, whose instructions a profiler tells apart.
[[gnu::noinline]] void step_with_halo(const Graph& graph, const Variable& u, const Tensor& gradient) {
  step(graph, u, gradient);
}
[[gnu::noinline]] void step_on_local_edges(const Graph& graph, const Variable& u, const Tensor& gradient) {
  step(graph, u, gradient);
  asm volatile("");  // otherwise the compiler may take both for the same function
}

namespace {

struct Counts {
  Index messages = 0, stages = 0;
};

/// Messages that this rank sends, and remote stages that it computes, in one step. Collective.
template <class Step>
Counts count(const Communicator& comm, const Step& step) {
  start_trace(steady_nanoseconds());
  step();
  stop_trace();
  Counts mine;
  for (const trace_detail::Event& event : recorded_trace().events) {
    if (event.lane == TraceLane::send) ++mine.messages;
    if (event.lane == TraceLane::thread && std::strncmp(event.name, "remote shard", 12) == 0) ++mine.stages;
  }
  return {comm.all_reduce(mine.messages, ReduceOp::max), comm.all_reduce(mine.stages, ReduceOp::max)};
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const Index halo_rows = argc > 1 ? std::atoll(argv[1]) : 126;
  const Index nodes = argc > 2 ? std::atoll(argv[2]) : 2000;
  const double cores = argc > 3 ? std::atof(argv[3]) : 2;
  const int repetitions = argc > 4 ? std::atoi(argv[4]) : 30;
  std::vector<Index> widths;
  for (int i = 5; i < argc; ++i) widths.push_back(std::atoll(argv[i]));
  if (widths.empty()) widths = {16, 64};
  const ThreadLimit threads(1);
  const Graph whole = make_graph(comm, nodes, halo_rows);
  const Graph local = make_graph(comm, nodes, 0);

  for (const Index width : widths) {
    const Variable u(Tensor::full(Shape{nodes, width}, 1), true);
    const Tensor gradient = Tensor::full(Shape{nodes, width}, 1);
    const auto with_halo = [&] { step_with_halo(whole, u, gradient); };
    const auto on_local_edges = [&] { step_on_local_edges(local, u, gradient); };
    std::vector<double> seconds[2];
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      const auto measure = [&](std::size_t i, const auto& step) {
        comm.barrier();
        const double slowest = comm.all_reduce(bench::seconds_of(step), ReduceOp::max);
        if (repetition > 0) seconds[i].push_back(slowest);
      };
      measure(0, with_halo);
      measure(1, on_local_edges);
    }
    const Counts counts = count(comm, with_halo);
    const double with = std::ranges::min(seconds[0]), without = std::ranges::min(seconds[1]);
    const double of_rank = std::min(1.0, cores / comm.size());
    if (comm.rank() == 0)
      std::cout << "{\"name\": \"stages\", \"ranks\": " << comm.size() << ", \"width\": " << width
                << ", \"halo_rows\": " << halo_rows << ", \"messages\": " << counts.messages
                << ", \"stages\": " << counts.stages << ", \"seconds\": " << with
                << ", \"local_seconds\": " << without
                << ", \"overhead_microseconds\": " << 1e6 * (with - without) * of_rank / 2 << "}"
                << std::endl;
  }
  return 0;
}
