/// Graphs from a host's arrays are the graphs that a dataset would have given.
#include "graph/host_arrays.hpp"

#include <support/reference.hpp>
#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

std::vector<WholeGraph> square_graphs() {
  std::vector<WholeGraph> graphs = test_graphs();
  std::erase_if(graphs, [](const WholeGraph& g) { return !g.square; });
  return graphs;
}

/// y = sum over in-edges of w_e dropout(x)_u, and its gradients for the gradient cos(y).
struct Pass {
  Tensor y, grad_x, grad_w;
};

Pass run(const GraphShardManager& graph, const Tensor& x_rows, const Tensor& w_rows) {
  const Variable x(x_rows, true), w(w_rows, true);
  Tape tape;
  const Variable y = graph.update_all(fn::u_mul_e(dropout(x, 0.3, {.seed = 4}, graph.src_ids()), w), fn::sum);
  Tensor grad(y.shape());
  for (Index i = 0; i < grad.size(); ++i) grad.data()[i] = std::cos(y.value().data()[i]);
  tape.backward(y, grad);
  const auto or_zero = [](const Variable& v) {
    return v.grad().defined() ? v.grad() : Tensor::zeros(v.shape());
  };
  return {y.value(), or_zero(x), or_zero(w)};
}

}  // namespace

TEST_CASE("the graph of a host's arrays computes what the whole graph does") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : square_graphs()) {
    const Tensor x = random_values({g.num_src, 5}, 1);
    const Tensor w = random_values({static_cast<Index>(g.src.size()), 1}, 2);
    const GraphShardManager whole = whole_graph(g);
    const Pass expected = run(whole, x, whole.local_edge_rows(w));
    Tensor expected_grad_w(w.shape());
    for (Index e = 0; e < w.num_rows(); ++e)
      expected_grad_w.row(whole.edge_ids()[static_cast<std::size_t>(e)])[0] = expected.grad_w.row(e)[0];

    for (const Ownership how : {Ownership::scattered, Ownership::one_rank, Ownership::halves})
      for (const Mode mode : {Mode::rematerialize, Mode::one_shot}) {
        CAPTURE(g.name);
        CAPTURE(static_cast<int>(how));
        const HostArrays host = host_arrays(comm, g, how);
        const HostGraph graph(comm, host.node_ids, host.edges(), {.graph = {.mode = mode}});
        CHECK(graph.num_global_nodes() == g.num_src);
        CHECK(graph.num_global_edges() == static_cast<Index>(g.src.size()));
        CHECK(graph.num_nodes() == static_cast<Index>(host.node_ids.size()));
        CHECK(graph.num_given_edges() == static_cast<Index>(host.src.size()));
        CHECK(std::equal(graph.src_ids().begin(), graph.src_ids().end(), host.node_ids.begin(),
                         host.node_ids.end()));
        const Tensor host_w = host.edge_rows(w);
        const Pass mine = run(graph, host.node_rows(x), graph.to_graph_order(host_w));
        CHECK(error_of_part(mine.y, host.node_rows(expected.y), expected.y) < tolerance());
        CHECK(error_of_part(mine.grad_x, host.node_rows(expected.grad_x), expected.grad_x) < tolerance());
        CHECK(error_of_part(graph.to_host_order(mine.grad_w), host.edge_rows(expected_grad_w),
                            expected_grad_w) < tolerance());
      }
  }
}
