// SPDX-License-Identifier: MIT

/// What an order of the nodes does to aggregation: update_all(copy_u, sum) forward and backward on the sbm
/// graph with many classes, whose node ids are scattered, before (reference) and after locality_order, in
/// bytes of gathered rows per second; and locality_order itself, in edges per second beside a copy of the
/// edges.
///     bench_reorder [nodes] [degree] [classes] [threads]            on one rank
#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <cstdlib>
#include <numeric>

using namespace sar;

namespace {

/// The graph whose node i is order[i].
Graph ordered(const Communicator& comm, const NodeData& data, const Array<Index>& order) {
  Array<Index> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    position[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
  EdgeList edges = data.edges;
  for (Array<Index>* ends : {&edges.src, &edges.dst})
    for (Index& v : *ends) v = position[static_cast<std::size_t>(v)];
  return {comm, data.book, data.book, std::move(edges), true};
}

/// One step of aggregation on a graph.
class Aggregation {
 public:
  Aggregation(const Graph& graph, Index width)
      : graph_(graph),
        rows_(Tensor::full(Shape{graph.num_src_nodes(), width}, 1), true),
        gradient_(Tensor::full(Shape{graph.num_dst_nodes(), width}, 1)) {}
  void operator()() {
    Tape tape;
    rows_.zero_grad();
    tape.backward(graph_.update_all(fn::copy_u(rows_), fn::sum), gradient_);
  }

 private:
  const Graph& graph_;
  Variable rows_;
  Tensor gradient_;
};

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::self();
  SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  sbm.classes = argc > 3 ? std::atoll(argv[3]) : 256;
  sbm.homophily = 0.8;
  const ThreadLimit threads(argc > 4 ? std::atoi(argv[4]) : default_num_threads(comm));

  const NodeData data = make_sbm(comm, sbm);
  Array<Index> order;
  EdgeList copy;
  const auto [ordering, copying] = bench::best_seconds(
      2, [&] { order = locality_order(sbm.nodes, data.edges.src, data.edges.dst); },
      [&] {
        copy.src = data.edges.src;
        copy.dst = data.edges.dst;
      });
  const auto edges = static_cast<double>(data.num_edges);
  bench::print({.name = "locality_order",
                .seconds = ordering,
                .rate = edges / ordering / 1e6,
                .unit = "million edges/s",
                .reference = edges / copying / 1e6});

  Array<Index> as_it_is(order.size());
  std::iota(as_it_is.begin(), as_it_is.end(), Index{0});
  const Graph scattered = ordered(comm, data, as_it_is);
  const Graph clustered = ordered(comm, data, order);
  for (const Index width : {64, 128, 256}) {
    Aggregation before(scattered, width);
    Aggregation after(clustered, width);
    const auto [slow, fast] = bench::best_seconds(9, before, after);
    const double gathered = 2 * edges * static_cast<double>(width) * sizeof(real) / 1e9;
    bench::print({.name = "reordered_" + std::to_string(width),
                  .seconds = fast,
                  .rate = gathered / fast,
                  .reference = gathered / slow});
  }
  return 0;
}
