/// How much of the wire is hidden: one update_all (copy_u, sum) forward and backward on a randomly
/// partitioned sbm graph, beside its parts measured alone in the same run: the kernels of the local stage,
/// those of the remote stages, and raw MPI moving the bytes of the halo both ways.
///     overlap reference = 1.25 * max(local compute, wire) + remote compute;   ratio = reference / measured,
///     at least 1 is good
/// Run it where ranks are joined by a network of known speed:  bench_overlap [nodes] [degree] [width]
/// [threads]
#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace sar;

namespace {

/// Moves the rows of all rounds there (as a fetch) and back (as a push), from and to contiguous memory.
void raw_exchange(const ShardedGraph& graph, Index width, std::vector<Tensor>& out, std::vector<Tensor>& in) {
  for (const bool forward : {true, false}) {
    for (std::size_t r = 0; r < graph.rounds.size(); ++r) {
      const HaloRound& round = graph.rounds[r];
      const auto sent = static_cast<int>(static_cast<Index>(round.send_rows.size()) * width *
                                         static_cast<Index>(sizeof(real)));
      const auto received = static_cast<int>(round.recv_rows * width * static_cast<Index>(sizeof(real)));
      MPI_Request requests[2];
      MPI_Irecv(in[r].data(), forward ? received : sent, MPI_BYTE, forward ? round.owner : round.reader, 0,
                graph.comm.handle(), &requests[0]);
      MPI_Isend(out[r].data(), forward ? sent : received, MPI_BYTE, forward ? round.reader : round.owner, 0,
                graph.comm.handle(), &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const Index width = argc > 3 ? std::atoll(argv[3]) : 256;
  const ThreadLimit threads(argc > 4 ? std::atoi(argv[4]) : 1);

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const ShardedGraph parts(comm, data.book, data.book, data.edges, true, {}, {});
  const GraphShardManager graph = construct_full_graph(comm, data);

  Variable u(Tensor::full(Shape{graph.num_src_nodes(), width}, 1), true);
  const Tensor gradient = Tensor::full(Shape{graph.num_dst_nodes(), width}, 1);
  Tensor out = Tensor::zeros(gradient.shape());
  Tensor grad_u = Tensor::zeros(u.shape());
  const Tensor halo = Tensor::full(Shape{parts.max_round_rows, width}, 1);
  Tensor grad_halo = Tensor::zeros(halo.shape());
  std::vector<Tensor> send_buffers, receive_buffers;
  for (const HaloRound& round : parts.rounds) {
    const Shape shape{std::max(round.recv_rows, static_cast<Index>(round.send_rows.size())), width};
    send_buffers.push_back(Tensor::full(shape, 1));
    receive_buffers.push_back(Tensor::full(shape, 1));
  }

  const auto kernel = [&] {
    return LinearKernel({.width = width, .out = out.data(), .grad_out = gradient.data()});
  };
  const auto local = [&] {
    LinearKernel k = kernel();
    k.accumulate({parts.local, 0, parts.local.num_src_rows, u.value().data()});
    k.backward({parts.local, 0, parts.local.num_src_rows, nullptr}, grad_u.data(), false);
  };
  const auto remote = [&] {
    LinearKernel k = kernel();
    for (const GraphShard& shard : parts.remote) {
      k.accumulate({shard, 0, shard.num_src_rows, halo.data()});
      k.backward({shard, 0, shard.num_src_rows, nullptr}, grad_halo.data(), false);
    }
  };
  const auto wire = [&] { raw_exchange(parts, width, send_buffers, receive_buffers); };
  const auto whole = [&] {
    u.zero_grad();
    Tape tape;
    tape.backward(graph.update_all(fn::copy_u(u), fn::sum), gradient);
  };

  // Every repetition takes as long as its slowest rank; the median over repetitions.
  std::vector<std::vector<double>> seconds(4);
  for (int repetition = 0; repetition < 8; ++repetition) {
    const auto measure = [&](std::size_t i, auto&& work) {
      comm.barrier();
      const double slowest = comm.all_reduce(bench::seconds_of(work), ReduceOp::max);
      if (repetition > 0) seconds[i].push_back(slowest);
    };
    measure(0, local);
    measure(1, remote);
    measure(2, wire);
    measure(3, whole);
  }
  for (auto& series : seconds) std::sort(series.begin(), series.end());
  const auto median = [&](std::size_t i) { return seconds[i][seconds[i].size() / 2]; };
  if (comm.rank() == 0) {
    const double gathered = static_cast<double>(graph.num_global_edges() * width) * sizeof(real) / 1e9;
    const char* names[] = {"local_compute", "remote_compute", "raw_wire"};
    for (std::size_t i = 0; i < 3; ++i)
      bench::print({.name = names[i],
                    .ranks = comm.size(),
                    .seconds = median(i),
                    .rate = 1 / median(i),
                    .unit = "1/s"});
    const double allowed = 1.25 * std::max(median(0), median(2)) + median(1);
    bench::print({.name = "overlap",
                  .ranks = comm.size(),
                  .seconds = median(3),
                  .rate = 2 * gathered / median(3),
                  .reference = 2 * gathered / allowed});
  }
  return 0;
}
