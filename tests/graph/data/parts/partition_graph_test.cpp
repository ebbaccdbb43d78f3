// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/effort.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace fs = std::filesystem;

using namespace sar;
using namespace sar::test;

namespace {

/// A whole graph that every rank has, with data that tell whose they are.
class MemorySource : public GraphSource {
 public:
  struct Content {
    std::string name = "memory";
    Index num_nodes = 0;
    std::vector<Index> src, dst;
    std::string fails_at;  ///< on the last rank, when this field is read
  };
  MemorySource(const Communicator& comm, Content content)
      : GraphSource(comm, "graph in memory", content.name), content_(std::move(content)) {
    NodeTypeData& nodes = types_.node_types.emplace_back();
    nodes.book = slices_of(content_.num_nodes);
    nodes.unread = {{"features", NpyType::float32, {3}},
                    {"labels", NpyType::int64, {}},
                    {"train_mask", NpyType::boolean, {}}};
    EdgeTypeData& edges = types_.edge_types.emplace_back();
    edges.num_edges = std::ssize(content_.src);
    edges.unread = {{"weight", NpyType::float64, {}}, {"kind", NpyType::uint8, {2}}};
  }

  /// Dealt out like cards, so that no rank's ids are consecutive.
  [[nodiscard]] EdgeList read_edges(std::size_t) override {
    EdgeList edges;
    for (Index e = comm().rank(); e < num_edges(); e += comm().size()) {
      edges.src.push_back(content_.src[static_cast<std::size_t>(e)]);
      edges.dst.push_back(content_.dst[static_cast<std::size_t>(e)]);
      edges.id.push_back(e);
    }
    return edges;
  }
  [[nodiscard]] DataArray read_node_data(std::size_t, const std::string& field,
                                         std::span<const Index> nodes) override {
    comm().agree([&] {
      require<InputError>(field != content_.fails_at || comm().rank() + 1 < comm().size(), "cannot read ",
                          field);
    });
    if (field == "features") return floats(nodes);
    if (field == "labels") return column<std::int64_t>(NpyType::int64, nodes, label);
    return column<std::uint8_t>(NpyType::boolean, nodes, trains);
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t, const std::string& field,
                                         std::span<const Index> edges) override {
    if (field == "weight") return column<double>(NpyType::float64, edges, weight);
    DataArray rows(NpyType::uint8, {2}, static_cast<Index>(edges.size()));
    for (std::size_t i = 0; i < edges.size(); ++i)
      for (int k = 0; k < 2; ++k) rows.row(static_cast<Index>(i))[k] = std::byte(kind(edges[i], k));
    return rows;
  }

  static float feature(Index node, Index f) { return static_cast<float>(10 * node + f); }
  static std::int64_t label(Index node) { return node % 4 - 1; }
  static std::uint8_t trains(Index node) { return node % 3 == 0 ? 1 : 0; }
  static double weight(Index edge) { return 0.5 + static_cast<double>(edge); }
  static int kind(Index edge, int k) { return static_cast<int>((7 * edge + k) % 251); }

 private:
  template <class T, class Value>
  static DataArray column(NpyType type, std::span<const Index> ids, const Value& value) {
    DataArray rows(type, {}, static_cast<Index>(ids.size()));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const T x = value(ids[i]);
      std::memcpy(rows.row(static_cast<Index>(i)), &x, sizeof(x));
    }
    return rows;
  }
  static DataArray floats(std::span<const Index> nodes) {
    DataArray rows(NpyType::float32, {3}, static_cast<Index>(nodes.size()));
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (Index f = 0; f < 3; ++f) {
        const float x = feature(nodes[i], f);
        std::memcpy(rows.row(static_cast<Index>(i)) + 4 * f, &x, 4);
      }
    return rows;
  }

  Content content_;
};

struct PlainEdge {
  Index src, dst, id;
  auto operator<=>(const PlainEdge&) const = default;
};

/// What the transforms make of the edges, one by one.
std::vector<PlainEdge> transformed(const MemorySource::Content& g, const PartitionGraphOptions& o) {
  std::vector<PlainEdge> edges;
  const auto count = static_cast<Index>(g.src.size());
  for (std::size_t e = 0; e < g.src.size(); ++e) edges.push_back({g.src[e], g.dst[e], static_cast<Index>(e)});
  if (o.data.add_reverse_edges)
    for (std::size_t e = 0; e < g.src.size(); ++e)
      edges.push_back({g.dst[e], g.src[e], count + static_cast<Index>(e)});
  const auto first_loop = static_cast<Index>(edges.size());
  std::map<Index, PlainEdge> loops;  // by node, the one of largest id
  for (const PlainEdge& e : edges)
    if (e.src == e.dst) loops.insert_or_assign(e.src, e);
  if (o.data.add_self_loops && o.data.remaining_self_loops)
    std::erase_if(edges, [](const PlainEdge& e) { return e.src == e.dst; });
  for (Index v = 0; o.data.add_self_loops && v < g.num_nodes; ++v)
    edges.push_back(o.data.remaining_self_loops && loops.contains(v) ? loops.at(v)
                                                                     : PlainEdge{v, v, first_loop + v});
  std::sort(edges.begin(), edges.end());
  if (o.data.drop_duplicates)
    edges.erase(
        std::unique(edges.begin(), edges.end(),
                    [](const PlainEdge& a, const PlainEdge& b) { return a.src == b.src && a.dst == b.dst; }),
        edges.end());
  return edges;
}

/// Reads every part and compares it with the graph it came from. Local.
void check_directory(const std::string& directory, const MemorySource::Content& g,
                     const PartitionGraphOptions& o, const PartitionReport& report) {
  const PartitionDescription description = read_partition_description(directory);
  REQUIRE(description.num_parts == o.parts);
  CHECK(description.graph.name == g.name);
  CHECK(description.info.at("method") == to_string(o.data.partition));
  std::vector<GraphData> parts;
  std::vector<Index> original;  // by global id
  for (int p = 0; p < o.parts; ++p) {
    parts.push_back(read_parts(directory, description, p, p + 1));
    const auto& ids = parts.back().node_types.at(0).original_ids;
    original.insert(original.end(), ids.begin(), ids.end());
    if (o.order == NodeOrder::original) CHECK(std::is_sorted(ids.begin(), ids.end()));
  }
  std::vector<Index> sorted = original;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Index> all(static_cast<std::size_t>(g.num_nodes));
  std::iota(all.begin(), all.end(), Index{0});
  REQUIRE(sorted == all);

  const std::vector<PlainEdge> expected = transformed(g, o);
  std::vector<PlainEdge> found;
  REQUIRE(report.parts.size() == parts.size());
  CHECK(report.num_edges == static_cast<Index>(expected.size()));
  const Index count = static_cast<Index>(g.src.size());
  const Index first_loop = o.data.add_reverse_edges ? 2 * count : count;
  for (int p = 0; p < o.parts; ++p) {
    const GraphData& part = parts[static_cast<std::size_t>(p)];
    const NodeTypeData& nodes = part.node_types.at(0);
    const EdgeTypeData& in_edges = part.edge_types.at(0);
    PartSize size;
    size.nodes = nodes.book.num_nodes(p);
    size.in_edges = in_edges.edges.size();
    REQUIRE(size.nodes == static_cast<Index>(nodes.original_ids.size()));
    for (std::size_t i = 0; i < nodes.original_ids.size(); ++i) {
      const Index v = nodes.original_ids[i];
      const auto row = static_cast<Index>(i);
      float features[3];
      std::memcpy(features, nodes.data.at("features").row(row), sizeof(features));
      for (Index f = 0; f < 3; ++f) CHECK(features[f] == MemorySource::feature(v, f));
      CHECK(nodes.data.at("labels").to_integers("labels")[i] == MemorySource::label(v));
      CHECK(nodes.data.at("train_mask").to_mask("mask")[i] == MemorySource::trains(v));
      size.training_nodes += MemorySource::trains(v);
    }
    std::set<Index> halo;
    std::set<int> neighbors;
    for (std::size_t e = 0; e < in_edges.edges.src.size(); ++e) {
      const Index src = in_edges.edges.src[e];
      const Index dst = in_edges.edges.dst[e];
      const Index id = in_edges.edges.id[e];
      REQUIRE(nodes.book.owner(dst) == p);
      if (nodes.book.owner(src) != p) {
        halo.insert(src);
        neighbors.insert(nodes.book.owner(src));
        ++size.cut_edges;
      }
      found.push_back({original[static_cast<std::size_t>(src)], original[static_cast<std::size_t>(dst)], id});
      const auto row = static_cast<Index>(e);
      double weight = 0;
      std::memcpy(&weight, in_edges.data.at("weight").row(row), sizeof(weight));
      const std::byte* kind = in_edges.data.at("kind").row(row);
      const bool loop = id >= first_loop;
      CHECK(weight == (loop ? 1 : MemorySource::weight(id % count)));
      for (int k = 0; k < 2; ++k)
        CHECK(std::to_integer<int>(kind[k]) == (loop ? 0 : MemorySource::kind(id % count, k)));
    }
    size.halo_nodes = static_cast<Index>(halo.size());
    size.neighbors = static_cast<Index>(neighbors.size());
    CHECK(report.parts[static_cast<std::size_t>(p)] == size);
  }
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
}

std::map<std::string, std::string> files_below(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), directory).string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

std::size_t entries(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

std::vector<PartitionMethod> methods() {
  std::vector<PartitionMethod> list{PartitionMethod::contiguous, PartitionMethod::random,
                                    PartitionMethod::ldg};
  if (has_metis()) list.push_back(PartitionMethod::metis);
  return list;
}

/// Partitions with all ranks, and compares; where the result must not depend on the number of ranks, with
/// what one rank makes of it, too.
void check_partitioning(const Communicator& comm, const MemorySource::Content& g,
                        const PartitionGraphOptions& o) {
  CAPTURE(g.name);
  CAPTURE(o.parts);
  CAPTURE(std::string(to_string(o.data.partition)));
  CAPTURE(std::string(to_string(o.order)));
  const TemporaryDirectory scratch(comm);
  const std::string directory = scratch.path() + "/parts";
  MemorySource source(comm, g);
  const PartitionReport report = partition_graph(source, directory, o);
  MemorySource again(comm, g);
  const PartitionReport counted = count_parts(again, o);
  CHECK(counted.parts == report.parts);
  CHECK(counted.num_nodes == report.num_nodes);
  CHECK(counted.num_edges == report.num_edges);
  if (comm.rank() == 0) {
    check_directory(directory, g, o, report);
    CHECK(entries(scratch.path()) == 1);
    if (o.data.partition == PartitionMethod::contiguous || o.data.partition == PartitionMethod::random) {
      const std::string alone = scratch.path() + "/alone";
      MemorySource by_itself(Communicator::self(), g);
      (void)partition_graph(by_itself, alone, o);
      CHECK(files_below(alone) == files_below(directory));
    }
  }
  comm.barrier();
}

MemorySource::Content content_of(const std::string& name, Index nodes, std::vector<Index> src,
                                 std::vector<Index> dst) {
  return {name, nodes, std::move(src), std::move(dst), ""};
}

/// 60 nodes with a hub, self loops, parallel edges and isolated nodes.
MemorySource::Content random_content() {
  const Random random({.seed = 1, .stream = 7});
  std::vector<Index> src, dst;
  for (std::uint64_t e = 0; e < 300; ++e) {
    src.push_back(static_cast<Index>(52 * random.uniform(e, 0)));
    dst.push_back(e % 7 == 2 ? 0 : static_cast<Index>(52 * random.uniform(e, 1)));
    if (e % 13 == 5) src.back() = dst.back();
    if (e % 17 == 6) src.push_back(src.back()), dst.push_back(dst.back());
  }
  return content_of("random", 60, src, dst);
}

}  // namespace

TEST_CASE("every method, transform and order writes exactly the graph and its data") {
  const Communicator comm = Communicator::world();
  const MemorySource::Content g = random_content();
  const std::vector<int> numbers = full_run() ? std::vector{1, 2, 3, 5, 8} : std::vector{1, 3, 8};
  for (const PartitionMethod method : methods())
    for (const int parts : numbers)
      for (const NodeOrder order : {NodeOrder::original, NodeOrder::clusters})
        check_partitioning(
            comm, g, {.parts = parts, .data = {.partition = method, .partition_seed = 3}, .order = order});
  for (const bool reverse : {false, true})
    for (const bool loops : {false, true})
      for (const bool distinct : {false, true})
        for (const bool remaining : {false, true}) {
          if (remaining && !loops) continue;
          check_partitioning(comm, g,
                             {.parts = 3,
                              .data = {.add_reverse_edges = reverse,
                                       .add_self_loops = loops,
                                       .drop_duplicates = distinct,
                                       .partition = PartitionMethod::random,
                                       .remaining_self_loops = remaining}});
        }
}

TEST_CASE("the automatic method is chosen by the edges of the source, and the report names it") {
  const Communicator comm = Communicator::world();
  const MemorySource::Content g = random_content();
  const auto edges = static_cast<Index>(g.src.size());
  for (const Index most : {edges, edges - 1}) {
    MemorySource source(comm, g);
    const PartitionReport report = count_parts(
        source, {.parts = 3, .data = {.partition = PartitionMethod::automatic}, .most_gathered = most});
    CHECK(report.method == chosen_method(PartitionMethod::automatic, edges, most));
    CHECK(report.method != PartitionMethod::automatic);
  }
}

TEST_CASE("parts and ranks without nodes, graphs without edges") {
  const Communicator comm = Communicator::world();
  for (const PartitionMethod method : methods()) {
    check_partitioning(comm, content_of("two nodes", 2, {0, 1, 1}, {1, 0, 0}),
                       {.parts = 5, .data = {.partition = method}});
    check_partitioning(comm, content_of("one node", 1, {0, 0}, {0, 0}),
                       {.parts = 2, .data = {.partition = method}});
    check_partitioning(comm, content_of("no edges", 12, {}, {}),
                       {.parts = 3, .data = {.add_self_loops = true, .partition = method}});
  }
}

TEST_CASE("edges that a training adds to a partition without duplicates have ids of their own") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  MemorySource source(comm, {.num_nodes = 4, .src = {0, 0, 0, 1, 2}, .dst = {1, 1, 1, 2, 3}, .fails_at = {}});
  partition_graph(source, scratch.path() + "/parts",
                  {.parts = comm.size(), .data = {.drop_duplicates = true}});
  const NodeData data = to_node_data(comm, load_partition(comm, scratch.path() + "/parts"),
                                     {.add_reverse_edges = true, .add_self_loops = true});
  std::vector<Index> ids = comm.all_gather(std::span<const Index>(data.edges.id));
  std::sort(ids.begin(), ids.end());
  CHECK(ids == std::vector<Index>{0, 3, 4, 5, 8, 9, 10, 11, 12, 13});
}

TEST_CASE("the report counts what is shared: two triangles with one edge between them") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  MemorySource source(comm, content_of("triangles", 6, {0, 1, 2, 3, 4, 5, 2}, {1, 2, 0, 4, 5, 3, 3}));
  const PartitionReport report =
      partition_graph(source, scratch.path() + "/parts", {.parts = 2, .data = {.add_reverse_edges = true}});
  CHECK(report.num_edges == 14);
  CHECK(report.parts ==
        std::vector<PartSize>{{3, 7, 1, 1, 1, 1}, {3, 7, 1, 1, 1, 1}});  // nodes 0 and 3 are for training
  CHECK(report.cut_share() == doctest::Approx(2.0 / 14));
  CHECK(report.balance(&PartSize::in_edges) == 1);
}

TEST_CASE("an exception says the same on every rank and leaves nothing behind") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string out = scratch.path() + "/parts";
  const auto partition = [&](MemorySource::Content g, const std::string& directory, int parts) {
    return thrown_by_all<InputError>(comm, [&] {
      MemorySource source(comm, std::move(g));
      (void)partition_graph(source, directory, {.parts = parts});
    });
  };
  const MemorySource::Content two = content_of("two", 2, {0}, {1});
  CHECK(partition(two, out, 0).find("0 parts, expected at least 1") != std::string::npos);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          MemorySource source(comm, two);
          (void)count_parts(source, {.parts = 0});
        }).find("0 parts, expected at least 1") != std::string::npos);
  CHECK(partition(content_of("none", 0, {}, {}), out, 2).find("none: the graph has 0 nodes") == 0);
  MemorySource::Content failing = two;
  for (const char* field : {"train_mask", "labels"}) {
    failing.fails_at = field;
    CHECK(partition(failing, out, 2) == std::string("cannot read ") + field);
  }
  CHECK(partition(two, scratch.path() + "/missing/parts", 2).find("/missing/parts") != std::string::npos);
  CHECK(entries(scratch.path()) == 0);
  comm.barrier();
  CHECK(partition(two, out, 2) == "nothing");
  const std::string exists = partition(two, out, 2);
  CHECK(exists.find(out + ": ") == 0);
  CHECK(exists.find("exists") != std::string::npos);
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("progress: each phase begins at 0 and ends with all of it") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  MemorySource source(comm, content_of("path", 5, {0, 1, 2, 3}, {1, 2, 3, 4}));
  std::map<std::string, std::pair<Index, Index>> first_and_last;
  (void)partition_graph(source, scratch.path() + "/parts", {.parts = 3},
                        [&](const std::string& phase, Index done, Index total) {
                          first_and_last.try_emplace(phase, done, done);
                          first_and_last[phase].second = total - done;
                        });
  CHECK(first_and_last.size() >= 5);
  for (const auto& [phase, ends] : first_and_last) {
    CAPTURE(phase);
    CHECK(ends == std::pair<Index, Index>{0, 0});
  }
}
