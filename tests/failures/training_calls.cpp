// SPDX-License-Identifier: MIT

/// Steps of training. After a failure, the same objects take the step again.
#include "failures/scene.hpp"

#include <type_traits>

namespace sar::test {
namespace {

/// Everything that a step changes.
class TrainedState {
 public:
  void add(const std::vector<NamedCounter>& counters) {
    for (const NamedCounter& each : counters) counters_.push_back(each.value);
  }
  void add(const Module& module) {
    for (const NamedParameter& each : module.named_parameters()) variables_.push_back(each.parameter);
    for (const NamedBuffer& each : module.named_buffers()) tensors_.push_back(each.tensor);
    add(module.named_counters());
  }
  void add(Optimizer& optimizer) {
    for (const NamedBuffer& each : optimizer.named_buffers()) tensors_.push_back(each.tensor);
    add(optimizer.named_counters());
  }
  void add(const Tensor& tensor) { tensors_.push_back(tensor); }

  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all;
    const auto append = [&](const Tensor& values) {
      all.push_back(static_cast<double>(values.size()));
      for (const double value : test::numbers(values)) all.push_back(value);
    };
    for (const Variable& variable : variables_) {
      append(variable.value());
      append(variable.grad().defined() ? variable.grad() : Tensor({0, 1}));
    }
    for (const Tensor& tensor : tensors_) append(tensor);
    for (const Recoverable<std::uint64_t>* counter : counters_)
      all.push_back(static_cast<double>(counter->get()));
    return all;
  }

 private:
  std::vector<Variable> variables_;
  std::vector<Tensor> tensors_;
  std::vector<Recoverable<std::uint64_t>*> counters_;
};

/// A call of `step(wrong)` on `training`, in agree().
template <class Training>
void add_training(std::vector<Call>& calls, const std::string& name,
                  std::function<std::shared_ptr<Training>()> make) {
  calls.push_back({name, true, [make](bool wrong) -> Attempt {
                     const std::shared_ptr<Training> training = make();
                     const auto step = [training](bool is_wrong) {
                       training->scene.comm.agree([&] { training->step(is_wrong); });
                     };
                     const auto numbers = [training] { return training->numbers(); };
                     return {.call = [=] { step(wrong); },
                             .result = numbers,
                             .again = [=] { step(false); },
                             .state = numbers};
                   }});
}

/// A network and its optimizer. The wrong step has a label that does not exist, which the loss finds after
/// the forward pass.
struct NetworkTraining {
  NetworkTraining(const Communicator& comm, const ModelDescription& description, const GraphOptions& options)
      : scene(comm, options, false),
        model(description, comm, scene.gen),
        optimizer(model.named_parameters(), {.lr = 0.1, .weight_decay = 0.01}),
        schedule(optimizer, {.patience = 0, .cooldown = 1}),
        labels(static_cast<std::size_t>(scene.graph.num_nodes()), 1),
        mask(labels.size(), 1) {
    state.add(model);
    state.add(optimizer);
  }

  void step(bool wrong) {
    std::vector<std::int64_t> given = labels;
    if (wrong) given.at(0) = 99;
    const HaloStep halo_step(rounded);
    {
      Tape tape;
      tape.backward(cross_entropy(model(scene.graph, scene.x.detach()), given, mask, scene.comm));
    }
    clip_grad_norm(model, 0.5);
    gather_grads(scene.comm, model);
    optimizer.step();
    optimizer.zero_grad();
    schedule.step(1);
    schedule.step(2);
  }
  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all = state.numbers();
    all.push_back(optimizer.lr());
    all.push_back(static_cast<double>(rounded.get()));
    for (const auto& [key, value] : schedule.state()) all.push_back(std::stod(value));
    return all;
  }

  Scene scene;
  GraphModel model;
  Adam optimizer;
  ReduceLROnPlateau schedule;
  Recoverable<std::uint64_t> rounded;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
  TrainedState state;
};

/// A network on a mesh that updates its statistics in the step. The wrong step has targets of another width.
struct MeshTraining {
  explicit MeshTraining(const Communicator& comm)
      : scene(comm, {}, false),
        model({.node_feats = scene_width,
               .edge_feats = 1,
               .out_feats = 1,
               .hidden = 2,
               .blocks = 1,
               .mlp_layers = 1,
               .normalize = true},
              comm, scene.gen),
        optimizer(model.named_parameters(), {.lr = 0.1, .momentum = 0.9}) {
    state.add(model);
    state.add(optimizer);
  }

  void step(bool wrong) {
    const Tensor target = scene_values({scene.graph.num_nodes(), wrong ? 2 : 1}, 4);
    model.update_statistics(scene.x.value(), scene.e.value(), target);
    {
      Tape tape;
      tape.backward(mse(model(scene.graph, scene.x.detach(), scene.e.detach()), target, scene.comm));
    }
    gather_grads(scene.comm, model);
    optimizer.step();
    optimizer.zero_grad();
  }
  [[nodiscard]] std::vector<double> numbers() const { return state.numbers(); }

  Scene scene;
  MeshGraphNet model;
  SGD optimizer;
  TrainedState state;
};

/// Sampled batches of learnable rows, and rows that ranks push. The wrong step reads a row that does not
/// exist after it has changed everything else.
struct EmbeddingTraining {
  explicit EmbeddingTraining(const Communicator& comm)
      : scene(comm, {}, false),
        embedding("user", comm, scene.book, scene.graph.dst_ids(), scene_width, scene.gen),
        conv(scene_width, 2, scene.gen, {.feat_drop = 0.5}),
        optimizer(conv.named_parameters()),
        sparse({embedding}, {.lr = 0.1}),
        loader(NeighborSampler(scene.graph, {2}, {.seed = 1}), own_nodes(), {.batch_size = 5, .seed = 3}),
        counts(Tensor::zeros({scene.graph.num_nodes(), 1})),
        table(comm, scene.book, counts) {
    loader.start_epoch(1);
    state.add(conv);
    state.add(optimizer);
    state.add(embedding.mine());
    state.add(counts);
  }

  void step(bool wrong) {
    const auto batch = loader.next();
    const MessageFlowGraph& block = batch->blocks.front();
    std::vector<Index> ids(block.src_rows().begin(), block.src_rows().end());
    for (Index& id : ids) id += scene.book.begin(scene.comm.rank());
    {
      Tape tape;
      const Variable y = conv(block, embedding(ids));
      const std::vector<std::int64_t> labels(static_cast<std::size_t>(y.num_rows()), 1);
      const std::vector<std::uint8_t> mask(labels.size(), 1);
      tape.backward(cross_entropy(y, labels, mask, scene.comm));
    }
    gather_grads(scene.comm, conv);
    optimizer.step();
    sparse.step();
    sparse.zero_grad();
    optimizer.zero_grad();
    table.push_add(batch->seeds, Tensor::full({std::ssize(batch->seeds), 1}, 1));
    table.barrier();
    table.push_add(batch->seeds, Tensor::full({std::ssize(batch->seeds), 1}, 2));
    (void)embedding(std::vector<Index>{wrong ? scene_nodes : 0});
    sparse.zero_grad();
    table.barrier();
    sum = static_cast<double>(batch->number);
  }
  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> all = state.numbers();
    all.push_back(sum);
    return all;
  }

  [[nodiscard]] std::vector<Index> own_nodes() const {
    std::vector<Index> nodes;
    for (Index v = scene.book.begin(scene.comm.rank()); v < scene.book.end(scene.comm.rank()); ++v)
      nodes.push_back(v);
    return nodes;
  }

  Scene scene;
  DistributedEmbedding embedding;
  SAGEConv conv;
  Adam optimizer;
  SparseAdam sparse;
  DataLoader loader;
  Tensor counts;
  DistributedTensor<> table;
  TrainedState state;
  double sum = 0;
};

}  // namespace

std::vector<Call> training_calls(const Communicator& comm) {
  std::vector<Call> calls;
  const auto add = [&](const std::string& name, ModelDescription description, const GraphOptions& options) {
    description.in_feats = scene_width;
    description.hidden = 4;
    description.out_feats = 2;
    description.layers = 2;
    add_training<NetworkTraining>(calls, "a step of " + name, [=] {
      return std::make_shared<NetworkTraining>(comm, description, options);
    });
  };
  add("gat", {.type = "gat", .dropout = 0.25, .heads = 2, .attention_dropout = 0.5}, {});
  add("sage with batch norm", {.type = "sage", .norm = "batch", .dropout = 0.25}, {});
  if (std::is_same_v<real, float>)  // double precision has no int8
    add("gcn in int8", {.type = "gcn", .dropout = 0.25}, {.halo_format = HaloFormat::int8});
  add_training<MeshTraining>(calls, "a step of mesh_graph_net",
                             [=] { return std::make_shared<MeshTraining>(comm); });
  add_training<EmbeddingTraining>(calls, "a step of learnable rows",
                                  [=] { return std::make_shared<EmbeddingTraining>(comm); });
  return calls;
}

}  // namespace sar::test
