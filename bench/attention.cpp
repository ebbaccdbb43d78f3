// SPDX-License-Identifier: MIT

/// Fused attention on the sbm graph, forward and backward, beside update_all(copy_u, sum) of the same width
/// in the same run, and beside the same attention written with separate operations; NAME_bfloat16: the same
/// in mixed precision.
///     bench_attention [nodes] [degree] [threads] [name]     on one rank or several; with a name, that one alone
/// Ratios are to copy_u of the same pass: forward, backward, and both together.
#include "bench.hpp"
#include "passes.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const ThreadLimit threads(argc > 3 ? std::atoi(argv[3]) : default_num_threads(comm));
  constexpr Index heads = 4;
  constexpr Index dim = 32;

  NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);
  const Index n = graph.num_src_nodes();
  const Variable x = bench::leaf(Shape{n, heads, dim}, 1), y = bench::leaf(Shape{n, heads, dim}, 2),
                 attn = bench::leaf(Shape{1, heads, dim}, 3), score = bench::leaf(Shape{n, heads}, 4);
  const Tensor gradient = bench::leaf(Shape{n, heads, dim}, 5).value();

  std::vector<bench::Operation> all;
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
  std::vector<Variable> leaves = {x, y, attn, score};
  if (sizeof(real) == 4) {
    const Variable rows = bench::bfloat16_leaf(x), others = bench::bfloat16_leaf(y);
    leaves.insert(leaves.end(), {rows, others});
    const auto add = [&](const char* name, std::function<Variable()> run) {
      all.push_back({std::string(name) + "_bfloat16", std::move(run), true});
    };
    add("copy_u_sum", [&graph, rows] { return graph.update_all(fn::copy_u(rows), fn::sum); });
    add("gat_attention", [&, rows] { return gat_attention(graph, rows, attn, score); });
    add("gatv2_attention", [&, rows, others] { return gatv2_attention(graph, rows, others, attn); });
    add("dot_attention", [&, rows, others] { return dot_attention(graph, rows, others, {}, real(0.2)); });
  }
  if (argc > 4)
    std::erase_if(all, [&](const bench::Operation& operation) {
      return &operation != &all[0] && operation.name != argv[4];
    });
  bench::compare_passes(comm, all, leaves, gradient, argc > 4 ? 29 : 8);
  return 0;
}
