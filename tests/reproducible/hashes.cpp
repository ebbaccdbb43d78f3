/// Hashes that must be equal for any number of ranks (GraphOptions::reproducible): results of layers, and
/// weights, losses and norms of gradients after 20 epochs with batch norm, dropout and clipping. Each case
/// runs with three partitions, three modes, three sizes of stages, and one and two threads; exit status 1 if
/// they differ. Prints a JSON object a line, in which nothing depends on the number of ranks.
///
/// reproducible_hashes [nodes] [degree] [epochs]
#include <sar/models.hpp>
#include <sar/sar.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sar;

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(const real* x, Index n, std::uint64_t hash = 1) {
  for (Index i = 0; i < n; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, x + i, sizeof *x);
    hash = mixed(hash + bits + 0x9e3779b97f4a7c15u);
  }
  return hash;
}

/// A hash of rows by their ids, in any order, on all ranks.
std::uint64_t hash_of_rows(const Communicator& comm, const Tensor& x, const Array<Index>& ids) {
  std::uint64_t sum = 0;
  for (Index i = 0; i < x.num_rows(); ++i)
    sum += hash_of(x.row(i), x.row_size(), mixed(static_cast<std::uint64_t>(ids[i]) + 17));
  std::uint64_t total = 0;
  for (const std::uint64_t part : comm.all_gather(sum)) total += part;
  return total;
}

/// A number in [-1, 1) with a wide range of magnitudes, which depends on the id and the column only.
real number(Index id, Index column, std::uint64_t salt) {
  const std::uint64_t s =
      mixed(static_cast<std::uint64_t>(id) * 1000003u + static_cast<std::uint64_t>(column) + salt * 7919u);
  const double value = static_cast<double>(s % 2000003u) / 1000001.5 - 1;
  return static_cast<real>(value * std::ldexp(1.0, -static_cast<int>((s >> 40) % 8)));
}

Tensor numbers(const Array<Index>& ids, Index columns, std::uint64_t salt) {
  Tensor x({std::ssize(ids), columns});
  for (Index i = 0; i < x.num_rows(); ++i)
    for (Index j = 0; j < columns; ++j) x.row(i)[j] = number(ids[i], j, salt);
  return x;
}

/// A graph with hubs, self loops, duplicate edges and isolated nodes. The last rank of more than three has no
/// nodes. Each node has as many in-edges as out-edges if it is symmetric.
HostGraph make_graph(const Communicator& comm, Index num_nodes, Index degree, int partition, bool self_loops,
                     const GraphOptions& options) {
  const int owners = comm.size() > 3 ? comm.size() - 1 : comm.size();
  const auto owner = [&](Index v) {
    if (partition == 0) return static_cast<int>(v * owners / num_nodes);
    if (partition == 1) return static_cast<int>(v % owners);
    return static_cast<int>(mixed(static_cast<std::uint64_t>(v)) % 7 * static_cast<std::uint64_t>(owners) /
                            7);
  };
  std::vector<std::int64_t> nodes, src, dst, ids;
  for (Index v = 0; v < num_nodes; ++v)
    if (owner(v) == comm.rank()) nodes.push_back(v);
  std::uint64_t state = 12345;
  const auto draw = [&](Index n) {
    state = mixed(state + 1);
    return static_cast<Index>(state % static_cast<std::uint64_t>(n));
  };
  for (Index e = 0; e < num_nodes * degree; ++e) {
    const Index u = draw(5) == 0 ? draw(8) : draw(num_nodes);
    const Index v = draw(20) == 0 ? draw(4) : 2 + draw(num_nodes - num_nodes / 50 - 2);
    if (u == v && !self_loops) continue;
    for (const auto& [from, to, id] : {std::tuple(u, v, 2 * e), std::tuple(v, u, 2 * e + 1)}) {
      if (owner(to) != comm.rank()) continue;
      src.push_back(from);
      dst.push_back(to);
      ids.push_back(id);
    }
  }
  if (partition == 1) std::reverse(nodes.begin(), nodes.end());
  return HostGraph(comm, nodes, {.src = src, .dst = dst, .ids = ids}, {.graph = options});
}

struct Inputs {
  Variable x, edge, weight;
  EdgeTypes types;
  Array<Index> species;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
};

Inputs make_inputs(const GraphShardManager& graph) {
  const Array<Index>& ids = graph.edge_ids();
  Array<Index> kinds(ids.size());
  for (std::size_t e = 0; e < kinds.size(); ++e) kinds[e] = ids[e] / 2 % 3;
  Tensor weight = numbers(ids, 1, 3);
  for (real& w : weight.values()) w = std::abs(w) + real(0.1);
  Inputs in{Variable(numbers(graph.src_ids(), 20, 1)),
            Variable(numbers(ids, 6, 2)),
            reshape(Variable(weight), {graph.num_edges()}),
            EdgeTypes(std::vector<Index>(kinds.begin(), kinds.end())),
            {},
            {},
            {}};
  for (const Index id : graph.src_ids()) {
    in.species.push_back(id % 3);
    in.labels.push_back(id * 7 % 5);
    in.mask.push_back(id % 3 != 0);
  }
  return in;
}

using Layer = std::function<Variable(const GraphShardManager&, const Inputs&)>;

/// What must be equal.
struct Hashes {
  std::uint64_t prediction = 0, weights = 0, losses = 0;
  bool operator==(const Hashes&) const = default;
};

std::uint64_t hash_of_weights(const Module& module) {
  std::uint64_t hash = 0;
  for (const NamedParameter& named : module.named_parameters())
    hash = hash_of(std::as_const(named.parameter.value()).data(), named.parameter.value().size(), hash);
  for (const NamedBuffer& named : module.named_buffers())
    hash = hash_of(std::as_const(named.tensor).data(), named.tensor.size(), hash);
  return hash;
}

/// The layer, batch norm, ReLU, dropout, a linear layer with layer norm.
struct Net : Module {
  Net(Module& of_layer, Index width, const Communicator& comm, Generator& gen)
      : norm(width, comm), layer_norm(width), dropout(0.3, gen), head(width, 5, gen) {
    register_module("layer", of_layer);
    register_module("norm", norm);
    register_module("layer_norm", layer_norm);
    register_module("dropout", dropout);
    register_module("head", head);
  }
  DistributedBN1D norm;
  LayerNorm layer_norm;
  Dropout dropout;
  Linear head;
};

Hashes run(const GraphShardManager& graph, const Inputs& in, Module& module, const Layer& layer, int epochs) {
  const Communicator& comm = graph.comm();
  Hashes hashes;
  const auto flat = [](const Variable& y) {
    const Index width = y.shape().row_size();
    return reshape(y, {y.num_rows(), width});
  };
  const Variable prediction = flat(layer(graph, in));
  hashes.prediction = hash_of_rows(comm, prediction.value(), graph.dst_ids());
  Generator gen(11);
  Net net(module, prediction.shape()[1], comm, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const ReproducibleScope scope(comm);
    Tape tape;
    const Variable y = batch_norm_relu_dropout(flat(layer(graph, in)), net.norm, net.dropout,
                                               RowIds(std::span<const Index>(graph.dst_ids())));
    const Variable loss = cross_entropy(net.head(net.layer_norm(y)), in.labels, in.mask, comm);
    tape.backward(loss);
    gather_grads(comm, net, false);
    const double norm = clip_grad_norm(net, 0.5);
    optimizer.step();
    optimizer.zero_grad();
    const real seen[] = {loss.value().item(), static_cast<real>(norm)};
    hashes.losses = hash_of(seen, 2, hashes.losses);
  }
  hashes.weights = hash_of_weights(net);
  return hashes;
}

/// Energies, forces, and training on both.
Hashes run_potential(const GraphShardManager& graph, const Inputs& in, PaiNN& net, int epochs) {
  const Communicator& comm = graph.comm();
  const Tensor positions = numbers(graph.src_ids(), 3, 5);
  const auto species = [&] { return RowIds(std::span<const Index>(in.species)); };
  const EnergyAndForces found = net.energy_and_forces(graph, species(), positions);
  const auto energy = static_cast<real>(found.energy);
  Hashes hashes;
  hashes.prediction = hash_of_rows(comm, found.forces, graph.src_ids()) + hash_of(&energy, 1);
  const LabelledAtoms atoms{.species = species(),
                            .positions = positions,
                            .energies = Tensor::full({1}, 3),
                            .forces = numbers(graph.src_ids(), 3, 6)};
  Adam optimizer(net.named_parameters(), {.lr = 0.001});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const ReproducibleScope scope(comm);
    const PotentialErrors errors = backward_potential_loss(net, graph, atoms);
    gather_grads(comm, net, false);
    optimizer.step();
    optimizer.zero_grad();
    const real seen[] = {static_cast<real>(errors.loss), static_cast<real>(errors.force)};
    hashes.losses = hash_of(seen, 2, hashes.losses);
  }
  hashes.weights = hash_of_weights(net);
  return hashes;
}

/// A case: its name, and a run with a graph made with some options and partition.
struct Case {
  std::string name;
  std::function<Hashes(const GraphShardManager&, const Inputs&)> run;
  bool self_loops = true;
};

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const Index nodes = argc > 1 ? std::atoll(argv[1]) : 300, degree = argc > 2 ? std::atoll(argv[2]) : 4;
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 20;
  const bool few = argc > 4;  // one run a case

  std::vector<Case> cases;
  const auto add = [&](const char* name, const auto& make, const auto& layer) {
    cases.push_back({name, [=](const GraphShardManager& graph, const Inputs& in) {
                       Generator gen(7);
                       auto module = make(gen);
                       return run(
                           graph, in, module,
                           [&](const GraphShardManager& g, const Inputs& i) { return layer(module, g, i); },
                           epochs);
                     }});
  };
  const auto plain = [](auto& m, const GraphShardManager& g, const Inputs& i) { return m(g, i.x); };
  const auto weighted = [](auto& m, const GraphShardManager& g, const Inputs& i) {
    return m(g, i.x, i.weight);
  };
  const auto typed = [](auto& m, const GraphShardManager& g, const Inputs& i) { return m(g, i.x, i.types); };
  const auto with_edges = [](auto& m, const GraphShardManager& g, const Inputs& i) {
    return m(g, i.x, i.edge);
  };
  add(
      "sage mean", [](Generator& gen) { return SAGEConv(20, 24, gen, {.feat_drop = 0.3}); }, plain);
  add(
      "sage mean weighted", [](Generator& gen) { return SAGEConv(20, 8, gen); }, weighted);
  add(
      "sage pool", [](Generator& gen) { return SAGEConv(20, 24, gen, {.aggregator = SAGEAggregator::pool}); },
      plain);
  add(
      "sage gcn", [](Generator& gen) { return SAGEConv(20, 33, gen, {.aggregator = SAGEAggregator::gcn}); },
      plain);
  add(
      "gcn", [](Generator& gen) { return GraphConv(20, 16, gen); }, plain);
  add(
      "gcn weighted", [](Generator& gen) { return GraphConv(20, 40, gen); }, weighted);
  add(
      "gin", [](Generator&) { return GINConv({}, {.aggregator = Reduce::max, .learn_eps = true}); }, plain);
  add(
      "gat",
      [](Generator& gen) {
        return GATConv(20, 8, 4, gen, {.feat_drop = 0.2, .attn_drop = 0.3, .residual = true});
      },
      plain);
  add(
      "gatv2", [](Generator& gen) { return GATv2Conv(20, 8, 3, gen, {.attn_drop = 0.3}); }, plain);
  add(
      "dot gat", [](Generator& gen) { return DotGatConv(20, 8, 2, gen); }, plain);
  add(
      "agnn", [](Generator&) { return AGNNConv(); }, plain);
  add(
      "transformer", [](Generator& gen) { return TransformerConv(20, 8, 2, gen); }, plain);
  add(
      "edge conv", [](Generator& gen) { return EdgeConv(20, 12, gen); }, plain);
  add(
      "cf conv", [](Generator& gen) { return CFConv(20, 6, 16, 12, gen); }, with_edges);
  add(
      "appnp", [](Generator& gen) { return APPNPConv(3, 0.1, gen, 0.2); }, plain);
  add(
      "rgcn bases",
      [](Generator& gen) {
        return RelGraphConv(20, 12, 3, gen,
                            {.regularizer = Regularizer::basis, .num_bases = 2, .dropout = 0.2});
      },
      typed);
  add(
      "rgcn", [](Generator& gen) { return RelGraphConv(20, 12, 3, gen); }, typed);
  add(
      "rgcn blocks",
      [](Generator& gen) {
        return RelGraphConv(20, 12, 3, gen, {.regularizer = Regularizer::bdd, .num_bases = 2});
      },
      typed);
  add(
      "simple hgn", [](Generator& gen) { return SimpleHGNConv(20, 5, 8, 2, 3, gen); }, typed);
  add(
      "mesh graph net",
      [](Generator& gen) {
        return MeshGraphNet({.node_feats = 20, .edge_feats = 6, .out_feats = 3, .hidden = 32, .blocks = 2},
                            gen);
      },
      with_edges);
  cases.push_back({"painn",
                   [=](const GraphShardManager& graph, const Inputs& in) {
                     Generator gen(7);
                     PaiNN net({.num_species = 3, .feats = 16, .convs = 2}, gen);
                     return run_potential(graph, in, net, epochs);
                   },
                   false});

  const std::vector<std::pair<const char*, GraphOptions>> ways = {
      {"rematerialize", {.reproducible = true}},
      {"small stages", {.max_halo_bytes = 2048, .reproducible = true}},
      {"sequential", {.mode = HaloMode::sequential, .max_halo_bytes = 6000, .reproducible = true}},
      {"one_shot", {.mode = HaloMode::one_shot, .reproducible = true}}};
  bool all_equal = true;
  for (const Case& the_case : cases) {
    std::optional<Hashes> first;
    for (int partition = 0; partition < (few ? 1 : 3); ++partition)
      for (const auto& [way, options] : ways) {
        if (few && first) continue;
        const HostGraph graph = make_graph(comm, nodes, degree, partition, the_case.self_loops, options);
        const Inputs in = make_inputs(graph);
        for (const int threads : {1, 2}) {
          const ThreadLimit limit(threads);
          const Hashes hashes = the_case.run(graph, in);
          if (!first) first = hashes;
          if (hashes == *first) continue;
          all_equal = false;
          if (comm.rank() == 0)
            std::fprintf(stderr, "%s differs on %d ranks: partition %d, %s, %d threads:%s%s%s\n",
                         the_case.name.c_str(), comm.size(), partition, way, threads,
                         hashes.prediction != first->prediction ? " prediction" : "",
                         hashes.losses != first->losses ? " losses" : "",
                         hashes.weights != first->weights ? " weights" : "");
        }
      }
    if (comm.rank() == 0)
      std::printf(
          "{\"case\": \"%s\", \"prediction\": \"%016llx\", \"losses\": \"%016llx\", \"weights\": "
          "\"%016llx\"}\n",
          the_case.name.c_str(), static_cast<unsigned long long>(first->prediction),
          static_cast<unsigned long long>(first->losses), static_cast<unsigned long long>(first->weights));
  }
  return all_equal ? 0 : 1;
}
