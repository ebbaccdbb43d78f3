// SPDX-License-Identifier: MIT

/// Message flow graphs against a search in the whole graph, and networks on them against networks on the
/// graph they were made from.
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/distributed.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

using namespace sar;
using namespace sar::test;

namespace {

using Lists = std::vector<std::vector<Index>>;  // of nodes, for each rank

constexpr HaloMode modes[] = {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot};

/// Seeds of every rank: 0 all nodes; 1 every third, descending; 2 few, on ranks 1, 3, ... (or the only one);
/// 3 none; 4 the isolated last node.
constexpr int num_choices = 5;
Lists choose_seeds(const PartitionBook& book, int choice) {
  Lists seeds(static_cast<std::size_t>(book.num_parts()));
  for (Index v = book.num_nodes() - 1; v >= 0; --v) {
    const int p = book.owner(v);
    const bool chosen = choice == 0   ? true
                        : choice == 1 ? v % 3 == 1
                        : choice == 2 ? v % 5 == 2 && (p % 2 == 1 || book.num_parts() == 1)
                        : choice == 4 ? v == book.num_nodes() - 1
                                      : false;
    if (chosen) seeds[static_cast<std::size_t>(p)].push_back(v);
  }
  if (choice == 0)
    for (auto& mine : seeds) std::reverse(mine.begin(), mine.end());
  return seeds;
}

/// Of every rank: the destinations, then what else it owns of the in-edges' sources, ascending.
Lists sources_of(const WholeGraph& g, const PartitionBook& book, const Lists& destinations) {
  std::set<Index> dst;
  for (const auto& mine : destinations) dst.insert(mine.begin(), mine.end());
  std::set<Index> more;
  for (std::size_t k = 0; k < g.src.size(); ++k)
    if (dst.contains(g.dst[k]) && !dst.contains(g.src[k])) more.insert(g.src[k]);
  Lists sources = destinations;
  for (const Index u : more) sources[static_cast<std::size_t>(book.owner(u))].push_back(u);
  return sources;
}

std::size_t total(const Lists& lists) {
  std::size_t sum = 0;
  for (const auto& list : lists) sum += list.size();
  return sum;
}

template <class Values>
std::vector<Index> picked(const Values& values, const std::vector<Index>& at, Index offset = 0) {
  std::vector<Index> result;
  for (const Index i : at) result.push_back(values[static_cast<std::size_t>(i - offset)]);
  return result;
}
std::vector<Index> plain(const Array<Index>& values) {
  return {values.begin(), values.end()};
}

/// Edges of a shard are in the order of destinations, sources and edges of the whole graph, and halo rows are
/// numbered in rotation order.
void check_layout(const Communicator& comm, const MessageFlowGraph& mfg) {
  const GraphTopology& layer = mfg.topology();
  std::vector<HaloRound> rounds = layer.rounds();
  number_halo_rows(comm, rounds);
  Index halo_rows = 0;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    CHECK(layer.rounds()[r].first == halo_rows);
    CHECK(layer.rounds()[r].reader_first == rounds[r].reader_first);
    halo_rows += rounds[r].recv_rows;
  }
  CHECK(layer.remote.num_src_rows == halo_rows);
  const auto check_edges = [&](const GraphShard& part) {
    const auto edge = [&](Index k) { return std::pair(part.src[k], mfg.edge_rows()[part.first_edge + k]); };
    for (Index row = 0; part.num_edges() > 0 && row < part.num_rows(); ++row)
      for (Index k = part.row_begin[row] + 1; k < part.row_begin[row + 1]; ++k) CHECK(edge(k - 1) < edge(k));
  };
  check_edges(layer.local);
  check_edges(layer.remote);
}

}  // namespace

TEST_CASE("nodes, edges, ids and degrees of message flow graphs are what a search finds") {
  const Communicator comm = Communicator::world();
  const int p = comm.rank();
  const auto me = static_cast<std::size_t>(p);
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (int choice = 0; choice < num_choices; ++choice) {
        CAPTURE(whole.name);
        CAPTURE(choice);
        const PartitionBook& book = books.src;
        const bool weighted = choice != 1 && !whole.src.empty();
        const GraphOptions options{
            .mode = modes[choice % 3], .pipeline_depth = 2, .max_halo_bytes = 64, .edge_chunk = 5};
        const Graph graph = renamed_shard(comm, whole, book, options, weighted);
        const Lists seeds = choose_seeds(book, choice);
        const std::vector<MessageFlowGraph> mfgs = construct_mfgs(graph, seeds[me], 3);
        REQUIRE(mfgs.size() == 3);
        Lists destinations = seeds;
        for (std::size_t l = 3; l-- > 0;) {
          const MessageFlowGraph& mfg = mfgs[l];
          const Lists sources = sources_of(whole, book, destinations);
          const auto& src = sources[me];
          const auto& dst = destinations[me];
          CHECK(mfg.is_block());
          CHECK(mfg.num_src_nodes() == static_cast<Index>(src.size()));
          CHECK(mfg.num_dst_nodes() == static_cast<Index>(dst.size()));
          CHECK(mfg.num_global_src_nodes() == static_cast<Index>(total(sources)));
          CHECK(mfg.num_global_dst_nodes() == static_cast<Index>(total(destinations)));
          const Index begin = book.begin(p);
          std::vector<Index> src_rows, dst_rows;
          for (const Index u : src) src_rows.push_back(u - begin);
          for (const Index v : dst) dst_rows.push_back(v - begin);
          REQUIRE(plain(mfg.src_rows()) == src_rows);
          REQUIRE(plain(mfg.dst_rows()) == dst_rows);
          CHECK(plain(mfg.src_ids()) == picked(graph.src_ids(), src_rows));
          CHECK(plain(mfg.dst_ids()) == picked(graph.dst_ids(), dst_rows));
          CHECK(plain(mfg.in_degrees()) == picked(graph.in_degrees(), dst_rows));
          CHECK(plain(mfg.shards()->degrees.in_of_sources().get()) == picked(graph.in_degrees(), src_rows));
          CHECK(plain(mfg.out_degrees()) == picked(graph.out_degrees(), src_rows));
          check_layout(comm, mfg);

          const std::set<Index> wanted(dst.begin(), dst.end());
          std::vector<Index> edges;
          for (std::size_t k = 0; k < whole.src.size(); ++k)
            if (wanted.contains(whole.dst[k])) edges.push_back(static_cast<Index>(k));
          std::vector<Index> ids = plain(mfg.edge_ids());
          CHECK(picked(graph.edge_ids(), plain(mfg.edge_rows())) == ids);
          REQUIRE(mfg.edge_weight().defined() == weighted);
          for (std::size_t k = 0; weighted && k < ids.size(); ++k)
            CHECK(mfg.edge_weight().data()[k] == weight_of(ids[k]));
          std::sort(ids.begin(), ids.end());
          CHECK(ids == edges);
          CHECK(mfg.num_edges() == static_cast<Index>(edges.size()));
          CHECK(mfg.num_global_edges() == comm.all_reduce(static_cast<Index>(edges.size())));

          CHECK(mfg.options().mode == options.mode);
          CHECK(mfg.options().pipeline_depth == 2);
          CHECK(mfg.options().max_halo_bytes == 64);
          CHECK(mfg.options().edge_chunk == 5);
          CHECK(mfg.get_full_partition_graph().options().mode == HaloMode::one_shot);
          destinations = sources;
        }
      }
}

namespace {

enum class Kind { sage_mean, sage_gcn, gcn_none, gcn_left, gcn_right, gcn_both, max, count };

/// conv, ReLU, dropout, ..., conv
struct Net : Module {
  Kind kind;
  int layers;
  ModuleList<SAGEConv> sage;
  ModuleList<GraphConv> gcn;
  ModuleList<Dropout> dropouts;

  Net(Kind k, int num_layers, Index in, double dropout) : kind(k), layers(num_layers) {
    register_module("sage", sage);
    register_module("gcn", gcn);
    register_module("dropouts", dropouts);
    Generator gen(11);
    for (int l = 0; l < layers; ++l) {
      const Index from = l == 0 ? in : 6, to = l + 1 == layers ? 3 : 6;
      if (kind == Kind::sage_mean || kind == Kind::sage_gcn)
        sage.emplace_back(
            from, to, gen,
            SAGEConvOptions{.aggregator = kind == Kind::sage_gcn ? SAGEAggregator::gcn : SAGEAggregator::mean,
                            .feat_drop = dropout});
      else if (kind != Kind::max)
        gcn.emplace_back(from, to, gen,
                         GraphConvOptions{.norm = kind == Kind::gcn_none    ? GraphConvNorm::none
                                                  : kind == Kind::gcn_left  ? GraphConvNorm::left
                                                  : kind == Kind::gcn_right ? GraphConvNorm::right
                                                                            : GraphConvNorm::both});
      dropouts.emplace_back(dropout, gen);
    }
  }
  Variable operator()(const LayerGraphs& graphs, Variable h, const std::vector<Variable>& weights) {
    for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l) {
      const Variable weight = weights.empty() ? Variable() : weights[l];
      if (kind == Kind::max)
        h = graphs[l].update_all(weight.defined() ? fn::u_mul_e(h, weight) : fn::copy_u(h), fn::max);
      else
        h = sage.size() > 0 ? sage[l](graphs[l], h, weight) : gcn[l](graphs[l], h, weight);
      if (l + 1 < static_cast<std::size_t>(layers))
        h = dropouts[l](kind == Kind::max ? h : relu(h), graphs[l].dst_ids());
    }
    return h;
  }
};

struct Outcome {
  Tensor values;                  // of the seeds
  std::vector<Tensor> gradients;  // of the features, the edge weights, the parameters
};

Tensor grad_or_zeros(const Variable& x) {
  return x.grad().defined() ? x.grad() : Tensor::zeros(x.shape());
}

/// The network on the whole graph, or on message flow graphs when there are any; the loss is a weighted sum
/// over the seeds.
Outcome run(const Graph& graph, const std::vector<MessageFlowGraph>& mfgs, const Array<Index>& rows,
            Kind kind, int layers, double dropout, bool weighted, const Tensor& features,
            const Tensor& seed_gradient) {
  Net net(kind, layers, features.row_size(), dropout);
  const Variable x(features.clone(), true);
  Variable w;
  if (weighted) w = Variable(graph.edge_weight().clone(), true);
  Tape tape;
  std::vector<Variable> weights;
  for (int l = 0; weighted && l < layers; ++l)
    weights.push_back(mfgs.empty() ? w : gather_rows(w, mfgs[static_cast<std::size_t>(l)].edge_rows()));
  const Variable y = mfgs.empty() ? gather_rows(net(graph, x, weights), rows)
                                  : net(mfgs, gather_rows(x, mfgs.front().src_rows()), weights);
  Outcome outcome{y.value().clone(), {}};
  tape.backward(y, seed_gradient.clone());
  outcome.gradients.push_back(grad_or_zeros(x));
  if (weighted) outcome.gradients.push_back(grad_or_zeros(w));
  gather_grads(graph.comm(), net);
  for (const auto& named : net.named_parameters())
    outcome.gradients.push_back(grad_or_zeros(named.parameter));
  return outcome;
}

/// max |a - b| / max |b|, both maxima over all ranks.
double error_over_ranks(const Communicator& comm, const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return INFINITY;
  double largest[] = {0, std::numeric_limits<double>::min()};
  for (Index i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a.data()[i])) return INFINITY;
    largest[0] = std::max(largest[0], std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
    largest[1] = std::max(largest[1], std::abs(static_cast<double>(b.data()[i])));
  }
  comm.all_reduce(std::span<double>(largest), ReduceOp::max);
  return largest[0] / largest[1];
}

}  // namespace

TEST_CASE("a network gives the seeds the same values and everything the same gradients") {
  const Communicator comm = Communicator::world();
  const int p = comm.rank();
  int turn = 0;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const HaloMode mode : modes)
        for (int k = 0; k < static_cast<int>(Kind::count); ++k, ++turn) {
          const Kind kind = static_cast<Kind>(k);
          const int layers = 2 + turn % 2, choice = turn % num_choices;
          const bool weighted = turn % 3 != 0 && !whole.src.empty();
          const double dropout = turn % 4 == 1 ? 0.4 : 0;
          GraphOptions options{.mode = mode};
          if (turn % 4 == 2) options.max_halo_bytes = 1;
          if (turn % 4 == 3) options.max_halo_bytes = 100, options.pipeline_depth = 3;
          CAPTURE(whole.name);
          CAPTURE(static_cast<int>(mode));
          CAPTURE(k);
          CAPTURE(turn);
          const Graph graph = renamed_shard(comm, whole, books.src, options, /*weighted=*/true);
          const Lists seeds = choose_seeds(books.src, choice);
          const auto& mine = seeds[static_cast<std::size_t>(p)];
          const auto mfgs = construct_mfgs(graph, mine, layers);
          const Index width = 4;
          const Tensor x = local_rows(random_values(whole.num_src * width, 1), books.src, p, width);
          const Tensor g = random_tensor({static_cast<Index>(mine.size()), kind == Kind::max ? width : 3},
                                         static_cast<std::uint64_t>(p));
          const Array<Index>& rows = mfgs.back().dst_rows();
          const Outcome want = run(graph, {}, rows, kind, layers, dropout, weighted, x, g);
          const Outcome got = run(graph, mfgs, rows, kind, layers, dropout, weighted, x, g);
          CHECK(error_over_ranks(comm, got.values, want.values) < tolerance());
          REQUIRE(got.gradients.size() == want.gradients.size());
          for (std::size_t i = 0; i < got.gradients.size(); ++i) {
            CAPTURE(i);
            CHECK(error_over_ranks(comm, got.gradients[i], want.gradients[i]) < tolerance());
          }
        }
}

TEST_CASE("a one-shot block of a message flow graph gives the same sums") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const PartitionBook book = PartitionBook::even(60, comm.size());
  const Graph graph = renamed_shard(comm, whole, book, {}, /*weighted=*/true);
  const Lists seeds = choose_seeds(book, 1);
  const auto mfgs = construct_mfgs(graph, seeds[static_cast<std::size_t>(comm.rank())], 1);
  const Tensor x = local_rows(random_values(60 * 3, 1), book, comm.rank(), 3);
  const Variable all = graph.update_all(fn::copy_u(x), fn::mean);
  const Tensor want = gather_rows(all, mfgs[0].dst_rows()).value();
  const Variable rows = gather_rows(x, mfgs[0].src_rows());
  CHECK(error_over_ranks(comm, mfgs[0].update_all(fn::copy_u(rows), fn::mean).value(), want) < tolerance());
  const Graph block = mfgs[0].get_full_partition_graph();
  CHECK(error_over_ranks(comm, block.update_all(fn::copy_u(rows), fn::mean).value(), want) < tolerance());
}

TEST_CASE("features that are gathered when they are read give the same bits on blocks") {
  const Communicator comm = Communicator::world();
  constexpr Index width = 20;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const bool in_double : {false, true}) {
        CAPTURE(whole.name);
        const Graph graph = renamed_shard(comm, whole, books.src, {.reproducible = in_double});
        const Lists seeds = choose_seeds(books.src, 1);
        const auto mfgs = construct_mfgs(graph, seeds[static_cast<std::size_t>(comm.rank())], 1);
        const MessageFlowGraph& block = mfgs.front();
        const Tensor features =
            local_rows(random_values(whole.num_src * width, 1), books.src, comm.rank(), width);
        const Variable number = random_tensor({block.num_edges()}, 2);
        Generator gen(1);
        SAGEConv narrow(width, 3, gen), wide(width, 30, gen);
        GraphConv gcn(width, 30, gen);
        const std::vector<std::function<Variable(const Variable&)>> reading_in_place{
            [&](const Variable& x) { return block.update_all(fn::copy_u(x), fn::sum); },
            [&](const Variable& x) { return block.update_all(fn::copy_u(x), fn::mean); },
            [&](const Variable& x) { return block.update_all(fn::u_mul_e(x, number), fn::sum); },
            [&](const Variable& x) { return narrow(block, x); },
            [&](const Variable& x) { return wide(block, x, number); },
            [&](const Variable& x) { return gcn(block, x, number); }};
        const std::vector<std::function<Variable(const Variable&)>> reading_copies{
            [&](const Variable& x) { return block.update_all(fn::copy_u(x), fn::max); },
            [&](const Variable& x) {  // the gradient of the number reads x
              const Variable e(number.value(), true);
              Tape tape;
              const Variable y = block.update_all(fn::u_mul_e(x, e), fn::sum);
              tape.backward(y, random_tensor(y.shape(), 5));
              return Variable(e.grad());
            },
            [&](const Variable& x) {
              return block.update_all([&](const EdgeBatch& edges) { return edges.src(x); }, fn::sum);
            }};
        for (const auto* operations : {&reading_in_place, &reading_copies})
          for (std::size_t i = 0; i < operations->size(); ++i) {
            CAPTURE(i);
            const Variable deferred = deferred_gather_rows(features, block.src_rows());
            const Tensor got = (*operations)[i](deferred).value(),
                         want = (*operations)[i](gather_rows(Variable(features), block.src_rows())).value();
            CHECK(std::ranges::equal(got.values(), want.values()));
            if (comm.size() == 1 && operations == &reading_in_place)
              CHECK_FALSE(gathered_rows(deferred)->computed().defined());
          }
      }
}

namespace {

/// dropout(tanh([h_u, h_v] W^T) e), reduced: by names, as a layer of DGL's would.
Variable frame_layer(const Graph& graph, const Variable& h, const Variable& e, const Variable& w,
                     fn::ReduceFunction reduce) {
  const auto scope = graph.local_scope();
  graph.srcdata()["h"] = h;
  graph.dstdata()["to"] = slice_rows(h, 0, graph.num_dst_nodes());
  graph.edata()["e"] = e;
  graph.update_all(
      [w](const EdgeBatch& edges) {
        const Variable x = linear(concat_columns({edges.src("h"), edges.dst("to")}), w);
        return dropout(tanh(x) * edges.edata("e"), 0.3, {.seed = 1, .stream = 2, .step = 3}, edges.ids());
      },
      reduce("m", "out"));
  return graph.dstdata().at("out");
}

}  // namespace

TEST_CASE("messages of the caller's own and frames on message flow graphs") {
  const Communicator comm = Communicator::world();
  const int p = comm.rank();
  constexpr Index width = 3;
  int turn = 0;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const HaloMode mode : modes)
        for (const fn::ReduceFunction reduce : {fn::sum, fn::mean, fn::max, fn::min}) {
          CAPTURE(whole.name);
          CAPTURE(static_cast<int>(mode));
          CAPTURE(turn);
          const GraphOptions options{
              .mode = mode, .max_halo_bytes = turn % 2 == 0 ? 0 : Index{20}, .edge_chunk = 7};
          const Graph graph = renamed_shard(comm, whole, books.src, options, /*weighted=*/true);
          const Lists seeds = choose_seeds(books.src, turn++ % num_choices);
          const auto mfgs = construct_mfgs(graph, seeds[static_cast<std::size_t>(p)], 2);
          const MessageFlowGraph& last = mfgs.back();

          /// Values of the seeds, scores of their in-edges; gradients of features, edge data, weights.
          const auto run_on = [&](bool blocks) {
            const Variable x(local_rows(random_values(whole.num_src * width, 1), books.src, p, width), true);
            const Variable e(reshape(Variable(edge_rows(random_values(std::ssize(whole.src), 2), graph)),
                                     {graph.num_edges(), 1})
                                 .value(),
                             true);
            const Variable w(to_tensor(random_values(2 * width * width, 3), {width, 2 * width}), true);
            Tape tape;
            const LayerGraphs graphs = blocks ? LayerGraphs(mfgs) : LayerGraphs(graph);
            Variable h = blocks ? gather_rows(x, mfgs.front().src_rows()) : x;
            Variable input;
            for (std::size_t l = 0; l < 2; ++l) {
              input = h;
              h = frame_layer(graphs[l], h, blocks ? gather_rows(e, mfgs[l].edge_rows()) : e, w, reduce);
            }
            const Variable to = slice_rows(input, 0, graphs[1].num_dst_nodes());
            Variable scores = graphs[1].apply_edges([=](const EdgeBatch& edges) {
              return sum(edges.src(input) * edges.dst(to), ReduceDim::columns);
            });
            if (!blocks) {
              h = gather_rows(h, last.dst_rows());
              scores = gather_rows(scores, last.edge_rows());
            }
            const Tensor grad = random_tensor({last.num_dst_nodes(), width}, static_cast<std::uint64_t>(p));
            tape.backward(sum(h * Variable(grad)) + sum(scores), Tensor::full({1}, 1));
            return std::vector<Tensor>{h.value(), scores.value(), grad_or_zeros(x), grad_or_zeros(e),
                                       sum_over_ranks(comm, grad_or_zeros(w))};
          };
          const std::vector<Tensor> want = run_on(false), got = run_on(true);
          for (std::size_t i = 0; i < want.size(); ++i) {
            CAPTURE(i);
            CHECK(error_over_ranks(comm, got[i], want[i]) < tolerance());
          }
          CHECK(last.srcdata().keys().empty());
          CHECK(last.edata().keys().empty());
          CHECK(thrown_by_all<InputError>(comm, [&] {
                  (void)last.ndata();
                }).ends_with("use srcdata() and dstdata()"));
          last.srcdata()["h"] = Tensor::zeros({last.num_src_nodes(), 1});
          CHECK(thrown_by_all<InputError>(comm, [&] {
                  (void)last.update_all([](const EdgeBatch& edges) { return edges.dst("h"); }, fn::sum);
                }) == "dstdata has no field \"h\"; it is empty");
        }
}

TEST_CASE("the graphs of a network's layers") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(20, comm.size());
  const Graph graph(comm, book, book, {}, true);
  const LayerGraphs same = graph;
  CHECK(&same[0] == &graph);
  CHECK(&same[5] == &graph);
  const std::vector<MessageFlowGraph> mfgs = construct_mfgs(graph, std::span<const Index>(), 2);
  const LayerGraphs blocks = mfgs;
  CHECK(&blocks[1] == &mfgs[1]);
  CHECK_THROWS_AS((void)blocks[2], InputError);
}

TEST_CASE("in-degrees of sources") {
  const Communicator comm = Communicator::world();
  const WholeGraph square = random_graph("random", 60, 60, 400, 1);
  const Graph graph = shard(comm, square, test_books(square, comm.size()).front(), {});
  CHECK(plain(graph.shards()->degrees.in_of_sources().get()) == plain(graph.in_degrees()));
  const WholeGraph two = random_graph("bipartite", 50, 23, 150, 3, false);
  const Graph bipartite = shard(comm, two, test_books(two, comm.size()).front(), {});
  CHECK_THROWS_AS((void)bipartite.shards()->degrees.in_of_sources(), InputError);
}

TEST_CASE("wrong seeds are the same error on all ranks, and the graph goes on working") {
  const Communicator comm = Communicator::world();
  const int last = comm.size() - 1;
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const PartitionBook book = PartitionBook::even(60, comm.size());
  const Graph graph = renamed_shard(comm, whole, book, {}, /*weighted=*/true);
  const Index own = book.begin(comm.rank());
  const auto message = [&](const Graph& g, std::vector<Index> seeds, int layers) {
    const std::string text =
        thrown_by_all<InputError>(comm, [&] { static_cast<void>(construct_mfgs(g, seeds, layers)); });
    const auto mfgs = construct_mfgs(graph, std::span<const Index>(), 1);  // usable
    CHECK(mfgs[0].num_global_src_nodes() == 0);
    return text;
  };
  const auto on_last = [&](std::vector<Index> seeds) {
    return message(graph, comm.rank() == last ? std::move(seeds) : std::vector<Index>{own}, 2);
  };
  CHECK(message(graph, {own}, 2) == "nothing");
  CHECK(message(graph, {own, 60}, 2) == "seed 60 is no node, expected 0 to 59");
  CHECK(on_last({60}) == "seed 60 is no node, expected 0 to 59");
  CHECK(on_last({-1}) == "seed -1 is no node, expected 0 to 59");
  CHECK(on_last({59, 58, 59}) == "seed 59 is given twice");
  CHECK(message(graph, {own, own}, 2) == "seed 0 is given twice");
  if (last > 0) {
    CHECK(on_last({0}) == "seed 0 of rank " + std::to_string(last) + " is a node of rank 0");
    CHECK(message(graph, {(book.end(comm.rank())) % 60}, 2).ends_with("is a node of rank 1"));
  }
  CHECK(message(graph, {own}, 0) == "message flow graphs of 0 layers, expected at least 1");
  CHECK(message(graph, {own}, comm.rank() == last ? -3 : 2) ==
        "message flow graphs of -3 layers, expected at least 1");
  if (last > 0)
    CHECK(message(graph, {own}, comm.rank() == last ? 3 : 2) ==
          "construct_mfgs is called with a different number of layers on different ranks: 2 on rank 0, 3 on "
          "rank " +
              std::to_string(last));

  const WholeGraph two = random_graph("bipartite", 50, 23, 150, 3, false);
  const Graph bipartite = shard(comm, two, test_books(two, comm.size()).front(), {});
  const std::string wrong_kind =
      "message flow graphs are made from a graph of one node type, not from a bipartite graph or a block";
  CHECK(message(bipartite, {}, 1) == wrong_kind);
  std::vector<Index> all;  // the same nodes on both sides, but still a block
  for (Index v = own; v < book.end(comm.rank()); ++v) all.push_back(v);
  CHECK(message(construct_mfgs(graph, all, 1)[0], {}, 1) == wrong_kind);
}
