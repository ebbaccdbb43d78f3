// SPDX-License-Identifier: MIT

/// Networks with a readout: training on batches of graph samples gives the same curve for every number of
/// ranks; descriptions and files; golden vectors of PyTorch Geometric.
#include "graph/data/dataset_files.hpp"
#include "graph/samples/sample_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/weight_file.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index graphs = 13;

std::vector<double> losses_of(const Communicator& comm, const GraphSamples& samples,
                              const ModelDescription& description) {
  Generator gen(5);
  LayerStack model(description, comm, gen);
  Adam optimizer(model.named_parameters(), {.lr = 0.01});
  std::vector<Index> positions(static_cast<std::size_t>(samples.num_graphs()));
  std::iota(positions.begin(), positions.end(), Index{0});
  SampleLoader loader(comm, std::make_shared<const GraphSamples>(samples), positions,
                      {.batch_size = 5, .seed = 2});
  std::vector<double> losses;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    loader.start_epoch(epoch);
    while (const auto next = loader.next()) {
      const GraphSamples& of_batch = next->batch.samples();
      Tape tape;
      const Variable y = model(next->batch, of_batch.nodes.tensors.at("x"));
      const Variable loss = mse(y, of_batch.graphs.tensors.at("y"), comm);
      tape.backward(loss);
      gather_grads(comm, model);
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(static_cast<double>(loss.value().item()));
    }
  }
  return losses;
}

ModelDescription description_of(const std::string& type, const std::string& readout, const std::string& jk,
                                Index head_layers) {
  return {.type = type,
          .in_feats = sample_width,
          .hidden = 8,
          .out_feats = 2,
          .norm = "batch",
          .dropout = 0.2,
          .residual = "linear",
          .jk = jk,
          .readout = readout,
          .head_layers = head_layers};
}

}  // namespace

TEST_CASE("the same curve for every number of ranks") {
  const Communicator comm = Communicator::world();
  const double tolerance = sizeof(real) == 8 ? 1e-9 : 2e-3;
  for (const ModelDescription& description :
       {description_of("gin", "sum", "cat", 2), description_of("sage", "mean", "", 1),
        description_of("gcn", "max", "sum", 3), description_of("gat", "sum", "max", 1)}) {
    CAPTURE(description.type);
    const std::vector<double> alone = losses_of(Communicator::self(), make_samples(0, graphs), description);
    REQUIRE(alone.size() == 9);
    for (const PartitionBook& book : sample_books(graphs, comm.size())) {
      const std::vector<double> found =
          losses_of(comm, make_samples(book.begin(comm.rank()), book.end(comm.rank())), description);
      for (std::size_t i = 0; i < alone.size(); ++i)
        CHECK(std::abs(found[i] - alone[i]) < tolerance * std::max(1.0, alone[i]));
    }
  }
}

TEST_CASE("descriptions of readouts") {
  const ModelDescription d = description_of("gin", "mean", "", 2).checked();
  CHECK(d.jk == "last");
  CHECK(ModelDescription::from_json(d.to_json()).to_json() == d.to_json());
  CHECK(d.to_json().find("\"readout\":\"mean\",\"head_layers\":2") != std::string::npos);
  CHECK(describe_layers(d) ==
        "gin: 3 -> 8 + linear -> 8 + linear -> 8 + linear -> mean over the nodes of each graph -> 8 (linear) "
        "-> 2 (linear), batch norm");
  const auto text = [](const ModelDescription& wrong) {
    return thrown<InputError>([&] { (void)wrong.checked(); });
  };
  CHECK(text(description_of("gin", "median", "", 1)) ==
        "the description.readout is 'median', expected none, sum, mean or max");
  CHECK(text(description_of("gin", "", "", 2)) ==
        "the description.head_layers is 2, expected 1 without a .readout");
  CHECK(text(description_of("gin", "sum", "", 0)).starts_with("the description.head_layers is 0, expected"));
  ModelDescription mesh{
      .type = "mesh_graph_net", .in_feats = 2, .out_feats = 2, .readout = "sum", .edge_feats = 1};
  CHECK(text(mesh).find(".readout is 'sum', expected none for a network of type mesh_graph_net") !=
        std::string::npos);
}

TEST_CASE("a network with a readout in a file, and on what it is not for") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/model.safetensors";
  Generator gen(1);
  GraphModel model(description_of("sage", "max", "cat", 2), comm, gen);
  model.eval();
  const SampleBatch batch(comm, make_samples(comm.rank(), comm.rank() + 2));
  const Tensor x = batch.samples().nodes.tensors.at("x");
  const Tensor y = model(batch, x).value();
  save_model(comm, path, model);
  const auto loaded = load_model(comm, path);
  CHECK(same_bits((*loaded)(batch, x).value(), y));
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)model(batch.graph(), x); }) ==
        "a network with the readout max on a graph, expected a SampleBatch, whose graphs it reads out");
  GraphModel plain(description_of("sage", "", "", 1), comm, gen);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)plain(batch, x);
        }).starts_with("a network without a readout on a SampleBatch, expected one with a readout"));
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          (void)model(batch, Tensor({1, 1}));
        }).starts_with("a network of type sage on x of shape [1, 1]"));
}

namespace {

/// The samples of a golden case that this rank owns.
GraphSamples golden_samples(const Case& golden, const PartitionBook& book, int rank) {
  const std::vector<Index> begin = golden.indices("node_begin"), src = golden.indices("src"),
                           dst = golden.indices("dst"), graph = golden.indices("graph_of_edge");
  GraphSamples samples;
  for (Index g = book.begin(rank); g < book.end(rank); ++g) {
    std::vector<Index> from, to;
    for (std::size_t k = 0; k < src.size(); ++k)
      if (graph[k] == g) {
        from.push_back(src[k] - begin[g]);
        to.push_back(dst[k] - begin[g]);
      }
    samples.add(g, begin[g + 1] - begin[g], from, to);
  }
  samples.nodes.tensors["x"] =
      golden.tensor("in.feat").slice_rows(begin[book.begin(rank)], begin[book.end(rank)]).clone();
  if (golden.has("in.edge")) {
    const Tensor whole = golden.tensor("in.edge");
    std::vector<Index> rows;
    for (std::size_t k = 0; k < src.size(); ++k)
      if (book.begin(rank) <= graph[k] && graph[k] < book.end(rank)) rows.push_back(static_cast<Index>(k));
    Tensor edges(whole.shape().with_rows(std::ssize(rows)));
    for (Index k = 0; k < edges.num_rows(); ++k)
      std::copy_n(whole.row(rows[static_cast<std::size_t>(k)]), whole.row_size(), edges.row(k));
    samples.edges.tensors["e"] = edges;
  }
  sort_edges(samples);
  return samples;
}

}  // namespace

TEST_CASE("logits and gradients of PyTorch Geometric's GIN with readouts") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/weights.safetensors";
  REQUIRE(golden_cases("samples").size() == 6);
  for (const std::string& name : golden_cases("samples")) {
    CAPTURE(name);
    const Case golden(name);
    StateDict state;
    Recoverable<std::uint64_t> batches;
    for (const std::string& of : golden.arrays("weights.")) {
      state.tensors.push_back({of, golden.tensor("weights." + of)});
      if (const std::size_t mean = of.find("running_mean"); mean != std::string::npos)
        state.counters.push_back({of.substr(0, mean) + "num_batches_tracked", &batches});
    }
    save_state_dict(comm, path, state, real_type);
    const auto begin = golden.indices("node_begin");
    for (const PartitionBook& book : sample_books(std::ssize(begin) - 1, comm.size())) {
      Generator gen(1);
      GraphModel model(ModelDescription::from_json(golden.arg("description")), comm, gen);
      WeightFile(model).load(comm, path, {});
      const SampleBatch batch(comm, golden_samples(golden, book, comm.rank()));
      const Variable x(batch.samples().nodes.tensors.at("x"), true);
      const auto check = [&](const Tensor& mine, const char* array, Index first, Index end) {
        CAPTURE(array);
        const Tensor whole = golden.tensor(array);
        CHECK(error_of_part(mine, whole.slice_rows(first, end), whole) < tolerance());
      };
      Tape tape;
      const bool has_edges = golden.has("in.edge");
      const Variable y =
          model(batch, x, has_edges ? Variable(batch.samples().edges.tensors.at("e")) : Variable());
      const Index first = book.begin(comm.rank()), end = book.end(comm.rank());
      check(y.value(), "out", first, end);
      tape.backward(y, golden.tensor("grad_out").slice_rows(first, end).clone());
      gather_grads(comm, model);
      check(x.grad().defined() ? x.grad() : Tensor::zeros(x.shape()), "grad_in.feat", begin[first],
            begin[end]);
      for (const NamedParameter& named : model.named_parameters()) {
        if (!golden.has("grad." + named.name)) continue;
        CAPTURE(named.name);
        const Tensor grad = named.parameter.grad();
        REQUIRE(grad.defined());
        CHECK(relative_error(grad, golden.tensor("grad." + named.name)) < tolerance());
      }
    }
  }
}
