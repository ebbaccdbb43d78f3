/// Fused attention on the sbm graph, forward and backward, beside update_all(copy_u, sum) of the same width
/// in the same run, and beside the same attention written with separate operations.
///     bench_attention [nodes] [degree] [threads] [name]     on one rank or several; with a name, that one alone
/// Ratios are to copy_u of the same pass: forward, backward, and both together.
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/edge_softmax.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

using namespace sar;

namespace {

/// Values of either sign, the same in every run.
Variable leaf(const Shape& shape, unsigned seed) {
  Tensor values(shape);
  for (real& x : values.values()) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<real>(seed >> 8) / (1 << 23) - 1;
  }
  return {values, true};
}

struct Timed {
  std::string name;
  std::function<Variable()> attend;
  double forward = std::numeric_limits<double>::infinity();
  double backward = std::numeric_limits<double>::infinity();
};

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const ThreadLimit threads(argc > 3 ? std::atoi(argv[3]) : default_num_threads(comm));
  constexpr Index heads = 4;
  constexpr Index dim = 32;

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const GraphShardManager graph = construct_full_graph(comm, data);
  const Index n = graph.num_src_nodes();
  const Variable x = leaf(Shape{n, heads, dim}, 1), y = leaf(Shape{n, heads, dim}, 2),
                 attn = leaf(Shape{1, heads, dim}, 3), score = leaf(Shape{n, heads}, 4);
  const Tensor gradient = leaf(Shape{n, heads, dim}, 5).value();

  std::vector<Timed> all;
  all.push_back({"copy_u_sum", [&] { return graph.update_all(fn::copy_u(x), fn::sum); }});
  all.push_back({"gat_attention", [&] { return gat_attention(graph, x, attn, score); }});
  all.push_back({"gatv2_attention", [&] { return gatv2_attention(graph, x, y, attn); }});
  all.push_back({"gat_separate_operations", [&] {
                   const Variable scores = graph.apply_edges(fn::u_add_v(head_dots(x, attn), score));
                   Variable alpha = edge_softmax(graph, leaky_relu(scores, real(0.2)));
                   alpha = reshape(std::move(alpha), {graph.num_edges(), heads, 1});
                   return graph.update_all(fn::u_mul_e(x, alpha), fn::sum);
                 }});
  all.push_back({"dot_attention", [&] { return dot_attention(graph, x, y, {}, real(0.2)); }});
  if (argc > 4)
    std::erase_if(all, [&](const Timed& timed) { return &timed != &all[0] && timed.name != argv[4]; });
  for (int repetition = 0; repetition < (argc > 4 ? 30 : 9); ++repetition) {  // the first builds the transpose
    for (Timed& timed : all) {
      for (Variable v : {x, y, attn, score}) v.zero_grad();
      Tape tape;
      Variable out;
      comm.barrier();
      const double forward = bench::seconds_of([&] { out = timed.attend(); });
      comm.barrier();
      const double backward = bench::seconds_of([&] { tape.backward(out, gradient); });
      if (repetition == 0) continue;
      timed.forward = std::min(timed.forward, forward);
      timed.backward = std::min(timed.backward, backward);
    }
  }
  const auto report = [&](const std::string& name, double seconds, double reference) {
    seconds = comm.all_reduce(seconds, ReduceOp::max);
    reference = comm.all_reduce(reference, ReduceOp::max);
    if (comm.rank() == 0)
      bench::print({.name = name,
                    .ranks = comm.size(),
                    .seconds = seconds,
                    .rate = seconds * 1e3,
                    .unit = "ms",
                    .reference = reference * 1e3});
  };
  for (const Timed& timed : all) {
    report(timed.name + "_forward", timed.forward, all[0].forward);
    report(timed.name + "_backward", timed.backward, all[0].backward);
    report(timed.name, timed.forward + timed.backward, all[0].forward + all[0].backward);
  }
  return 0;
}
