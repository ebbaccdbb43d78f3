// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/partition/metis.hpp>
#include <sar/graph/partition/partition.hpp>
#include <sar/graph/partition/scotch.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/thrown.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The nodes of this rank's parts, there and back; all ranks together have all parts.
void check_round_trip(const Communicator& comm, const NodePartition& partition) {
  const PartitionBook& book = partition.book();
  std::vector<Index> ids(static_cast<std::size_t>(book.num_nodes()));
  std::iota(ids.begin(), ids.end(), Index{0});
  partition.to_partitioned(std::span<Index>(ids));
  std::vector<int> seen(ids.size(), 0);
  const PartitionBook parts = PartitionBook::even(book.num_parts(), comm.size());
  for (int part = static_cast<int>(parts.begin(comm.rank())); part < parts.end(comm.rank()); ++part) {
    const Array<Index> originals = partition.original_ids(part);
    REQUIRE(static_cast<Index>(originals.size()) == book.num_nodes(part));
    for (std::size_t i = 0; i < originals.size(); ++i) {
      const auto v = static_cast<std::size_t>(originals[i]);
      REQUIRE(ids.at(v) == book.begin(part) + static_cast<Index>(i));
      ++seen[v];
    }
  }
  comm.all_reduce(std::span<int>(seen));
  CHECK(std::count(seen.begin(), seen.end(), 1) == book.num_nodes());
}

EdgeList edge_list(std::initializer_list<std::pair<Index, Index>> pairs) {
  EdgeList edges;
  for (const auto& [u, v] : pairs) {
    edges.src.push_back(u);
    edges.dst.push_back(v);
    edges.id.push_back(edges.size());
  }
  return edges;
}

}  // namespace

TEST_CASE("partitions map both ways") {
  for (const int parts : {1, 2, 3, 7}) {
    for (const Index nodes : {0, 1, 5, 100}) {
      check_round_trip(Communicator::self(), NodePartition::contiguous(nodes, parts));
      check_round_trip(Communicator::self(), NodePartition::random(nodes, parts, 4));
    }
  }
  CHECK(NodePartition::contiguous(100, 3).to_partitioned(41) == 41);
  const std::vector<std::int32_t> part_of{2, 0, 2, 0, 2};  // part 1 is empty
  const NodePartition partition = NodePartition::from_assignment(Communicator::self(), part_of, 4);
  check_round_trip(Communicator::self(), partition);
  CHECK(partition.book() == PartitionBook({0, 2, 2, 5, 5}));
  const Array<Index> last = partition.original_ids(2);
  CHECK(std::vector<Index>(last.begin(), last.end()) == std::vector<Index>{0, 2, 4});
  CHECK_THROWS_AS(static_cast<void>(NodePartition::from_assignment(Communicator::self(), part_of, 2)),
                  InputError);
}

TEST_CASE("an assignment that is spread over the ranks is the partition of the whole one") {
  const Communicator comm = Communicator::world();
  const Random random({.seed = 1, .stream = 2});
  for (const int parts : {1, 2, 5, 9})
    for (const Index nodes : {0, 1, 7, 100}) {
      CAPTURE(parts);
      CAPTURE(nodes);
      std::vector<std::int32_t> part_of;
      for (Index v = 0; v < nodes; ++v)
        part_of.push_back(
            static_cast<std::int32_t>(random.uniform(static_cast<std::uint64_t>(v), 0) * parts));
      const PartitionBook slices = PartitionBook::even(nodes, comm.size());
      const Index first = slices.begin(comm.rank()), end = slices.end(comm.rank());
      const std::span<const std::int32_t> mine(part_of.data() + first, static_cast<std::size_t>(end - first));
      const NodePartition whole = NodePartition::from_assignment(Communicator::self(), part_of, parts);
      const NodePartition spread = NodePartition::from_assignment(comm, mine, parts);
      CHECK(spread.book() == whole.book());
      check_round_trip(comm, spread);
      for (Index v = 0; v < nodes; ++v) {
        if (first <= v && v < end)
          CHECK(spread.to_partitioned(v) == whole.to_partitioned(v));
        else
          CHECK_THROWS_AS(static_cast<void>(spread.to_partitioned(v)), InputError);
      }
      std::vector<Index> some{nodes - 1, nodes / 2, 0, nodes / 2};  // each rank asks for any nodes
      if (nodes == 0) some.clear();
      std::vector<Index> expected;
      for (const Index v : some) expected.push_back(whole.to_partitioned(v));
      spread.to_partitioned(some);
      CHECK(some == expected);
    }
}

TEST_CASE("an assignment with a wrong part or of a wrong length is an error on all ranks") {
  const Communicator comm = Communicator::world();
  const bool last = comm.rank() == comm.size() - 1;
  const auto text = [&](std::vector<std::int32_t> part_of) {
    return thrown_by_all<InputError>(
        comm, [&] { static_cast<void>(NodePartition::from_assignment(comm, part_of, 2)); });
  };
  CHECK(text({0, 1, last ? 2 : 0}).ends_with("is assigned to part 2, expected 0 to 1"));
  if (comm.size() == 1) return;
  CHECK(text(std::vector<std::int32_t>(last ? 9 : 3, 0))
            .find(" parts of nodes, expected one for each of the ") != std::string::npos);
}

TEST_CASE("a random partition is the same order of nodes for every number of parts") {
  const NodePartition two = NodePartition::random(101, 2, 8), five = NodePartition::random(101, 5, 8);
  for (Index v = 0; v < 101; ++v) CHECK(two.to_partitioned(v) == five.to_partitioned(v));
}

TEST_CASE("the automatic method follows the number of edges and what is built") {
  const auto chosen = [](Index edges) { return chosen_method(PartitionMethod::automatic, edges, 1000); };
  const PartitionMethod distributed = has_scotch() ? PartitionMethod::scotch : PartitionMethod::ldg;
  CHECK(chosen(1000) == (has_metis() ? PartitionMethod::metis : distributed));
  CHECK(chosen(1001) == distributed);
  CHECK(chosen_method(PartitionMethod::automatic, most_gathered_edges + 1) == distributed);
  CHECK(chosen_method(PartitionMethod::random, 1001, 1000) == PartitionMethod::random);
  CHECK(std::string(to_string(PartitionMethod::automatic)) == "auto");
}

TEST_CASE("methods of other libraries that are not built are an error on all ranks") {
  const Communicator comm = Communicator::world();
  const auto text = [&](PartitionMethod method) {
    return thrown_by_all<InputError>(comm,
                                     [&] { static_cast<void>(partition_nodes(comm, 9, {}, method, 0)); });
  };
  const std::string others = "contiguous, random or ldg";
  if (!has_metis())
    CHECK(text(PartitionMethod::metis) ==
          "partition method is 'metis', but this copy of the library was built without METIS; expected " +
              (has_scotch() ? "scotch, " + others : others));
  if (!has_scotch())
    CHECK(
        text(PartitionMethod::scotch) ==
        "partition method is 'scotch', but this copy of the library was built without PT-Scotch; expected " +
            (has_metis() ? "metis, " + others : others));
}

namespace {

void check_library(PartitionMethod method) {
  const Communicator comm = Communicator::world();
  const auto parts = comm.size();
  SUBCASE("cuts a ring of cliques between the cliques") {
    // 2 * parts cliques of 12 nodes; node v belongs to clique v % (2 * parts); edges one way, with
    // repetitions, spread
    const Index cliques = 2 * parts;
    const Index nodes = 12 * cliques;
    EdgeList edges;
    auto add = [&, count = Index{0}](Index u, Index v) mutable {
      if (count++ % parts != comm.rank()) return;
      edges.src.push_back(u);
      edges.dst.push_back(v);
    };
    for (Index u = 0; u < nodes; ++u)
      for (Index v = u % cliques; v <= u; v += cliques) {
        add(u, v);
        add(u, v);
      }
    for (Index c = 0; c < cliques; ++c) add(c, (c + 1) % cliques);
    const Array<std::int32_t> mine = assign_nodes(comm, nodes, edges, method, {.parts = parts});
    const auto part_of = comm.all_gather(std::span<const std::int32_t>(mine));
    REQUIRE(static_cast<Index>(part_of.size()) == nodes);
    for (Index v = 0; v < nodes; ++v)
      CHECK(part_of[static_cast<std::size_t>(v)] == part_of[static_cast<std::size_t>(v % cliques)]);
    const NodePartition partition = partition_nodes(comm, nodes, edges, method, 0);
    check_round_trip(comm, partition);
    for (int p = 0; p < parts; ++p) CHECK(partition.book().num_nodes(p) == 24);
  }
  SUBCASE("fewer nodes than parts, no nodes, no edges, only loops") {
    for (const Index nodes : {0, 1, 2, 3, 40}) {
      const EdgeList loops = nodes > 0 ? edge_list({{0, 0}, {0, 0}}) : EdgeList{};
      for (const EdgeList& edges : {EdgeList{}, loops}) {
        const NodePartition partition = partition_nodes(comm, nodes, edges, method, 0);
        CHECK(partition.book().num_nodes() == nodes);
        const Index even = (nodes + parts - 1) / parts;  // scotch: within 5 % of it
        const Index most =
            method == PartitionMethod::metis ? even : std::max(even, nodes * 21 / (20 * parts));
        for (int p = 0; p < parts; ++p) CHECK(partition.book().num_nodes(p) <= most);
        check_round_trip(comm, partition);
      }
    }
  }
  SUBCASE("more nodes than they can number") {
    if (parts == 1) return;
    // refused before memory is touched: every rank finds it by itself
    const auto assignment = method == PartitionMethod::metis ? metis_assignment : scotch_assignment;
    CHECK_THROWS_AS(static_cast<void>(assignment(comm, Index{1} << 40, {}, {.parts = parts})), InputError);
  }
}

}  // namespace

TEST_CASE("metis") {
  if (has_metis()) check_library(PartitionMethod::metis);
}

TEST_CASE("scotch") {
  if (has_scotch()) check_library(PartitionMethod::scotch);
}
