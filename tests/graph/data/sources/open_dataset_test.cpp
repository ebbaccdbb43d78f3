// SPDX-License-Identifier: MIT

/// Finding out which form a dataset has, and opening it.
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/partition_directory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

std::vector<Edge> sorted_edges(WholeDataset graph) {
  std::sort(graph.edges.begin(), graph.edges.end());
  return graph.edges;
}

}  // namespace

TEST_CASE("every form of a dataset is found and opened") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory scratch(comm);
  const std::string& path = scratch.path();
  const WholeDataset graph = small_graph(true);
  comm.agree([&] {
    if (comm.rank() != 0) return;
    for (const char* name : {"dataset", "dgl", "both", "none", "damaged"})
      std::filesystem::create_directory(path + "/" + name);
    write_dataset(path + "/dataset", graph, true);
    for (const char* name : {"labels", "val_mask"})
      std::filesystem::remove(path + "/dataset/" + name + ".npy");
    for (const char* name : {"dgl/cora", "both/a", "both/b"})
      std::ofstream(concat(path, "/", name, ".json")) << R"({"num_parts": 1, "part-0": {}})";
    std::ofstream(path + "/none/x.json") << "{ nothing";
    std::ofstream(path + "/damaged/partition.json") << "{ nothing";
    std::ofstream(path + "/none/partition.json") << R"({"format": "other"})";
  });
  save_partition(comm, path + "/parts", to_graph_data(make_karate(comm)));
  CHECK(find_dataset(path + "/dataset").kind == DatasetKind::dataset_directory);
  CHECK(find_dataset(path + "/parts").kind == DatasetKind::partition_directory);
  CHECK(find_dataset(path + "/parts/partition.json").path == path + "/parts");
  CHECK(find_dataset(path + "/dgl").path == path + "/dgl/cora.json");
  CHECK(find_dataset(path + "/dgl/cora.json").kind == DatasetKind::dgl_partition);
  for (const char* name :
       {"/both", "/none", "/none/x.json", "/none/partition.json", "/missing", "/dataset/labels.npy"})
    CHECK(find_dataset(path + name).kind == DatasetKind::unknown);

  CHECK(find_dataset(path + "/damaged").kind == DatasetKind::partition_directory);

  const auto source = open_dataset(comm, path + "/dataset");
  CHECK(
      source->description() ==
      "dataset directory dataset: 37 nodes, 210 edges; nodes: features test_mask train_mask; edges: weight");
  const NodeData dataset = load_dataset(*source);
  CHECK(dataset.num_classes == 0);
  CHECK(gather_graph(comm, dataset).edges == sorted_edges(graph));
  CHECK(gather_graph(comm, dataset).features == graph.features);
  CHECK(gather_graph(comm, load_dataset(comm, path + "/parts")) == gather_graph(comm, make_karate(comm)));
  CHECK(load_graph(comm, path + "/parts").description ==
        "partition directory karate: 34 nodes, 156 edges; nodes: features labels test_mask train_mask "
        "val_mask");
  CHECK(thrown_by_all<InputError>(
            comm, [&] { static_cast<void>(open_dataset(comm, path + "/none")); })
            .starts_with(path +
                         "/none: no dataset was found, expected a directory with edge_index.npy, one with"));
}
