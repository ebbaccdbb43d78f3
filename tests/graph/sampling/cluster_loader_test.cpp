// SPDX-License-Identifier: MIT

/// Batches of clusters: all nodes of some clusters and the edges between them, the same on every number of
/// ranks.
#include "drawn_edges.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/cluster_loader.hpp>
#include <sar/nn/conv/graph_conv.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace sar;
using namespace sar::test;
using namespace sar::test::sampling;

namespace {

constexpr Index num_clusters = 6;  // cluster 4 is empty

std::int32_t cluster_of(Index original) {
  const auto cluster = static_cast<std::int32_t>((original / 3) % num_clusters);
  return cluster == 4 ? 5 : cluster;
}

Array<std::int32_t> clusters_of(const Graph& graph) {
  Array<std::int32_t> clusters;
  for (const Index id : graph.dst_ids()) clusters.push_back(cluster_of(id));
  return clusters;
}

/// Original ids of the nodes of a batch, of all ranks, sorted.
std::vector<Index> nodes_of(const Communicator& comm, const Graph& batch) {
  std::vector<Index> ids =
      comm.all_gather(std::span<const Index>(batch.dst_ids().data(), batch.dst_ids().size()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

TEST_CASE(
    "a batch has the nodes of its clusters and the edges between them, the same on every number of ranks") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const PartitionBook one = PartitionBook::even(whole.num_src, 1);
      const Graph graph = renamed_shard(comm, whole, books.src, {}, true);
      const Graph alone = renamed_shard(ranks.self, whole, one, {}, true);
      const ClusterLoaderOptions options{.clusters_per_batch = 2, .seed = 4};
      ClusterLoader loader(graph, clusters_of(graph), options);
      ClusterLoader want(alone, clusters_of(alone), options);
      CHECK(loader.num_clusters() == want.num_clusters());
      CHECK(loader.num_batches() == (want.num_clusters() + 1) / 2);
      loader.start_epoch(1);
      want.start_epoch(1);
      std::vector<Index> seen;
      while (const auto batch = loader.next()) {
        const auto expected = want.next();
        REQUIRE(expected);
        const Graph &got = batch->graph, &wanted = expected->graph;
        CHECK(batch->number == expected->number);
        const std::vector<Index> nodes = nodes_of(comm, got);
        CHECK(nodes == nodes_of(ranks.self, wanted));
        seen.insert(seen.end(), nodes.begin(), nodes.end());
        const std::set<Index> is_in(nodes.begin(), nodes.end());
        std::vector<Index> edges;
        std::map<Index, Index> in, out;
        for (std::size_t k = 0; k < whole.src.size(); ++k)
          if (const Index u = original_id(whole.src[k]), v = original_id(whole.dst[k]);
              is_in.contains(u) && is_in.contains(v)) {
            edges.push_back(static_cast<Index>(k));
            ++in[v];
            ++out[u];
          }
        CHECK(edges_of(comm, batch->graph) == edges);
        CHECK(got.num_global_edges() == std::ssize(edges));
        CHECK(got.num_global_src_nodes() == std::ssize(nodes));
        CHECK(std::ranges::equal(batch->graph.src_rows(), batch->graph.dst_rows()));
        for (Index i = 0; i < got.num_dst_nodes(); ++i) {
          const Index id = got.dst_ids()[i];
          CHECK(graph.dst_ids()[batch->graph.dst_rows()[i]] == id);
          CHECK(got.in_degrees()[i] == in[id]);
          CHECK(got.out_degrees()[i] == out[id]);
        }
        for (Index e = 0; e < got.num_edges(); ++e)
          CHECK(got.edge_weight().data()[e] == weight_of(got.edge_ids()[e]));
      }
      CHECK(!want.next());
      std::sort(seen.begin(), seen.end());
      CHECK(seen == nodes_of(comm, graph));  // each node once
    }
}

TEST_CASE("a layer on a batch of clusters computes what it computes on that graph by itself") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size()))
    for (const GraphConvNorm norm : {GraphConvNorm::both, GraphConvNorm::weights}) {
      const Graph graph = renamed_shard(comm, whole, books.src, {}, true);
      ClusterLoader loader(graph, clusters_of(graph), {.clusters_per_batch = 3, .shuffle = false});
      loader.start_epoch(1);
      const auto batch = loader.next();
      const Graph& got = batch->graph;
      EdgeList edges;
      for (std::size_t k = 0; k < whole.src.size(); ++k)
        if (cluster_of(original_id(whole.src[k])) < 3 && cluster_of(original_id(whole.dst[k])) < 3) {
          edges.src.push_back(whole.src[k]);
          edges.dst.push_back(whole.dst[k]);
          edges.id.push_back(static_cast<Index>(k));
          edges.weight.push_back(weight_of(static_cast<Index>(k)));
        }
      const PartitionBook one = PartitionBook::even(60, 1);
      const Graph alone(ranks.self, one, one, std::move(edges), true);
      Generator gen(3), same(3);
      GraphConv layer(4, 3, gen, {.norm = norm}), reference(4, 3, same, {.norm = norm});
      const std::vector<double> x = random_values(60 * 4, 8);
      const auto rows_of = [&](const Graph& of) {
        Tensor rows({of.num_dst_nodes(), 4});
        for (Index i = 0; i < of.num_dst_nodes(); ++i)
          for (Index j = 0; j < 4; ++j)
            rows.row(i)[j] =
                static_cast<real>(x[static_cast<std::size_t>((7000 - of.dst_ids()[i]) / 3 * 4 + j)]);
        return rows;
      };
      Tensor all({60, 4});
      for (Index i = 0; i < 240; ++i) all.data()[i] = static_cast<real>(x[static_cast<std::size_t>(i)]);
      const Tensor y = layer(got, Variable(rows_of(got))).value();
      const Tensor want = reference(alone, Variable(all)).value();
      for (Index i = 0; i < got.num_dst_nodes(); ++i)
        for (Index j = 0; j < 3; ++j)
          CHECK(
              static_cast<double>(y.row(i)[j]) ==
              doctest::Approx(static_cast<double>(want.row((7000 - got.dst_ids()[i]) / 3)[j])).epsilon(1e-5));
    }
}

TEST_CASE("epochs have other batches, unless clusters follow their numbers; a resumed epoch has the same") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const auto batches = [&](bool shuffle, std::uint64_t epoch, Index first = 0) {
    ClusterLoader loader(graph, clusters_of(graph), {.clusters_per_batch = 1, .shuffle = shuffle, .seed = 2});
    std::vector<std::vector<Index>> nodes;
    loader.start_epoch(epoch, first);
    while (const auto batch = loader.next()) nodes.push_back(nodes_of(comm, batch->graph));
    return nodes;
  };
  const auto first = batches(true, 1);
  REQUIRE(first.size() == num_clusters);
  CHECK(batches(true, 1) == first);
  CHECK(batches(true, 2) != first);
  CHECK(batches(true, 1, 4) == std::vector(first.begin() + 4, first.end()));
  const auto in_order = batches(false, 1);
  CHECK(batches(false, 2) == in_order);
  CHECK(in_order[4].empty());
  for (const Index id : in_order[1]) CHECK(cluster_of(id) == 1);
}

TEST_CASE("wrong clusters are one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const Array<std::int32_t> right = clusters_of(graph);
  Array<std::int32_t> negative = right, longer = right;
  longer.push_back(0);
  if (comm.rank() == comm.size() - 1) negative[0] = -1;
  CHECK(has(thrown_by_all<InputError>(comm, [&] { ClusterLoader(graph, negative); }),
            "is -1, expected 0 or more"));
  CHECK(
      has(thrown_by_all<ShapeError>(comm, [&] { ClusterLoader(graph, longer); }), "numbers of clusters for"));
  CHECK(has(thrown_by_all<InputError>(comm, [&] { ClusterLoader(graph, right, {.clusters_per_batch = 0}); }),
            "0 clusters in a batch, expected 1 or more"));
  if (comm.size() > 1)
    CHECK(has(thrown_by_all<InputError>(
                  comm, [&] { ClusterLoader(graph, right, {.clusters_per_batch = 1 + comm.rank() % 2}); }),
              "a different clusters per batch on different ranks"));
  ClusterLoader loader(graph, right);
  CHECK(has(thrown_by_all<InputError>(comm, [&] { loader.start_epoch(1, 7); }), "there is no batch 7"));
}
