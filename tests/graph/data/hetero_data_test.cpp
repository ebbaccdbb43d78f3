// SPDX-License-Identifier: MIT

/// Graphs with several types: reading them from directories, partitioning them, and making graphs of them.
#include "graph/data/dataset_files.hpp"
#include "graph/data/edge_type_of.hpp"
#include "graph/data/typed_source.hpp"
#include "graph/partition_methods.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/data/relation_data.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

using namespace sar;
using namespace sar::test;

namespace {

WholeTypedGraph whole(const GraphData& graph) {
  return gather_typed(Communicator::self(), graph);
}

/// Rank 0 replaces a file; all ranks wait. Collective.
void rewrite(const Communicator& comm, const std::string& path, const std::string& text) {
  comm.barrier();
  if (comm.rank() == 0) std::ofstream(path) << text;
  comm.barrier();
}

std::string with(std::string text, const std::string& what, const std::string& by) {
  REQUIRE(text.find(what) != std::string::npos);
  return text.replace(text.find(what), what.size(), by);
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

/// The only types of a homogeneous graph, with 40 nodes.
GraphData one_type() {
  GraphData graph = papers_and_authors();
  graph.node_types.resize(1);
  std::swap(graph.edge_types[0], graph.edge_types[1]);
  graph.edge_types.resize(1);
  graph.node_types[0].name = default_node_type;
  EdgeTypeData& edges = graph.edge_types[0];
  edges.src_type = edges.dst_type = default_node_type;
  edges.name = default_edge_type;
  return graph;
}

/// The largest number of nodes of a type on a rank, compared with the mean.
Index largest_share(const Communicator& comm, const NodeTypeData& nodes) {
  Index largest = 0;
  for (int p = 0; p < comm.size(); ++p) largest = std::max(largest, nodes.book.num_nodes(p));
  return largest;
}

}  // namespace

TEST_CASE("a graph of several types is the same with every method of dividing it") {
  const Communicator comm = Communicator::world();
  for (const GraphData& graph : {papers_and_authors(), typed_part(0, 1)})
    for (const PartitionMethod method : all_partition_methods()) {
      CAPTURE(std::string(to_string(method)));
      TypedSource source(comm, graph);
      const GraphData mine = load_graph(source, {.partition = method, .partition_seed = 5});
      CHECK(mine.name == graph.name);
      CHECK(gather_typed(comm, mine) == whole(graph));
      for (const NodeTypeData& nodes : mine.node_types) {
        CHECK(nodes.book.num_parts() == comm.size());
        const bool even = method == PartitionMethod::contiguous || method == PartitionMethod::random;
        if (even)
          CHECK(largest_share(comm, nodes) == (nodes.book.num_nodes() + comm.size() - 1) / comm.size());
      }
    }
}

TEST_CASE("the parts have about the same number of nodes of each type") {
  const Communicator comm = Communicator::world();
  GraphData graph;
  graph.name = "clusters";
  for (const auto& [name, count] : {std::pair{"a", Index{400}}, {"b", Index{200}}}) {
    NodeTypeData& nodes = graph.node_types.emplace_back();
    nodes.name = name;
    nodes.book = PartitionBook::even(count, 1);
    for (Index v = 0; v < count; ++v) nodes.original_ids.push_back(v);
  }
  for (const auto& [src, dst] : {std::pair{0, 0}, {1, 0}, {1, 1}}) {
    EdgeTypeData& edges = graph.edge_types.emplace_back();
    edges.src_type = graph.node_types[static_cast<std::size_t>(src)].name;
    edges.dst_type = graph.node_types[static_cast<std::size_t>(dst)].name;
    edges.name = "to";
    edges.num_edges = 2000;
    const Index sources = src == 0 ? 400 : 200, destinations = dst == 0 ? 400 : 200;
    for (Index e = 0; e < edges.num_edges; ++e) {
      edges.edges.src.push_back(e * 31 % sources);
      edges.edges.dst.push_back((e * 31 % sources * destinations / sources + e % 7) % destinations);
      edges.edges.id.push_back(e);
    }
  }
  const TemporaryDirectory scratch(comm);
  for (const PartitionMethod method : all_partition_methods()) {
    CAPTURE(std::string(to_string(method)));
    TypedSource source(comm, graph);
    const PartitionReport report = count_parts(source, {.parts = 4, .data = {.partition = method}});
    REQUIRE(report.node_types.size() == 2);
    REQUIRE(report.edge_types.size() == 3);
    for (const TypeReport& type : report.node_types) {
      CHECK(type.total().nodes == (type.type == "a" ? 400 : 200));
      CHECK(type.balance(&PartSize::nodes) <= 1.07);
    }
    for (const TypeReport& type : report.edge_types) CHECK(type.total().in_edges == 2000);
    CHECK(report.total().in_edges == 6000);
  }
}

TEST_CASE("partition directories keep the types, for any number of parts, order and method") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const GraphData graph = papers_and_authors();
  int number = 0;
  for (const PartitionMethod method : all_partition_methods())
    for (const int parts : {comm.size(), 5})
      for (const NodeOrder order : {NodeOrder::original, NodeOrder::clusters}) {
        CAPTURE(std::string(to_string(method)));
        CAPTURE(parts);
        const std::string out = concat(scratch.path(), "/", number++);
        TypedSource source(comm, graph);
        const PartitionReport report = partition_graph(
            source, out,
            {.parts = parts, .data = {.partition = method, .partition_seed = 1}, .order = order});
        const GraphData loaded = load_partition(comm, out);
        CHECK(gather_typed(comm, loaded) == whole(graph));
        CHECK(report.num_nodes == 75);
        CHECK(report.num_edges == 200);
        CHECK(report.node_types[0].total().training_nodes == 20);
        CHECK(report.total().training_nodes == 20);
        TypedSource again(comm, graph);
        const PartitionReport counted = count_parts(
            again, {.parts = parts, .data = {.partition = method, .partition_seed = 1}, .order = order});
        CHECK(counted.parts == report.parts);
      }
}

TEST_CASE("reverse edges between two types are another type, and loops are added within one") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const GraphData graph = papers_and_authors();
  const WholeTypedGraph before = whole(graph);
  TypedSource source(comm, graph);
  const DatasetOptions options{.add_reverse_edges = true, .add_self_loops = true};
  const GraphData loaded = load_graph(source, options);
  const WholeTypedGraph after = gather_typed(comm, loaded);
  CHECK(after.nodes == before.nodes);
  REQUIRE(after.ends.size() == 9);
  const auto& writes = before.ends.at("author:writes:paper");
  CHECK(after.ends.at("author:writes:paper") == writes);
  for (const auto& [id, ends] : after.ends.at("paper:rev_writes:author"))
    CHECK(writes.at(id) == std::pair{ends.second, ends.first});
  CHECK(after.ends.at("paper:rev_writes:author").size() == writes.size());
  CHECK(after.edges.at("paper:rev_writes:author weight int8()") ==
        after.edges.at("author:writes:paper weight int8()"));
  const auto& cites = after.ends.at("paper:cites:paper");
  CHECK(cites.size() == 2 * 70 + 40);
  for (Index e = 0; e < 70; ++e) CHECK(cites.at(70 + e) == std::pair{cites.at(e).second, cites.at(e).first});
  for (Index v = 0; v < 40; ++v) CHECK(cites.at(140 + v) == std::pair{v, v});
  CHECK(edge_type_of(loaded, "rev_writes").first_added_id == 0);
  CHECK(edge_type_of(loaded, "cites").first_added_id == 70);

  TypedSource again(comm, graph);
  partition_graph(again, scratch.path() + "/parts",
                  {.parts = 4, .data = {.add_reverse_edges = true, .add_self_loops = true}});
  CHECK(gather_typed(comm, load_partition(comm, scratch.path() + "/parts")) == after);
  CHECK(edge_type_of(load_partition(comm, scratch.path() + "/parts"), "cites").first_added_id == 70);
}

TEST_CASE("with one type, everything is as for a homogeneous graph") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const GraphData graph = one_type();
  TypedSource source(comm, graph);
  const std::string path = scratch.path() + "/papers";
  write_dataset(source, path);
  CHECK(find_dataset(path).kind == DatasetKind::dataset_directory);
  for (const PartitionMethod method : all_partition_methods()) {
    TypedSource typed(comm, graph);
    const NodeData opened = load_dataset(*open_dataset(comm, path), {.partition = method});
    const NodeData data = load_dataset(typed, {.partition = method});
    CHECK(gather_graph(comm, data) == gather_graph(comm, opened));
    TypedSource other(comm, graph);
    GraphData loaded = load_graph(other, {.partition = method});
    CHECK(loaded.node_types[0].original_ids == data.original_ids);
    CHECK(gather_graph(comm, to_node_data(comm, loaded)) == gather_graph(comm, data));
    CHECK(category_data(comm, loaded, default_node_type).labels == data.labels);
    TypedSource once_more(comm, graph);
    DatasetSource files(comm, path);
    const std::string typed_parts = concat(path, "-typed-", to_string(method)), parts = typed_parts + "-not";
    partition_graph(once_more, typed_parts, {.parts = 3, .data = {.partition = method}});
    partition_graph(files, parts, {.parts = 3, .data = {.partition = method}});
    // the two sources deal the edges to the ranks differently, which decides ties of these two methods
    if (comm.size() > 1 && (method == PartitionMethod::ldg || method == PartitionMethod::scotch)) continue;
    if (comm.rank() == 0) CHECK(files_below(typed_parts) == files_below(parts));
  }
}

TEST_CASE("data that would be read as others are refused before they are written") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const auto error = [&](GraphData graph, const std::vector<std::string>& edge_fields,
                         const std::string& node_field) {
    EdgeTypeData& edges = graph.edge_types[0];
    for (const std::string& name : edge_fields) edges.data[name] = data_of(NpyType::int8, {}, edges.edges.id);
    NodeTypeData& nodes = graph.node_types[0];
    if (!node_field.empty()) nodes.data[node_field] = data_of(NpyType::int8, {}, nodes.original_ids);
    TypedSource source(comm, graph);
    return thrown_by_all<InputError>(comm, [&] { write_dataset(source, scratch.path() + "/out"); });
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  for (const GraphData& graph : {one_type(), papers_and_authors()})
    CHECK(has(error(graph, {"index"}, ""), ": edge data are called 'index', whose file edge_index.npy has"));
  CHECK(has(error(one_type(), {"weight", "edge_weight"}, ""), ": edge data are called 'weight', whose file"));
  CHECK(has(error(one_type(), {}, "edge_x"),
            ": node data are called 'edge_x', which is read as data of edges"));
  CHECK(!std::filesystem::exists(scratch.path() + "/out"));
}

TEST_CASE("a dataset directory with types is written, found and read") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  int number = 0;
  for (const GraphData& graph : {papers_and_authors(), typed_part(0, 1)}) {
    const std::string path = concat(scratch.path(), "/", number++);
    TypedSource source(comm, graph);
    write_dataset(source, path);
    CHECK(find_dataset(path).kind == DatasetKind::hetero_directory);
    CHECK(gather_typed(comm, load_graph(comm, path, {.partition = PartitionMethod::random})) == whole(graph));
    DatasetSource read(comm, path);
    partition_graph(read, path + "-parts", {.parts = 4, .data = {.partition = PartitionMethod::ldg}});
    CHECK(gather_typed(comm, load_graph(comm, path + "-parts")) == whole(graph));
  }
  CHECK(
      load_graph(comm, scratch.path() + "/0").description ==
      "dataset directory 0: paper 40 nodes (features labels test_mask train_mask val_mask), author 30 nodes "
      "(features), field 5 nodes, venue 0 nodes; author:writes:paper 90 edges (weight), paper:cites:paper 70 "
      "edges (year), paper:has:field 40 edges, author:edits:paper 0 edges, venue:prints:paper 0 edges");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          static_cast<void>(load_dataset(comm, scratch.path() + "/0"));
        }) == "0: the graph has 4 types of nodes and 5 types of edges, expected one of each");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          static_cast<void>(load_graph(comm, scratch.path() + "/0-parts", {.add_self_loops = true}));
        }).find("partitioned already") != std::string::npos);
}

TEST_CASE("the data of a category, and of types without features") {
  const Communicator comm = Communicator::world();
  TypedSource source(comm, papers_and_authors());
  GraphData graph = load_graph(source, {.partition = PartitionMethod::random});
  const NodeData papers = category_data(comm, graph, "paper");
  CHECK(papers.num_classes == 3);
  CHECK(papers.features.row_size() == 4);
  for (std::size_t i = 0; i < papers.labels.size(); ++i) {
    const Index v = papers.original_ids[i];
    CHECK(papers.labels[i] == (v % 7 == 3 ? -1 : v % 3));
    CHECK(papers.train_mask[i] == (v % 2 == 0 ? 1 : 0));
  }
  CHECK(node_data_of(comm, graph, "field").features.row_size() == 0);
  CHECK(node_data_of(comm, graph, "author").features.row_size() == 3);
  const auto fails = [&](const std::string& category, const DatasetOptions& options = {}) {
    return thrown_by_all<InputError>(
        comm, [&] { static_cast<void>(category_data(comm, graph, category, options)); });
  };
  CHECK(fails("journal") ==
        "papers: there is no node type journal, expected one of paper, author, field, venue");
  CHECK(fails("author") ==
        "papers: train_mask are data of the nodes of type paper, expected them for the category author");
  CHECK(fails("paper", {.fields = {{"labels", "topic"}}}) ==
        "papers: no type of nodes has data named topic, expected one, which shall be the labels");
}

TEST_CASE("a graph of all types has the data of nodes and edges") {
  const Communicator comm = Communicator::world();
  TypedSource source(comm, papers_and_authors());
  GraphData data = load_graph(source, {.partition = PartitionMethod::random});
  const GraphData before = data;
  const Graph graph = construct_hetero_graph(comm, data);
  CHECK(graph.node_types() == std::vector<std::string>{"paper", "author", "field", "venue"});
  CHECK(graph.num_global_nodes("author") == 30);
  CHECK(graph.num_global_nodes("venue") == 0);
  CHECK(comm.all_reduce(graph.num_nodes("paper")) == 40);
  const auto& features = graph.ndata("author")["features"];
  CHECK(features.value().num_rows() == graph.num_nodes("author"));
  const auto& weights = graph.edata("writes")["weight"];
  const Array<Index>& ids = graph["writes"].edge_ids();
  const DataArray column = edge_type_of(before, "writes").data.at("weight");
  std::map<Index, real> expected;
  const Tensor values = column.to_tensor();
  for (Index e = 0; e < column.num_rows; ++e)
    expected[edge_type_of(before, "writes").edges.id[e]] = values.data()[e];
  for (Index e = 0; e < std::ssize(ids); ++e) CHECK(weights.value().data()[e] == expected.at(ids[e]));
  CHECK(data.edge_types[0].edges.size() == 0);
  CHECK(data.edge_types[0].data.empty());
}

TEST_CASE("directories that are wrong: one sentence, the same on every rank") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string path = scratch.path() + "/data";
  TypedSource source(comm, papers_and_authors());
  write_dataset(source, path);
  const std::string json = read_text(path + "/hetero.json", "");
  const auto fails = [&](const std::string& text) {
    rewrite(comm, path + "/hetero.json", text);
    return thrown_by_all<InputError>(comm, [&] { static_cast<void>(load_graph(comm, path)); });
  };
  CHECK(fails("{ nothing").starts_with(path + "/hetero.json: the file is no JSON at its byte"));
  CHECK(fails(with(json, "sar-dataset", "other")).find("the format is other, expected sar-dataset") !=
        std::string::npos);
  CHECK(
      fails(with(json, "\"num_nodes\": 40", "\"num_nodes\": 41")) ==
      path +
          "/nodes/paper/features.npy: shape is (40, 4), expected 41 rows, the number of nodes of paper in " +
          path + "/hetero.json");
  CHECK(
      fails(with(json, "\"num_nodes\": 5", "\"num_nodes\": 3")) ==
      path +
          "/edges/paper:has:field/edge_index.npy: edge 3 is (3, 3), but there is no node 3, expected 0 to 2");
  CHECK(fails(with(json, "\"num_edges\": 70", "\"num_edges\": 7")) ==
        path +
            "/edges/paper:cites:paper/edge_index.npy: shape is (2, 70), expected (2, 7) by the edges of "
            "paper:cites:paper in " +
            path + "/hetero.json");
  CHECK(fails(with(json, "\"num_nodes\": 5", "\"num_nodes\": -5")) ==
        path +
            "/hetero.json: the description.node_types[2].num_nodes is -5, expected a whole number from 0 on");
  CHECK(
      fails(with(json, "\"num_nodes\": 5", "\"num_nodes\": 5000000000000")) ==
      path +
          "/hetero.json: there are 5000000000000 nodes of type field without data for 200 edges, expected at "
          "most 16777216");
  CHECK(fails(with(json, "\"src_type\": \"author\"", "\"src_type\": \"writer\"")) ==
        path +
            "/hetero.json: the description.edge_types[0]: there is no node type writer, expected one of "
            "node_types");
  CHECK(fails(with(json, "\"name\": \"author\"", "\"name\": \"paper\"")).find("several named paper") !=
        std::string::npos);
  CHECK(fails(with(json, "\"name\": \"edits\"", "\"name\": \"reads\""))
            .find("/edges/author:reads:paper/edge_index.npy") != std::string::npos);
  rewrite(comm, path + "/hetero.json", json);
  if (comm.rank() == 0) fs::create_directory(path + "/nodes/journal");
  CHECK(fails(json) ==
        path + "/nodes/journal: hetero.json has no type of this name, expected one for each folder");
  if (comm.rank() == 0) {
    fs::remove(path + "/nodes/journal");
    fs::remove(path + "/edges/author:writes:paper/edge_weight.npy");
    fs::copy(path + "/edges/paper:cites:paper/edge_year.npy",
             path + "/edges/author:writes:paper/edge_year.npy");
  }
  CHECK(fails(json) ==
        path +
            "/edges/author:writes:paper/edge_year.npy: shape is (70, 2), expected 90 rows, the "
            "number of edges of author:writes:paper in " +
            path + "/hetero.json");
  if (comm.rank() == 0) fs::remove(path + "/edges/author:writes:paper/edge_year.npy");
  CHECK(fails(json) == "nothing");
  comm.barrier();
}
