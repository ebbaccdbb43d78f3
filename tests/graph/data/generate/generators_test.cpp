// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"

#include <sar/graph/data/generators.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace sar;
using namespace sar::test;

namespace {

std::vector<PartitionMethod> methods() {
  std::vector<PartitionMethod> list{PartitionMethod::contiguous, PartitionMethod::random,
                                    PartitionMethod::ldg};
  if (has_metis()) list.push_back(PartitionMethod::metis);
  return list;
}

std::vector<Index> in_degrees(const WholeDataset& graph) {
  std::vector<Index> degrees(graph.labels.size(), 0);
  for (const Edge& e : graph.edges) ++degrees[e.dst];
  return degrees;
}

/// Checks that edge 2m + 1 is edge 2m in the other direction, and that there are no self loops.
void check_undirected(const WholeDataset& graph) {
  std::vector<const Edge*> by_id(graph.edges.size());
  for (const Edge& e : graph.edges) by_id.at(e.id) = &e;
  for (std::size_t id = 0; id < by_id.size(); id += 2) {
    REQUIRE((by_id[id] != nullptr && by_id[id + 1] != nullptr));
    REQUIRE(by_id[id]->src == by_id[id + 1]->dst);
    REQUIRE(by_id[id]->dst == by_id[id + 1]->src);
    REQUIRE(by_id[id]->src != by_id[id]->dst);
  }
}

/// The share of test nodes whose features are nearest to the mean of their own class in training.
double nearest_mean_accuracy(const WholeDataset& graph, const std::vector<double>& rows,
                             std::size_t classes) {
  const auto width = static_cast<std::size_t>(graph.width);
  std::vector<double> means(classes * width, 0), counts(classes, 0);
  for (std::size_t v = 0; v < graph.labels.size(); ++v) {
    if (graph.train_mask[v] == 0) continue;
    const auto label = static_cast<std::size_t>(graph.labels[v]);
    ++counts[label];
    for (std::size_t f = 0; f < width; ++f) means[label * width + f] += rows[v * width + f];
  }
  for (std::size_t c = 0; c < classes; ++c)
    for (std::size_t f = 0; f < width; ++f) means[c * width + f] /= counts[c];
  double correct = 0, tested = 0;
  for (std::size_t v = 0; v < graph.labels.size(); ++v) {
    if (graph.test_mask[v] == 0) continue;
    std::vector<double> distance(classes, 0);
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t f = 0; f < width; ++f)
        distance[c] += std::pow(rows[v * width + f] - means[c * width + f], 2);
    const auto nearest = std::min_element(distance.begin(), distance.end()) - distance.begin();
    correct += nearest == graph.labels[v] ? 1 : 0;
    tested += 1;
  }
  return correct / tested;
}

}  // namespace

TEST_CASE("Zachary's karate club") {
  const Communicator comm = Communicator::world();
  for (const PartitionMethod method : methods()) {
    const NodeData data = make_karate(comm, {.partition = method});
    CHECK(data.num_nodes() == 34);
    CHECK(data.num_edges == 156);
    CHECK(data.num_classes == 2);
    const WholeDataset graph = gather_graph(comm, data);
    check_undirected(graph);
    // the degrees of members 1 to 34 in Zachary's table
    CHECK(in_degrees(graph) == std::vector<Index>{16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2,  2,
                                                  2,  2, 3,  2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17});
    CHECK(std::accumulate(graph.labels.begin(), graph.labels.end(), std::int64_t{0}) == 17);
    CHECK(graph.labels[0] == 0);
    CHECK(graph.labels[33] == 1);
    for (std::size_t v = 0; v < 34; ++v) {
      CHECK(graph.train_mask[v] + graph.val_mask[v] + graph.test_mask[v] == 1);
      for (std::size_t f = 0; f < 34; ++f) CHECK(graph.features[v * 34 + f] == (v == f ? 1 : 0));
    }
    CHECK(std::count(graph.train_mask.begin(), graph.train_mask.end(), 1) == 2);
    CHECK((graph.train_mask[0] == 1 && graph.train_mask[33] == 1));
    CHECK(std::count(graph.val_mask.begin(), graph.val_mask.end(), 1) == 4);
    // few friendships cross the split
    CHECK(std::count_if(graph.edges.begin(), graph.edges.end(),
                        [&](const Edge& e) { return graph.labels[e.src] != graph.labels[e.dst]; }) == 2 * 11);
  }
}

TEST_CASE("sbm is the same graph for every number of ranks and every partitioning") {
  const Communicator comm = Communicator::world();
  for (const SbmOptions& sbm :
       {SbmOptions{.nodes = 1003, .degree = 9.5, .classes = 7, .features = 6, .seed = 5},
        SbmOptions{.nodes = 8, .degree = 3, .classes = 4, .features = 1},
        SbmOptions{.nodes = 50, .degree = 4, .classes = 1, .homophily = 0},
        SbmOptions{.nodes = 60, .degree = 4, .classes = 3, .homophily = 1}}) {
    for (const bool reverse : {false, true}) {
      const WholeDataset alone = gather_graph(
          Communicator::self(), make_sbm(Communicator::self(), sbm, {.add_reverse_edges = reverse}));
      for (const PartitionMethod method : methods()) {
        const DatasetOptions options{.add_reverse_edges = reverse, .partition = method, .partition_seed = 11};
        CHECK(gather_graph(comm, make_sbm(comm, sbm, options)) == alone);
      }
    }
  }
}

TEST_CASE("sbm changes with its seed only") {
  const Communicator comm = Communicator::self();
  const SbmOptions sbm{.nodes = 500, .degree = 8};
  const WholeDataset first = gather_graph(comm, make_sbm(comm, sbm));
  CHECK(gather_graph(comm, make_sbm(comm, sbm)) == first);
  SbmOptions other = sbm;
  other.seed = 1;
  const WholeDataset second = gather_graph(comm, make_sbm(comm, other));
  CHECK(second.edges != first.edges);
  CHECK(second.features != first.features);
  CHECK(second.labels != first.labels);
  CHECK(second.train_mask != first.train_mask);
}

TEST_CASE("sbm has the statistics that were asked for") {
  const Communicator comm = Communicator::world();
  const SbmOptions sbm{.nodes = 20000, .degree = 28, .classes = 16, .features = 64, .homophily = 0.7};
  const NodeData data = make_sbm(comm, sbm, {.partition = PartitionMethod::random});
  CHECK(data.num_edges == 20000 * 28);
  CHECK(data.num_classes == 16);
  const WholeDataset graph = gather_graph(comm, data);
  if (comm.rank() != 0) return;
  check_undirected(graph);

  double same = 0;
  for (const Edge& e : graph.edges) same += graph.labels[e.src] == graph.labels[e.dst];
  CHECK(std::abs(same / (20000 * 28) - 0.7) < 0.005);  // standard deviation 0.0009

  std::vector<Index> sizes(16, 0);
  for (const std::int64_t label : graph.labels) ++sizes.at(label);
  for (const Index size : sizes) CHECK(size == 1250);
  CHECK(std::count(graph.train_mask.begin(), graph.train_mask.end(), 1) == 12000);
  CHECK(std::count(graph.val_mask.begin(), graph.val_mask.end(), 1) == 4000);
  CHECK(std::count(graph.test_mask.begin(), graph.test_mask.end(), 1) == 4000);
  for (std::size_t v = 0; v < 20000; ++v)
    REQUIRE(graph.train_mask[v] + graph.val_mask[v] + graph.test_mask[v] == 1);

  // P(degree >= k) ~ (m / k)^2 with m half of the mean: an exponent of 3
  std::vector<Index> degrees = in_degrees(graph);
  const auto tail = [&](double k) {
    return static_cast<double>(std::count_if(degrees.begin(), degrees.end(),
                                             [&](Index d) { return static_cast<double>(d) >= k; })) /
           20000;
  };
  CHECK(tail(56) == doctest::Approx(std::pow(14.0 / 56, 2)).epsilon(0.15));
  CHECK(tail(140) == doctest::Approx(std::pow(14.0 / 140, 2)).epsilon(0.25));
  CHECK(*std::max_element(degrees.begin(), degrees.end()) > 1000);
  // ids carry no order: the degrees of neighbors in id are unrelated
  const double low = std::accumulate(degrees.begin(), degrees.begin() + 10000, 0.0) / 10000;
  CHECK(low == doctest::Approx(28).epsilon(0.1));

  // a node's features alone say little, those of its neighbors much
  CHECK(nearest_mean_accuracy(graph, graph.features, 16) > 0.40);
  CHECK(nearest_mean_accuracy(graph, graph.features, 16) < 0.50);
  std::vector<double> aggregated(graph.features.size(), 0);
  for (const Edge& e : graph.edges)
    for (std::size_t f = 0; f < 64; ++f)
      aggregated[static_cast<std::size_t>(e.dst) * 64 + f] +=
          graph.features[static_cast<std::size_t>(e.src) * 64 + f];
  for (std::size_t v = 0; v < degrees.size(); ++v)
    for (std::size_t f = 0; f < 64; ++f)
      aggregated[v * 64 + f] /= static_cast<double>(std::max<Index>(degrees[v], 1));
  CHECK(nearest_mean_accuracy(graph, aggregated, 16) > 0.9);
  MESSAGE("accuracy by nearest mean: features " << nearest_mean_accuracy(graph, graph.features, 16)
                                                << ", mean of neighbors "
                                                << nearest_mean_accuracy(graph, aggregated, 16));
}
