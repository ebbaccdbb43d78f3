// SPDX-License-Identifier: MIT

/// What training on Cora must show besides the golden losses of train_test.cpp.
#include "nn/train/curve.hpp"

#include <filesystem>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

const std::string cora = std::string(SAR_SHARED_DATA) + "/cora";

bool have_cora() {
  if (std::filesystem::exists(cora + "/edge_index.npy")) return true;
  MESSAGE("skipped: there is no dataset in ", cora);
  return false;
}

/// Kipf and Welling (arXiv 1609.02907): dropout in front of both layers.
struct GCN : Module {
  Dropout drop_features, drop_hidden;
  ModuleList<GraphConv> layers;

  GCN(const NodeData& data, Generator& gen) : drop_features(0.5, gen), drop_hidden(0.5, gen) {
    register_module("drop_features", drop_features);
    register_module("drop_hidden", drop_hidden);
    register_module("layers", layers);
    layers.emplace_back(data.features.row_size(), 16, gen);
    layers.emplace_back(16, data.num_classes, gen);
  }
  Variable operator()(const Graph& graph, const Variable& x) {
    const Variable h = relu(layers[0](graph, drop_features(x, graph.src_ids())));
    return layers[1](graph, drop_hidden(h, graph.src_ids()));
  }
};

}  // namespace

TEST_CASE("the curve on Cora does not depend on ranks, mode and partitioning") {
  if (!have_cora()) return;
  check_curves([](const Communicator& comm, PartitionMethod method) {
    return load_dataset(comm, cora, {.normalize_features = true, .partition = method, .partition_seed = 1});
  });
}

TEST_CASE("GCN reaches the accuracy of its paper on Cora") {
  if (!have_cora()) return;
  const Communicator comm = Communicator::world();
  NodeData data = load_dataset(comm, cora, {.add_self_loops = true, .normalize_features = true});
  const Graph graph = construct_full_graph(comm, data);
  double sum = 0;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Generator gen(seed);
    GCN net(data, gen);
    Adam adam(net.named_parameters(), {.lr = 0.01, .weight_decay = 5e-4});
    for (int epoch = 0; epoch < 200; ++epoch) step(net, adam, graph, data, comm);
    net.eval();
    sum += accuracy(net(graph, data.features).value(), data.labels, data.test_mask, comm);
  }
  MESSAGE("mean test accuracy ", sum / 5);
  CHECK(sum / 5 >= 0.805);  // the paper: 0.815
}
