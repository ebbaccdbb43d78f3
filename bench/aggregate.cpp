// SPDX-License-Identifier: MIT

/// Aggregation on the sbm graph: update_all(copy_u, sum) forward and backward, in bytes of gathered rows per
/// second (edges * width * sizeof(real)), beside the STREAM triad on the same threads in the same run; then
/// other messages and reductions beside copy_u sum of the same width in the same run; NAME_bfloat16: the same
/// in mixed precision.
///     bench_aggregate [nodes] [degree] [threads]            on one rank or several
#include "bench.hpp"
#include "passes.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

using namespace sar;

namespace {

/// Milliseconds of messages of 4 heads x 32, and as the ratio the time of copy_u sum.
void compare_messages(const Graph& graph) {
  constexpr Index heads = 4, dim = 32;
  const Communicator& comm = graph.comm();
  const Index n = graph.num_src_nodes(), edges = graph.num_edges();
  const Variable u = bench::leaf(Shape{n, heads, dim}, 1),
                 v = bench::leaf(Shape{graph.num_dst_nodes(), heads, dim}, 2),
                 by_head = bench::leaf(Shape{edges, heads, 1}, 3),
                 number = bench::leaf(Shape{edges, 1, 1}, 4);
  const Tensor gradient = bench::leaf(v.shape(), 5).value();
  std::vector<bench::Operation> all;
  const auto add = [&](const std::string& name, const Message& message, Reduce reduce) {
    all.push_back({name, [&graph, message, reduce] { return graph.update_all(message, reduce); }});
  };
  add("copy_u_sum", fn::copy_u(u), fn::sum);
  add("copy_u_max", fn::copy_u(u), fn::max);
  add("copy_u_min", fn::copy_u(u), fn::min);
  add("u_mul_e_sum_number", fn::u_mul_e(u, number), fn::sum);
  add("u_mul_e_sum_heads", fn::u_mul_e(u, by_head), fn::sum);
  add("u_mul_v_sum", fn::u_mul_v(u, v), fn::sum);
  std::vector<Variable> leaves = {u, v, by_head, number};
  if (sizeof(real) == 4) {
    leaves.push_back(bench::bfloat16_leaf(u));
    const auto add_mixed = [&](const std::string& name, const Message& message, Reduce reduce) {
      add(name + "_bfloat16", message, reduce);
      all.back().mixed = true;
    };
    add_mixed("copy_u_sum", fn::copy_u(leaves.back()), fn::sum);
    add_mixed("copy_u_max", fn::copy_u(leaves.back()), fn::max);
    add_mixed("u_mul_e_sum_heads", fn::u_mul_e(leaves.back(), by_head), fn::sum);
  }
  bench::compare_passes(comm, all, leaves, gradient, 8);
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const ThreadLimit threads(argc > 3 ? std::atoi(argv[3]) : default_num_threads(comm));

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);
  compare_messages(graph);
  bench::Triad triad;
  for (const Index width : {64, 128, 256}) {
    const Variable u(Tensor::full(Shape{graph.num_src_nodes(), width}, 1), true);
    const Tensor gradient = Tensor::full(Shape{graph.num_dst_nodes(), width}, 1);
    std::optional<Tape> tape;
    Variable out;
    double forward = 1e300;
    double backward = 1e300;
    double reference = 1e300;
    for (int repetition = 0; repetition < 12; ++repetition) {  // the first builds the transpose
      tape.emplace();
      Variable leaf = u;
      leaf.zero_grad();
      comm.barrier();
      const double f = bench::seconds_of([&] { out = graph.update_all(fn::copy_u(leaf), fn::sum); });
      comm.barrier();
      const double b = bench::seconds_of([&] { tape->backward(out, gradient); });
      comm.barrier();
      const double t = bench::seconds_of([&] { triad(); });
      if (repetition == 0) continue;
      forward = std::min(forward, f);
      backward = std::min(backward, b);
      reference = std::min(reference, t);
    }
    const double gathered = static_cast<double>(graph.num_global_edges() * width) * sizeof(real) / 1e9;
    const double stream = comm.all_reduce(triad.bytes() / reference / 1e9);  // all ranks together
    const auto report = [&](const std::string& name, double seconds, double bytes) {
      seconds = comm.all_reduce(seconds, ReduceOp::max);
      if (comm.rank() == 0)
        bench::print({.name = name + "_" + std::to_string(width),
                      .ranks = comm.size(),
                      .seconds = seconds,
                      .rate = bytes / seconds,
                      .reference = stream});
    };
    report("aggregate_forward", forward, gathered);
    report("aggregate_backward", backward, gathered);
    report("aggregate", forward + backward, 2 * gathered);
  }
  return 0;
}
