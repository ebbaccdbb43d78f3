// SPDX-License-Identifier: MIT

/// Prints hashes of results, gradients and weights of layers, a JSON object a line.
///
/// result_hashes [nodes] [degree]: of three steps, in several modes and halo row formats. Two versions agree
/// where their lines are equal (same number of ranks, same kind of processor).
///
/// result_hashes --reproducible [nodes] [degree] [epochs] [runs]: on graphs with GraphOptions::reproducible,
/// of predictions, and of weights, losses and norms of gradients after some epochs with norms, dropout and
/// clipping. Nothing depends on the number of ranks. Each case runs with three partitions, in four ways to
/// take the halo, with one and two threads; exit status 1 if they differ. `runs` = 1: with one of these only.
#include <sar/models.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace sar;

namespace {

/// FNV-1a of the bytes that it is given.
struct Hash {
  std::uint64_t value = 14695981039346656037u;
  void add(const void* bytes, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      value = (value ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211u;
  }
  void add(const Tensor& x) { add(x.data(), static_cast<std::size_t>(x.size()) * sizeof(real)); }
};

/// A hash of rows by their ids, in any order, on all ranks.
std::uint64_t hash_of_rows(const Communicator& comm, const Tensor& x, const Array<Index>& ids) {
  std::uint64_t total = 0;
  for (Index i = 0; i < x.num_rows(); ++i) {
    Hash hash;
    hash.add(&ids[i], sizeof ids[i]);
    hash.add(x.row(i), static_cast<std::size_t>(x.row_size()) * sizeof(real));
    total += hash.value;
  }
  const std::vector<std::uint64_t> parts = comm.all_gather(total);
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

/// How a graph is made: each edge in both directions or in one, with or without self loops, on nodes that are
/// divided among the ranks in ranges (0), in turn (1), or at random and in reverse order (2), where the last
/// of several has node 0 alone.
struct Making {
  bool symmetric = false, self_loops = true;
  int partition = 0;
};

/// A graph with hubs, self loops, duplicate edges and isolated nodes; the last rank of more than three has no
/// nodes.
HostGraph make_graph(const Communicator& comm, Index num_nodes, Index degree, const GraphOptions& options,
                     const Making& making = {}) {
  const int owners = comm.size() > 3 ? comm.size() - 1 : comm.size();
  const auto owner = [&](Index v) {
    if (making.partition == 0) return static_cast<int>(v * owners / num_nodes);
    if (making.partition == 1) return static_cast<int>(v % owners);
    return v == 0 ? owners - 1 : static_cast<int>(v * 7919 % 1009 / 5 % std::max(owners - 1, 1));
  };
  std::vector<std::int64_t> nodes, src, dst, ids;
  for (Index v = 0; v < num_nodes; ++v)
    if (owner(v) == comm.rank()) nodes.push_back(v);
  if (making.partition == 2) std::reverse(nodes.begin(), nodes.end());
  std::uint64_t state = 12345;
  const auto draw = [&](Index n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(n));
  };
  const auto add = [&](Index u, Index v, Index id) {
    if (owner(v) != comm.rank() || (u == v && !making.self_loops)) return;
    src.push_back(u);
    dst.push_back(v);
    ids.push_back(id);
  };
  for (Index e = 0; e < num_nodes * degree; ++e) {
    const Index u = draw(5) == 0 ? draw(8) : draw(num_nodes);
    const Index v = draw(20) == 0 ? draw(4) : 2 + draw(num_nodes - num_nodes / 50 - 2);
    add(u, v, 2 * e);
    if (making.symmetric) add(v, u, 2 * e + 1);
  }
  return HostGraph(comm, nodes,
                   {.src = src, .dst = dst, .ids = making.symmetric ? ids : std::vector<std::int64_t>()},
                   {.graph = options});
}

/// Numbers in [-1, 1) that depend on the row's id and the column only, of magnitudes that differ by 2^8 where
/// they are `wide`.
Tensor numbers(const Array<Index>& ids, Index columns, std::uint64_t salt, bool wide = false) {
  const Index rows = std::ssize(ids);
  Tensor x({rows, columns});
  real* out = x.data();
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      std::uint64_t s =
          (static_cast<std::uint64_t>(ids[i]) * 1000003u + static_cast<std::uint64_t>(j) + salt) *
          0x9e3779b97f4a7c15u;
      s ^= s >> 29;
      const double value = static_cast<double>(s % 2000003u) / 1000001.5 - 1;
      out[i * columns + j] =
          static_cast<real>(wide ? std::ldexp(value, -static_cast<int>((s >> 40) % 8)) : value);
    }
  return x;
}

struct Inputs {
  Variable x, edge, weight;
  EdgeTypes types;
  std::vector<Index> kinds;  // of nodes
};

Inputs make_inputs(const Graph& graph, bool reproducible) {
  const Array<Index>& ids = graph.edge_ids();
  std::vector<Index> of_edges, of_nodes;
  for (const Index id : ids) of_edges.push_back((reproducible ? id / 2 : id) % 3);
  for (const Index id : graph.src_ids()) of_nodes.push_back(id % 3);
  Tensor weight = numbers(ids, 1, 3, reproducible);
  for (real& w : weight.values()) w = std::abs(w) + real(0.1);
  return {Variable(numbers(graph.src_ids(), 20, 1, reproducible)), Variable(numbers(ids, 6, 2, reproducible)),
          reshape(Variable(weight), {graph.num_edges()}), EdgeTypes(std::move(of_edges)),
          std::move(of_nodes)};
}

using Layer = std::function<Variable(const Graph&, const Inputs&)>;

/// [rows, columns]
Variable flat(const Variable& y) {
  return reshape(y, {y.num_rows(), y.shape().row_size()});
}

/// Calls test(name, module, layer) for each layer; their weights are drawn one after another.
template <class Test>
void for_each_layer(Generator& gen, const Test& test) {
  const auto plain = [](auto& m, const Graph& g, const Inputs& i) { return m(g, i.x); };
  const auto weighted = [](auto& m, const Graph& g, const Inputs& i) { return m(g, i.x, i.weight); };
  const auto typed = [](auto& m, const Graph& g, const Inputs& i) { return m(g, i.x, i.types); };
  const auto with_edges = [](auto& m, const Graph& g, const Inputs& i) { return m(g, i.x, i.edge); };
  test("sage mean", SAGEConv(20, 24, gen, {.feat_drop = 0.3}), plain);
  test("sage mean weighted", SAGEConv(20, 8, gen), weighted);
  test("sage pool", SAGEConv(20, 24, gen, {.aggregator = SAGEAggregator::pool}), plain);
  test("sage gcn", SAGEConv(20, 33, gen, {.aggregator = SAGEAggregator::gcn}), plain);
  test("gcn", GraphConv(20, 16, gen), plain);
  test("gcn weighted", GraphConv(20, 40, gen), weighted);
  test("gin", GINConv({}, {.aggregator = Reduce::max, .learn_eps = true}), plain);
  test("gat", GATConv(20, 8, 4, gen, {.feat_drop = 0.2, .attn_drop = 0.3, .residual = true}), plain);
  test("gat one head", GATConv(20, 7, 1, gen), plain);
  test("gatv2", GATv2Conv(20, 8, 3, gen, {.attn_drop = 0.3}), plain);
  test("dot gat", DotGatConv(20, 8, 2, gen), plain);
  test("agnn", AGNNConv(), plain);
  test("transformer", TransformerConv(20, 8, 2, gen), plain);
  test("edge gat", EdgeGATConv(20, 6, 8, 2, gen), with_edges);
  test("edge conv", EdgeConv(20, 12, gen), plain);
  test("cf conv", CFConv(20, 6, 16, 12, gen), with_edges);
  test("appnp", APPNPConv(3, 0.1, gen, 0.2), plain);
  test("rgcn bases",
       RelGraphConv(20, 12, 3, gen, {.regularizer = Regularizer::basis, .num_bases = 2, .dropout = 0.2}),
       typed);
  test("rgcn", RelGraphConv(20, 12, 3, gen), typed);
  test("simple hgn", SimpleHGNConv(20, 5, 8, 2, 3, gen), typed);
  test("mesh graph net",
       MeshGraphNet({.node_feats = 20, .edge_feats = 6, .out_feats = 3, .hidden = 32, .blocks = 2}, gen),
       with_edges);
  test("rgcn blocks", RelGraphConv(20, 12, 3, gen, {.regularizer = Regularizer::bdd, .num_bases = 2}), typed);
  test("gine", GINEConv(20, 6, {}, gen), with_edges);
  test("nn conv", NNConv(20, 6, std::make_shared<Linear>(6, 20 * 6, gen), gen), with_edges);
  test("tag", TAGConv(20, 16, gen), plain);
  test("hgt", HGTConv(20, 8, 2, 3, 3, gen, {.use_norm = true}), [](auto& m, const Graph& g, const Inputs& i) {
    return m(g, i.x, RowIds(std::span<const Index>(i.kinds)), i.types);
  });
  test("gat residual of x", GATConv(20, 5, 4, gen, {.residual = true}), plain);
  test("sage lstm", SAGEConv(20, 24, gen, {.aggregator = SAGEAggregator::lstm}), plain);
}

/// Three steps on the sum of the squares of the result.
void run_steps(const std::string& name, const Graph& graph, const Inputs& in, Module& module,
               const Layer& layer) {
  const Communicator& comm = graph.comm();
  SGD optimizer(module.named_parameters(), {.lr = 0.05});
  Hash hash;
  for (int step = 0; step < 3; ++step) {
    Variable x(in.x.value(), true);
    Variable edge(in.edge.value(), true);
    Tape tape;
    const Variable y = flat(layer(graph, {x, edge, in.weight, in.types, in.kinds}));
    const Variable loss = dot(y, y, comm);
    hash.add(y.value());
    hash.add(loss.value());
    tape.backward(loss);
    if (x.grad().defined()) hash.add(x.grad());
    if (edge.grad().defined()) hash.add(edge.grad());
    gather_grads(comm, module);
    optimizer.step();
    optimizer.zero_grad();
  }
  for (const NamedParameter& named : module.named_parameters()) hash.add(named.parameter.value());
  Hash all;
  for (const std::uint64_t value : comm.all_gather(hash.value)) all.add(&value, sizeof value);
  if (comm.rank() == 0)
    std::printf("{\"case\": \"%s\", \"ranks\": %d, \"hash\": \"%016llx\"}\n", name.c_str(), comm.size(),
                static_cast<unsigned long long>(all.value));
}

void run_steps_of_all(const std::string& way, const Communicator& comm, Index nodes, Index degree,
                      const GraphOptions& options) {
  const HostGraph graph = make_graph(comm, nodes, degree, options);
  const Inputs in = make_inputs(graph, false);
  Generator gen(7);
  for_each_layer(gen, [&](const char* name, auto module, const auto& layer) {
    run_steps(way + " " + name, graph, in, module,
              [&](const Graph& g, const Inputs& i) { return layer(module, g, i); });
  });
}

/// What must not depend on the number of ranks.
struct Hashes {
  std::uint64_t prediction = 0, weights = 0, losses = 0;
  bool operator==(const Hashes&) const = default;
};

std::uint64_t hash_of_weights(const Module& module) {
  Hash hash;
  for (const NamedParameter& named : module.named_parameters()) hash.add(named.parameter.value());
  for (const NamedBuffer& named : module.named_buffers()) hash.add(named.tensor);
  return hash.value;
}

/// What is trained around a layer: embeddings of nodes, a linear layer of edge features, and a factor of edge
/// weights; behind it, norms and dropout, scores of nodes, and scores of the whole graph from readouts.
struct Net : Module {
  Net(Module& of_layer, Index width, const Communicator& comm, Generator& gen)
      : embedding({3}, 20, gen),
        edges(6, 6, gen),
        factor(Tensor::full({1}, real(1.5)), true),
        norm(width, comm),
        dropout(0.3, gen),
        hidden(width, 20, gen),
        layer_norm(20),
        head(20, 5, gen),
        gate(std::make_shared<Linear>(20, 1, gen)),
        attention(gate) {
    register_module("layer", of_layer);
    register_module("embedding", embedding);
    register_module("edges", edges);
    register_parameter("factor", factor);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("hidden", hidden);
    register_module("layer_norm", layer_norm);
    register_module("head", head);
    register_module("attention", attention);
  }

  [[nodiscard]] Inputs inputs(const Inputs& in) const {
    const Variable embedded = embedding(IntegerRows{1, Array<Index>(in.kinds.begin(), in.kinds.end())});
    const Index num_edges = in.weight.num_rows();  // the factor has fewer dimensions, also for one edge
    const Variable weight = reshape(reshape(in.weight, {num_edges, 1}) * factor, {num_edges});
    return {in.x + embedded, edges(in.edge), weight, in.types, in.kinds};
  }

  CategoryEmbedding embedding;
  Linear edges;
  Variable factor;
  DistributedBN1D norm;
  Dropout dropout;
  Linear hidden;
  LayerNorm layer_norm;
  Linear head;
  std::shared_ptr<Linear> gate;
  GlobalAttentionPooling attention;
};

/// A loss of all nodes with weights of classes, one with weights of rows, and one of the whole graph, which
/// the first rank alone computes.
Variable loss_of(const Graph& graph, const Variable& h, const Net& net) {
  const Communicator& comm = graph.comm();
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
  std::vector<real> weights;
  for (const Index id : graph.dst_ids()) {
    labels.push_back(id * 7 % 5);
    mask.push_back(id % 3 != 0);
    weights.push_back(real(0.001) * static_cast<real>(id % 7 + 1) / 7);
  }
  const double of_classes[] = {0.3, 1.1, 0.7, 1.9, 0.1};
  const Variable scores = net.head(h);
  Variable loss = cross_entropy(scores, labels, mask, comm,
                                CrossEntropyOptions{.class_weights = of_classes, .label_smoothing = 0.1});
  loss = loss + mse(scores, numbers(graph.dst_ids(), 5, 4, true), mask, comm, std::span<const real>(weights));
  const Variable whole = AvgPooling()(graph, h) + MaxPooling()(graph, h) + net.attention(graph, h);
  return loss + cross_entropy(net.head(whole), std::vector<std::int64_t>{2},
                              std::vector<std::uint8_t>{comm.rank() == 0}, comm);
}

Hashes run(const Graph& graph, const Inputs& in, Module& module, const Layer& layer, int epochs) {
  const Communicator& comm = graph.comm();
  const Variable prediction = flat(layer(graph, in));
  Hashes hashes{.prediction = hash_of_rows(comm, prediction.value(), graph.dst_ids())};
  Generator gen(11);
  Net net(module, prediction.shape()[1], comm, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  Hash losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const ReproducibleScope scope(comm);
    Tape tape;
    const Variable y = batch_norm_relu_dropout(flat(layer(graph, net.inputs(in))), net.norm, net.dropout,
                                               RowIds(std::span<const Index>(graph.dst_ids())));
    const Variable loss = loss_of(graph, relu(net.layer_norm(net.hidden(y))), net);
    tape.backward(loss);
    gather_grads(comm, net, false);
    const double norm = clip_grad_norm(net, 0.5);
    optimizer.step();
    optimizer.zero_grad();
    losses.add(loss.value());
    losses.add(&norm, sizeof norm);
  }
  hashes.losses = losses.value;
  hashes.weights = hash_of_weights(net);
  return hashes;
}

/// Energies, forces, and training on both.
Hashes run_potential(const Graph& graph, const Inputs& in, PotentialNetwork& net, int epochs) {
  const Communicator& comm = graph.comm();
  const Tensor positions = numbers(graph.src_ids(), 3, 5, true);
  const auto species = [&] { return RowIds(std::span<const Index>(in.kinds)); };
  const EnergyAndForces found = net.energy_and_forces(graph, species(), positions);
  Hash energy;
  energy.add(&found.energy, sizeof found.energy);
  Hashes hashes{.prediction = hash_of_rows(comm, found.forces, graph.src_ids()) + energy.value};
  const LabelledAtoms atoms{.species = species(),
                            .positions = positions,
                            .energies = Tensor::full({1}, 3),
                            .forces = numbers(graph.src_ids(), 3, 6, true)};
  Adam optimizer(net.named_parameters(), {.lr = 0.001});
  Hash losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const ReproducibleScope scope(comm);
    const PotentialErrors errors = backward_potential_loss(net, graph, atoms);
    gather_grads(comm, net, false);
    optimizer.step();
    optimizer.zero_grad();
    losses.add(&errors.loss, sizeof errors.loss);
    losses.add(&errors.force, sizeof errors.force);
  }
  hashes.losses = losses.value;
  hashes.weights = hash_of_weights(net);
  return hashes;
}

/// Returns whether all runs of each case have the same hashes.
bool run_reproducible(const Communicator& comm, Index nodes, Index degree, int epochs, int runs) {
  const std::pair<const char*, GraphOptions> ways[] = {
      {"rematerialize", {.reproducible = true}},
      {"small stages", {.max_halo_bytes = 2048, .edge_chunk = 50, .reproducible = true}},
      {"sequential",
       {.mode = HaloMode::sequential, .max_halo_bytes = 6000, .edge_chunk = 1000, .reproducible = true}},
      {"one_shot", {.mode = HaloMode::one_shot, .reproducible = true}}};
  std::vector<std::pair<std::string, Hashes>> first;
  bool all_equal = true;
  for (int number = 0; number < std::min(runs, 24); ++number) {
    const int partition = number / 2 % 3, threads = 1 + number % 2;
    const auto& [way, options] = ways[number / 6];
    std::size_t at = 0;
    const auto compare = [&](const char* name, const Hashes& hashes) {
      if (number == 0) first.emplace_back(name, hashes);
      const Hashes& expected = first[at++].second;
      const std::uint64_t mine = hashes.prediction + 3 * hashes.losses + 5 * hashes.weights;
      const std::vector<std::uint64_t> all = comm.all_gather(mine);
      const bool on_all = std::ranges::count(all, mine) == comm.size();
      if (comm.all_reduce(hashes == expected && on_all ? 1 : 0, ReduceOp::min) == 1) return;
      all_equal = false;
      if (comm.rank() == 0)
        std::fprintf(stderr, "%s differs on %d ranks: partition %d, %s, %d threads:%s%s%s\n", name,
                     comm.size(), partition, way, threads,
                     hashes.prediction != expected.prediction ? " prediction" : "",
                     hashes.losses != expected.losses ? " losses" : "",
                     hashes.weights != expected.weights ? " weights" : "");
    };
    const ThreadLimit limit(threads);
    const HostGraph graph =
        make_graph(comm, nodes, degree, options, {.symmetric = true, .partition = partition});
    const Inputs in = make_inputs(graph, true);
    Generator gen(7);
    for_each_layer(gen, [&](const char* name, auto module, const auto& layer) {
      compare(name, run(
                        graph, in, module,
                        [&](const Graph& g, const Inputs& i) { return layer(module, g, i); }, epochs));
    });
    const HostGraph atoms = make_graph(comm, nodes, degree, options,
                                       {.symmetric = true, .self_loops = false, .partition = partition});
    Generator of_painn(7), of_mace(7);
    PaiNN painn({.num_species = 3, .feats = 16, .convs = 2}, of_painn);
    compare("painn", run_potential(atoms, make_inputs(atoms, true), painn, epochs));
    MACE mace({.num_species = 3, .feats = 8, .density = true, .functions = {.max_l = 2}, .radial_feats = 8},
              of_mace);
    compare("mace", run_potential(atoms, make_inputs(atoms, true), mace, epochs));
  }
  for (const auto& [name, hashes] : first)
    if (comm.rank() == 0)
      std::printf(
          "{\"case\": \"%s\", \"prediction\": \"%016llx\", \"losses\": \"%016llx\", \"weights\": "
          "\"%016llx\"}\n",
          name.c_str(), static_cast<unsigned long long>(hashes.prediction),
          static_cast<unsigned long long>(hashes.losses), static_cast<unsigned long long>(hashes.weights));
  return all_equal;
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const bool reproducible = argc > 1 && std::string(argv[1]) == "--reproducible";
  const auto number = [&](int at, int otherwise) {
    at += reproducible ? 1 : 0;
    return at < argc ? std::atoi(argv[at]) : otherwise;
  };
  if (reproducible)
    return run_reproducible(comm, number(1, 300), number(2, 4), number(3, 20), number(4, 24)) ? 0 : 1;
  const auto run_all = [&](const char* way, const GraphOptions& options) {
    run_steps_of_all(way, comm, number(1, 500), number(2, 8), options);
  };
  run_all("rematerialize", {});
  run_all("small stages", {.max_halo_bytes = 4096, .edge_chunk = 100});
  run_all("sequential", {.mode = HaloMode::sequential});
  run_all("one-shot", {.mode = HaloMode::one_shot});
  run_all("bf16", {.halo_format = HaloFormat::bf16});
  run_all("int8", {.halo_format = HaloFormat::int8});
  run_all("reproducible", {.reproducible = true});
  return 0;
}
