// SPDX-License-Identifier: MIT

/// Graph::drop_edge_ids(): what a graph without the ids of its edges does, and what it refuses.
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

struct Inputs {
  Variable h, attn, score;

  Inputs(const WholeGraph& g, const Books& books, int rank)
      : h(local_rows(random_values(g.num_src * 6, 1), books.src, rank, 6)
              .reshape({books.src.num_nodes(rank), 2, 3}),
          true),
        attn(to_tensor(random_values(6, 2), {1, 2, 3}), true),
        score(local_rows(random_values(g.num_dst * 2, 3), books.dst, rank, 2), true) {}
};

std::vector<real> numbers(const Tensor& x) {
  return {x.data(), x.data() + x.size()};
}

/// Results and gradients of everything that needs no ids.
std::vector<std::vector<real>> run(const Graph& graph, const Inputs& in) {
  std::vector<std::vector<real>> results;
  const auto add = [&](const std::function<Variable()>& operation) {
    Tape tape;
    const Variable y = operation();
    tape.backward(y, Tensor::full(y.shape(), 1));
    results.push_back(numbers(y.value()));
    for (Variable x : {in.h, in.attn, in.score}) {
      if (x.grad().defined()) results.push_back(numbers(x.grad()));
      x.zero_grad();
    }
  };
  add([&] { return graph.update_all(fn::copy_u(in.h), fn::sum); });
  add([&] {
    return graph.update_all(fn::u_mul_v(in.h, reshape(in.score, {in.score.num_rows(), 2, 1})), fn::mean);
  });
  add([&] { return gat_attention(graph, in.h, in.attn, in.score); });
  add([&] {
    return graph.update_all([h = in.h](const EdgeBatch& edges) { return tanh(edges.src(h)); }, fn::sum);
  });
  return results;
}

}  // namespace

TEST_CASE("without the ids of the edges a graph takes 8 bytes less an edge and computes the same bits") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs()) {
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      Graph graph = shard(comm, whole, books, {});
      const Graph other = graph.get_full_partition_graph();
      const Inputs in(whole, books, comm.rank());
      const auto before = run(graph, in), before_other = run(other, in);
      const std::uint64_t bytes = graph.index_bytes(), live = live_bytes();
      graph.drop_edge_ids();
      CHECK(bytes - graph.index_bytes() == 8 * static_cast<std::uint64_t>(graph.num_edges()));
      CHECK(live - live_bytes() == bytes - graph.index_bytes());
      CHECK(run(graph, in) == before);
      CHECK(run(other, in) == before_other);
      graph.drop_edge_ids();  // again: nothing happens
      CHECK(graph.num_global_edges() == static_cast<Index>(whole.src.size()));
    }
  }
}

TEST_CASE("what needs the ids of the edges says so on all ranks, and the graph goes on working") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(whole, comm.size()).front();
  const std::string dropped =
      "this operation reads the ids of the graph's edges, which drop_edge_ids() has dropped";
  const int last = comm.size() - 1;
  const Inputs in(whole, books, comm.rank());
  for (const bool on_all : {true, false}) {  // or on the last rank only
    Graph graph = shard(comm, whole, books, {});
    const auto expected = run(graph, in);
    if (on_all || comm.rank() == last) graph.drop_edge_ids();
    const auto message = [&](const std::function<void()>& operation) {
      return thrown_by_all<InputError>(comm, operation);
    };
    const auto of_edges = [&](const EdgeBatch& edges) {
      const RowIds ids = edges.ids();
      return dropout(edges.src(in.h), 0.5, {.seed = 1}, ids);
    };
    CHECK(message([&] { (void)graph.update_all(fn::copy_u(in.h), fn::max); }) == dropped);
    CHECK(message([&] { (void)graph.update_all(fn::copy_u(in.h), fn::min); }) == dropped);
    CHECK(message([&] {
            (void)gat_attention(graph, in.h, in.attn, in.score, real(0.2),
                                {.dropout = 0.5, .dropout_key = {}});
          }) == dropped);
    CHECK(message([&] { (void)graph.update_all(of_edges, fn::sum); }) == dropped);
    CHECK(message([&] { (void)graph.apply_edges(of_edges); }) == dropped);
    CHECK(message([&] {
            (void)graph.update_all([&](const EdgeBatch& edges) { return edges.src(in.h); }, fn::max);
          }) == dropped);
    CHECK(message([&] { (void)graph.local_edge_rows(Tensor({std::ssize(whole.src), 1})); }) == dropped);
    CHECK(message([&] { (void)NeighborSampler(graph, {2}); }) == dropped);
    CHECK(run(graph, in) == expected);
    if (comm.rank() == last) CHECK(thrown<InputError>([&] { (void)graph.edge_ids(); }) == dropped);
  }
}

TEST_CASE("message flow graphs of a graph without the ids of its edges have none either") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(whole, comm.size()).front();
  Graph graph = shard(comm, whole, books, {});
  const std::vector<Index> seeds{books.dst.begin(comm.rank())};
  const auto sums = [&] {
    const MessageFlowGraph block = construct_mfgs(graph, seeds, 1).front();
    const Variable x(to_tensor(random_values(block.num_src_nodes(), 4), {block.num_src_nodes(), 1}));
    return numbers(block.update_all(fn::copy_u(x), fn::sum).value());
  };
  const std::vector<real> expected = sums();
  graph.drop_edge_ids();
  CHECK(sums() == expected);
  const MessageFlowGraph block = construct_mfgs(graph, seeds, 1).front();
  CHECK(thrown<InputError>([&] { (void)block.edge_ids(); }).ends_with("drop_edge_ids() has dropped"));
}
