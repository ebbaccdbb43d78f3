// SPDX-License-Identifier: MIT

/// Clusters of nodes: the same for every number of ranks and partition.
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/graph/partition/clusters.hpp>

#include <algorithm>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Node v of the whole graph has this id in the dataset.
Index id_of(Index v) {
  return v * 7 % 60;
}

Array<Index> ids_of(const PartitionBook& book, int rank) {
  Array<Index> ids;
  for (Index v = book.begin(rank); v < book.end(rank); ++v) ids.push_back(id_of(v));
  return ids;
}

/// The cluster of each node by original id, of all ranks.
std::vector<std::int32_t> all_clusters(const Communicator& comm, const WholeGraph& whole,
                                       const PartitionBook& book, const ClusterOptions& options) {
  const Array<Index> ids = ids_of(book, comm.rank());
  const Array<std::int32_t> mine = cluster_nodes(comm, book, ids, edges_of_rank(comm, whole, book), options);
  REQUIRE(mine.size() == ids.size());
  std::vector<std::int32_t> all(60, 0);
  for (Index i = 0; i < std::ssize(ids); ++i) all[static_cast<std::size_t>(ids[i])] = mine[i] + 1;
  comm.all_reduce(std::span<std::int32_t>(all));
  return all;
}

}  // namespace

TEST_CASE("clusters depend neither on ranks nor on the partition, and have about the same size") {
  const Communicator comm = Communicator::world(), self = Communicator::self();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const PartitionMethod method :
       {PartitionMethod::automatic, PartitionMethod::metis, PartitionMethod::ldg, PartitionMethod::contiguous,
        PartitionMethod::random}) {
    if (method == PartitionMethod::metis && !has_metis()) continue;
    const ClusterOptions options{.clusters = 7, .method = method, .seed = 3};
    const std::vector<std::int32_t> want = all_clusters(self, whole, PartitionBook::even(60, 1), options);
    for (const Books& books : test_books(whole, comm.size()))
      CHECK(all_clusters(comm, whole, books.src, options) == want);
    for (std::int32_t c = 1; c <= 7; ++c) {
      CHECK(std::ranges::count(want, c) >= 1);
      CHECK(std::ranges::count(want, c) <= 12);
    }
  }
}

TEST_CASE("wrong options of clusters are one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const PartitionBook book = PartitionBook::even(60, comm.size());
  const auto text = [&](const ClusterOptions& options) {
    return thrown_by_all<InputError>(comm, [&] {
      (void)cluster_nodes(comm, book, ids_of(book, comm.rank()), edges_of_rank(comm, whole, book), options);
    });
  };
  const auto has = [](const std::string& whole_text, const char* part) {
    return whole_text.find(part) != std::string::npos;
  };
  CHECK(has(text({.clusters = 0}), "there are 0 clusters, expected 1 to the number of nodes, 60"));
  CHECK(has(text({.clusters = 61}), "there are 61 clusters"));
  CHECK(has(text({.clusters = 2, .method = PartitionMethod::scotch}), "depend on the number of ranks"));
}

TEST_CASE("clusters of any ids are those of their numbers in increasing order") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const PartitionBook book = PartitionBook::even(60, comm.size());
  const EdgeList edges = edges_of_rank(comm, whole, book);
  for (const PartitionMethod method :
       {PartitionMethod::ldg, PartitionMethod::contiguous, PartitionMethod::random}) {
    const Array<Index> ids = ids_of(book, comm.rank());
    Array<Index> others;
    for (const Index id : ids) others.push_back(7 * id + (Index{1} << 40));
    const ClusterOptions options{.clusters = 4, .method = method};
    CHECK(cluster_nodes(comm, book, ids, edges, options) ==
          cluster_nodes(comm, book, others, edges, options));
  }
}
