// SPDX-License-Identifier: MIT

/// Damaged parts of DGL partitions: one clear sentence, the same InputError on every rank, no crash.
#include "graph/data/parts/damaged_partition.hpp"
#include "support/write_npy.hpp"

#include <sar/graph/data/dgl_file.hpp>

#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

/// The position of the n-th array of a file.
std::size_t array_offset(const std::string& path, int n) {
  const std::string bytes = read_bytes(path), magic = "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd";
  std::size_t at = bytes.find(magic);
  for (; n > 0; --n) at = bytes.find(magic, at + 1);
  REQUIRE(at != std::string::npos);
  return at;
}

}  // namespace

TEST_CASE("a part whose graph has any byte changed is loaded or refused") {
  if (Communicator::world().size() > 1) return;
  const TemporaryDirectory directory(Communicator::self());
  DglPartition partition = read_dgl_partition(dgl_data + "homogeneous/cycle.json");
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

TEST_CASE("parts that are missing, swapped or do not fit") {
  const DamagedPartition data;
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
  const DamagedPartition data("old", "papers.json");
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
  const DamagedPartition data;
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
        "cycle.json: node type _N: original ids: 0 occurs twice, expected each id once");
  CHECK(message(std::vector<Index>(35, 3), "/orig_edge_ids.npy") ==
        "cycle.json: edge type _E: original ids: 3 occurs twice, expected each id once");
  CHECK(data.message([&] { write_bytes(data.path() + "/orig_node_ids.npy", "0,1,2"); })
            .starts_with("orig_node_ids.npy: the file "));
}
