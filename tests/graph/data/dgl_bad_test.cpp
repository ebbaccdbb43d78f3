/// Damaged and lying files of DGL: one clear sentence, the same InputError on every rank, no crash.
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/file.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/io/dgl_file.hpp>
#include <sar/graph/io/npy.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace sar::test {
namespace {

namespace fs = std::filesystem;

const std::string own = std::string(SAR_TEST_DATA) + "/dgl/";

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_bytes(const std::string& path) {
  return read_text(path, "a file");
}

template <class T>
void patch(const std::string& path, std::size_t offset, T value) {
  std::string bytes = read_bytes(path);
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  write_bytes(path, bytes);
}

void replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_bytes(path);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_bytes(path, text.replace(at, from.size(), to));
}

/// Where the n-th array of a file begins.
std::size_t array_offset(const std::string& path, int n) {
  const std::string bytes = read_bytes(path), magic = "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd";
  std::size_t at = bytes.find(magic);
  for (; n > 0; --n) at = bytes.find(magic, at + 1);
  REQUIRE(at != std::string::npos);
  return at;
}

/// Overwrites one byte. A file is not emptied for that, which would wait for the disk.
void patch_byte(const std::string& path, std::size_t offset, char value) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(offset))
      .put(value);
}

/// Runs `read` on a file with each of its bytes changed, and on the file shortened to every length.
void mistreat(const std::string& source, const std::function<void(const std::string&)>& read) {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/file", bytes = read_bytes(source);
  write_bytes(path, bytes);
  int other = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    patch_byte(path, i, static_cast<char>(~bytes[i]));
    const std::string text = thrown<InputError>([&] { read(path); });
    if (text != "nothing" && !text.starts_with(path + ": ")) ++other;
    patch_byte(path, i, bytes[i]);
  }
  CHECK(other == 0);
  read(path);
  int not_refused = 0;
  for (std::size_t size = bytes.size(); size-- > 0;) {
    fs::resize_file(path, size);
    if (!thrown<InputError>([&] { read(path); }).starts_with(path + ": ")) ++not_refused;
  }
  CHECK(not_refused == 0);
}

/// A copy of a partition, damaged by rank 0 and then loaded by all.
class Broken {
 public:
  explicit Broken(std::string name = "homogeneous", std::string json = "cycle.json")
      : name_(std::move(name)), json_(std::move(json)), directory_(comm_) {}

  std::string message(const std::function<void()>& damage) const {
    comm_.barrier();
    if (comm_.rank() == 0) {
      fs::remove_all(path());
      fs::copy(own + name_, path(), fs::copy_options::recursive);
      damage();
    }
    comm_.barrier();
    const std::string text = thrown_by_all<InputError>(comm_, [&] { load_dgl_partition(comm_, json()); });
    return text.starts_with(path() + "/") ? text.substr(path().size() + 1) : text;
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/copy"; }
  [[nodiscard]] std::string json() const { return path() + "/" + json_; }
  [[nodiscard]] const Communicator& comm() const { return comm_; }

 private:
  Communicator comm_ = Communicator::world();
  std::string name_, json_;
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("files cut anywhere are refused, and no changed byte is a crash") {
  if (Communicator::world().size() > 1) return;
  mistreat(own + "heterogeneous/part0/node_feat.dgl",
           [](const std::string& path) { read_dgl_tensors(path); });
  mistreat(own + "heterogeneous/part0/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "old/part1/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "homogeneous/part0/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "heterogeneous/papers.json", [](const std::string& path) { read_dgl_partition(path); });
}

TEST_CASE("a part whose graph has any byte changed is loaded or refused") {
  if (Communicator::world().size() > 1) return;
  const TemporaryDirectory directory(Communicator::self());
  DglPartition partition = read_dgl_partition(own + "homogeneous/cycle.json");
  const std::string bytes = read_bytes(partition.parts[0].graph), path = directory.path() + "/graph.dgl";
  partition.parts[0].graph = path;
  write_bytes(path, bytes);
  int refused = 0;
  for (std::size_t i = 4096; i < bytes.size(); ++i) {
    patch_byte(path, i, static_cast<char>(bytes[i] ^ 1));
    const std::string text = thrown<InputError>([&] { read_dgl_part(partition, 0); });
    CHECK((text == "nothing" || text.starts_with(path + ": ")));
    if (text != "nothing") ++refused;
    patch_byte(path, i, bytes[i]);
  }
  CHECK(refused > 1000);
}

TEST_CASE("tensors that lie about themselves") {
  if (Communicator::world().size() > 1) return;
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/node_feat.dgl",
                    source = own + "homogeneous/part0/node_feat.dgl";
  // magic 0, number 8, number 16, name 24, then '_N/features' [6, 3] float32: magic 43, reserved 51, device
  // 59, dimensions 67, type 71, shape 75, bytes 91
  const auto message = [&](std::size_t offset, auto value) {
    write_bytes(path, read_bytes(source));
    patch(path, offset, value);
    const std::string text = thrown<InputError>([&] { read_dgl_tensors(path); });
    CHECK(text.starts_with(path + ": "));
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  const auto size = std::to_string(fs::file_size(source) - 24);
  const std::string who = "tensor '_N/features' at byte 43 ";
  CHECK(message(0, std::int64_t{7}) ==
        "DGL's file of tensors expected at byte 0 begins with 0x7, expected 0xdd5a9fbe3fa2443f");
  CHECK(message(8, std::int64_t{9}) == "9 tensors are announced and 4 found, expected as many");
  CHECK(message(16, std::int64_t{1} << 60) == "1152921504606846976 tensors are announced at byte 16 and " +
                                                  size + " bytes are left, expected at least 48 for each");
  CHECK(message(16, std::int64_t{-1}).starts_with("18446744073709551615 tensors are announced"));
  CHECK(message(24, std::int64_t{1} << 40)
            .starts_with("1099511627776 characters of a tensor's name are announced"));
  CHECK(
      message(43, std::int64_t{1}).starts_with("tensor '_N/features' expected at byte 43 begins with 0x1,"));
  CHECK(message(59, 2) == who + "is on device 2, expected 1 (main memory)");
  CHECK(message(67, 0).starts_with(who + "has 0 dimensions, expected one at least"));
  CHECK(message(67, -1).starts_with(who + "has -1 dimensions"));
  CHECK(message(67, 1 << 30).starts_with(who + "has 1073741824 dimensions"));
  CHECK(message(71, std::uint8_t{4}).starts_with(who + "has elements of bfloat32, expected float16"));
  CHECK(message(71, std::uint8_t{1}).starts_with(who + "has elements of uint32, expected float16"));
  CHECK(message(73, std::uint16_t{4}).starts_with(who + "has elements of float32x4, expected float16"));
  CHECK(message(75, std::int64_t{-6}) == who + "has shape (-6, 3), expected no negative extent");
  CHECK(message(75, std::int64_t{7}) == who + "of float32 and shape (7, 3) has 72 bytes, expected 84");
  CHECK(message(83, std::numeric_limits<std::int64_t>::max())
            .starts_with(
                "tensor '_N/features': shape (6, 9223372036854775807) of float32 has more bytes than"));
  CHECK(message(91, std::int64_t{-1}) == who + "of float32 and shape (6, 3) has -1 bytes, expected 72");
  // a shape and a size that agree, and a file that is too small for them
  write_bytes(path, read_bytes(source));
  patch(path, 75, std::int64_t{1} << 40);
  patch(path, 91, std::int64_t{12} << 40);
  CHECK(thrown<InputError>([&] {
          read_dgl_tensors(path);
        }).starts_with(path + ": " + who + "has 13194139533312 bytes, and the file ends after "));
  // an extent of 0 does not hide a product that overflows
  write_bytes(path, read_bytes(source));
  patch(path, 75, std::int64_t{0});
  patch(path, 83, std::numeric_limits<std::int64_t>::max());
  patch(path, 91, std::int64_t{0});
  CHECK(thrown<InputError>([&] { read_dgl_tensors(path); }).find("has more bytes than") != std::string::npos);
}

TEST_CASE("graphs of another version or number") {
  if (Communicator::world().size() > 1) return;
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/graph.dgl";
  const auto message = [&](std::size_t offset, std::int64_t value) {
    write_bytes(path, read_bytes(own + "homogeneous/part0/graph.dgl"));
    patch(path, offset, value);
    return thrown<InputError>([&] { read_dgl_graph(path); });
  };
  CHECK(message(0, 0).starts_with(path + ": DGL's file of graphs expected at byte 0 begins with 0x0,"));
  CHECK(message(8, 1) == path +
                             ": graphs of kind 2 in version 1 of the format, expected kind 2 in version 2 "
                             "(DGL 0.5 and later)");
  CHECK(message(24, 2) == path + ": the file holds 2 graphs, expected one");
  CHECK(message(4096, std::int64_t{1} << 50)
            .starts_with(path + ": the graph begins at byte 1125899906842624,"));
  CHECK(message(4096, 0).starts_with(path + ": the graph begins at byte 0,"));
}

TEST_CASE("the JSON file") {
  const Broken data;
  if (data.comm().size() > 2) return;
  for (const std::string key :
       {"graph_name", "num_nodes", "num_edges", "num_parts", "node_map", "edge_map", "part-0", "part-1"}) {
    CAPTURE(key);
    CHECK(data.message([&] { replace(data.json(), "\"" + key + "\"", "\"other\""); }) ==
          "cycle.json: has no '" + key + "', expected what DGL's partition_graph writes");
  }
  for (const std::string key : {"node_feats", "edge_feats", "part_graph"})
    CHECK(data.message([&] { replace(data.json(), "\"" + key + "\"", "\"other\""); }) ==
          "cycle.json: part-0 has no '" + key + "', expected what DGL's partition_graph writes");
  CHECK(data.message([&] { replace(data.json(), "\"part_graph\"", "\"part_graph_graphbolt\""); }) ==
        "cycle.json: part-0 has a graph of GraphBolt only, expected a 'part_graph' (partition_graph with "
        "use_graphbolt=False)");
  CHECK(data.message([&] { replace(data.json(), "\"num_parts\": 2", "\"num_parts\": 3"); }) ==
        "cycle.json: has no 'part-2', expected what DGL's partition_graph writes");
  CHECK(data.message([&] { replace(data.json(), "\"num_parts\": 2", "\"num_parts\": 1"); }) ==
        "cycle.json: there is a part-1 and num_parts is 1, expected as many parts");
  CHECK(data.message([&] { replace(data.json(), "\"num_parts\": 2", "\"num_parts\": 2.5"); }) ==
        "cycle.json: num_parts is a number that is no integer of 64 bits, expected an integer");
  CHECK(data.message([&] { replace(data.json(), "\"num_nodes\": 11", "\"num_nodes\": 12"); }) ==
        "cycle.json: node_map has 11 ids, expected 12");
  CHECK(data.message([&] { replace(data.json(), "\"num_nodes\": 11", "\"num_nodes\": \"11\""); }) ==
        "cycle.json: num_nodes is string, expected an integer");
  CHECK(data.message([&] { replace(data.json(), "\"_N\": 0", "\"_N\": 1"); }) ==
        "cycle.json: ntypes has the number 1 for '_N', expected 0 to 0, each once");
  CHECK(data.message([&] { replace(data.json(), "\"_N:_E:_N\": 0", "\"_N:_E:_M\": 0"); }) ==
        "cycle.json: has the edge type '_N:_E:_M' and no node type '_M', expected one");
  CHECK(data.message([&] { write_bytes(data.json(), "{\"graph_name\": "); })
            .starts_with("cycle.json: [json.exception.parse_error"));
  CHECK(data.message([&] { fs::remove(data.json()); }) ==
        "cycle.json: cannot open (No such file or directory), expected the JSON file of a DGL partition");
  // many more nodes than any file has, announced consistently
  const auto enlarge = [&] {
    replace(data.json(), "\"num_nodes\": 11", "\"num_nodes\": 4611686018427387904");
    replace(data.json(), "                11\n", "                4611686018427387904\n");
  };
  CHECK(data.message(enlarge) ==
        "orig_node_ids.npy: there are 11 ids, expected 4611686018427387904, one for each node of type _N");
  CHECK(data.message([&] {
    enlarge();
    fs::remove(data.path() + "/orig_node_ids.npy");
  }) == "part1/graph.dgl: the graph has 10 nodes, expected 4611686018427387898 of part 1 at least");
}

TEST_CASE("ranges of ids") {
  const Broken data("heterogeneous", "papers.json");
  if (data.comm().size() > 2) return;
  const auto message = [&](const std::string& node_map) {
    return data.message([&] {
      std::string text = read_bytes(data.json());
      const auto begin = text.find("\"node_map\""), end = text.find("\"edge_map\"");
      write_bytes(data.json(), text.replace(begin, end - begin, "\"node_map\": " + node_map + ", "));
    });
  };
  CHECK(message(R"("node_map.npy")") ==
        "papers.json: node_map is the file \"node_map.npy\", expected ranges of ids "
        "(DGL's partition_graph with reshuffle=True)");
  CHECK(message(R"([[0, 5], [5, 15]])") ==
        "papers.json: node_map is a list, expected one for each of 2 types");
  CHECK(message(R"({"author": [[-1, -1], [5, 11]]})") ==
        "papers.json: node_map is of 1 types, expected ranges of ids of 2 types");
  CHECK(message(R"({"author": [[-1, -1]], "paper": [[0, 5], [11, 15]]})") ==
        "papers.json: node_map author has 1 entries, expected 2, one for each part");
  CHECK(message(R"({"author": [[-1, -1], [5, 11]], "paper": [[5, 0], [11, 15]]})") ==
        "papers.json: node_map paper [0] is 5 to 0, expected ids of 0 to 15");
  CHECK(message(R"({"author": [[-1, -1], [5, 11]], "paper": [[0, 5], [11, 9223372036854775808]]})") ==
        "papers.json: node_map paper [1] [1] is a number that is no integer of 64 bits, expected an integer");
  CHECK(message(R"({"author": [[-1, -1], [5, 11]], "paper": [[0, 5], [12, 15]]})") ==
        "papers.json: node_map has ids 12 to 15 of type 'paper' in part 1, expected them to begin at 11, "
        "after the "
        "ones before");
  CHECK(message(R"({"author": [[-1, -1], [5, 12]], "paper": [[0, 5], [12, 15]]})") ==
        "part0/graph.dgl: edge 16 of type cites has an end of type author, expected paper");
  CHECK(message(R"({"author": [[0, 1], [5, 11]], "paper": [[1, 5], [11, 15]]})") ==
        "part0/graph.dgl: inner node 0 is of type 1, expected 0");
  CHECK(data.message([&] {  // numbers of ids that no integer holds
    replace(data.json(), "\"num_nodes\": 15", "\"num_nodes\": 9223372036854775807");
    std::string text = read_bytes(data.json());
    const auto begin = text.find("\"node_map\""), end = text.find("\"edge_map\"");
    write_bytes(data.json(),
                text.replace(begin, end - begin,
                             R"("node_map": {"author": [[0, 9223372036854775807], [0, 9223372036854775807]],
                                             "paper": [[0, 5], [11, 15]]}, )"));
  }) == "papers.json: node_map author [1] is 0 to 9223372036854775807, expected ids of parts that do not "
        "overlap");
}

TEST_CASE("parts that are missing, swapped or do not fit") {
  const Broken data;
  if (data.comm().size() > 2) return;
  const std::string graph = data.path() + "/part0/graph.dgl", other = data.path() + "/part1/graph.dgl";
  for (const std::string file :
       {"part0/graph.dgl", "part1/graph.dgl", "part0/node_feat.dgl", "part1/edge_feat.dgl"})
    CHECK(data.message([&] { fs::remove(data.path() + "/" + file); })
              .starts_with(file + ": cannot open (No such file or directory), expected a file of "));
  CHECK(data.message([&] {
    fs::rename(data.path() + "/part0", data.path() + "/part2");
    fs::rename(data.path() + "/part1", data.path() + "/part0");
    fs::rename(data.path() + "/part2", data.path() + "/part1");
  }) == "part0/graph.dgl: inner node 0 has _ID 6, expected an id of part 0");
  CHECK(data.message([&] {
              fs::copy_file(data.path() + "/part0/node_feat.dgl", data.path() + "/part1/node_feat.dgl",
                            fs::copy_options::overwrite_existing);
            })
            .starts_with("part1/node_feat.dgl: tensor '_N/features' has 6 rows, expected 5, one for each "
                         "node of the part"));
  CHECK(data.message([&] { replace(graph, "inner_node", "other_node"); }) ==
        "part0/graph.dgl: the graph has no tensor 'inner_node', expected the graph of a part");
  CHECK(data.message([&] { replace(data.path() + "/part0/node_feat.dgl", "_N/features", "_M/features"); }) ==
        "part0/node_feat.dgl: tensor '_M/features' belongs to no type of nodes, expected a name such as "
        "'_N/features'");
  CHECK(data.message([&] { replace(data.path() + "/part0/node_feat.dgl", "_N/features", "_N/featured"); })
            .find(": the data '") != std::string::npos);
  // destinations are the eighth array; the last node of the graph is not of the part
  CHECK(data.message([&] {
    const auto last = static_cast<Index>(read_dgl_graph(graph).node_types[0].num_nodes) - 1;
    patch(graph, array_offset(graph, 7) + 48, last);
  }) == "part0/graph.dgl: inner edge 0 has a destination that is not of part 0, expected edges to belong to "
        "the part "
        "of their destination");
  CHECK(data.message([&] { patch(graph, array_offset(graph, 7) + 48, Index{99}); })
            .starts_with("part0/graph.dgl: a matrix has an element in column 99, expected 0 to "));
}

TEST_CASE("edge types with and without ends that share a name") {
  const Broken data("old", "papers.json");
  if (data.comm().size() > 2) return;
  CHECK(data.message([&] {
    std::string text = read_bytes(data.json());
    for (auto at = text.find("\"cites\""); at != std::string::npos; at = text.find("\"cites\""))
      text.replace(at, 7, "\"author:writes:paper\"");
    write_bytes(data.json(), text);
  }) == "part0/edge_feat.dgl: tensor 'cites/year' belongs to no type of edges, expected a name such as "
        "'writes/features'");
}

TEST_CASE("original ids that are no permutation") {
  const Broken data;
  if (data.comm().size() > 2) return;
  const auto message = [&](std::vector<Index> ids, const std::string& file = "/orig_node_ids.npy") {
    return data.message([&] {
      const std::vector<Index> shape{static_cast<Index>(ids.size())};
      write_npy<Index>(data.path() + file, shape, ids, NpyType::int64);
    });
  };
  CHECK(message({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) ==
        "orig_node_ids.npy: there are 10 ids, expected 11, one for each node of type _N");
  CHECK(message({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11}) ==
        "cycle.json: node type _N: original ids: id 11 does not exist, expected 0 to 10");
  CHECK(message({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1}) ==
        "cycle.json: node type _N: original ids: id -1 does not exist, expected 0 to 10");
  CHECK(message({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0}) ==
        "cycle.json: node type _N: original ids: id 0 comes twice, expected each once");
  CHECK(message(std::vector<Index>(35, 3), "/orig_edge_ids.npy") ==
        "cycle.json: edge type _E: original ids: id 3 comes twice, expected each once");
  CHECK(data.message([&] { write_bytes(data.path() + "/orig_node_ids.npy", "0,1,2"); })
            .starts_with("orig_node_ids.npy: the file "));
}

}  // namespace sar::test
