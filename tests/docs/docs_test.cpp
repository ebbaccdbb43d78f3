// SPDX-License-Identifier: MIT

/// The documentation holds: its fragments compile and run, and rows travel as often as it says.
#include "graph/data/dataset_files.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>
#include <sar/core/isa/instruction_set.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/models/model_type.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sar;

namespace {

#include "from_dgl.inc"
#include "surrogate.inc"

#include "buffers.inc"  // of the surrogate
#include "edge_latents.inc"

// docs/own_layers.md: a program of its own, and operations
namespace own {
#define main own_main
#include "own_layer.inc"
#include "own_training.inc"
#undef main
#include "own_operation.inc"
#include "own_graph_operation.inc"
}  // namespace own

// docs/reproducible.md
namespace same_bits_everywhere {
#define main reproducible_main
#include "reproducible_host.inc"
#undef main
}  // namespace same_bits_everywhere

constexpr Index width = 64;

struct Setting {
  Communicator comm = Communicator::world();
  NodeData data = make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = width});
  Graph graph = construct_full_graph(comm, data);
  Generator gen{0};

  [[nodiscard]] Variable node_rows(bool wants_gradient = true) const {
    return {Tensor::full({graph.num_nodes(), width}, 1), wants_gradient};
  }
  [[nodiscard]] Variable edge_rows(Index columns, bool wants_gradient = true) const {
    return {Tensor::full({graph.num_edges(), columns}, 1), wants_gradient};
  }
};

/// Until it ends, relative paths lead into a new directory. Collective.
class NewWorkingDirectory {
 public:
  explicit NewWorkingDirectory(const Communicator& comm) : directory_(comm) {
    std::filesystem::current_path(directory_.path());
  }
  ~NewWorkingDirectory() { std::filesystem::current_path(before_); }
  NewWorkingDirectory(const NewWorkingDirectory&) = delete;
  NewWorkingDirectory& operator=(const NewWorkingDirectory&) = delete;

 private:
  test::TemporaryDirectory directory_;  // rank 0 removes it when all have left
  std::filesystem::path before_ = std::filesystem::current_path();
};

void check_nodes(const Setting& s, const Variable& y, Index columns) {
  CHECK(y.shape() == Shape{s.graph.num_nodes(), columns});
  CHECK(y.requires_grad());
}

// README.md, and docs/getting_started.md.
void program(int argc, char** argv) {
#include "program.inc"
}

void partitioned(const Communicator& comm) {
#include "partitioned.inc"
}

void dgl_weights(const Communicator& comm) {
  const int epochs = 2;
#include "from_dgl_training.inc"
  CHECK(g.num_global_nodes() == data.num_nodes());
#include "dgl_weights.inc"
}

void from_pyg(const Communicator& comm) {
#include "from_pyg.inc"
  CHECK(y.shape() == Shape{graph.num_nodes(), 16});
}

void distributed(int argc, char** argv) {
#include "distributed_start.inc"
  CHECK(size == comm.size());
#include "distributed_data.inc"
#include "distributed_model.inc"
#include "distributed_resume.inc"
#include "distributed_training.inc"
  CHECK(checkpoints.info(checkpoints.latest(), optimizer).epoch == 200);
#include "distributed_metric.inc"
  CHECK(edges == graph.num_global_edges());
}

}  // namespace

TEST_CASE("a program") {
  char name[] = "program";
  char* argv[] = {name, nullptr};
  CHECK_THROWS_AS(program(1, argv), InputError);  // there is no such dataset
}

TEST_CASE("limits and defaults that documents name are those of the code") {
  const auto expect = [](const std::string& page, const std::string& text) {
    std::ifstream file(std::string(SAR_TEST_DATA) + "/../../docs/" + page);
    const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    INFO(page, " lacks: ", text);
    CHECK(content.find(text) != std::string::npos);
  };
  const auto with_comma = [](Index number) {  // 10,000
    const std::string digits = std::to_string(number);
    return digits.substr(0, digits.size() - 3) + "," + digits.substr(digits.size() - 3);
  };
  const std::string layers = with_comma(ModelDescription::max_layers);
  expect("limits.md", "| layers of a described network; width of a layer | " + layers + "; ");
  expect("models.md", "| `layers` | all | convolutions, at most " + layers + "; ");
  const GraphOptions options;
  expect("message_passing.md", "| `pipeline_depth` | " + std::to_string(options.pipeline_depth) + " |");
  expect("message_passing.md", "| `max_halo_bytes` | " + std::to_string(options.max_halo_bytes) + " |");
  expect("message_passing.md", "| `edge_chunk` | " + std::to_string(options.edge_chunk) + " |");
  const auto expect_names = [&](const std::string& page, const auto& rows) {
    for (const auto& row : rows) expect(page, "`" + std::string(row.name) + "`");
  };
  expect_names("models.md", model_types());
  expect_names("message_passing.md", halo_format_traits);
  expect_names("message_passing.md", reduce_names);
  expect_names("message_passing.md", std::span(message_op_names).subspan(1));  // copy: copy_u, copy_e
  for (int set = 0; set <= static_cast<int>(InstructionSet::amx); ++set)
    expect("performance.md", "`" + std::string(to_string(static_cast<InstructionSet>(set))) + "`");
}

TEST_CASE("a partitioned graph") {
  const Communicator comm = Communicator::world();
  const NewWorkingDirectory directory(comm);
  CHECK_THROWS_AS(partitioned(comm), InputError);
  save_partition(comm, "parts", sar::test::to_graph_data(make_karate(comm)));
  partitioned(comm);

  Generator gen(0);
  Linear net(2, 2, gen);
  SGD optimizer(net.named_parameters());
  const int epochs = 40;
  int trained = 0;
  const auto train_one_epoch = [&] { ++trained; };
  for (int run = 0; run < 2; ++run) {
#include "checkpoints.inc"
  }
  CHECK(trained == epochs);
}

TEST_CASE("the best epoch, losses of labels, and a metric of one's own") {
  Setting s;
  const Communicator& comm = s.comm;
  const NewWorkingDirectory directory(comm);
  const NodeData& data = s.data;
  Generator gen(0);
  Linear net(width, data.num_classes, gen);
  Adam optimizer(net.named_parameters());
  const int epochs = 40;
  int trained = 0;
  const auto predict = [&] {  // the labels, and from the third epoch on nothing
    Tensor scores = Tensor::zeros({data.features.num_rows(), data.num_classes});
    for (Index i = 0; i < scores.num_rows() && trained < 3; ++i) scores.row(i)[data.labels[i]] = 1;
    return scores;
  };
  const auto train_one_epoch = [&] {
    if (++trained == 3) Tensor(net.weight().value()).fill(0);
  };
  const Tensor first = net(data.features).value();
#include "best_epoch.inc"
  CHECK(best.epoch() == 1);
  CHECK(trained == 21);
  CHECK(std::ranges::equal(net(data.features).value().values(), first.values()));

  const Variable logits = net(data.features), values = logits;
  const Tensor targets = Tensor::zeros(logits.shape());
#include "masked_losses.inc"
  const int epoch = epochs;
  CHECK(of_classes.value().item() > 0);
  CHECK(of_values.value().item() > 0);
#include "best_checkpoint.inc"
  CHECK(checkpoints.info(checkpoints.latest(), optimizer).extra.at("best epoch") == "1");
#include "own_metric.inc"
  CHECK(value >= accuracy(logits.value(), data.labels, data.val_mask, comm));
}

TEST_CASE("an aggregate that is kept") {
  Setting s;
  const Index in_feats = width, hidden = 4;
  Generator& gen = s.gen;
  const Graph& graph = s.graph;
  const Variable features = s.node_rows(false);
#include "cached.inc"
  const std::uint64_t before = s.comm.stats().bytes_sent;
  CHECK(conv(graph, features).shape() == Shape{graph.num_nodes(), hidden});
  CHECK(s.comm.stats().bytes_sent - before < width * sizeof(real));  // less than a row
}

TEST_CASE("sparse features") {
  const Communicator comm = Communicator::world();
  const test::TemporaryDirectory directory(comm);
  const std::string path = directory.path();
  test::WholeDataset whole = test::small_graph(false);
  whole.width = 1433;
  whole.features.assign(whole.labels.size() * whole.width, 0);
  whole.features[5] = 1;
  if (comm.rank() == 0) test::write_dataset(path, whole, false);
  comm.barrier();
  NodeData dense = load_dataset(comm, path);
  const Graph graph = construct_full_graph(comm, dense);
  Generator gen(0);
  SAGEConv conv(1433, 4, gen);
  const std::vector<Index> row_offsets(static_cast<std::size_t>(graph.num_nodes()) + 1, 0);
  const std::vector<std::int32_t> columns;
  const std::vector<double> values;
#include "sparse.inc"
  CHECK(sparse_matrix(data.input()) != nullptr);
  CHECK(test::relative_error(y.value(), conv(graph, dense.features).value()) < 1e-5);
}

TEST_CASE("rows of all ranks") {
  Setting s;
  const Communicator& comm = s.comm;
  const NodeData& data = s.data;
  const std::vector<Index> ids{0, 299, 17}, next_ids{5};
  int trained = 0;
  const auto train = [&](const Tensor&) { ++trained; };
  const Tensor before = distributed_features(comm, data).pull(ids);
  const Tensor new_rows = (Variable(before) * 2).value();
#include "distributed_rows.inc"
  CHECK(trained == 1);
  CHECK(next.shape() == Shape{1, width});
  CHECK(std::ranges::equal(std::as_const(new_rows).values(), x.pull(ids).values()));
}

namespace {

/// Two SAGE layers on blocks.
struct Sampled : Module {
  SAGEConv first, second;
  Sampled(Index out, Generator& gen) : first(width, 8, gen), second(8, out, gen) {
    register_module("first", first);
    register_module("second", second);
  }
  Variable operator()(const LayerGraphs& graphs, const Variable& x, const Variable& weights = {}) {
    return second(graphs[1], relu(first(graphs[0], x, weights)), weights);
  }
};

}  // namespace

TEST_CASE("mini-batches") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Tensor& features = s.data.features;
  std::vector<Index> seeds;
  for (Index v = s.data.book.begin(comm.rank()); v < s.data.book.end(comm.rank()); v += 2) seeds.push_back(v);
  Sampled model(s.data.num_classes, s.gen);
  Adam adam(model.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  const auto loss_of = [&](const Variable& logits, const Array<Index>& nodes) {
    Array<std::int64_t> labels;
    for (const Index v : nodes) labels.push_back(s.data.labels[v - s.data.book.begin(comm.rank())]);
    const Variable loss = cross_entropy(logits, labels, Array<std::uint8_t>(nodes.size(), 1), comm);
    losses.push_back(static_cast<double>(loss.value().item()));
    return loss;
  };
  {
#include "mini_batches.inc"
    CHECK(std::ssize(losses) == 3 * loader.num_batches());
    CHECK(losses.back() < losses.front());
  }
  {
    losses.clear();
#include "halo_cache.inc"
    CHECK(std::ssize(losses) == loader.num_batches());
  }
}

TEST_CASE("mini-batches with shared draws, and of clusters") {
  Setting s;
  const Communicator& comm = s.comm;
  {
    const Graph& graph = s.graph;
#include "labor.inc"
    CHECK(sampler.sample_blocks(std::span<const Index>()).size() == 2);
  }
  NodeData data = make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = width});
  const Tensor features = data.features;
  Sampled model(data.num_classes, s.gen);
  Adam adam(model.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  const auto loss_of_nodes = [&](const Variable& logits, const Array<Index>& rows) {
    Array<std::int64_t> labels;
    for (const Index row : rows) labels.push_back(data.labels[row]);
    const Variable loss = cross_entropy(logits, labels, Array<std::uint8_t>(labels.size(), 1), comm);
    losses.push_back(static_cast<double>(loss.value().item()));
    return loss;
  };
#include "clusters.inc"
  CHECK(losses.size() == 12);
  CHECK(losses.back() < losses.front());
  const auto weighted_loss = [&](const Variable& logits, const Array<Index>& rows, Tensor weights) {
    Array<std::int64_t> labels;
    for (const Index row : rows) labels.push_back(data.labels[row]);
    for (real& weight : weights.values()) weight /= 300;
    const Variable loss = cross_entropy(logits, labels, Array<std::uint8_t>(labels.size(), 1), comm,
                                        {.row_weights = std::as_const(weights).values()});
    losses.push_back(static_cast<double>(loss.value().item()));
    return loss;
  };
  {
    losses.clear();
#include "saint.inc"
    CHECK(std::ssize(losses) == 3 * subgraphs.num_batches());
  }
}

TEST_CASE("mini-batches of edges") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Tensor& features = s.data.features;
  SeedEdges edges;
  for (Index i = comm.rank(); i < 300; i += comm.size()) {
    edges.src.push_back(i);
    edges.dst.push_back((i + 1) % 300);
    edges.id.push_back(i);
  }
  Sampled encoder(8, s.gen);
  const DotPredictor predictor;
#include "edge_batches.inc"
  CHECK(loader.num_batches() == 3);
  CHECK(loader.num_edges() == 300);
}

TEST_CASE("nodes without features") {
  Setting s;
  const Communicator& comm = s.comm;
  const NodeData& data = s.data;
  Generator& gen = s.gen;
  const NewWorkingDirectory directory(comm);
  const std::vector<Index> ids{0, 299, 17};
  std::vector<double> losses;
  const auto model = [&](const Variable& rows) {
    const Variable loss = mean(rows * rows);
    losses.push_back(static_cast<double>(loss.value().item()));
    return loss;
  };
#include "embedding.inc"
  CHECK(losses.back() < losses.front());
  sparse.load("embedding-3");
}

TEST_CASE("a model from DGL") {
  Setting s;
  const NewWorkingDirectory directory(s.comm);
  CHECK_THROWS_AS(dgl_weights(s.comm), InputError);
  if (s.comm.rank() == 0) {
    std::filesystem::create_directory("cora");
    test::write_dataset("cora", test::small_graph(false), false);
  }
  s.comm.barrier();
  save_weights(s.comm, "gcn.safetensors", GCN(5, 16, 4, s.gen));
  dgl_weights(s.comm);
  CHECK(std::filesystem::file_size("logits.npy") > std::size_t{37 * 4} * sizeof(float));

  GCN model(width, 16, 4, s.gen);
  const Tape tape;
  check_nodes(s, model(s.graph, s.node_rows()), 4);
  CHECK(model.named_parameters().front().name == "conv1.weight");
}

TEST_CASE("programs of PyTorch Geometric and torch.distributed") {
  const Communicator comm = Communicator::world();
  const NewWorkingDirectory directory(comm);
  if (comm.rank() == 0) {
    std::filesystem::create_directory("cora");
    test::write_dataset("cora", test::small_graph(false), false);
  }
  comm.barrier();
  from_pyg(comm);
  char name[] = "train";
  char* argv[] = {name, nullptr};
  std::stringstream said;
  std::streambuf* const cout = std::cout.rdbuf(said.rdbuf());
  distributed(1, argv);
  std::cout.rdbuf(cout);
  CHECK((said.str().find(" edges\n") != std::string::npos) == (comm.rank() == 0));
}

TEST_CASE("mesh_networks.md") {
  Setting s;
  const Communicator comm = s.comm;
  const Graph& graph = s.graph;
  Generator gen(1);
  const Index n = graph.num_nodes();
  Tensor positions({n, 3});
  for (Index i = 0; i < positions.size(); ++i)
    positions.data()[i] = static_cast<real>(std::sin(static_cast<double>(7 * i + comm.rank())));
  {
    const Tensor x = Tensor::full({n, 2}, 1), target = Tensor::full({n, 1}, 3);
#include "mesh_graph_net.inc"
    CHECK(y.shape() == Shape{n, 1});
    CHECK(e.shape() == Shape{graph.num_edges(), 4});
  }
  const std::vector<Index> species(static_cast<std::size_t>(n), 1);
  const real reference = -1;
  {
    const NewWorkingDirectory directory(comm);
#include "potential_file.inc"
    CHECK(std::isfinite(energy));
    CHECK(forces.shape() == Shape{n, 3});
  }
#include "painn.inc"
  CHECK(std::isfinite(energy));
  CHECK(forces.shape() == Shape{n, 3});
#include "train_forces.inc"
  CHECK(std::isfinite(errors.loss));
#include "periodic.inc"
  CHECK(shifts.shape() == Shape{graph.num_edges(), 3});
  CHECK(std::abs(in_box.energy - energy) < 1e-4 * std::abs(energy));  // all positions are near each other
}

TEST_CASE("atoms.md") {
  const Communicator comm = Communicator::world();
  Generator gen(1);
  const PaiNN model({.num_species = 2, .feats = 8, .convs = 2, .cutoff = 5}, gen);
  const std::vector<Index> species(4, 1);
  std::vector<double> x(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3 * std::sin(static_cast<double>(i) + 7 * comm.rank());
#include "neighbor_list.inc"
  CHECK(list.graph().num_edges() > 0);
}

TEST_CASE("a surrogate") {
  const MPI_Comm solver_comm = MPI_COMM_WORLD;
  const std::int64_t me = Communicator::world().rank(), next = (me + 1) % Communicator::world().size();
  const std::vector<std::int64_t> node_ids{me, me + 100}, edge_src{me, me + 100}, edge_dst{next, me};
  const std::vector<real> old_state(6, 1), edge_length(2, 1);
  std::vector<real> state(6, 2);
#include "surrogate_setup.inc"
  {
#include "surrogate_step.inc"
    CHECK(state[0] == 2);
#include "surrogate_rollout.inc"
    CHECK(state[0] != 2);
  }
}

TEST_CASE("a network by description") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Variable x = s.node_rows();
  const Tape tape;
  const NewWorkingDirectory directory(comm);
#include "described_model.inc"
  check_nodes(s, y, 3);
}

TEST_CASE("a training on graph samples") {
  const Communicator comm = Communicator::world();
#include "graph_samples.inc"
  CHECK(loader.num_samples() == 8 * comm.size());
}

TEST_CASE("a timeline") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Variable x = s.node_rows();
  const GraphConv net(width, 8, s.gen);
  const auto solve = [] {};
  const Tape tape;
  const NewWorkingDirectory directory(comm);
#include "timeline.inc"
  check_nodes(s, y, 8);
  CHECK(std::filesystem::file_size("step.json") > 0);
}

TEST_CASE("errors") {
  Setting s;
  const Communicator& comm = s.comm;
  const auto net_rows = [&] { return Tensor::full({s.graph.num_nodes(), width}, 1); };
  Tensor state = net_rows();
  const Tensor target = net_rows();
  const Graph& graph = s.graph;
  GraphConv net(width, width, s.gen);
  SGD optimizer(net.named_parameters());
  Tensor before = net.parameters().front().value().clone();
  const auto changed = [&] {
    return !std::ranges::equal(before.values(), std::as_const(net.parameters().front()).value().values());
  };
  bool fails = true;
  const auto read_next_state = [&] {
    if (fails && comm.rank() == comm.size() - 1) throw std::runtime_error("no state");
  };
  const auto step = [&] {
#include "errors.inc"
  };
  std::stringstream said;
  std::streambuf* const cerr = std::cerr.rdbuf(said.rdbuf());
  step();
  CHECK(!changed());
  CHECK((said.str().find("no state") != std::string::npos) == (comm.rank() == 0));
  fails = false;
  step();
  CHECK(changed());
  before.copy_from(net.parameters().front().value());
  state.fill(std::numeric_limits<real>::quiet_NaN());
  step();
  CHECK(!changed());
  std::cerr.rdbuf(cerr);
}

TEST_CASE("a host's arrays") {
  const Communicator comm = Communicator::world();
  const std::int64_t me = comm.rank(), next = (me + 1) % comm.size();
  const std::vector<std::int64_t> node_ids{me, me + 100}, edge_src{me, me + 100}, edge_dst{next, me};
  const std::vector<real> state(6, 1), edge_length(2, 1);
  std::vector<double> prediction(16);
  Generator gen(0);
  {
    SAGEConv conv(3, 8, gen);
#include "host.inc"
    CHECK(prediction[0] != 0);
  }
  {
    const auto network = [](const HostGraph& graph, const Variable& x, const Variable& length) {
      return graph.update_all(fn::u_mul_e(x, length), fn::sum);
    };
    prediction.resize(6);
#include "host_graph.inc"
    CHECK(graph.num_global_edges() == 4 * comm.size());
    CHECK(prediction[0] == 3);
  }
  const Index num_owned = 1;
  const std::vector<std::int64_t> local_to_global{me, next};
  const std::vector<std::int32_t> local_src{1}, local_dst{0};
#include "local_numbering.inc"
  CHECK(graph.num_global_edges() == comm.size());
}

TEST_CASE("two meshes in one graph") {
  const Communicator comm = Communicator::world();
  const std::int64_t me = comm.rank(), next = (me + 1) % comm.size();
  const std::vector<std::int64_t> fluid_ids{me, me + 100}, solid_ids{me};
  const std::vector<std::int64_t> fluid_from{me, me + 100}, fluid_to{next, me}, solid_at{me}, fluid_at{next};
  const Tensor rates = Tensor::full({1, 1}, 2);
  const Variable f(Tensor::full({2, 4}, 1), true), s(Tensor::full({1, 4}, 1), true);
  const Variable& x = f;
  Generator gen(0);
#include "typed_host.inc"
#include "typed_graph.inc"
  CHECK(relation.shards() == same.shards());
  CHECK(all == 2 * comm.size());
  CHECK(mine == 2);
  const Variable rate = graph.edata(across).at("rate");
  {
#include "multi_update_all.inc"
    CHECK(of_fluid.value().row(0)[0] == 3);  // the mean of 1, and twice 1
  }
  {
#include "hetero_graph_conv.inc"
    CHECK(h.at("fluid").shape() == Shape{2, 8});
#include "hetero_edge_arguments.inc"
    CHECK(weighted.at("fluid").shape() == Shape{2, 8});
  }
  {
#include "hetero_model.inc"
    CHECK(y.at("fluid").shape() == Shape{2, 3});
  }
#include "homogeneous_form.inc"
  CHECK(fluid_rows.shape() == Shape{2, 8});
  const Graph::Rows features{{"fluid", f}, {"solid", s}};
  HeteroGraphConv conv;
  conv.emplace_back<SAGEConv>({"fluid", "flows", "fluid"}, std::pair(4, 4), 4, gen);
  conv.emplace_back<GraphConv>({"solid", "heats", "fluid"}, 4, 4, gen);
  {
#include "typed_blocks.inc"
    CHECK(h.at("fluid").shape() == Shape{1, 4});
  }
#include "hetero_embedding.inc"
  CHECK(out.shape() == Shape{3, 8});
}

TEST_CASE("two sets of nodes") {
  const Communicator comm = Communicator::world();
  const std::int64_t me = comm.rank(), next = (me + 1) % comm.size();
  const std::vector<std::int64_t> particle_ids{me, me + 100}, cell_ids{me}, particle_of_edge{me, me + 100},
      cell_of_edge{next, me};
  const Variable particle_rows = Tensor::full({2, 3}, 1), cell_rows = Tensor::full({1, 1}, 1);
  Generator gen(0);
#include "bipartite.inc"
  CHECK(y.shape() == Shape{1, 8});
  CHECK(to_cells.num_global_src_nodes() == 2 * comm.size());
}

TEST_CASE("a host's structs") {
#include "host_struct.inc"
  std::vector<Cell> cells(5, Cell{1, 2, {3, 4, 5}});
  const std::vector<int> owned{0, 3, 4};
  const auto network = [](const Tensor& x) { return Tensor::full({x.num_rows(), 1}, 7); };
#include "host_columns.inc"
  CHECK(std::ranges::equal(x.values(), std::vector<real>{2, 3, 4, 2, 3, 4, 2, 3, 4}));
  CHECK(cells[3].velocity[2] == 7);
  CHECK(cells[1].velocity[2] == 5);
}

TEST_CASE("sums over the whole graph") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Variable y = s.node_rows(), state = s.node_rows(false), target = s.node_rows(false);
  const Variable h = s.node_rows(), area(Tensor::full({graph.num_nodes(), 1}, 1));
  const Variable force(Tensor::full({graph.num_nodes(), 1}, 2), true);
  const real measured = 599;
  Linear head(width, 1, s.gen);
  const Variable target_of_the_graph(Tensor::zeros({1, 1}));
  Tape tape;
#include "reductions.inc"
  CHECK(drag.value().item() == 600);
  CHECK(drift.shape() == Shape{width});
  const bool mine = graph.num_nodes() > 0;
  if (mine) CHECK(force.grad().data()[0] == 2);
  const real error = head(whole.detach()).value().item();
  CHECK(head.parameters()[1].grad().item() == doctest::Approx(2 * error));
  if (mine)
    CHECK(h.grad().data()[1] ==
          doctest::Approx(2 * error * std::as_const(head.weight()).value().data()[1] / 300).epsilon(1e-4));
}

TEST_CASE("SAR in a hundred lines") {
#include "hundred_lines.inc"
  CHECK(loss.value().item() == 66);
  CHECK(layer.weight().grad().item() == 33);
  const std::array<real, 6> sums{7, 1, 6, 2, 4, 8}, gradients{4, 8, 4, 6, 2, 0};
  for (Index v = begin; v < end; ++v) {
    CHECK(h.value().row(v - begin)[0] == sums[static_cast<std::size_t>(v)]);
    CHECK(std::as_const(x).grad().row(v - begin)[0] == gradients[static_cast<std::size_t>(v)]);
  }
}

TEST_CASE("threads") {
  const sar::Communicator comm = sar::Communicator::world();
#include "threads.inc"
  CHECK(num_threads() == default_num_threads(comm));
}

TEST_CASE("messages in short") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows(), w = s.edge_rows(1), x = s.edge_rows(3);
  const Linear edge_in(2 * width + 3, 16, s.gen), edge_out(16, 8, s.gen);
  const Tape tape;
#include "messages.inc"
  check_nodes(s, y, width);
  check_nodes(s, graph.dstdata().at("y"), width);
  check_nodes(s, m, 8);
}

TEST_CASE("built-in messages") {
  const Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows(), w = s.edge_rows(1);
  const Tape tape;
#include "built_in.inc"
  CHECK(score.shape() == Shape{graph.num_edges(), 1});
  check_nodes(s, y, width);
}

TEST_CASE("a base") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows();
  const Linear self(width, width, s.gen);
  const Tape tape;
#include "base.inc"
  check_nodes(s, out, width);
}

TEST_CASE("frames") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows();
  const Linear self(width, 8, s.gen), neigh(width, 8, s.gen);
  const Tape tape;
  {
#include "frames.inc"
    check_nodes(s, out, 8);
    CHECK(graph.srcdata().contains("neigh"));
  }
  CHECK(graph.srcdata().keys().empty());
}

TEST_CASE("user-defined messages") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows(), x = s.edge_rows(3);
  Linear mlp(2 * width + 3, 8, s.gen);
  Tape tape;
#include "user_defined.inc"
  check_nodes(s, m, 8);
  tape.backward(m, Tensor::full(m.shape(), 1));
  CHECK(h.grad().defined());
  for (const NamedParameter& p : mlp.named_parameters()) CHECK(p.parameter.grad().defined());
}

TEST_CASE("a layer of your own") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const own::EdgeMLPConv conv(3, 2, 4, s.gen);
  const Variable h(test::random_tensor({graph.num_nodes(), 3}, 1), true);
  const Variable x(test::random_tensor({graph.num_edges(), 2}, 2), true);
  {
#include "own_gradients.inc"
  }
  {
    using own::train;
#include "own_ranks.inc"
  }
  char name[] = "edge_mlp";
  char* argv[] = {name, nullptr};
  CHECK(own::own_main(1, argv) == 0);
}

TEST_CASE("the program for hosts of docs/reproducible.md has the same hash on one rank and on all") {
  using same_bits_everywhere::hash_after_training;
  CHECK(hash_after_training(Communicator::world(), 3) == hash_after_training(Communicator::self(), 3));
  CHECK(hash_after_training(Communicator::world(), 3) != hash_after_training(Communicator::world(), 4));
  (void)same_bits_everywhere::reproducible_main;
}

TEST_CASE("operations of your own") {
  using namespace own;
  const Setting s;
#include "own_operation_check.inc"
  const Variable h(Tensor::full({s.graph.num_nodes(), 2}, 3), true);
  const Tape tape;
  const Variable variance = neighbor_variance(s.graph, h);
  check_nodes(s, variance, 2);
  for (const real each : variance.value().values()) CHECK(std::abs(each) < 1e-5);
}

TEST_CASE("latents on edges") {
  Setting s;
  const Graph& graph = s.graph;
  Variable h = s.node_rows(), e = s.edge_rows(width);
  const Variable nodes = h, edges = e;
  const Block first(width, s.gen), second(width, s.gen);
  Tape tape;
  first(graph, h, e);
  second(graph, h, e);
  check_nodes(s, h, width);
  CHECK(e.shape() == Shape{graph.num_edges(), width});
  tape.backward(h, Tensor::full(h.shape(), 1));
  CHECK(nodes.grad().defined());
  CHECK(edges.grad().defined());
  for (const NamedParameter& p : first.named_parameters()) CHECK(p.parameter.grad().defined());
}

TEST_CASE("fields of different sizes") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const Tensor before = Tensor::full({graph.num_nodes(), 3}, 300),
               length = Tensor::full({graph.num_edges(), 1}, 1);
  const Surrogate net(3, 8, s.gen);
  const Tape tape;
  {
#include "normalizer.inc"
    check_nodes(s, y, 3);
    CHECK(size_of_fields.count() == 300);
  }
  const Scaled scaled(Tensor::from({3}, {1, 10, 100}), 8, s.gen);
  check_nodes(s, scaled(graph, before, length), 3);
  CHECK(state_dict(scaled).tensors.back().name == "scale");
}

TEST_CASE("dropout of messages") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows();
  Dropout drop(0.5, s.gen);
  const Tape tape;
#include "edge_dropout.inc"
  check_nodes(s, m, width);
}

TEST_CASE("attention") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows();
  const Index heads = 4, dim = 8;
  const Linear fc(width, heads * dim, s.gen);
  const auto rows = [&](Index n) { return Variable(Tensor::full({n, heads, dim}, 1), true); };
  const Variable attn_l = rows(1), attn_r = rows(1), key = rows(h.num_rows()), query = rows(h.num_rows()),
                 value = rows(h.num_rows());
  const Tape tape;
#include "attention.inc"
  CHECK(y.shape() == Shape{h.num_rows(), heads, dim});
  CHECK(t.shape() == Shape{h.num_rows(), heads, dim});
}

TEST_CASE("types of edges") {
  const Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows(), weight(Tensor::full({3, width, 5}, 1), true);
#include "typed_sum.inc"
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    CHECK(y.value().row(v)[0] == static_cast<real>(width * graph.in_degrees()[v]));
}

TEST_CASE("message flow graphs") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable h = s.node_rows();
  ModuleList<SAGEConv> convs;
  convs.emplace_back(width, 8, s.gen);
  convs.emplace_back(8, 4, s.gen);
  const Index first = s.data.book.begin(s.comm.rank());
  const std::vector<Index> seeds{first + 5, first};
  const Tape tape;
#include "message_flow_graphs.inc"
  CHECK(y.shape() == Shape{2, 4});
}

TEST_CASE("controls") {
  const Setting s;
  const Graph& graph = s.graph;
  const std::size_t before = s.comm.max_collective_size();
#include "controls.inc"
  CHECK(g.options().mode == HaloMode::sequential);
  CHECK(block.options().mode == HaloMode::one_shot);
  CHECK(s.comm.max_collective_size() == std::size_t{1} << 28);
  s.comm.set_max_collective_size(before);
}

TEST_CASE("rounded halo rows") {
  if (sizeof(real) > sizeof(float)) return;  // there is no int8
  Setting s;
  const Graph& graph = s.graph;
  const Tensor& features = s.data.features;
  const auto& labels = s.data.labels;
  const auto& train_mask = s.data.train_mask;
  SAGEConv conv(width, s.data.num_classes, s.gen);
  Adam optimizer(conv.named_parameters(), {.lr = 0.01});
  const auto loss = [&] {
    return cross_entropy(conv(graph, features), labels, train_mask, s.comm).value().item();
  };
  const real before = loss();
#include "halo_format.inc"
  CHECK(g.options().halo_format == HaloFormat::int8);
  CHECK(loss() < before);
}

TEST_CASE("mixed precision") {
  Setting s;
  const Graph& graph = s.graph;
  const Variable features = s.node_rows(false);
  const auto& labels = s.data.labels;
  const auto& train_mask = s.data.train_mask;
  SAGEConv conv(width, s.data.num_classes, s.gen);
#include "mixed_precision.inc"
  CHECK(mixed_precision() == (sizeof(real) == 4));
  for (const auto& [name, parameter] : conv.named_parameters()) CHECK(parameter.grad().defined());
}

TEST_CASE("what travels") {
  const Setting s;
  const Communicator& comm = s.comm;
  const auto in_heads = [](const Variable& y) { return reshape(y, {y.num_rows(), 4, width / 4}); };
  const Variable u = s.node_rows(), v = s.node_rows(), e = s.edge_rows(width);
  const Variable constant_u = s.node_rows(false), constant_v = s.node_rows(false),
                 constant_e = s.edge_rows(width, false);
  const Variable matrices(Tensor::full({2, width, width}, 1), true);
  const Variable attn(Tensor::full({1, 4, width / 4}, 1), true), parameter(Tensor::full({width}, 1), true);
  struct Case {
    std::string name;
    std::function<Variable(const Graph&)> run;
    /// How often the halo rows travel forward, backward, and backward in other modes than rematerialize.
    double forward, backward, kept;
  };
  const std::vector<Case> cases{
      {"copy_u", [&](auto& g) { return g.update_all(fn::copy_u(u), fn::sum); }, 1, 1, 1},
      {"copy_u, max", [&](auto& g) { return g.update_all(fn::copy_u(u), fn::max); }, 1, 1, 1},
      {"u + v", [&](auto& g) { return g.update_all(fn::u_add_v(u, v), fn::mean); }, 1, 1, 1},
      {"e - u, max", [&](auto& g) { return g.update_all(fn::e_sub_u(e, u), fn::max); }, 1, 1, 1},
      {"u * constant", [&](auto& g) { return g.update_all(fn::u_mul_e(u, constant_e), fn::sum); }, 1, 1, 1},
      {"u / constant", [&](auto& g) { return g.update_all(fn::u_div_v(u, constant_v), fn::min); }, 1, 1, 1},
      {"u . constant", [&](auto& g) { return g.apply_edges(fn::u_dot_v(u, constant_v)); }, 1, 1, 1},
      {"u * e", [&](auto& g) { return g.update_all(fn::u_mul_e(u, e), fn::sum); }, 1, 2, 1},
      {"u . v", [&](auto& g) { return g.apply_edges(fn::u_dot_v(u, v)); }, 1, 2, 1},
      {"constant * e", [&](auto& g) { return g.update_all(fn::u_mul_e(constant_u, e), fn::sum); }, 1, 1, 0},
      {"v / u", [&](auto& g) { return g.update_all(fn::v_div_u(constant_v, u), fn::sum); }, 1, 2, 1},
      {"copy_e", [&](auto& g) { return g.update_all(fn::copy_e(e), fn::mean); }, 0, 0, 0},
      {"v * e", [&](auto& g) { return g.update_all(fn::v_mul_e(v, e), fn::max); }, 0, 0, 0},
      {"own, of sources",
       [&](auto& g) {
         return g.update_all([&](const EdgeBatch& edges) { return edges.src(u) * parameter; }, fn::sum);
       },
       1, 2, 1},
      {"own, of constant sources",
       [&](auto& g) {
         return g.update_all([&](const EdgeBatch& edges) { return edges.src(constant_u) * parameter; },
                             fn::sum);
       },
       1, 1, 0},
      {"own, without sources",
       [&](auto& g) {
         return g.update_all([&](const EdgeBatch& edges) { return edges.dst(v) * parameter; }, fn::sum);
       },
       0, 0, 0},
      {"gat", [&](auto& g) { return gat_attention(g, in_heads(u), attn, head_dots(in_heads(u), attn)); }, 1,
       2, 1},
      {"gatv2", [&](auto& g) { return gatv2_attention(g, in_heads(u), in_heads(v), attn); }, 1, 2, 1},
      {"dot", [&](auto& g) { return dot_attention(g, in_heads(u), in_heads(v), {}, 1); }, 1, 2, 1},
      {"dot with a value",
       [&](auto& g) { return dot_attention(g, in_heads(u), in_heads(v), in_heads(u), 1); }, 2, 4, 2},
      {"typed_sum",
       [&](auto& g) {
         return typed_sum(g, u, matrices, std::vector<Index>(static_cast<std::size_t>(g.num_edges()), 1));
       },
       1, 2, 1},
      {"typed_sum with constant matrices",
       [&](auto& g) {
         return typed_sum(g, u, matrices.detach(),
                          std::vector<Index>(static_cast<std::size_t>(g.num_edges()), 1));
       },
       1, 1, 1},
      {"edge_softmax by dst", [&](auto& g) { return edge_softmax(g, e); }, 0, 0, 0},
      {"edge_softmax by src", [&](auto& g) { return edge_softmax(g, e, NormBy::src); }, 4, 2, 2},
  };

  const auto sent = [&](const auto& work) {
    const std::uint64_t before = comm.stats().bytes_sent;
    work();
    const std::uint64_t bytes = comm.stats().bytes_sent - before;
    return static_cast<double>(comm.all_reduce(bytes));
  };
  std::uint64_t read = 0;  // rows of other ranks
  for (const HaloRound& round : s.graph.topology().rounds())
    read += static_cast<std::uint64_t>(round.recv_rows);
  const double halo = static_cast<double>(comm.all_reduce(read)) * width * sizeof(real);
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    Graph g = s.graph;
    g.set_options({.mode = mode});
    for (const Case& c : cases) {
      CAPTURE(c.name);
      Tape tape;
      Variable y;
      const double forward = sent([&] { y = c.run(g); });
      const double backward = sent([&] { tape.backward(y, Tensor::full(y.shape(), 1)); });
      const double agreements = 0.05 * halo;
      CHECK(std::abs(forward - c.forward * halo) <= agreements);
      CHECK(std::abs(backward - (mode == HaloMode::rematerialize ? c.backward : c.kept) * halo) <=
            agreements);
    }
  }
}

TEST_CASE("link prediction") {
  Setting s;
  Communicator& comm = s.comm;
  NodeData data = make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = width});
  const Index edges = comm.all_reduce(data.edges.size());
#include "link_split.inc"
  CHECK(graph.num_global_edges() < edges);
  CHECK(graph.num_edges() == static_cast<Index>(train_ids.size()));
  const std::uint64_t epoch = 3;
#include "link_negatives.inc"
  const EdgeList& edges_of_task = split.test;
#include "link_candidates.inc"
  CHECK(alike.global_uniform(edges_of_task.id, epoch).size() == edges_of_task.size());
  SAGEConv encoder(width, 8, s.gen);
  const DotPredictor predictor;
  const Variable x = data.features;
  Tape tape;
#include "link_loss.inc"
  CHECK(negative.num_rows() == graph.num_edges());
  tape.backward(loss);
  CHECK(encoder.parameters()[0].grad().defined());
#include "link_metrics.inc"
  CHECK(auc > 0);
  CHECK(hits <= 1);
}

TEST_CASE("ranks of the ends of typed edges") {
  const Communicator comm = Communicator::world();
  const PartitionBook users = PartitionBook::even(20, comm.size());
  const PartitionBook items = PartitionBook::even(9, comm.size());
  const EdgeType likes{"user", "likes", "item"};
  EdgeList edges;
  for (Index v = items.begin(comm.rank()); v < items.end(comm.rank()); ++v)
    for (const Index u : {v, v + 7}) {
      edges.src.push_back(u);
      edges.dst.push_back(v);
      edges.id.push_back(2 * v + u % 2);
    }
  const Graph hetero(comm, {{"user", users}, {"item", items}}, {{likes, edges}});
  RelationEdges train_edges, test_edges;
  Array<Index> train_edge_ids;
  if (comm.rank() == 0) train_edges = test_edges = {{0}, {0}, {users.num_nodes(0)}};  // the first item
  if (comm.rank() == 0) train_edge_ids = {0};
  const std::uint64_t epoch = 3;
#include "relation_training.inc"
  CHECK(all_edges.size() == 2 * items.num_nodes(comm.rank()));
  CHECK(others.size() == k * train_edges.size());
  Generator gen(0);
  const RotatEPredictor relation_predictor(1, 4, gen);
  const Variable h(Tensor::full({hetero.to_homogeneous().graph.num_nodes(), 4}, 1));
#include "relation_ranks.inc"
  // of 20 sources, one of which is known besides, and 9 destinations, all with equal scores
  CHECK(found.mean_rank == (10 + 5) / 2.0);
}

TEST_CASE("hops that are computed once") {
  Setting s;
  const Communicator& comm = s.comm;
  const Graph& graph = s.graph;
  const NodeData& data = s.data;
  Generator& gen = s.gen;
  const Index hidden = 8;
#include "sign.inc"
  CHECK(logits.shape() == Shape{graph.num_nodes(), data.num_classes});
#include "label_propagation.inc"
  CHECK(found > 0.4);
#include "correct_and_smooth.inc"
  CHECK(accuracy(better, data.labels, data.test_mask, comm) > 0.4);
}

/// The names in the examples of headers (cut_examples.awk).
struct ExampleNames {
  /// construct_full_graph takes the edges of its data away.
  static Graph graph_of(const Communicator& comm, NodeData data) { return construct_full_graph(comm, data); }

  int argc = 0;
  char** argv = nullptr;
  const Communicator comm = Communicator::world();
  const NewWorkingDirectory directory{comm};
  const NodeData data = make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = width});
  Graph graph = graph_of(comm, data);
  const Tensor features = data.features;
  const std::vector<std::int64_t> ids{comm.rank()};
  const HostGraph hetero{comm,
                         {{"fluid", ids}, {"solid", ids}},
                         {{EdgeType{"fluid", "flows", "fluid"}, {.src = ids, .dst = ids}},
                          {EdgeType{"solid", "heats", "fluid"}, {.src = ids, .dst = ids}}}};
  Generator gen{0};
};
// An example may make a `comm` of its own, and need not read its results.
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#include "examples/headers.inc"
