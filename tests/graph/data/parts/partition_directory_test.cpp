// SPDX-License-Identifier: MIT

/// Partition directories: what is written is what is read, on any number of ranks up to that of the parts.
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/partition_directory.hpp>

#include "graph/data/dataset_files.hpp"
#include "graph/data/typed_graph.hpp"
#include "support/thrown.hpp"
#include "support/write_npy.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <span>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

/// Rank 0 writes all parts.
void write_typed(const Communicator& comm, const std::string& directory, int parts) {
  PartitionWriter writer(comm, directory);
  PartitionDescription description = describe_partition(typed_part(0, parts));
  comm.agree([&] {
    if (comm.rank() != 0) return;
    for (int part = 0; part < parts; ++part) {
      const PartSummary summary = write_part(writer.path(), part, typed_part(part, parts));
      for (std::size_t i = 0; i < summary.num_edges.size(); ++i)
        description.edges_per_part[i].push_back(summary.num_edges[i]);
      description.checksums.push_back(summary.checksum);
    }
    description.info["method"] = "by hand, \"quoted\"";
  });
  writer.commit(description);
}

/// The books of all numbers of parts cut the same numbering.
WholeTypedGraph whole_typed() {
  return gather_typed(Communicator::self(), typed_part(0, 1));
}

void replace_in(const std::string& path, const std::string& old_text, const std::string& new_text) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  REQUIRE(text.find(old_text) != std::string::npos);
  text.replace(text.find(old_text), old_text.size(), new_text);
  std::ofstream(path) << text;
}

void write_ids(const std::string& path, const std::vector<Index>& ids) {
  const std::array<Index, 1> shape{static_cast<Index>(ids.size())};
  write_npy<Index>(path, shape, ids, NpyType::int64);
}

/// A directory of four parts that is damaged by rank 0 and then loaded by all.
class Damaged {
 public:
  Damaged() {
    write_typed(comm_, sound_, parts);
    description_ = read_partition_description(sound_);
  }

  /// Without checksums, so that what is behind them is seen, too.
  std::string message(const std::function<void(const std::string&)>& damage, bool checksums = false) const {
    comm_.agree([&] {
      if (comm_.rank() != 0) return;
      fs::remove_all(path_);
      fs::copy(sound_, path_, fs::copy_options::recursive);
      if (!checksums) replace_in(path_ + "/partition.json", "\"checksums\"", "\"unknown\"");
      damage(path_);
    });
    return thrown_by_all<InputError>(comm_, [&] { static_cast<void>(load_partition(comm_, path_)); });
  }
  /// The message for a description with one text replaced, without the file's name.
  std::string description(const std::string& old_text, const std::string& new_text) const {
    const std::string file = path_ + "/partition.json";
    const std::string text = message([&](const std::string&) { replace_in(file, old_text, new_text); }, true);
    CHECK(text.starts_with(file + ": "));
    return text.substr(std::min(text.size(), file.size() + 2));
  }
  /// The message for an array of ids with some elements replaced, without the file's name.
  std::string ids(const std::string& file, const std::map<std::size_t, Index>& changes) const {
    const std::string text = message([&](const std::string&) {
      std::vector<Index> values(static_cast<std::size_t>(NpyFile(file).size()));
      NpyFile(file).read(0, static_cast<Index>(values.size()), std::span<Index>(values));
      for (const auto& [i, value] : changes) values.at(i) = value;
      write_ids(file, values);
    });
    return text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text;
  }
  [[nodiscard]] std::string original_ids(int part) const {
    return node_file(path_, part, "user", "original_ids");
  }
  [[nodiscard]] std::string edges(int part, const std::string& array) const {
    return edge_file(path_, part, description_.graph.edge_types[0], array);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& sound() const { return sound_; }
  [[nodiscard]] const std::string& scratch() const { return scratch_.path(); }
  [[nodiscard]] const Communicator& comm() const { return comm_; }

  static constexpr int parts = 4;

 private:
  Communicator comm_ = Communicator::world();
  TemporaryDirectory scratch_{comm_};
  std::string sound_ = scratch_.path() + "/sound";
  std::string path_ = scratch_.path() + "/damaged";
  PartitionDescription description_;
};

}  // namespace

TEST_CASE("every type of data, on fewer ranks than parts, comes back with its nodes and edges") {
  const Communicator comm = Communicator::world();
  for (const int parts : {comm.size(), comm.size() + 1, 7}) {
    CAPTURE(parts);
    const TemporaryDirectory scratch(comm);
    const std::string directory = scratch.path() + "/graph";
    write_typed(comm, directory, parts);
    const GraphData graph = load_partition(comm, directory);
    CHECK(graph.name == "typed \"graph\"");
    CHECK(graph.node_types[0].book.num_parts() == comm.size());
    CHECK(gather_typed(comm, graph) == whole_typed());
    for (const EdgeTypeData& type : graph.edge_types) {
      CHECK(comm.all_reduce(type.edges.size()) == type.num_edges);
      const PartitionBook& book = graph.node_type(type.dst_type).book;
      for (const Index v : type.edges.dst) CHECK(book.owner(v) == comm.rank());
    }
    const PartitionDescription description = read_partition_description(directory);
    CHECK(description.info.at("method") == "by hand, \"quoted\"");
    const std::string text = format_partition_description(description);
    CHECK(format_partition_description(parse_partition_description(text, "")) == text);
  }
}

TEST_CASE("a part is grouped by source part and sorted") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string directory = scratch.path() + "/graph";
  write_typed(comm, directory, 3);
  const PartitionDescription description = read_partition_description(directory);
  for (int part = 0; part < 3; ++part) {
    const GraphData graph = read_parts(directory, description, part, part + 1);
    for (std::size_t t = 0; t < graph.edge_types.size(); ++t) {
      const EdgeTypeData& type = graph.edge_types[t];
      const NpyFile offsets(edge_file(directory, part, graph.edge_types[t], "source_offsets"));
      REQUIRE(offsets.shape() == std::vector<Index>{4});
      Index e = 0;
      for (int q = 0; q < 3; ++q) {
        std::array<Index, 1> end{};
        offsets.read(q + 1, q + 2, std::span<Index>(end));
        for (const Index first = e; e < end[0]; ++e) {
          const auto i = static_cast<std::size_t>(e);
          CHECK(graph.node_type(type.src_type).book.owner(type.edges.src[i]) == q);
          if (e == first) continue;
          CHECK(std::tuple(type.edges.dst[i - 1], type.edges.src[i - 1], type.edges.id[i - 1]) <
                std::tuple(type.edges.dst[i], type.edges.src[i], type.edges.id[i]));
        }
      }
      CHECK(e == type.edges.size());
    }
  }
}

TEST_CASE("a graph saved from all ranks is loaded again, and existing directories are left alone") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string directory = scratch.path() + "/graph";
  const GraphData graph = typed_part(comm.rank(), comm.size());
  save_partition(comm, directory + "/", graph, {{"method", "none"}});
  CHECK(gather_typed(comm, load_partition(comm, directory)) == gather_typed(comm, graph));
  CHECK(thrown_by_all<InputError>(comm, [&] { save_partition(comm, directory, graph); }) ==
        directory + ": exists already, expected a directory that can be made");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          save_partition(comm, scratch.path() + "/no/graph", graph);
        }).starts_with(scratch.path() + "/no/graph"));
  CHECK(thrown_by_all<InputError>(comm, [&] { PartitionWriter(comm, ""); }) ==
        "the name of the output directory is empty");
  GraphData other = graph;
  if (comm.rank() == comm.size() - 1) other.node_types[0].data.erase("x int8");
  if (comm.size() > 1)
    CHECK(thrown_by_all<InputError>(comm, [&] {
            save_partition(comm, scratch.path() + "/other", other);
          }).find(" has other types or data than rank 0") != std::string::npos);
  // a rank that fails while it writes leaves nothing behind
  other = graph;
  if (comm.rank() == comm.size() - 1) other.node_types[0].original_ids.push_back(0);
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          save_partition(comm, scratch.path() + "/other", other);
        }).starts_with("user: there are "));
  comm.barrier();
  CHECK(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("built-in graphs come back from a partition directory as they were") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  int count = 0;
  for (const bool weighted : {false, true})
    for (const PartitionMethod method : {PartitionMethod::contiguous, PartitionMethod::random}) {
      NodeData data = make_sbm(comm, {.nodes = 200, .degree = 5, .classes = 4, .features = 7},
                               {.add_self_loops = true, .partition = method});
      if (weighted)
        for (const Index id : data.edges.id) data.edges.weight.push_back(static_cast<real>(id) / 8);
      const WholeDataset expected = gather_graph(comm, data);
      const std::string directory = concat(scratch.path(), "/", count++);
      save_partition(comm, directory, to_graph_data(data));
      const NodeData loaded = to_node_data(comm, load_partition(comm, directory));
      CHECK(loaded.book == data.book);
      CHECK(loaded.num_classes == 4);
      CHECK(loaded.name == "sbm");
      CHECK(gather_graph(comm, loaded) == expected);
    }
}

TEST_CASE("fewer parts than ranks, no directory, and what is not a description") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string directory = scratch.path() + "/graph";
  const auto load = [&] {
    return thrown_by_all<InputError>(comm, [&] { static_cast<void>(load_partition(comm, directory)); });
  };
  CHECK(load() == directory + "/partition.json: cannot open (No such file or directory), expected the " +
                      "description of a partition directory");
  if (comm.size() > 1) {
    write_typed(comm, directory, comm.size() - 1);
    CHECK(load() == directory + ": there are " + std::to_string(comm.size() - 1) +
                        " parts, expected at least one for each of the " + std::to_string(comm.size()) +
                        " ranks");
  }
}

TEST_CASE("files that are missing, cut, of another type or length") {
  const Damaged data;
  REQUIRE(data.message([](const std::string&) {}) == "nothing");
  REQUIRE(data.message([](const std::string&) {}, true) == "nothing");
  CHECK(data.message([](const std::string& path) { fs::remove_all(path + "/part-00002"); }) ==
        data.original_ids(2) + ": cannot open (No such file or directory), expected a .npy file");
  const std::string field = node_data_file(data.path(), 3, "user", "../y/float16");
  CHECK(field.find("/..") == std::string::npos);
  for (const std::string& file : {data.original_ids(3), field, data.edges(3, "src"), data.edges(2, "id"),
                                  data.edges(1, "source_offsets")})
    CHECK(data.message([&](const std::string&) { fs::resize_file(file, fs::file_size(file) - 1); })
              .starts_with(file + ": the file has "));
  CHECK(data.message([&](const std::string&) {
    const std::array<Index, 3> shape{7, 2, 3};
    write_npy<double>(field, shape, std::vector<double>(42), NpyType::float32);
  }) == field + ": dtype is float32, expected float16 as in partition.json");
  CHECK(data.message([&](const std::string&) {
              const std::array<Index, 3> shape{70, 2, 3};
              write_npy<double>(field, shape, std::vector<double>(420), NpyType::float16);
            })
            .starts_with(field + ": shape is (70, 2, 3), expected (7, 2, 3) as in partition.json"));
  CHECK(data.message([&](const std::string&) {
              write_ids(data.edges(3, "id"), {1, 2, 3});
            })
            .starts_with(data.edges(3, "id") + ": shape is (3,), expected ("));
}

TEST_CASE("parts of other partitionings") {
  const Damaged data;
  const auto part = [](const std::string& directory, int p) { return concat(directory, "/part-0000", p); };
  const auto put = [&](const std::string& from, const std::string& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  };
  // of another number of parts, of the same graph
  write_typed(data.comm(), data.scratch() + "/eight", 8);
  CHECK(data.message([&](const std::string& path) { put(part(data.scratch() + "/eight", 3), part(path, 3)); })
            .starts_with(data.original_ids(3) + ": shape is "));
  // another part twice, with the same number of nodes or another one
  for (const auto& [from, to] : {std::pair{2, 3}, {3, 2}, {0, 3}, {1, 0}}) {
    CAPTURE(from);
    CHECK(data.message([&, a = from, b = to](const std::string& path) {
                put(part(data.sound(), a), part(path, b));
              })
              .starts_with(part(data.path(), to) + "/"));
  }
  CHECK(data.message([&](const std::string& path) {
              put(part(data.sound(), 2), part(path, 3));
              put(part(data.sound(), 3), part(path, 2));
            })
            .starts_with(part(data.path(), 2) + "/"));
  // the same sizes and ranges, other ids: only the checksum tells
  const auto swap_ids = [&](const std::string&) {
    std::vector<Index> ids(static_cast<std::size_t>(NpyFile(data.original_ids(3)).size()));
    NpyFile(data.original_ids(3)).read(0, static_cast<Index>(ids.size()), std::span<Index>(ids));
    std::swap(ids[0], ids[1]);
    write_ids(data.original_ids(3), ids);
  };
  CHECK(data.message(swap_ids) == "nothing");
  CHECK(data.message(swap_ids, true) ==
        part(data.path(), 3) + ": the ids and edges have another checksum than " + data.path() +
            "/partition.json says, expected the part that was written with it");
}

TEST_CASE("ids out of range, out of order or twice") {
  const Damaged data;
  CHECK(data.ids(data.original_ids(3), {{1, 23}}) == "element 1 is 23, expected 0 to 22");
  CHECK(data.ids(data.original_ids(2), {{0, -1}}) == "element 0 is -1, expected 0 to 22");
  CHECK(data.ids(data.original_ids(2), {{0, 0}}) ==
        data.path() + "/partition.json: original ids of user: 0 occurs twice, expected each id once");
  CHECK(data.ids(data.edges(3, "src"), {{0, 23}}).starts_with("edge 0 of the part is (23, "));
  CHECK(data.ids(data.edges(3, "src"), {{0, -5}}).starts_with("edge 0 of the part is (-5, "));
  CHECK(data.ids(data.edges(3, "dst"), {{1, 0}}).find("edge 1 of the part is (") != std::string::npos);
  CHECK(data.ids(data.edges(3, "dst"), {{1, Index{1} << 62}}).find(" expected a destination from ") !=
        std::string::npos);
  CHECK(data.ids(data.edges(3, "id"), {{1, -7}}).find("edge 1 of the part has id -7") != std::string::npos);
  CHECK(data.ids(data.edges(3, "source_offsets"), {{1, -1}}).find("source_offsets beside it") !=
        std::string::npos);
  CHECK(data.ids(data.edges(3, "source_offsets"), {{4, 1000}}).find("end at 1000, expected") !=
        std::string::npos);
  CHECK(data.ids(data.edges(3, "source_offsets"), {{1, Index{1} << 62}}).find("that do not decrease") !=
        std::string::npos);
  CHECK(data.ids(data.edges(3, "dst"), {{0, 16}}).find("expected edges by destination and source") !=
        std::string::npos);
  // an edge id twice, in one part and in two, and far from all others
  std::array<Index, 2> id{};
  NpyFile(edge_file(data.sound(), 2, read_partition_description(data.sound()).graph.edge_types[0], "id"))
      .read(0, 2, std::span<Index>(id));
  for (const int part : {2, 3})
    CHECK(data.ids(data.edges(part, "id"), {{1, id[0]}}) ==
          data.path() + "/partition.json: ids of edges user:buys:item kind/1: " + std::to_string(id[0]) +
              " occurs twice, expected each id once");
  CHECK(data.ids(data.edges(3, "id"), {{0, Index{1} << 61}, {1, Index{1} << 61}})
            .find(": 2305843009213693952 occurs twice") != std::string::npos);
  CHECK(data.ids(data.edges(3, "id"), {{0, Index{1} << 61}}) == "nothing");
}

TEST_CASE("descriptions that contradict themselves") {
  const Damaged data;
  CHECK(data.description("\"format\"", "\"format").find("expected the JSON of a partition directory") !=
        std::string::npos);
  CHECK(data.description("sar-partition", "other") == "the format is other, expected sar-partition");
  CHECK(data.description("\"version\": 1", "\"version\": 3") == "the version is 3, expected 1 or 2");
  CHECK(data.description("\"version\"", "\"v\"") == "the description has no version, expected one");
  CHECK(data.description("\"num_parts\": 4", "\"num_parts\": 0") == "num_parts is 0, expected at least 1");
  CHECK(data.description("\"num_parts\": 4", "\"num_parts\": -4") ==
        "the description.num_parts is -4, expected a whole number from 0 on");
  CHECK(data.description("\"num_parts\": 4", "\"num_parts\": 4.5") ==
        "the description.num_parts is 4.5, expected a whole number from 0 on");
  CHECK(data.description("\"num_parts\": 4", "\"num_parts\": 5") ==
        "the description.node_types[0].offsets has 5 elements, expected 6, one more than parts");
  CHECK(data.description("\"num_parts\": 4", "\"num_parts\": 18446744073709551615") ==
        "the description.num_parts is 18446744073709551615, expected a whole number from 0 on");
  CHECK(data.description("\"offsets\": [\n    0", "\"offsets\": [\n    1")
            .starts_with("the description.node_types[0].offsets starts at 1"));
  CHECK(data.description("\"offsets\": [\n    0", "\"offsets\": [\n    -1")
            .starts_with("the description.node_types[0].offsets[0] is -1, expected a whole number"));
  CHECK(data.description("\"num_nodes\": 23", "\"num_nodes\": 24")
            .starts_with("the description.node_types[0].num_nodes is 24, expected 23"));
  CHECK(data.description("\"num_edges\": 90", "\"num_edges\": 91")
            .starts_with("the description.edge_types[0].num_edges is 91, expected 90"));
  CHECK(data.description("\"dtype\": \"float16\"", "\"dtype\": \"complex64\"").find("dtype is complex64") !=
        std::string::npos);
  CHECK(data.description("\"row_shape\": []", "\"row_shape\": [4611686018427387904, 8]")
            .find("has more bytes than a file can have") != std::string::npos);
  CHECK(data.description("\"row_shape\": []", "\"row_shape\": 3").find("row_shape is 3, expected a list") !=
        std::string::npos);
  CHECK(data.description("\"name\": \"x bool\"", "\"name\": \"x int8\"").find("several named x int8") !=
        std::string::npos);
  CHECK(data.description("\"src_type\": \"user\"", "\"src_type\": \"users\"")
            .find("there is no node type users") != std::string::npos);
  CHECK(data.description("\"checksums\": [", "\"checksums\": [\"1\",") ==
        "checksums has 5 elements, expected 4");
  CHECK(data.description("\"checksums\": [", "\"checksums\": [\"-1x\",")
            .starts_with("the description.checksums[0] is -1x, expected a hexadecimal number"));
  CHECK(data.description("\"info\": {", "\"info\": {\"a\": 1,") ==
        "the description.info.a is 1, expected a text");
}

TEST_CASE("names of files stay inside of the directory") {
  CHECK(node_data_file("d", 0, "..", "../../x") == "d/part-00000/nodes/%2E./data/%2E.%2F..%2Fx.npy");
  CHECK(node_data_file("d", 12, "a:b", "é") == "d/part-00012/nodes/a%3Ab/data/%C3%A9.npy");
  CHECK(node_file("d", 123456, "_N", "original_ids") == "d/part-123456/nodes/_N/original_ids.npy");
  CHECK(thrown<InputError>([] {
          node_data_file("d", 0, "n", "");
        }).starts_with("the name '' cannot be that of a file"));
  CHECK(thrown<InputError>([] {
          node_data_file("d", 0, "n", std::string(201, 'x'));
        }).find("cannot be that of a file") != std::string::npos);
}
