#include <sar/core/error.hpp>
#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/partition/metis.hpp>
#include <sar/graph/partition/partition.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace sar::test {
namespace {

void check_round_trip(const NodePartition& partition) {
  std::vector<char> seen(static_cast<std::size_t>(partition.book().num_nodes()), 0);
  for (int part = 0; part < partition.book().num_parts(); ++part) {
    const Array<Index> ids = partition.original_ids(part);
    REQUIRE(static_cast<Index>(ids.size()) == partition.book().num_nodes(part));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(partition.to_partitioned(ids[i]) == partition.book().begin(part) + static_cast<Index>(i));
      seen.at(static_cast<std::size_t>(ids[i])) = 1;
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), 1) == partition.book().num_nodes());
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
      check_round_trip(NodePartition::contiguous(nodes, parts));
      check_round_trip(NodePartition::random(nodes, parts, 4));
    }
  }
  CHECK(NodePartition::contiguous(100, 3).to_partitioned(41) == 41);
  const std::vector<std::int32_t> part_of{2, 0, 2, 0, 2};  // part 1 is empty
  const NodePartition partition = NodePartition::from_assignment(part_of, 4);
  check_round_trip(partition);
  CHECK(partition.book() == PartitionBook({0, 2, 2, 5, 5}));
  const Array<Index> last = partition.original_ids(2);
  CHECK(std::vector<Index>(last.begin(), last.end()) == std::vector<Index>{0, 2, 4});
  CHECK_THROWS_AS(static_cast<void>(NodePartition::from_assignment(part_of, 2)), InputError);
}

TEST_CASE("a random partition is the same order of nodes for every number of parts") {
  const NodePartition two = NodePartition::random(101, 2, 8), five = NodePartition::random(101, 5, 8);
  for (Index v = 0; v < 101; ++v) CHECK(two.to_partitioned(v) == five.to_partitioned(v));
}

TEST_CASE("metis") {
  const Communicator comm = Communicator::world();
  const auto parts = comm.size();
  if (!has_metis()) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(partition_nodes(comm, 9, {}, PartitionMethod::metis, 0)),
        "partition method is 'metis', but this copy of the library was built without METIS; expected "
        "contiguous, random or ldg",
        InputError);
    return;
  }

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
    const Array<std::int32_t> mine =
        assign_nodes(comm, nodes, edges, PartitionMethod::metis, {.parts = parts});
    const auto part_of = comm.all_gather(std::span<const std::int32_t>(mine));
    REQUIRE(static_cast<Index>(part_of.size()) == nodes);
    for (Index v = 0; v < nodes; ++v)
      CHECK(part_of[static_cast<std::size_t>(v)] == part_of[static_cast<std::size_t>(v % cliques)]);
    const NodePartition partition = partition_nodes(comm, nodes, edges, PartitionMethod::metis, 0);
    check_round_trip(partition);
    for (int p = 0; p < parts; ++p) CHECK(partition.book().num_nodes(p) == 24);
  }
  SUBCASE("fewer nodes than parts, no nodes, no edges, only loops") {
    for (const Index nodes : {0, 1, 2, 3, 40}) {
      const EdgeList loops = nodes > 0 ? edge_list({{0, 0}, {0, 0}}) : EdgeList{};
      for (const EdgeList& edges : {EdgeList{}, loops}) {
        const NodePartition partition = partition_nodes(comm, nodes, edges, PartitionMethod::metis, 0);
        CHECK(partition.book().num_nodes() == nodes);
        for (int p = 0; p < parts; ++p) CHECK(partition.book().num_nodes(p) <= (nodes + parts - 1) / parts);
        check_round_trip(partition);
      }
    }
  }
  SUBCASE("more nodes than METIS can number") {
    if (parts == 1) return;
    // refused before memory is touched: every rank finds it by itself
    CHECK_THROWS_AS(static_cast<void>(metis_assignment(comm, Index{1} << 40, {}, {.parts = parts})),
                    InputError);
  }
}

}  // namespace sar::test
