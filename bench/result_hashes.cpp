/// Hashes of what layers compute, to compare two versions of the library bit by bit: results, losses,
/// gradients and parameters after three steps of SGD, for each layer, halo mode and halo row format. Prints a
/// JSON object a line; two versions agree where their lines are equal (same number of ranks, same kind of
/// processor).
///
/// result_hashes [nodes] [degree]
#include <sar/sar.hpp>
#if __has_include(<sar/models.hpp>)
#include <sar/models.hpp>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
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

/// This rank's share of a graph with hubs, self loops, duplicate edges and isolated nodes; the last rank of
/// more than three has no nodes.
struct Problem {
  std::vector<std::int64_t> nodes, src, dst;

  Problem(const Communicator& comm, Index num_nodes, Index degree) {
    const int owners = comm.size() > 3 ? comm.size() - 1 : comm.size();
    std::uint64_t state = 12345;
    const auto draw = [&](Index n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<Index>((state >> 33) % static_cast<std::uint64_t>(n));
    };
    const auto owner = [&](Index node) { return static_cast<int>(node * owners / num_nodes); };
    for (Index v = 0; v < num_nodes; ++v)
      if (owner(v) == comm.rank()) nodes.push_back(v);
    for (Index e = 0; e < num_nodes * degree; ++e) {
      const Index u = draw(5) == 0 ? draw(8) : draw(num_nodes);
      const Index v = draw(20) == 0 ? draw(4) : 2 + draw(num_nodes - num_nodes / 50 - 2);
      if (owner(v) != comm.rank()) continue;
      src.push_back(u);
      dst.push_back(v);
    }
  }
};

/// Numbers in [-1, 1) that depend on the row's id and the column only.
Tensor numbers(const Array<Index>& ids, Index columns, std::uint64_t salt) {
  const Index rows = std::ssize(ids);
  Tensor x({rows, columns});
  real* out = x.data();
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      std::uint64_t s =
          (static_cast<std::uint64_t>(ids[i]) * 1000003u + static_cast<std::uint64_t>(j) + salt) *
          0x9e3779b97f4a7c15u;
      s ^= s >> 29;
      out[i * columns + j] = static_cast<real>(static_cast<double>(s % 2000003u) / 1000001.5 - 1);
    }
  return x;
}

struct Inputs {
  Variable x, edge, weight;
  EdgeTypes types;
};
using Layer = std::function<Variable(const GraphShardManager&, const Inputs&)>;

void run(const std::string& name, const GraphShardManager& graph, const Inputs& in, Module& module,
         const Layer& layer) {
  const Communicator& comm = graph.comm();
  SGD optimizer(module.named_parameters(), {.lr = 0.05});
  Hash hash;
  for (int step = 0; step < 3; ++step) {
    Variable x(in.x.value(), true);
    Variable edge(in.edge.value(), true);
    Tape tape;
    Variable y = layer(graph, {x, edge, in.weight, in.types});
    y = reshape(y, {y.num_rows(), y.value().size() / std::max<Index>(y.num_rows(), 1)});
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

void run_all(const std::string& way, const Communicator& comm, const Problem& problem,
             const GraphOptions& options) {
  const HostGraph graph(comm, problem.nodes, {.src = problem.src, .dst = problem.dst}, {.graph = options});
  Array<Index> kinds(graph.num_edges());
  const Array<Index>& ids = graph.edge_ids();
  for (Index e = 0; e < graph.num_edges(); ++e) kinds[e] = ids[e] % 3;
  Tensor weight = numbers(ids, 1, 3);
  for (Index e = 0; e < graph.num_edges(); ++e) weight.data()[e] = std::abs(weight.data()[e]) + real(0.1);
  const Inputs in{Variable(numbers(graph.src_ids(), 20, 1)), Variable(numbers(ids, 6, 2)),
                  reshape(Variable(weight), {graph.num_edges()}), EdgeTypes(std::span<const Index>(kinds))};
  Generator gen(7);
  const auto test = [&](const char* name, auto module, const auto& layer) {
    run(way + " " + name, graph, in, module,
        [&](const GraphShardManager& g, const Inputs& i) { return layer(module, g, i); });
  };
  const auto plain = [](auto& m, const GraphShardManager& g, const Inputs& i) { return m(g, i.x); };
  const auto weighted = [](auto& m, const GraphShardManager& g, const Inputs& i) {
    return m(g, i.x, i.weight);
  };
  const auto typed = [](auto& m, const GraphShardManager& g, const Inputs& i) { return m(g, i.x, i.types); };
  const auto with_edges = [](auto& m, const GraphShardManager& g, const Inputs& i) {
    return m(g, i.x, i.edge);
  };
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
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const Problem problem(comm, argc > 1 ? std::atoll(argv[1]) : 500, argc > 2 ? std::atoll(argv[2]) : 8);
  run_all("rematerialize", comm, problem, {});
  run_all("small stages", comm, problem, {.max_halo_bytes = 4096, .edge_block = 100});
  run_all("sequential", comm, problem, {.mode = HaloMode::sequential});
  run_all("one-shot", comm, problem, {.mode = HaloMode::one_shot});
  run_all("bf16", comm, problem, {.halo_format = HaloFormat::bf16});
  run_all("int8", comm, problem, {.halo_format = HaloFormat::int8});
  run_all("sums in double", comm, problem, {.reproducible = true});
}
