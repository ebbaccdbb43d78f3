// SPDX-License-Identifier: MIT

/// What it costs to be a library inside a host: training steps of one model over the same graph, (a) as train
/// gets it, from a dataset, and (b) as a host gives it, from its own arrays with borrowed features. Nodes lie
/// on the same ranks in the same order; steps alternate. Ratios are (b) / (a).
///
/// embedding_step: steps/s; the ratio is the median over pairs of steps, at least 0.98 is good.
///
/// embedding_build: edges/s, beside construct_full_graph with all edges at their owners.
///
/// embedding_bytes: what the graph holds an edge.
///
/// bench_embedding [nodes] [degree] [width] [steps]
#include "bench.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

using namespace sar;

namespace {

/// What a host has: ids that are not contiguous, an edge with the owner of its destination.
struct Host {
  std::vector<std::int64_t> nodes, src, dst;
  std::vector<real> features;

  explicit Host(const Communicator& comm, const NodeData& data) {
    const auto id = [](Index node) { return 1'000'003 * node + 17; };
    for (Index v = data.book.begin(comm.rank()); v < data.book.end(comm.rank()); ++v) nodes.push_back(id(v));
    for (const Index u : data.edges.src) src.push_back(id(u));
    for (const Index v : data.edges.dst) dst.push_back(id(v));
    const auto values = std::as_const(data.features).values();
    features.assign(values.begin(), values.end());
  }
};

struct Net : Module {
  SAGEConv in, hidden, out;
  DistributedBN1D in_norm, hidden_norm;
  Dropout dropout;

  Net(Index features, Index width, Index classes, const Communicator& comm, Generator gen)
      : in(features, width, gen),
        hidden(width, width, gen),
        out(width, classes, gen),
        in_norm(width, comm),
        hidden_norm(width, comm),
        dropout(0.5, gen) {
    register_module("in", in);
    register_module("hidden", hidden);
    register_module("out", out);
    register_module("in_norm", in_norm);
    register_module("hidden_norm", hidden_norm);
    register_module("dropout", dropout);
  }
  Variable operator()(const Graph& graph, const Variable& x) {
    Variable h = batch_norm_relu_dropout(in(graph, x), in_norm, dropout, graph.dst_ids());
    h = batch_norm_relu_dropout(hidden(graph, h), hidden_norm, dropout, graph.dst_ids());
    return out(graph, h);
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Training {
 public:
  Training(const Graph& graph, const NodeData& data, Tensor features, Index width)
      : graph_(graph),
        data_(data),
        features_(std::move(features)),
        net_(features_.row_size(), width, data.num_classes, graph.comm(), Generator(0)),
        adam_(net_.named_parameters(), {.lr = 0.01}) {}

  void step() {
    Tape tape;
    const Variable loss =
        cross_entropy(net_(graph_, features_), data_.labels, data_.train_mask, graph_.comm());
    tape.backward(loss);
    gather_grads(graph_.comm(), net_);
    adam_.step();
    adam_.zero_grad();
  }

 private:
  const Graph& graph_;
  const NodeData& data_;
  Tensor features_;
  Net net_;
  Adam adam_;
};

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  SbmOptions sbm = bench::sbm_of_arguments(argc, argv);
  const Index width = argc > 3 ? std::atoll(argv[3]) : 128;
  const int steps = argc > 4 ? std::max(1, std::atoi(argv[4])) : 20;
  sbm.features = 100;
  NodeData data = make_sbm(comm, sbm);
  const Host host(comm, data);
  const EdgeList edges = data.edges;

  // Works alternate, and the slowest rank counts.
  const auto slowest = [&](auto&& work) {
    comm.barrier();
    return comm.all_reduce(bench::seconds_of(work), ReduceOp::max);
  };
  std::optional<Graph> dataset_graph;
  std::optional<HostGraph> host_graph;
  std::array<double, 2> build{1e30, 1e30};
  std::array<std::size_t, 2> bytes{};
  for (int repetition = 0; repetition < 3; ++repetition) {
    dataset_graph.reset();
    host_graph.reset();
    data.edges = {};
    std::size_t before = live_bytes();
    data.edges = edges;
    build[0] = std::min(build[0], slowest([&] { dataset_graph = construct_full_graph(comm, data); }));
    bytes[0] = comm.all_reduce(live_bytes() - before);
    before = live_bytes();
    build[1] = std::min(build[1], slowest([&] {
                          host_graph.emplace(comm, host.nodes, GlobalEdges{.src = host.src, .dst = host.dst});
                        }));
    bytes[1] = comm.all_reduce(live_bytes() - before);
  }

  Training dataset(*dataset_graph, data, data.features, width);
  Training embedded(*host_graph, data, Tensor::borrow(host.features, data.features.shape()), width);
  std::vector<double> seconds, ratios;  // of the host's steps; of each to the one of the dataset beside it
  for (int s = 0; s <= steps; ++s) {
    std::array<double, 2> times{};
    for (const std::size_t turn : {0, 1}) {
      const std::size_t of_host = (turn + static_cast<std::size_t>(s)) % 2;
      times[of_host] = slowest([&] { (of_host == 1 ? embedded : dataset).step(); });
    }
    if (s == 0) continue;
    seconds.push_back(times[1]);
    ratios.push_back(times[1] / times[0]);
  }
  if (comm.rank() != 0) return 0;
  const double step = median(seconds);
  const auto all_edges = static_cast<double>(host_graph->num_global_edges());
  bench::print({.name = "embedding_step",
                .ranks = comm.size(),
                .seconds = step,
                .rate = 1 / step,
                .unit = "steps/s",
                .reference = median(ratios) / step});
  bench::print({.name = "embedding_build",
                .ranks = comm.size(),
                .seconds = build[1],
                .rate = all_edges / build[1],
                .unit = "edges/s",
                .reference = all_edges / build[0]});
  bench::print({.name = "embedding_bytes",
                .ranks = comm.size(),
                .seconds = 0,
                .rate = static_cast<double>(bytes[1]) / all_edges,
                .unit = "bytes/edge",
                .reference = static_cast<double>(bytes[0]) / all_edges});
  return 0;
}
