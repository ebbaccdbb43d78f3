// SPDX-License-Identifier: MIT

/// What a sharded graph says of itself, and what it refuses.
#include "graph/test_graphs.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/kernels/edge_walk.hpp>

#include <algorithm>
#include <string>

using namespace sar;
using namespace sar::test;

TEST_CASE("sizes, degrees and edge order of a sharded graph are those of the whole graph") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs()) {
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const Graph graph = shard(comm, whole, books, {});
      const int p = comm.rank();
      CHECK(graph.num_src_nodes() == books.src.num_nodes(p));
      CHECK(graph.num_dst_nodes() == books.dst.num_nodes(p));
      CHECK(graph.num_global_src_nodes() == whole.num_src);
      CHECK(graph.num_global_dst_nodes() == whole.num_dst);
      CHECK(graph.num_global_edges() == static_cast<Index>(whole.src.size()));
      std::vector<Index> in(static_cast<std::size_t>(whole.num_dst)),
          out(static_cast<std::size_t>(whole.num_src));
      std::vector<Index> mine;
      for (std::size_t k = 0; k < whole.src.size(); ++k) {
        ++in[static_cast<std::size_t>(whole.dst[k])];
        ++out[static_cast<std::size_t>(whole.src[k])];
        if (books.dst.owner(whole.dst[k]) == p) mine.push_back(static_cast<Index>(k));
      }
      CHECK(std::equal(graph.in_degrees().begin(), graph.in_degrees().end(), in.begin() + books.dst.begin(p),
                       in.begin() + books.dst.end(p)));
      CHECK(std::equal(graph.out_degrees().begin(), graph.out_degrees().end(),
                       out.begin() + books.src.begin(p), out.begin() + books.src.end(p)));
      std::vector<Index> ids(graph.edge_ids().begin(), graph.edge_ids().end());
      std::sort(ids.begin(), ids.end());
      CHECK(ids == mine);
      for (std::size_t i = 0; i < graph.src_ids().size(); ++i)
        CHECK(graph.src_ids()[i] == books.src.begin(p) + static_cast<Index>(i));
    }
  }
}

TEST_CASE("a bad edge on one rank is the same error on all") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(40, comm.size());
  const int bad = comm.size() - 1;
  const auto message_of = [&](Index src, Index dst) {
    EdgeList edges;
    if (comm.rank() == bad) {
      edges.src = {src};
      edges.dst = {dst};
      edges.id = {7};
    }
    try {
      const Graph graph(comm, book, book, std::move(edges), true);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string no_source = message_of(40, 39);
  CHECK(no_source.find("edge 7 comes from node 40, but there are 40 source nodes") != std::string::npos);
  CHECK(message_of(-1, 39).find("node -1") != std::string::npos);
  CHECK(message_of(0, 40).find("edge 7 goes to node 40") != std::string::npos);
  CHECK(message_of(0, 39) == "no error");

  const PartitionBook wrong = PartitionBook::even(40, comm.size() + 1);
  CHECK_THROWS_AS(Graph(comm, wrong, wrong, EdgeList(), true), InputError);
  Graph graph(comm, book, book, EdgeList(), true);
  CHECK_THROWS_AS(graph.set_options({.pipeline_depth = 0}), InputError);
  CHECK_THROWS_AS(graph.set_options({.max_halo_bytes = -1}), InputError);
  CHECK(graph.get_full_partition_graph().options().mode == HaloMode::one_shot);
}

TEST_CASE("edge weights are those of all ranks or of none") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = PartitionBook::even(40, comm.size());
  const Index own = book.begin(comm.rank());
  const bool last = comm.rank() == comm.size() - 1;
  EdgeList edges;  // of the last rank only
  if (last) edges.src = {0}, edges.dst = {own}, edges.id = {0}, edges.weight = {2};
  const Graph graph(comm, book, book, std::move(edges), true);
  REQUIRE(graph.edge_weight().defined());
  CHECK(graph.edge_weight().num_rows() == (last ? 1 : 0));
  CHECK_FALSE(Graph(comm, book, book, {}, true).edge_weight().defined());
  if (comm.size() == 1) return;
  EdgeList forgotten;
  forgotten.src = {0}, forgotten.dst = {own}, forgotten.id = {comm.rank()};
  if (last) forgotten.weight = {2};
  CHECK_THROWS_AS(Graph(comm, book, book, std::move(forgotten), true), InputError);
}

TEST_CASE("a partition book finds owners across empty parts") {
  const PartitionBook book({0, 0, 3, 3, 5});
  CHECK(book.num_parts() == 4);
  for (const auto& [node, part] : {std::pair<Index, int>{0, 1}, {2, 1}, {3, 3}, {4, 3}})
    CHECK(book.owner(node) == part);
  CHECK(PartitionBook::even(7, 3) == PartitionBook({0, 3, 5, 7}));
  CHECK_THROWS_AS(PartitionBook({1, 2}), InputError);
  CHECK_THROWS_AS(PartitionBook({0, 3, 2}), InputError);
  CHECK_THROWS_AS(PartitionBook::even(3, 0), InputError);
}

TEST_CASE("index_bytes is what a graph adds to the account, also after its transposes are made") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::one_shot}) {
    const std::uint64_t before = live_bytes();
    const Graph graph = shard(comm, whole, books, {.mode = mode});
    const std::uint64_t made = graph.index_bytes();
    CHECK(live_bytes() - before == made);
    {
      const Variable x(Tensor::full(Shape{graph.num_src_nodes(), 2}, 1), true);
      const Variable e(Tensor::full(Shape{graph.num_edges()}, 1), true);
      Tape tape;
      const Variable y = graph.update_all(fn::u_mul_e(x, e), fn::sum);
      tape.backward(y, Tensor::full(y.shape(), 1));
    }
    CHECK(graph.index_bytes() > made);
    CHECK(live_bytes() - before == graph.index_bytes());
  }
}

TEST_CASE("a part of a shard has the rows with edges in it, and these edges") {
  const Index sources = 40, destinations = 60;
  const Random random({.seed = 3});
  std::vector<LocalEdge> edges;
  for (local_index v = 0; v < destinations; ++v)
    for (local_index u = 0; u < sources; ++u)
      if (v % 4 != 0 && random.uniform(static_cast<std::uint64_t>(v), static_cast<std::uint64_t>(u)) < 0.1)
        edges.push_back({v, u, sources * v + u, 1});
  for (const bool every_row : {true, false}) {
    const GraphShard shard =
        build_shard(edges.data(), static_cast<Index>(edges.size()), 0, destinations, sources, every_row);
    for (const Index step : {1, 7, 39}) {
      EdgeWalk walk;
      std::vector<int> seen(edges.size(), 0);
      bool good = true;
      for (Index begin = 0; begin < shard.num_src_rows; begin += step) {
        const Index end = std::min(shard.num_src_rows, begin + step);
        const EdgeRows ranges = walk.by_destination({shard, begin, end, nullptr});
        Index before = 0;
        for (Index i = 0; i < ranges.num_rows; ++i) {
          good = good && ranges.begin[i] < ranges.end[i] &&
                 ranges.offsets()[i] - ranges.offsets()[0] == before &&
                 (i == 0 || ranges.row(i - 1) < ranges.row(i));
          before += ranges.end[i] - ranges.begin[i];
          for (auto k = static_cast<std::size_t>(ranges.begin[i]);
               k < static_cast<std::size_t>(ranges.end[i]); ++k) {
            ++seen[k];
            good = good && edges[k].dst == ranges.row(i) && begin <= shard.src[k] && shard.src[k] < end;
          }
        }
      }
      CHECK(good);
      CHECK(std::count(seen.begin(), seen.end(), 1) == std::ssize(seen));
    }
  }
}
