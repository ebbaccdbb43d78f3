// SPDX-License-Identifier: MIT

/// Input rows kept between batches: the same results for every size of the cache, fewer rows pulled, bounded
/// memory.
#include "drawn_edges.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/halo_row_cache.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/distributed.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;
using namespace sar::test::sampling;

namespace {

constexpr Index width = 6;

Tensor rows_of(const Graph& graph) {
  Tensor x({graph.num_nodes(), width});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<real>((graph.dst_ids()[i / width] * 7 + 11 * (i % width)) % 17 - 8) / 8;
  return x;
}

/// The rows that a rank pulls in two epochs of batches, and values of a layer with their gradients. Without a
/// size, the layer fetches its halo rows.
struct Run {
  std::vector<double> values;
  Index pulled = 0, kept = 0;
};

/// A layer with initial parameters and draws that are the same in each run.
struct Net {
  std::shared_ptr<Module> module;
  std::function<Variable(const Graph&, const Variable&)> layer;
};

Net make_net(int kind) {
  Generator gen(3);
  if (kind == 0) {
    auto conv = std::make_shared<SAGEConv>(width, 9, gen, SAGEConvOptions{.feat_drop = 0.3});
    return {conv, [=](const auto& g, const Variable& x) { return (*conv)(g, x, Variable(g.edge_weight())); }};
  }
  if (kind == 1) {
    auto conv = std::make_shared<SAGEConv>(width, 2, gen);  // multiplies before it aggregates
    return {conv, [=](const auto& g, const Variable& x) { return (*conv)(g, x); }};
  }
  if (kind == 2) {
    auto conv = std::make_shared<GraphConv>(width, 9, gen);
    return {conv, [=](const auto& g, const Variable& x) { return (*conv)(g, x, Variable(g.edge_weight())); }};
  }
  auto conv = std::make_shared<GATConv>(width, 3, 2, gen);
  return {conv, [=](const auto& g, const Variable& x) { return (*conv)(g, x); }};
}

Run run(const Graph& graph, const PartitionBook& book, int kind, std::optional<Index> max_bytes) {
  const Net made = make_net(kind);
  const Communicator& comm = graph.comm();
  const Tensor x = rows_of(graph);
  std::optional<HaloRowCache> cache;
  if (max_bytes) cache.emplace(graph, x, *max_bytes);
  DataLoader loader(NeighborSampler(graph, {3}, {.seed = 4}), seeds_of(book, comm.rank()),
                    {.batch_size = 1 + book.num_nodes() / 4, .seed = 1});
  Run result;
  const auto take = [&](const Tensor& t) {
    for (const real value : t.values()) result.values.push_back(static_cast<double>(value));
  };
  for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
    loader.start_epoch(epoch);
    if (cache) {
      while (const auto batch = loader.next()) cache->count(batch->blocks.front());
      cache->keep_hottest();
      loader.start_epoch(epoch);
    }
    while (auto batch = loader.next()) {
      MessageFlowGraph& block = batch->blocks.front();
      Tensor input;
      if (cache) {
        CachedInput held = cache->start(block).finish();
        block = held.block;
        input = held.rows;
      } else {
        input = gather_rows(Variable(x), block.src_rows()).value();
      }
      Tape tape;
      const Variable y = made.layer(block, Variable(input));
      take(y.value());
      tape.backward(sum(y * y, comm));
      gather_grads(comm, *made.module);
      for (const NamedParameter& parameter : made.module->named_parameters())
        take(parameter.parameter.grad());
      made.module->zero_grad();
    }
  }
  if (cache) {
    result.pulled = cache->rows_pulled();
    result.kept = cache->rows_kept();
  }
  return result;
}

}  // namespace

TEST_CASE("the size of the cache changes no bit, and little against layers that fetch their halo rows") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const std::vector<WholeGraph> graphs{random_graph("random", 60, 60, 400, 1),
                                       random_graph("dense", 17, 17, 900, 4),
                                       {"no edges", 12, 12, true, {}, {}}};
  Index pulled_of_none = 0, pulled_of_some = 0, pulled_of_all = 0;
  for (const WholeGraph& whole : graphs)
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const Graph graph = renamed_shard(comm, whole, books.src, {}, true);
      for (int kind = 0; kind < 4; ++kind) {
        CAPTURE(kind);
        const Run none = run(graph, books.src, kind, 0);
        const Run some = run(graph, books.src, kind, 5 * width * Index{sizeof(real)});
        const Run all = run(graph, books.src, kind, Index{1} << 20);
        const Run fetched = run(graph, books.src, kind, std::nullopt);
        CHECK(some.values == none.values);
        CHECK(all.values == none.values);
        REQUIRE(fetched.values.size() == none.values.size());
        for (std::size_t i = 0; i < none.values.size(); ++i)
          CHECK(none.values[i] == doctest::Approx(fetched.values[i]).epsilon(1e-4).scale(1));
        CHECK(none.kept == 0);
        CHECK(some.kept <= 5);
        CHECK(some.pulled <= none.pulled);
        CHECK(all.pulled <= some.pulled);
        pulled_of_none += none.pulled;
        pulled_of_some += some.pulled;
        pulled_of_all += all.pulled;
      }
    }
  if (comm.size() == 1) return;
  CHECK(comm.all_reduce(pulled_of_some) < comm.all_reduce(pulled_of_none));
  CHECK(comm.all_reduce(pulled_of_all) < comm.all_reduce(pulled_of_some));
}

TEST_CASE("the hottest rows are kept, in no more memory than is allowed") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  if (comm.size() < 2) return;
  const WholeGraph whole = random_graph("random", 600, 600, 6000, 1);
  const PartitionBook book = PartitionBook::even(600, comm.size());
  const Graph graph = renamed_shard(comm, whole, book);
  const Tensor x = Tensor::full({graph.num_nodes(), 256}, 1);
  const auto row_bytes = static_cast<Index>(256 * sizeof(real));
  const NeighborSampler sampler(graph, {4}, {.seed = 1});
  (void)graph.in_degrees();  // which the graph keeps
  (void)graph.out_degrees();
  (void)sampler.sample_blocks(seeds_of(book, comm.rank()));
  const std::size_t before = live_bytes();
  HaloRowCache cache(graph, x, 20 * row_bytes);
  const Index halo = graph.topology().remote.num_src_rows;
  CHECK(live_bytes() - before <= static_cast<std::size_t>(20 * row_bytes + 32 * halo + 4096));
  std::vector<Index> reads(static_cast<std::size_t>(halo), 0);
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    const auto blocks = sampler.sample_blocks(seeds_of(book, comm.rank()), epoch);
    const MessageFlowGraph& block = blocks.front();
    cache.count(block);
    const GraphShard &of_block = block.topology().remote, &of_whole = graph.topology().remote;
    std::set<Index> rows;
    for (Index k = 0; k < of_block.num_edges(); ++k)
      rows.insert(of_whole.src[block.edge_rows()[of_block.edge(k)] - of_whole.first_edge]);
    for (const Index row : rows) ++reads[static_cast<std::size_t>(row)];
  }
  cache.keep_hottest();
  CHECK(cache.rows_kept() == 20);
  CHECK(cache.rows_pulled() == 20);
  Index pulled = cache.rows_pulled();
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    const auto blocks = sampler.sample_blocks(seeds_of(book, comm.rank()), epoch);
    (void)cache.start(blocks.front()).finish();
  }
  const double of_all = static_cast<double>(cache.rows_pulled() - pulled);
  std::ranges::sort(reads, std::greater());
  CHECK(static_cast<Index>(of_all) == std::accumulate(reads.begin() + 20, reads.end(), Index{0}));
  cache.keep_hottest();  // the same counts: nothing new
  CHECK(cache.rows_pulled() - pulled == static_cast<Index>(of_all));
  CHECK(live_bytes() - before <= static_cast<std::size_t>(20 * row_bytes + 32 * halo + 4096));
}

TEST_CASE("wrong rows and sizes are one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const Tensor x = rows_of(graph);
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(thrown_by_all<InputError>(comm, [&] { HaloRowCache(graph, x, -1); }),
            "max_bytes is -1, expected 0 or more"));
  CHECK(has(thrown_by_all<ShapeError>(comm,
                                      [&] {
                                        HaloRowCache(graph, Tensor({graph.num_nodes() + 1, 2}), 8);
                                      }),
            "the rows have shape"));
  if (comm.size() > 1)
    CHECK(has(thrown_by_all<InputError>(comm, [&] { HaloRowCache(graph, x, comm.rank()); }),
              "different max_bytes on different ranks"));
}
