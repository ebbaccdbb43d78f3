// SPDX-License-Identifier: MIT

/// A message function that returns edges.src(h) beside the built-in copy_u: sum, forward and backward, on the
/// sbm graph. The rate is that of the gathered rows (2 * edges * width * sizeof(real) bytes per second), the
/// reference that of copy_u; their ratio is what a user-defined message costs at least.
///     bench_user_message [nodes] [degree] [threads]            on one rank or several
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/graph.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const ThreadLimit threads(argc > 3 ? std::atoi(argv[3]) : default_num_threads(comm));

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  Graph graph = construct_full_graph(comm, data);
  constexpr Index width = 64;
  const Variable h(Tensor::full(Shape{graph.num_src_nodes(), width}, 1), true);
  const Variable weight(Tensor::full(Shape{width, width}, real{1} / width), true);
  const Tensor gradient = Tensor::full(Shape{graph.num_dst_nodes(), width}, 1);

  struct Candidate {
    std::string name;
    Index edge_chunk;
    std::function<Variable()> run;
    double seconds = 1e300;
  };
  std::vector<Candidate> candidates{
      {"copy_u", 1, [&] { return graph.update_all(fn::copy_u(h), fn::sum); }, 1e300}};
  for (const Index block : {512, 1024, 2048, 4096, 8192, 16384, 65536})
    candidates.push_back(
        {"src_block" + std::to_string(block), block,
         [&] { return graph.update_all([&](const EdgeBatch& edges) { return edges.src(h); }, fn::sum); }});
  for (const Index block : {1024, 4096, 16384})
    candidates.push_back(
        {"mlp_block" + std::to_string(block), block, [&] {
           return graph.update_all(
               [&](const EdgeBatch& edges) { return relu(linear(edges.src(h), weight) + edges.dst(h)); },
               fn::sum);
         }});
  for (int repetition = 0; repetition < 4; ++repetition) {  // the first makes the transpose
    for (Candidate& candidate : candidates) {
      graph.set_options({.edge_chunk = candidate.edge_chunk});
      Tape tape;
      Variable leaf = h, parameter = weight;
      leaf.zero_grad();
      parameter.zero_grad();
      comm.barrier();
      const double seconds = bench::seconds_of([&] { tape.backward(candidate.run(), gradient); });
      if (repetition > 0) candidate.seconds = std::min(candidate.seconds, seconds);
    }
  }
  const double gathered = 2 * static_cast<double>(graph.num_global_edges() * width) * sizeof(real) / 1e9;
  const double copy_u = comm.all_reduce(candidates.front().seconds, ReduceOp::max);
  for (const Candidate& candidate : candidates) {
    const double seconds = comm.all_reduce(candidate.seconds, ReduceOp::max);
    if (comm.rank() == 0)
      bench::print({.name = candidate.name,
                    .ranks = comm.size(),
                    .seconds = seconds,
                    .rate = gathered / seconds,
                    .reference = gathered / copy_u});
  }
  return 0;
}
