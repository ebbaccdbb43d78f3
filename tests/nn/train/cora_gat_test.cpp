// SPDX-License-Identifier: MIT

/// GAT reaches the accuracy of its paper on Cora (arXiv 1710.10903: 0.830 +- 0.007).
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

using namespace sar;

namespace {

const std::string cora = std::string(SAR_SHARED_DATA) + "/cora";

/// 8 heads of 8 side by side, ELU, one head; dropout 0.6 of both inputs and of the attention coefficients.
struct Gat : Module {
  ModuleList<GATConv> layers;

  Gat(const NodeData& data, Generator& gen) {
    register_module("layers", layers);
    layers.emplace_back(data.features.row_size(), Index{8}, Index{8}, gen,
                        GATConvOptions{.feat_drop = 0.6, .attn_drop = 0.6, .activation = [](Variable y) {
                                         return elu(std::move(y));
                                       }});
    layers.emplace_back(Index{64}, data.num_classes, Index{1}, gen,
                        GATConvOptions{.feat_drop = 0.6, .attn_drop = 0.6});
  }
  Variable operator()(const Graph& graph, const Variable& x) {
    const Index nodes = x.num_rows();
    const Variable h = reshape(layers[0](graph, x), {nodes, 64});
    return reshape(layers[1](graph, h), {nodes, layers[1].out_feats()});
  }
};

/// Early stopping as the paper's authors do it: training ends when neither validation loss nor accuracy has
/// reached its best for 100 epochs; the model that counts is the last one at which both had.
double test_accuracy(const Graph& graph, const NodeData& data, const Communicator& comm, std::uint64_t seed,
                     int max_epochs) {
  Generator gen(seed);
  Gat net(data, gen);
  Adam adam(net.named_parameters(), {.lr = 0.005, .weight_decay = 5e-4});
  double best_loss = 1e30, best_accuracy = 0, result = 0;
  for (int epoch = 0, waited = 0; epoch < max_epochs && waited < 100; ++epoch, ++waited) {
    net.train();
    {
      Tape tape;
      tape.backward(cross_entropy(net(graph, data.features), data.labels, data.train_mask, comm));
      gather_grads(comm, net);
      adam.step();
      adam.zero_grad();
    }
    net.eval();
    const Tensor logits = net(graph, data.features).value();
    const double loss =
        static_cast<double>(cross_entropy(logits, data.labels, data.val_mask, comm).value().item());
    const double valid = accuracy(logits, data.labels, data.val_mask, comm);
    if (loss > best_loss && valid < best_accuracy) continue;
    if (loss <= best_loss && valid >= best_accuracy)
      result = accuracy(logits, data.labels, data.test_mask, comm);
    best_loss = std::min(best_loss, loss);
    best_accuracy = std::max(best_accuracy, valid);
    waited = -1;
  }
  return result;
}

}  // namespace

TEST_CASE("GAT reaches the accuracy of its paper on Cora") {
  if (!std::filesystem::exists(cora + "/edge_index.npy")) {
    MESSAGE("skipped: there is no dataset in ", cora);
    return;
  }
  const Communicator comm = Communicator::world();
  NodeData data = load_dataset(comm, cora, {.add_self_loops = true, .normalize_features = true});
  const Graph graph = construct_full_graph(comm, data);
  // Five seeds on one rank; two on several, where it takes longer, unless SAR_GAT_SEEDS says how many. The
  // mean of two wanders by 0.005.
  const char* wanted = std::getenv("SAR_GAT_SEEDS");
  const int seeds = wanted != nullptr ? std::atoi(wanted) : comm.size() == 1 ? 5 : 2;
  REQUIRE(seeds > 0);
  double sum = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const double reached = test_accuracy(graph, data, comm, static_cast<std::uint64_t>(seed), 300);
    MESSAGE("seed ", seed, ": test accuracy ", reached);
    sum += reached;
  }
  MESSAGE("mean test accuracy ", sum / seeds);
  CHECK(sum / seeds >= (seeds >= 5 ? 0.82 : 0.81));
}
