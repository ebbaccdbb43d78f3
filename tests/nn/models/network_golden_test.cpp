// SPDX-License-Identifier: MIT

/// Golden vectors of node classifiers of PyTorch Geometric: weights under its names, which are also saved so,
/// logits in training and in evaluation, gradients of the weights and of the input; for all distributions
/// over the ranks.
#include "graph/data/dataset_files.hpp"
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/effort.hpp"
#include "support/rows.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr double largest_error = sizeof(real) == 8 ? 1e-9 : 2e-4;

/// Writes the weights of a case to a file, under the names of PyTorch Geometric.
void write_weights(const Communicator& comm, const Case& golden, const std::string& path) {
  StateDict state;
  Recoverable<std::uint64_t> batches;
  for (const std::string& name : golden.arrays("weights.")) {
    state.tensors.push_back({name, golden.tensor("weights." + name)});
    const std::size_t begin = name.find("running_mean");
    if (begin != std::string::npos)
      state.counters.push_back({name.substr(0, begin) + "num_batches_tracked", &batches});
  }
  save_state_dict(comm, path, state, real_type);
}

std::map<std::string, Tensor> tensors_of(const std::string& path) {
  const SafetensorsFile file(path);
  std::map<std::string, Tensor> tensors;
  for (const SafetensorsEntry& entry : file.entries())
    if (!entry.name.ends_with("num_batches_tracked")) tensors[entry.name] = file.tensor(entry);
  return tensors;
}

/// Tensors that the code of arXiv 2406.08993 makes and does not use.
WeightNames names_of(const std::string& name, const ModelDescription& d) {
  WeightNames names;
  if (name.find("classic") == std::string::npos) return names;
  if (d.norm != "layer") names.drop.emplace_back("lns.*");
  if (d.norm != "batch") names.drop.emplace_back("bns.*");
  if (!d.pre_linear) names.drop.emplace_back("lin_in.*");
  return names;
}

/// A network with the weights of a case, on this rank's part of its graph.
class Network {
 public:
  Network(const Communicator& comm, const std::string& name, const Case& golden, const std::string& path,
          const Graph& graph, const PartitionBook& book)
      : comm_(comm),
        golden_(golden),
        graph_(graph),
        book_(book),
        model_(ModelDescription::from_json(golden.arg("description")), comm, gen_),
        file_(model_) {
    (void)file_.load(comm, path, names_of(name, model_.description()));
  }

  /// The file has the same names and shapes as the one that was read, without what was dropped from it.
  void check_saved(const std::string& path) const {
    file_.save(comm_, path);
    for (const auto& [name, tensor] : tensors_of(path)) {
      CAPTURE(name);
      const bool is_moved = model_.description().type == "gatv2" && name.starts_with("convs.");
      if (is_moved && name.ends_with("bias")) continue;  // see is_spread
      CHECK(relative_error(tensor, golden_.tensor("weights." + name)) < largest_error);
    }
  }

  void check_training(const std::string& scratch) {
    const Variable x(my_rows(golden_.tensor("in.feat"), book_, comm_.rank()), true);
    Tape tape;
    const Variable y = model_(graph_, x);
    check("out", y.value());
    tape.backward(y, my_rows(golden_.tensor("grad_out"), book_, comm_.rank()));
    gather_grads(comm_, model_);
    check("grad_in.feat", x.grad());
    check_gradients(scratch);
  }

  void check_evaluation() {
    model_.eval();
    check("out_eval", model_(graph_, my_rows(golden_.tensor("in.feat"), book_, comm_.rank())).value());
  }

 private:
  void check(const std::string& array, const Tensor& mine) const {
    CAPTURE(array);
    const Tensor whole = golden_.tensor(array);
    CHECK(error_of_part(mine, my_rows(whole, book_, comm_.rank()), whole) < largest_error);
  }

  /// Puts the gradients in the place of the weights, so that the file that is saved has them under the names
  /// and in the layouts of PyTorch Geometric. Biases in front of a batch norm are frozen.
  void check_gradients(const std::string& path) {
    std::vector<Tensor> weights;
    for (const NamedParameter& named : model_.named_parameters()) {
      Tensor weight = Variable(named.parameter).value();
      weights.push_back(weight.clone());
      const Tensor grad = named.parameter.grad();
      weight.copy_from(grad.defined() ? grad : Tensor::zeros(weight.shape()));
    }
    file_.save(comm_, path);
    for (const auto& [name, tensor] : tensors_of(path)) {
      CAPTURE(name);
      const std::vector<std::string> has = golden_.arrays("grad.");
      if (std::ranges::find(has, name) == has.end() || is_frozen(name) || is_spread(name)) continue;
      const double copies = lacks_other_bias(name) ? 2 : 1;
      const Tensor expected = golden_.tensor("grad." + name);
      double largest = 0;  // a gradient may be zero but for rounding
      for (Index i = 0; i < expected.size(); ++i)
        largest =
            std::max(largest, static_cast<double>(std::abs(tensor.data()[i] - copies * expected.data()[i])));
      CHECK(largest < largest_error);
    }
    for (std::size_t i = 0; i < weights.size(); ++i)
      Variable(model_.named_parameters()[i].parameter).value().copy_from(weights[i]);
  }

  /// The bias of GATv2Conv is part of the biases of its two linear maps.
  [[nodiscard]] bool is_spread(const std::string& name) const {
    return model_.description().type == "gatv2" && name.starts_with("convs.") && name.ends_with(".bias") &&
           name.find("lin_") == std::string::npos;
  }

  /// Returns whether a bias of the file stands for two of the model, of which each has its gradient.
  [[nodiscard]] bool lacks_other_bias(const std::string& name) const {
    if (model_.description().residual != "linear" || !name.ends_with(".bias")) return false;
    const std::vector<std::string> has = golden_.arrays("weights.");
    const std::size_t at = name.find('.');
    const std::string list = name.substr(0, at), number = name.substr(at, name.find('.', at + 1) - at);
    const auto lacks = [&](const std::string& other) { return std::ranges::find(has, other) == has.end(); };
    if (list == "lins")
      return lacks("convs" + number + ".bias") && lacks("local_convs" + number + ".bias") &&
             lacks("convs" + number + ".lin_l.bias") && lacks("local_convs" + number + ".lin_l.bias");
    return list.ends_with("convs") && lacks("lins" + number + ".bias");
  }

  [[nodiscard]] bool is_frozen(const std::string& name) const {
    if (model_.description().norm != "batch" && model_.description().type != "gin") return false;
    return name.ends_with("bias") && name.find("norms.") == std::string::npos &&
           name.find("bns.") == std::string::npos && !name.starts_with("head") &&
           !name.starts_with("pred_local") && name.find("lin.bias") == std::string::npos;
  }

  const Communicator& comm_;
  const Case& golden_;
  const Graph& graph_;
  const PartitionBook& book_;
  Generator gen_{1};
  GraphModel model_;
  WeightFile file_;
};

}  // namespace

TEST_CASE("networks of PyG with residual connections, norms, jumping knowledge and linear layers") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/weights.safetensors";
  const std::string scratch = directory.path() + "/saved.safetensors";
  REQUIRE(golden_cases("network").size() == 12);
  std::size_t number = 0;
  for (const std::string& name : golden_cases("network")) {
    CAPTURE(name);
    const Case golden(name);
    write_weights(comm, golden, path);
    const auto nodes = static_cast<Index>(golden.number("num_src"));
    const WholeGraph whole{name, nodes, nodes, true, golden.indices("src"), golden.indices("dst")};
    for (const Books& books : some_of(test_books(whole, comm.size()), number++)) {
      CAPTURE(books.src.num_nodes(0));
      const Graph graph = shard(comm, whole, books, {});
      Network network(comm, name, golden, path, graph, books.src);
      network.check_saved(scratch);
      network.check_training(scratch);
      network.check_evaluation();
    }
  }
}
