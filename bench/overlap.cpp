// SPDX-License-Identifier: MIT

/// How much of the wire is hidden. Three works on a randomly partitioned sbm graph,
///     forward           update_all (copy_u, sum)
///     forward_backward  the same, and its gradient
///     self_term         the same with a base x W that is computed meanwhile, as in a layer
/// each beside its two parts, measured in turns in the same run:
///     compute   the same work on each rank by itself, with its halo rows in its own memory
///     wire      raw MPI moving the same bytes between the same ranks, all messages posted at once
/// A JSON line a work: the seconds of each, bytes that a rank sends, and ratio = seconds / max(compute,
/// wire). 1 would be a wire (or a computation) that is hidden wholly.
///
/// Run it where ranks are joined by a network of known speed; overlap.sh does so at rates that make the wire
/// 0.5, 1 and 2 times as long as the computation. Ranks that share cores compute longer while others still
/// do: `compute` is measured so, too.
///     bench_overlap [nodes] [degree] [width] [threads]
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/graph.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <vector>

using namespace sar;

namespace {

/// Rows that travel between this rank and each other one, and the graph with its halo in its own memory.
struct Alone {
  std::vector<Index> received, sent;  ///< rows by rank
  Index halo = 0;
  Graph graph;
};

/// Collective.
Alone make_alone(const Communicator& comm, const NodeData& data) {
  const auto size = static_cast<std::size_t>(comm.size());
  const Index own = data.book.num_nodes(comm.rank()), first = data.book.begin(comm.rank());
  const auto is_own = [&](Index v) { return v >= first && v < first + own; };
  std::vector<Index> halo;
  for (const Index src : data.edges.src)
    if (!is_own(src)) halo.push_back(src);
  std::sort(halo.begin(), halo.end());
  halo.erase(std::unique(halo.begin(), halo.end()), halo.end());
  std::vector<Index> received(size, 0), sent(size, 0);
  for (const Index v : halo) ++received[static_cast<std::size_t>(data.book.owner(v))];
  MPI_Alltoall(received.data(), 1, MPI_INT64_T, sent.data(), 1, MPI_INT64_T, comm.handle());
  EdgeList edges;
  for (Index e = 0; e < data.edges.size(); ++e) {
    const Index src = data.edges.src[e];
    const auto place = std::lower_bound(halo.begin(), halo.end(), src) - halo.begin();
    edges.src.push_back(is_own(src) ? src - first : own + place);
    edges.dst.push_back(data.edges.dst[e] - first);
    edges.id.push_back(e);
  }
  const auto rows = static_cast<Index>(halo.size());
  return {std::move(received), std::move(sent), rows,
          Graph(Communicator::self(), PartitionBook::even(own + rows, 1), PartitionBook::even(own, 1),
                std::move(edges), true)};
}

/// Moves the rows of the halo to their readers and, with `back`, as many to their owners; from and to memory
/// that lies together.
void raw_exchange(const Communicator& comm, const Alone& alone, Index width, bool back, const Tensor& out,
                  Tensor& in) {
  const Index row_bytes = width * static_cast<Index>(sizeof(real));
  for (int direction = 0; direction < (back ? 2 : 1); ++direction) {
    const std::vector<Index>& incoming = direction == 0 ? alone.received : alone.sent;
    const std::vector<Index>& outgoing = direction == 0 ? alone.sent : alone.received;
    std::vector<MPI_Request> requests;
    Index row = 0;
    for (std::size_t q = 0; q < incoming.size(); row += incoming[q++])
      MPI_Irecv(in.row(row), static_cast<int>(incoming[q] * row_bytes), MPI_BYTE, static_cast<int>(q), 0,
                comm.handle(), &requests.emplace_back());
    row = 0;
    for (std::size_t q = 0; q < outgoing.size(); row += outgoing[q++])
      MPI_Isend(out.row(row), static_cast<int>(outgoing[q] * row_bytes), MPI_BYTE, static_cast<int>(q), 0,
                comm.handle(), &requests.emplace_back());
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
}

enum class Work { forward, forward_backward, self_term };

/// One pass of the work. `x` and `weight` are of the self term.
void run(Work work, const Graph& graph, const Tensor& u, const Tensor& x, const Tensor& weight,
         const Tensor& gradient) {
  if (work == Work::forward) {
    (void)graph.update_all(fn::copy_u(u), fn::sum);
    return;
  }
  Tape tape;
  const Variable source(u, true), rows(x, true), matrix(weight, true);
  StartedSum sum = graph.start_update_all(fn::copy_u(source), fn::sum);
  tape.backward(sum.finish(work == Work::self_term ? matmul(rows, matrix) : Variable()), gradient);
}

/// Medians over some repetitions, of which each takes as long as its slowest rank.
template <class... Steps>
std::array<double, sizeof...(Steps)> median_seconds(const Communicator& comm, const Steps&... steps) {
  constexpr int repetitions = 8;
  std::array<std::vector<double>, sizeof...(Steps)> seconds;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::size_t i = 0;
    const auto measure = [&](const auto& step) {
      comm.barrier();
      const double slowest = comm.all_reduce(bench::seconds_of(step), ReduceOp::max);
      if (repetition > 0) seconds[i].push_back(slowest);
      ++i;
    };
    (measure(steps), ...);
  }
  std::array<double, sizeof...(Steps)> medians;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    medians[i] = seconds[i][seconds[i].size() / 2];
  }
  return medians;
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const Index width = argc > 3 ? std::atoll(argv[3]) : 256;
  const ThreadLimit threads(argc > 4 ? std::atoi(argv[4]) : 1);

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const Alone alone = make_alone(comm, data);
  const Graph graph = construct_full_graph(comm, data);
  const Index own = graph.num_dst_nodes();
  const Tensor u = Tensor::full(Shape{own, width}, 1), x = u, gradient = u;
  const Tensor with_halo = Tensor::full(Shape{own + alone.halo, width}, 1);
  const Tensor weight = Tensor::full(Shape{width, width}, 1);
  Index rows = 0;
  for (const Index sent : alone.sent) rows += sent;
  const Tensor out = Tensor::full(Shape{std::max(rows, alone.halo), width}, 1);
  Tensor in = Tensor::zeros(out.shape());

  const char* names[] = {"forward", "forward_backward", "self_term"};
  for (const Work work : {Work::forward, Work::forward_backward, Work::self_term}) {
    const bool back = work != Work::forward;
    const auto [compute, wire, seconds] = median_seconds(
        comm, [&] { run(work, alone.graph, with_halo, x, weight, gradient); },
        [&] { raw_exchange(comm, alone, width, back, out, in); },
        [&] { run(work, graph, u, x, weight, gradient); });
    const double bytes =
        static_cast<double>(comm.all_reduce(back ? rows + alone.halo : rows, ReduceOp::max) * width) *
        sizeof(real);
    if (comm.rank() == 0)
      std::cout << "{\"name\": \"" << names[static_cast<int>(work)] << "\", \"ranks\": " << comm.size()
                << ", \"threads\": " << num_threads() << ", \"compute\": " << compute
                << ", \"wire\": " << wire << ", \"seconds\": " << seconds << ", \"bytes\": " << bytes
                << ", \"ratio\": " << seconds / std::max(compute, wire) << "}" << std::endl;
  }
  return 0;
}
