// SPDX-License-Identifier: MIT

/// HeteroGraphConv on message flow graphs and samples: what the whole graph gives, and the same for every
/// number of ranks.
#include "graph/hetero/typed_test_graph.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Rows = Graph::Rows;
constexpr Index width = 6;

/// Heads side by side, as rows of the other layers.
struct FlatGAT : GATConv {
  using GATConv::GATConv;
  Variable operator()(const Graph& graph, const std::pair<Variable, Variable>& feat) {
    const Variable y = GATConv::operator()(graph, feat);
    return reshape(y, {y.num_rows(), y.shape().row_size()});
  }
};

/// Two layers of different convolutions, which read degrees and ids, too.
struct Net : Module {
  HeteroGraphConv first{RelationAggregate::sum}, second{RelationAggregate::sum};
  Net() {
    Generator gen(4);
    int number = 0;
    for (HeteroGraphConv* conv : {&first, &second}) {
      conv->emplace_back<SAGEConv>({"author", "knows", "author"}, width, width, gen);
      conv->emplace_back<SAGEConv>({"author", "writes", "paper"}, std::pair(width, width), width, gen,
                                   SAGEConvOptions{.feat_drop = 0.4});
      conv->emplace_back<SAGEConv>({"field", "of", "paper"}, std::pair(width, width), width, gen);
      conv->emplace_back<FlatGAT>({"paper", "about", "field"}, std::pair(width, width), width / 2, 2, gen,
                                  GATConvOptions{.feat_drop = 0.3, .attn_drop = 0.2});
      conv->emplace_back<FlatGAT>({"paper", "cites", "paper"}, std::pair(width, width), width / 2, 2, gen);
      conv->emplace_back<GraphConv>({"paper", "written_by", "author"}, width, width, gen);
      register_module(number++ == 0 ? "first" : "second", *conv);
    }
  }
  const HeteroGraphConv& layer(std::size_t l) const { return l == 0 ? first : second; }
};

/// Rows of each type with numbers of their nodes.
Rows inputs(const TypedGraph& typed, const Graph& graph) {
  Rows x;
  std::uint64_t seed = 1;
  for (const auto& [type, size] : typed.nodes) {
    const std::vector<double> all = random_values(size * width, seed++);
    Tensor rows({graph.num_nodes(type), width});
    for (Index i = 0; i < rows.num_rows(); ++i)
      for (Index j = 0; j < width; ++j)
        rows.row(i)[j] =
            static_cast<real>(all[static_cast<std::size_t>(graph.node_ids(type)[i] * width + j)]);
    x[type] = Variable(rows, true);
  }
  return x;
}

/// Of each rank those of the homogeneous form whose original id is not divisible by 3, but few of the papers;
/// of no field.
std::vector<Index> seeds_of(const HomogeneousForm& form) {
  std::vector<Index> seeds;
  const int rank = form.graph.comm().rank();
  const Index first = form.graph.topology().dst_book.begin(rank);
  for (Index i = 0; i < form.graph.num_dst_nodes(); ++i) {
    const Index id = form.graph.dst_ids()[i];
    if (id < 81 && id % (id < 50 ? 11 : 3) == 1) seeds.push_back(first + i);
  }
  return seeds;
}

/// What can be compared: rows of the seeds by original id, on all ranks, and sums of gradients.
struct Outcome {
  std::map<Index, std::vector<double>> y;
  std::vector<std::vector<double>> gradients;
};

void take_rows(const Communicator& comm, const Tensor& y, const std::vector<Index>& ids, Outcome& outcome) {
  std::vector<Index> all_ids = comm.all_gather(std::span<const Index>(ids));
  std::vector<double> mine(y.values().begin(), y.values().end());
  const std::vector<double> all = comm.all_gather(std::span<const double>(mine));
  for (std::size_t i = 0; i < all_ids.size(); ++i)
    outcome.y[all_ids[i]] = std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(i) * width,
                                                all.begin() + static_cast<std::ptrdiff_t>(i + 1) * width);
}

/// A step on the seeds. `blocks`: none is a step on the whole graph.
Outcome step(const TypedGraph& typed, const Graph& graph, const std::vector<MessageFlowGraph>& blocks) {
  const HomogeneousForm& form = graph.to_homogeneous();
  const Communicator& comm = graph.comm();
  const std::vector<Index> seeds = seeds_of(form);
  std::vector<Index> rows, ids;
  for (const Index seed : seeds) {
    rows.push_back(seed - form.graph.topology().dst_book.begin(comm.rank()));
    ids.push_back(form.graph.dst_ids()[rows.back()]);
  }
  Net net;
  const Rows x = inputs(typed, graph);
  Tape tape;
  Variable h = form.concat(x);
  if (!blocks.empty()) h = gather_rows(h, blocks.front().src_rows());
  for (std::size_t l = 0; l < 2; ++l) {
    if (blocks.empty()) {
      Rows parts;
      for (const std::string& type : graph.node_types()) parts[type] = form.rows_of(h, type);
      h = form.concat(net.layer(l)(graph, parts));
    } else {
      const MessageFlowGraph block(graph, blocks[l]);
      h = block.join(net.layer(l)(block, block.split(h)));
    }
    if (l == 0) h = relu(h);
  }
  if (blocks.empty()) h = gather_rows(h, rows);
  Outcome outcome;
  take_rows(comm, h.value(), ids, outcome);
  Tensor factors(h.shape());
  for (Index i = 0; i < h.num_rows(); ++i)
    for (Index j = 0; j < width; ++j)
      factors.row(i)[j] =
          static_cast<real>(std::sin(static_cast<double>(ids[static_cast<std::size_t>(i)] + 3 * j)));
  tape.backward(sum(h * Variable(factors)));
  gather_grads(comm, net);
  for (const NamedParameter& named : net.named_parameters()) {
    const Tensor grad = named.parameter.grad();
    outcome.gradients.emplace_back();
    if (grad.defined()) outcome.gradients.back().assign(grad.values().begin(), grad.values().end());
  }
  for (const auto& [type, rows_of_type] : x) {  // as sums over all nodes, by column
    std::vector<double> sums(width, 0);
    if (rows_of_type.grad().defined())
      for (Index i = 0; i < rows_of_type.num_rows(); ++i)
        for (Index j = 0; j < width; ++j)
          sums[static_cast<std::size_t>(j)] +=
              static_cast<double>(rows_of_type.grad().row(i)[j]) *
              std::cos(static_cast<double>(graph.node_ids(type)[i] * (j + 1)));
    comm.all_reduce(std::span<double>(sums), ReduceOp::sum);
    outcome.gradients.push_back(std::move(sums));
  }
  return outcome;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, size = 1e-3;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;  // no gradient is one of zeros
    error = std::max(error, std::abs(x - y));
    size = std::max(size, std::abs(y));
  }
  return error / size;
}

void check_same(const Outcome& got, const Outcome& want) {
  REQUIRE(got.y.size() == want.y.size());
  REQUIRE(got.y.size() > 10);
  for (const auto& [id, row] : want.y) {
    CAPTURE(id);
    REQUIRE(got.y.contains(id));
    CHECK(difference(got.y.at(id), row) < 10 * tolerance());
  }
  REQUIRE(got.gradients.size() == want.gradients.size());
  for (std::size_t k = 0; k < want.gradients.size(); ++k) {
    CAPTURE(k);
    CHECK(difference(got.gradients[k], want.gradients[k]) < 10 * tolerance());
  }
}

const std::vector<GraphOptions> ways{{.mode = HaloMode::rematerialize},
                                     {.mode = HaloMode::rematerialize, .max_halo_bytes = 200},
                                     {.mode = HaloMode::sequential},
                                     {.mode = HaloMode::one_shot}};

}  // namespace

TEST_CASE("layers of relations give on message flow graphs what they give on the whole graph") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size()))
    for (const GraphOptions& options : ways) {
      const Graph graph = shard(comm, typed, books, options);
      const HomogeneousForm& form = graph.to_homogeneous();
      check_same(step(typed, graph, construct_mfgs(form.graph, seeds_of(form), 2)), step(typed, graph, {}));
    }
}

TEST_CASE("layers of relations give the same on samples for every number of ranks") {
  const Communicator comm = Communicator::world(), self = Communicator::self();
  const TypedGraph typed = typed_graph();
  const std::vector<std::vector<Index>> fan_outs{{2, 1, 3, 2, 1, 1}, {1, 2, -1, 1, 1, 2}};
  const auto sample = [&](const Graph& graph) {
    const HomogeneousForm& form = graph.to_homogeneous();
    const NeighborSampler sampler(form.graph, fan_outs, form.etypes, {.seed = 8});
    return step(typed, graph, sampler.sample_blocks(seeds_of(form), 3));
  };
  const Outcome want = sample(shard(self, typed, typed_books(typed, 1).front()));
  std::size_t way = 0;
  for (const auto& books : typed_books(typed, comm.size()))
    check_same(sample(shard(comm, typed, books, ways[way++])), want);
}

TEST_CASE("a block has the edges, ids and degrees of its relations, and halos in common") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    const HomogeneousForm& form = graph.to_homogeneous();
    const NeighborSampler sampler(form.graph, {{2, 1, 3, 2, 1, 1}}, form.etypes, {.seed = 8});
    const MessageFlowGraph mfg = sampler.sample_blocks(seeds_of(form)).front();
    const MessageFlowGraph block(graph, mfg);
    CHECK(block.is_block());
    CHECK_FALSE(graph.is_block());
    CHECK(block["cites"].topology().shared_rounds == block["about"].topology().shared_rounds);
    Index sources = 0, destinations = 0, edges = 0;
    for (const std::string& type : graph.node_types()) {
      CAPTURE(type);
      sources += block.num_nodes(type);
      destinations += block.num_dst_nodes(type);
      const auto first =
          static_cast<std::size_t>(std::ranges::find(graph.node_types(), type) - graph.node_types().begin());
      const Array<Index>& rows = block.src_rows(type);
      REQUIRE(std::ssize(rows) == block.num_nodes(type));
      REQUIRE(std::ssize(block.dst_rows(type)) == block.num_dst_nodes(type));
      for (Index i = 0; i < std::ssize(rows); ++i) {
        CHECK(graph.node_ids(type)[rows[i]] == block.node_ids(type)[i]);
        const auto place =
            std::ranges::find(mfg.src_rows(), form.first_row[first] + rows[i]) - mfg.src_rows().begin();
        REQUIRE(place < mfg.num_src_nodes());
        CHECK((place < mfg.num_dst_nodes()) == (i < block.num_dst_nodes(type)));
      }
    }
    CHECK(sources == mfg.num_src_nodes());
    CHECK(destinations == mfg.num_dst_nodes());
    for (const auto& [type, whole] : typed.relations) {
      CAPTURE(type.relation);
      const Graph& relation = block[type];
      edges += relation.num_edges();
      CHECK(relation.num_global_edges() == comm.all_reduce(relation.num_edges()));
      CHECK(relation.is_block() == (type.source == type.destination));
      const Array<Index> src_ids = relation.topology().with_halo(relation.src_ids());
      Array<Index> out_degrees(static_cast<std::size_t>(whole.num_src), 0);
      for (const Index u : whole.src) ++out_degrees[u];
      for (Index i = 0; i < relation.num_src_nodes(); ++i)
        CHECK(relation.out_degrees()[i] == out_degrees[src_ids[i]]);
      for (const GraphShard* part : {&relation.topology().local, &relation.topology().remote}) {
        const Index first_src = part == &relation.topology().local ? 0 : relation.num_src_nodes();
        for (Index i = 0; i < part->num_rows(); ++i)
          for (Index k = part->row_begin[i]; k < part->row_begin[i + 1]; ++k) {
            const auto id = static_cast<std::size_t>(relation.edge_ids()[part->edge(k)]);
            CHECK(whole.src[id] == src_ids[first_src + part->src[k]]);
            CHECK(whole.dst[id] == relation.dst_ids()[part->dst_row(i)]);
          }
      }
    }
    CHECK(edges == mfg.num_edges());
  }
}

TEST_CASE("seeds by type give blocks by type, those of the homogeneous form") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    const HomogeneousForm& form = graph.to_homogeneous();
    NodesByType seeds;  // of no field, descending
    std::vector<Index> nodes;
    for (const std::string& type : graph.node_types()) {
      if (type == "field") continue;
      const std::size_t t = find_node_type(graph.node_types(), type);
      const Index begin = graph.book(type).begin(comm.rank());
      for (Index i = graph.num_nodes(type) - 1; i >= 0; i -= 2) {
        seeds[type].push_back(begin + i);
        nodes.push_back(form.graph.topology().dst_book.begin(comm.rank()) + form.first_row[t] + i);
      }
    }
    const std::vector<std::map<std::string, Index>> fan_outs{
        {{"knows", 2}, {"writes", 1}, {"of", 3}, {"about", 2}, {"cites", 1}, {"written_by", 1}},
        {{"knows", 1}, {"writes", 2}, {"of", -1}, {"about", 1}, {"cites", 1}, {"written_by", 2}}};
    std::vector<std::vector<Index>> by_number(2);
    for (std::size_t l = 0; l < 2; ++l)
      for (const EdgeType& type : graph.edge_types()) by_number[l].push_back(fan_outs[l].at(type.relation));
    const NeighborSampler sampler(graph, fan_outs, {.seed = 8});
    const NeighborSampler alike(form.graph, by_number, form.etypes, {.seed = 8});
    const NeighborSampler all(graph, std::vector<Index>{-1, -1}, {.seed = 8});
    const auto check_same_blocks = [&](const std::vector<MessageFlowGraph>& got,
                                       const std::vector<MessageFlowGraph>& plain) {
      REQUIRE(got.size() == plain.size());
      for (std::size_t l = 0; l < got.size(); ++l) {
        const MessageFlowGraph want(graph, plain[l]);
        CHECK(got[l].src_rows() == plain[l].src_rows());
        CHECK(got[l].num_halo_rows() == plain[l].num_halo_rows());
        for (const EdgeType& type : graph.edge_types()) {
          CAPTURE(type.canonical_name());
          CHECK(got[l][type].edge_ids() == want[type].edge_ids());
        }
      }
    };
    check_same_blocks(sampler.sample_blocks(seeds, 3), alike.sample_blocks(nodes, 3));
    check_same_blocks(construct_mfgs(graph, seeds, 2), construct_mfgs(form.graph, nodes, 2));
    check_same_blocks(all.sample_blocks(seeds), construct_mfgs(form.graph, nodes, 2));

    const MessageFlowGraph last = sampler.sample_blocks(seeds).back();
    for (const std::string& type : graph.node_types()) {
      CAPTURE(type);
      const std::span<const Index> rows = last.dst_rows(type);
      REQUIRE(rows.size() == seeds[type].size());
      for (std::size_t i = 0; i < rows.size(); ++i)
        CHECK(rows[i] == seeds[type][i] - graph.book(type).begin(comm.rank()));
    }

    DataLoader loader(sampler, seeds, {.batch_size = 4, .shuffle = false});
    loader.start_epoch(1);
    std::map<std::string, std::vector<Index>> seen;
    while (const auto batch = loader.next())
      for (const std::string& type : graph.node_types())
        for (const Index row : batch->blocks.back().dst_rows(type))
          seen[type].push_back(graph.book(type).begin(comm.rank()) + row);
    for (auto& [type, of_type] : seen) {
      std::ranges::sort(of_type);
      std::ranges::sort(seeds[type]);
      CHECK(of_type == seeds[type]);
    }

    const auto refused = [&](const std::string& part, const auto& call) {
      const std::string text = thrown_by_all<InputError>(comm, call);
      CAPTURE(text);
      CHECK(text.find(part) != std::string::npos);
    };
    refused("no node type 'book'", [&] { (void)sampler.sample_blocks(NodesByType{{"book", {}}}); });
    refused("there is no node 1000 of the type 'paper'", [&] {
      (void)construct_mfgs(graph, NodesByType{{"paper", {1000}}}, 1);
    });
    refused("has two fan-outs for the edge type 'writes'", [&] {
      std::vector<std::map<std::string, Index>> twice = fan_outs;
      twice.front()["author:writes:paper"] = 1;
      (void)NeighborSampler(graph, twice);
    });
    refused("has no fan-out for the edge type", [&] {
      (void)NeighborSampler(graph, std::vector<std::map<std::string, Index>>{{{"writes", 1}}});
    });
    refused("is given twice", [&] {
      const Index mine = graph.num_nodes("author") > 0 ? graph.book("author").begin(comm.rank()) : -1;
      (void)sampler.sample_blocks(mine < 0 ? NodesByType{} : NodesByType{{"author", {mine, mine}}});
    });
    if (comm.size() > 1)
      refused("belongs to rank", [&] {
        const PartitionBook& book = graph.book("paper");
        const int other = book.owner(0) == comm.rank() ? -1 : book.owner(0);
        (void)sampler.sample_blocks(other < 0 ? NodesByType{} : NodesByType{{"paper", {0}}});
      });
  }
}

TEST_CASE("multi_update_all on the frames of a block") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books);
    const HomogeneousForm& form = graph.to_homogeneous();
    const MessageFlowGraph mfg = construct_mfgs(form.graph, seeds_of(form), 1).front();
    const MessageFlowGraph block(graph, mfg);
    const Rows x = inputs(typed, graph);
    const Rows of_block = block.split(gather_rows(form.concat(x), mfg.src_rows()));
    for (const std::string& type : graph.node_types()) {
      graph.ndata(type)["x"] = x.at(type);
      block.srcdata(type)["x"] = of_block.at(type);
    }
    for (const Graph* each : {&graph, static_cast<const Graph*>(&block)}) {
      std::map<EdgeType, Graph::NamedMessageReduce> messages;
      for (const EdgeType& type : graph.edge_types())
        messages.emplace(type, Graph::NamedMessageReduce{fn::copy_u("x", "m"), fn::mean("m", "y")});
      each->multi_update_all(messages, CrossReduce::max);
    }
    for (const std::string& type : graph.node_types()) {
      const Tensor want = graph.ndata(type)["y"].value(), got = block.dstdata(type)["y"].value();
      REQUIRE(got.num_rows() == block.num_dst_nodes(type));
      for (Index i = 0; i < got.num_rows(); ++i) {
        const Index row = block.dst_rows(type)[static_cast<std::size_t>(i)];
        for (Index j = 0; j < width; ++j)
          CHECK(std::abs(static_cast<double>(got.row(i)[j] - want.row(row)[j])) < tolerance());
      }
    }
  }
}

TEST_CASE("wrong use of blocks is one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Graph graph = shard(comm, typed, typed_books(typed, comm.size()).front());
  const HomogeneousForm& form = graph.to_homogeneous();
  const MessageFlowGraph mfg = construct_mfgs(form.graph, seeds_of(form), 1).front();
  const MessageFlowGraph block(graph, mfg);
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(thrown_by_all<InputError>(comm, [&] { (void)MessageFlowGraph(block, mfg); }),
            "a block has no homogeneous form"));
  CHECK(has(thrown_by_all<InputError>(comm, [&] { (void)block.ndata("paper"); }),
            "a block has no ndata of 'paper', only srcdata and dstdata"));
  CHECK(has(thrown_by_all<InputError>(comm, [&] { (void)block.src_rows("book"); }), "no node type 'book'"));
  const Variable x(Tensor::zeros({mfg.num_src_nodes() + 1, 2}));
  CHECK(has(thrown<ShapeError>([&] { (void)block.split(x); }), "rows of shape"));
  CHECK(has(thrown<ShapeError>([&] { (void)block.join({{"paper", x}}); }), "rows of 'paper'"));
  CHECK(has(thrown<InputError>([&] { (void)block.join({}); }), "no rows to join"));
}
