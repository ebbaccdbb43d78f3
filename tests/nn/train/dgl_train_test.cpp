// SPDX-License-Identifier: MIT

/// Training from partitions that DGL wrote gives the curve of the graph they were made of.
#include "nn/train/curve.hpp"
#include "support/effort.hpp"

#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

const std::string own = std::string(SAR_TEST_DATA) + "/dgl/";
const std::string shared = std::string(SAR_SHARED_DATA) + "/";
const int epochs = 20;
const double accepted = sizeof(real) == 8 ? 1e-9 : 1e-4;

bool have(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  MESSAGE("skipped: there is no dataset in ", path);
  return false;
}

/// Rows that the original ids determine, for nodes without features.
Tensor position_features(const NodeTypeData& nodes, Index width) {
  Tensor x(Shape{static_cast<Index>(nodes.original_ids.size()), width});
  for (Index i = 0; i < x.num_rows(); ++i)
    for (Index j = 0; j < width; ++j)
      x.row(i)[j] = static_cast<real>(
          std::sin(static_cast<double>((nodes.original_ids[static_cast<std::size_t>(i)] + 1) * (j + 2))));
  return x;
}

/// Papers are classified by two layers over three relations; citations count by their year.
struct HeteroNet : Module {
  HeteroGraphConv first, second;
  Dropout drop;

  HeteroNet(Index width, Index classes, Generator& gen) : drop(0.3, gen) {
    register_module("first", first);
    register_module("second", second);
    register_module("drop", drop);
    first.emplace_back<GraphConv>({"author", "writes", "paper"}, width, 8, gen);
    first.emplace_back<SAGEConv>({"paper", "cites", "paper"}, width, 8, gen);
    first.emplace_back<GraphConv>({"paper", "rev_writes", "author"}, width, 8, gen);
    second.emplace_back<GraphConv>({"author", "writes", "paper"}, 8, classes, gen);
    second.emplace_back<SAGEConv>({"paper", "cites", "paper"}, 8, classes, gen);
  }
  Variable operator()(const HeteroGraphConv::Graphs& graphs, const HeteroGraphConv::Rows& x) {
    const Graph& cites = graphs.at("cites");
    HeteroGraphConv::Rows h = first(graphs, x);
    Variable papers = drop(relu(h.at("paper")), cites.dst_ids());
    papers = papers + cites.update_all(fn::u_mul_e(papers, cites.edata().at("year") * real{0.001}), fn::mean);
    const HeteroGraphConv::Graphs last{{"cites", cites}, {"writes", graphs.at("writes")}};
    return second(last, {{"paper", papers}, {"author", relu(h.at("author"))}}).at("paper");
  }
};

std::vector<double> hetero_curve(const Communicator& comm, GraphData graph) {
  const Graph typed = construct_hetero_graph(comm, graph);
  HeteroGraphConv::Graphs graphs;
  for (const EdgeType& type : typed.edge_types()) graphs.emplace(type.relation, typed[type]);
  const NodeTypeData& papers = graph.node_type("paper");
  const Array<std::int64_t> labels = papers.data.at("labels").to_integers("labels");
  const Array<std::uint8_t> mask = papers.data.at("train_mask").to_mask("train_mask");
  const Tensor features = papers.data.at("features").to_tensor();
  const HeteroGraphConv::Rows x{
      {"paper", features}, {"author", position_features(graph.node_type("author"), features.row_size())}};
  std::int64_t classes = 0;
  for (const std::int64_t label : labels) classes = std::max(classes, label + 1);
  classes = comm.all_reduce(classes, ReduceOp::max);
  Generator gen(5);
  HeteroNet net(features.row_size(), classes, gen);
  Adam adam(net.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Tape tape;
    const Variable loss = cross_entropy(net(graphs, x), labels, mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);
    adam.step();
    adam.zero_grad();
    losses.push_back(static_cast<double>(loss.value().item()));
  }
  CHECK(losses.back() < losses.front());
  return losses;
}

DataArray read_array(const std::string& path) {
  const NpyFile file(path);
  DataArray data(file.type(), {file.shape().begin() + 1, file.shape().end()}, file.num_rows());
  file.read_rows_raw(0, file.num_rows(), data.bytes);
  return data;
}

Array<Index> iota(Index n) {
  Array<Index> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), Index{0});
  return ids;
}

/// The graph of dgl-partition-hetero-3 as it was before it was partitioned, on one rank.
GraphData original_hetero(const std::string& directory) {
  const auto file = [&](const std::string& name) { return directory + "/original_" + name + ".npy"; };
  GraphData graph;
  graph.node_types.push_back({"author", PartitionBook::even(120, 1), iota(120), {}});
  graph.node_types.push_back({"paper", PartitionBook::even(200, 1), iota(200), {}});
  for (const std::string field : {"features", "labels", "train_mask"})
    graph.node_types[1].data.emplace(field, read_array(file("paper." + field)));
  const std::vector<EdgeTypeData> types{{"author", "writes", "paper", {}, 0, {}},
                                        {"paper", "cites", "paper", {}, 0, {}},
                                        {"paper", "rev_writes", "author", {}, 0, {}}};
  for (EdgeTypeData type : types) {
    const NpyFile edges(file("edges." + type.name));
    type.num_edges = edges.shape().at(1);
    type.edges.id = iota(type.num_edges);
    type.edges.src.resize(type.edges.id.size());
    type.edges.dst.resize(type.edges.id.size());
    edges.read(0, type.num_edges, std::span<Index>(type.edges.src));
    edges.read(type.num_edges, 2 * type.num_edges, std::span<Index>(type.edges.dst));
    graph.edge_types.push_back(std::move(type));
  }
  graph.edge_types[1].data.emplace("year", read_array(file("cites.year")));
  return graph;
}

}  // namespace

TEST_CASE("a heterogeneous partition trains alike on one rank and on several") {
  const Communicator comm = Communicator::world();
  for (const auto& [name, parts] : {std::pair("heterogeneous", 2), std::pair("old", 3)}) {
    if (comm.size() > parts) continue;
    const std::string json = own + name + "/papers.json";
    const std::vector<double> alone =
        hetero_curve(Communicator::self(), load_dgl_partition(Communicator::self(), json));
    CHECK(largest_difference(hetero_curve(comm, load_dgl_partition(comm, json)), alone) < accepted);
  }
}

TEST_CASE("training from a heterogeneous partition by DGL gives the curve of the original graph") {
  const Communicator comm = Communicator::world();
  const std::string directory = shared + "dgl-partition-hetero-3";
  if (comm.size() > 3 || !have(directory)) return;
  const std::vector<double> original = hetero_curve(Communicator::self(), original_hetero(directory));
  CHECK(largest_difference(hetero_curve(comm, load_dgl_partition(comm, directory + "/hetero.json")),
                           original) < accepted);
}

TEST_CASE("training from partitions of Cora by DGL gives the curve of the dataset") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 3 || !have(shared + "cora")) return;
  const int some_epochs = full_run() ? epochs : 8;
  const DatasetOptions options{.normalize_features = true};
  const std::vector<double> original = curve(
      Communicator::self(), load_dataset(Communicator::self(), shared + "cora", options), {}, some_epochs);
  for (const int parts : {2, 4}) {
    const std::string directory = concat(shared, "dgl-partition-cora-", parts);
    if (comm.size() > parts || !have(directory)) continue;
    NodeData data = to_node_data(comm, load_dgl_partition(comm, directory + "/cora.json"), options);
    CHECK(largest_difference(curve(comm, std::move(data), {}, some_epochs), original) < accepted);
  }
}
