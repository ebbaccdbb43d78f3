// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/partition/ldg.hpp>
#include <sar/graph/partition/node_partition.hpp>
#include <sar/graph/partition/partition.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/partition_methods.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

using namespace sar;
using namespace sar::test;

namespace {

/// Edge k of the graph lies on rank k mod ranks; `only`: all of them on that rank.
EdgeList share(const Communicator& comm, const WholeGraph& g, int only = -1) {
  EdgeList edges;
  for (std::size_t k = 0; k < g.src.size(); ++k) {
    const int rank = only >= 0 ? only : static_cast<int>(k % static_cast<std::size_t>(comm.size()));
    if (rank != comm.rank()) continue;
    edges.src.push_back(g.src[k]);
    edges.dst.push_back(g.dst[k]);
  }
  return edges;
}

/// The parts of all nodes, on every rank.
std::vector<std::int32_t> assign(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod method, const AssignmentOptions& options) {
  const Array<std::int32_t> mine = assign_nodes(comm, num_nodes, edges, method, options);
  REQUIRE(static_cast<Index>(mine.size()) ==
          PartitionBook::even(num_nodes, comm.size()).num_nodes(comm.rank()));
  return comm.all_gather(std::span<const std::int32_t>(mine));
}

/// The largest part's share of a weight, relative to the average.
double imbalance(const std::vector<std::int32_t>& part_of, const std::vector<double>& weights, int parts) {
  std::vector<double> sums(static_cast<std::size_t>(parts), 0);
  double total = 0;
  for (std::size_t v = 0; v < part_of.size(); ++v) {
    sums[static_cast<std::size_t>(part_of[v])] += weights[v];
    total += weights[v];
  }
  return *std::max_element(sums.begin(), sums.end()) * parts / total;
}

/// A generated graph with planted classes, and what the tests weigh parts by.
struct Planted {
  NodeData data;
  std::vector<double> ones, in_edges, training;

  Planted(const Communicator& comm, const SbmOptions& sbm) : data(make_sbm(comm, sbm)) {
    const auto nodes = static_cast<std::size_t>(sbm.nodes);
    ones.assign(nodes, 1);
    in_edges.assign(nodes, 0);
    for (const Index v : data.edges.dst) ++in_edges[static_cast<std::size_t>(v)];
    comm.all_reduce(std::span<double>(in_edges));
    for (const std::uint8_t t : comm.all_gather(std::span<const std::uint8_t>(data.train_mask)))
      training.push_back(t);
  }
  /// The share of the edges whose ends lie in different parts.
  [[nodiscard]] double cut(const Communicator& comm, const std::vector<std::int32_t>& part_of) const {
    Index cut = 0;
    for (std::size_t e = 0; e < data.edges.src.size(); ++e)
      cut += part_of[static_cast<std::size_t>(data.edges.src[e])] !=
             part_of[static_cast<std::size_t>(data.edges.dst[e])];
    return static_cast<double>(comm.all_reduce(cut)) /
           static_cast<double>(comm.all_reduce(data.edges.size()));
  }
};

}  // namespace

TEST_CASE("neighbor lists hold every edge in both directions, loops apart, and know the copies") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& g : test_graphs()) {
    if (!g.square) continue;
    CAPTURE(g.name);
    const PartitionBook slices = PartitionBook::even(g.num_src, comm.size());
    const Index first = slices.begin(comm.rank());
    const NeighborLists lists = gather_neighbors(comm, g.num_src, share(comm, g));
    REQUIRE(lists.num_nodes() == slices.num_nodes(comm.rank()));

    // the ids of all values, told along the copies
    std::vector<Index> id(static_cast<std::size_t>(lists.num_values), -1);
    std::vector<std::vector<Index>> sent(static_cast<std::size_t>(comm.size()));
    for (Index i = 0; i < lists.num_nodes(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      id[at] = first + i;
      for (Index k = lists.copy_offsets[at]; k < lists.copy_offsets[at + 1]; ++k) {
        const auto& copy = lists.copies[static_cast<std::size_t>(k)];
        auto& values = sent[static_cast<std::size_t>(copy.rank)];
        REQUIRE(copy.position == values.size());
        values.push_back(first + i);
      }
    }
    std::vector<Index> packed, counts;
    for (const auto& values : sent) {
      packed.insert(packed.end(), values.begin(), values.end());
      counts.push_back(static_cast<Index>(values.size()));
    }
    const auto received = comm.all_to_all_v(std::span<const Index>(packed), counts);
    std::size_t at = 0;
    for (std::size_t p = 0; p < counts.size(); ++p)
      for (Index k = 0; k < received.counts[p]; ++k)
        id.at(static_cast<std::size_t>(lists.first_of_sender[p] + k)) = received.values[at++];

    for (Index i = 0; i < lists.num_nodes(); ++i) {
      std::vector<Index> expected, found;
      std::uint32_t in_degree = 0;
      for (std::size_t k = 0; k < g.src.size(); ++k) {
        in_degree += g.dst[k] == first + i;
        if (g.src[k] == g.dst[k]) continue;
        if (g.src[k] == first + i) expected.push_back(g.dst[k]);
        if (g.dst[k] == first + i) expected.push_back(g.src[k]);
      }
      for (const std::uint32_t u : lists.of(i)) found.push_back(id[u]);
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      CHECK(found == expected);
      CHECK(lists.in_degrees[static_cast<std::size_t>(i)] == in_degree);
    }
  }
}

TEST_CASE("the memory of neighbor lists follows the rank's nodes and edges, not the nodes of the graph") {
  const Communicator comm = Communicator::world();
  std::vector<std::size_t> peaks;
  for (const Index n : {Index{100'000}, Index{4'000'000}}) {
    EdgeList edges;
    for (Index k = 0; k < 1000; ++k) {
      edges.src.push_back((k * 7919 + comm.rank()) % 1000 * (n / 1000));
      edges.dst.push_back(k * (n / 1000) + 1);
    }
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    const NeighborLists lists = gather_neighbors(comm, n, edges);
    const Index own = PartitionBook::even(n, comm.size()).num_nodes(comm.rank());
    const std::size_t of_own_nodes =
        static_cast<std::size_t>(own) * (3 * sizeof(Index) + sizeof(std::uint32_t));
    CHECK(lists.num_nodes() == own);
    REQUIRE(peak_bytes() - before > of_own_nodes);
    peaks.push_back(peak_bytes() - before - of_own_nodes);
  }
  CAPTURE(peaks[0]);
  CHECK(peaks[1] < peaks[0] + 10'000);
}

TEST_CASE("every node has a part, every part a node, whoever holds the edges") {
  const Communicator comm = Communicator::world();
  std::vector<WholeGraph> graphs = test_graphs();  // isolated nodes, loops, parallel edges, hubs, no edges
  graphs.push_back({"star", 40, 40, true, {}, {}});
  for (Index v = 1; v < 40; ++v) {
    graphs.back().src.push_back(v);
    graphs.back().dst.push_back(0);
  }
  for (const WholeGraph& g : graphs) {
    if (!g.square) continue;
    const PartitionBook slices = PartitionBook::even(g.num_src, comm.size());
    const std::vector<std::uint8_t> mask(static_cast<std::size_t>(slices.num_nodes(comm.rank())), 1);
    for (const PartitionMethod method : all_partition_methods()) {
      for (const int parts : {1, 2, 3, 8, 100}) {
        CAPTURE(g.name);
        CAPTURE(std::string(to_string(method)));
        CAPTURE(parts);
        const AssignmentOptions options{.parts = parts, .seed = 3, .train_mask = mask};
        const auto part_of = assign(comm, g.num_src, share(comm, g), method, options);
        std::vector<Index> sizes(static_cast<std::size_t>(parts), 0);
        for (const std::int32_t part : part_of) ++sizes.at(static_cast<std::size_t>(part));
        CHECK(parts - std::count(sizes.begin(), sizes.end(), 0) == std::min<Index>(parts, g.num_src));
        CHECK(part_of == assign(comm, g.num_src, share(comm, g), method, options));
        if (method !=
            PartitionMethod::ldg)  // its answer follows the order in which edges arrive only in ties
          CHECK(part_of == assign(comm, g.num_src, share(comm, g, 0), method, options));
      }
    }
  }
  for (const PartitionMethod method : all_partition_methods()) {
    CHECK(assign(comm, 0, {}, method, {.parts = 3}).empty());
    CHECK(assign(comm, 1, {}, method, {.parts = 3}).size() == 1);  // most slices are empty
  }
}

TEST_CASE("contiguous and random are the partitions of these names") {
  const Communicator comm = Communicator::world();
  for (const auto method : {PartitionMethod::contiguous, PartitionMethod::random}) {
    const NodePartition partition = method == PartitionMethod::random ? NodePartition::random(101, 5, 8)
                                                                      : NodePartition::contiguous(101, 5);
    const auto part_of = assign(comm, 101, {}, method, {.parts = 5, .seed = 8});
    for (Index v = 0; v < 101; ++v)
      CHECK(part_of[static_cast<std::size_t>(v)] == partition.book().owner(partition.to_partitioned(v)));
  }
}

TEST_CASE("planted classes: metis and ldg cut far less than random, within their capacities") {
  const Communicator comm = Communicator::world();
  const Planted graph(comm, {.nodes = 6000, .degree = 16, .classes = 16, .features = 1, .homophily = 0.8});
  for (const int parts : {2, 4, 8}) {
    for (const PartitionMethod method : all_partition_methods()) {
      if (method == PartitionMethod::contiguous) continue;
      for (const bool balanced : {false, true}) {
        CAPTURE(std::string(to_string(method)));
        CAPTURE(parts);
        CAPTURE(balanced);
        AssignmentOptions options{.parts = parts, .seed = 1, .balance_edges = balanced};
        if (balanced) options.train_mask = graph.data.train_mask;
        const auto part_of = assign(comm, 6000, graph.data.edges, method, options);
        const double cut = graph.cut(comm, part_of);
        if (method == PartitionMethod::random) {
          CHECK(cut > 0.98 * (1 - 1.0 / parts));
          continue;
        }
        // whole classes dealt out evenly would cut 0.21 of it
        CHECK(cut < (method == PartitionMethod::metis ? 0.22 : 0.35) * (1 - 1.0 / parts));
        CHECK(imbalance(part_of, graph.ones, parts) < 1.051);
        if (!balanced) continue;
        CHECK(imbalance(part_of, graph.in_edges, parts) < 1.055);
        CHECK(imbalance(part_of, graph.training, parts) < 1.06);
      }
    }
  }
}

TEST_CASE("the automatic method is one of the others") {
  const Communicator comm = Communicator::world();
  const Planted graph(comm, {.nodes = 600, .degree = 8, .classes = 4, .features = 1});
  const auto by = [&](PartitionMethod method) {
    return assign(comm, 600, graph.data.edges, method, {.parts = 3});
  };
  CHECK(by(PartitionMethod::automatic) == by(chosen_method(PartitionMethod::automatic, 4800)));
}

TEST_CASE("ldg: more passes cut less, and a grid in natural order keeps its order") {
  const Communicator comm = Communicator::world();
  const Planted graph(comm, {.nodes = 6000, .degree = 16, .classes = 60, .features = 1, .homophily = 0.8});
  const auto cut_after = [&](int passes) {
    return graph.cut(
        comm, assign(comm, 6000, graph.data.edges, PartitionMethod::ldg, {.parts = 4, .passes = passes}));
  };
  CHECK(cut_after(5) < 0.8 * cut_after(1));

  WholeGraph grid{"grid", 10000, 10000, true, {}, {}};
  for (Index v = 0; v < 10000; ++v)
    for (const Index step : {1, 100})
      if (v + step < 10000 && (step > 1 || v % 100 != 99)) {
        grid.src.push_back(v);
        grid.dst.push_back(v + step);
      }
  const auto part_of = assign(comm, 10000, share(comm, grid), PartitionMethod::ldg, {.parts = 4});
  double cut = 0;
  for (std::size_t k = 0; k < grid.src.size(); ++k)
    cut += part_of[static_cast<std::size_t>(grid.src[k])] != part_of[static_cast<std::size_t>(grid.dst[k])];
  CHECK(cut < 0.12 * static_cast<double>(grid.src.size()));
}

TEST_CASE("ldg: many parts on several ranks cut hardly more edges than on one") {
  const Communicator comm = Communicator::world();
  const auto cut_on = [&](const Communicator& ranks) {
    double sum = 0;
    for (const std::uint64_t seed : {0, 1, 2}) {
      const Planted graph(
          ranks,
          {.nodes = 20000, .degree = 16, .classes = 256, .features = 1, .homophily = 0.8, .seed = seed});
      const auto part_of = assign(ranks, 20000, graph.data.edges, PartitionMethod::ldg, {.parts = 64});
      CHECK(imbalance(part_of, graph.ones, 64) < 1.06);
      CHECK(imbalance(part_of, graph.in_edges, 64) < 1.06);
      sum += graph.cut(ranks, part_of);
    }
    return sum;
  };
  CHECK(cut_on(comm) < 1.05 * cut_on(Communicator::self()));
}

TEST_CASE("ldg: a hub with two fifths of a part's in-edges goes to its neighbors, on any number of ranks") {
  const Communicator comm = Communicator::world();
  const Index size = 500;
  WholeGraph g{"wheels", 4 * size, 4 * size, true, {}, {}};  // the last node of each is its hub
  for (Index first = 0; first < g.num_src; first += size)
    for (Index i = 0; i + 1 < size; ++i) {
      const auto edge_to = [&](Index node) {
        g.src.push_back(first + i);
        g.dst.push_back(first + node);
      };
      edge_to(size - 1);
      edge_to((i + 1) % (size - 1));
      if (i % 2 == 0) edge_to((i + 2) % (size - 1));
    }
  const auto part_of = assign(comm, g.num_src, share(comm, g), PartitionMethod::ldg, {.parts = 4});
  for (Index hub = size - 1; hub < g.num_src; hub += size)
    CHECK(std::count(part_of.begin() + hub + 1 - size, part_of.begin() + hub,
                     part_of[static_cast<std::size_t>(hub)]) > 0.8 * static_cast<double>(size));
}

TEST_CASE("bad input is an error on all ranks") {
  const Communicator comm = Communicator::world();
  const bool last = comm.rank() == comm.size() - 1;
  for (const PartitionMethod method : all_partition_methods()) {
    CAPTURE(std::string(to_string(method)));
    const auto message = [&](Index nodes, const EdgeList& edges, const AssignmentOptions& options) {
      return thrown_by_all<InputError>(
          comm, [&] { static_cast<void>(assign_nodes(comm, nodes, edges, method, options)); });
    };
    CHECK(message(9, {}, {.parts = 0}) == "cannot divide 9 nodes into 0 parts");
    CHECK(message(-1, {}, {.parts = 2}) == "cannot divide -1 nodes into 2 parts");
    CHECK(message(9, {}, {.parts = 2, .passes = 0}) == "ldg: 0 passes, expected at least 1");
    const std::vector<std::uint8_t> mask(last ? 50 : 0, 1);
    const std::string text = message(9, {}, {.parts = 2, .train_mask = mask});
    CHECK(text.find("the train mask of rank ") == 0);
    CHECK(text.find("entries, expected one for each of the ") != std::string::npos);
    EdgeList edges;
    if (last) {
      edges.src.push_back(3);
      edges.dst.push_back(9);
    }
    CHECK(message(9, edges, {.parts = 2}) == "an edge joins nodes 3 and 9, expected 0 to 8");
  }
}
