// SPDX-License-Identifier: MIT

/// Damaged JSON files of DGL partitions: one clear sentence, the same InputError on every rank, no crash.
#include "graph/data/parts/damaged_partition.hpp"

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a JSON file cut anywhere is refused, and no changed byte is a crash") {
  if (Communicator::world().size() > 1) return;
  mistreat(dgl_data + "heterogeneous/papers.json", [](const std::string& path) { read_dgl_partition(path); });
}

TEST_CASE("the JSON file") {
  const DamagedPartition data;
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
            .starts_with("cycle.json: the file is no JSON at its byte "));
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
  const DamagedPartition data("heterogeneous", "papers.json");
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
