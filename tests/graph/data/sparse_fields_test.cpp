// SPDX-License-Identifier: MIT

/// Sparse features from file to NodeData, and in partition directories: the same graph as with dense
/// features.
#include "graph/data/dataset_files.hpp"
#include "support/damage.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/distributed_data.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/data/relation_data.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

/// The small graph with rows of `width` columns, of which every `one_in`-th value is not 0.
WholeDataset wide_graph(Index width = 80, Index one_in = 9) {
  WholeDataset graph = small_graph(false);
  graph.width = width;
  graph.features.assign(graph.labels.size() * width, 0);
  for (std::size_t i = 0; i < graph.features.size(); i += one_in)
    graph.features[i] = static_cast<double>(i % 17) - 8;
  return graph;
}

/// A directory with a dataset, and with its partition in four parts after partition().
struct Files {
  explicit Files(const WholeDataset& graph) {
    if (comm.rank() == 0) write_dataset(data(), graph, false);
    comm.barrier();
  }
  [[nodiscard]] std::string data() const { return directory.path(); }
  [[nodiscard]] std::string parts() const { return directory.path() + "/parts"; }
  [[nodiscard]] std::string array(int part, const std::string& name) const {
    return concat(sparse_folder(parts(), part, default_node_type, "features"), "/", name, ".npy");
  }
  void partition(SparseFeatures sparse) const {
    PartitionGraphOptions options{.parts = 4};
    options.data.partition = PartitionMethod::random;
    options.data.sparse_features = sparse;
    partition_graph(*open_dataset(comm, data()), parts(), options);
  }

  Communicator comm = Communicator::world();
  TemporaryDirectory directory{comm};
};

NodeData load(const Files& files, const std::string& path, SparseFeatures sparse, bool normalized = false) {
  return load_dataset(
      files.comm, path,
      {.normalize_features = normalized, .partition = PartitionMethod::random, .sparse_features = sparse});
}

}  // namespace

TEST_CASE("sparse features are the dense ones, from a dataset and from a partition directory") {
  const WholeDataset graph = wide_graph();
  for (const SparseFeatures stored : {SparseFeatures::no, SparseFeatures::yes}) {
    const Files files(graph);
    if (files.comm.size() <= 4) files.partition(stored);
    for (const SparseFeatures wanted : {SparseFeatures::no, SparseFeatures::yes, SparseFeatures::automatic})
      for (const bool normalized : {false, true})
        for (const std::string& path : {files.data(), files.parts()}) {
          if (path == files.parts() && files.comm.size() > 4) continue;
          CAPTURE(path);
          CAPTURE(to_string(stored));
          CAPTURE(to_string(wanted));
          const NodeData data = load(files, path, wanted, normalized);
          CHECK((data.sparse_features != nullptr) == (wanted != SparseFeatures::no));
          CHECK(data.features.defined() == (wanted == SparseFeatures::no));
          CHECK(data.num_features() == 80);
          const WholeDataset found = gather_graph(files.comm, data);
          const WholeDataset expected =
              gather_graph(files.comm, load(files, files.data(), SparseFeatures::no, normalized));
          CHECK(found == expected);
          if (!normalized) CHECK(found.features == graph.features);
        }
  }
}

TEST_CASE("features are sparse by their density and width, whatever the number of ranks") {
  const auto is_sparse = [](Index width, Index one_in) {
    const Files files(wide_graph(width, one_in));
    return load(files, files.data(), SparseFeatures::automatic).sparse_features != nullptr;
  };
  CHECK(is_sparse(64, 9));
  CHECK_FALSE(is_sparse(63, 9));
  CHECK_FALSE(is_sparse(64, 7));
  CHECK(is_sparse(200, 100000000));  // nothing is stored but the first value
}

TEST_CASE("sparse features go through GraphData, and into graphs of several types") {
  const Files files(wide_graph());
  const NodeData data = load(files, files.data(), SparseFeatures::yes);
  const WholeDataset expected = gather_graph(files.comm, data);
  GraphData graph = load_graph(files.comm, files.data(), {.sparse_features = SparseFeatures::yes});
  CHECK(graph.describe().find("features") != std::string::npos);
  CHECK(graph.node_types[0].sparse.at("features").num_stored() > 0);
  CHECK(gather_graph(files.comm, to_node_data(files.comm, graph, {.sparse_features = SparseFeatures::yes})) ==
        expected);
  const Graph typed = construct_hetero_graph(files.comm, graph);
  CHECK(sparse_matrix(typed.ndata(default_node_type).at("features")) != nullptr);
  const NodeData again =
      to_node_data(files.comm, to_graph_data(load(files, files.data(), SparseFeatures::yes)),
                   {.sparse_features = SparseFeatures::yes});
  CHECK(gather_graph(files.comm, again) == expected);
  CHECK(thrown_by_all<InputError>(files.comm, [&] {
          distributed_features(files.comm, data);
        }).find("the features are sparse rows, expected dense ones") != std::string::npos);
}

TEST_CASE("reading sparse features never holds the dense rows") {
  if (Communicator::world().size() > 1) return;
  WholeDataset graph = small_graph(false);
  graph.width = 200000;
  graph.features.assign(graph.labels.size() * graph.width, 0);
  for (std::size_t i = 0; i < graph.features.size(); i += 1009) graph.features[i] = 1;
  const Files files(graph);
  reset_peak_bytes();
  const std::size_t before = live_bytes();
  const NodeData data = load(files, files.data(), SparseFeatures::yes);
  CHECK(peak_bytes() - before < std::size_t{20} << 20);  // dense rows have 30 MB, a chunk has 16
  CHECK(data.sparse_features->num_stored() == 7334);
}

TEST_CASE("values that are not finite are named as those of dense features") {
  WholeDataset graph = wide_graph();
  graph.features[23 * 80 + 7] = std::numeric_limits<double>::quiet_NaN();
  const Files files(graph);
  const auto message = [&](SparseFeatures sparse) {
    return thrown_by_all<InputError>(files.comm, [&] { load(files, files.data(), sparse); });
  };
  CHECK(message(SparseFeatures::yes) ==
        files.data() + "/features.npy: row 23, column 7 is nan, expected a finite number");
  CHECK(message(SparseFeatures::yes) == message(SparseFeatures::no));
}

TEST_CASE("damaged sparse arrays of a partition directory are refused") {
  const Files files(wide_graph());
  if (files.comm.size() > 4) return;
  files.partition(SparseFeatures::yes);
  const auto message = [&](const std::string& path, const std::function<void()>& damage) {
    std::string before;
    if (files.comm.rank() == 0) {
      before = read_bytes(path);
      damage();
    }
    files.comm.barrier();
    std::string text =
        thrown_by_all<InputError>(files.comm, [&] { load_partition(files.comm, files.parts()); });
    files.comm.barrier();
    if (files.comm.rank() == 0) write_bytes(path, before);
    files.comm.barrier();
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
  };
  const std::string columns = files.array(2, "columns"), offsets = files.array(1, "row_offsets"),
                    values = files.array(3, "values"), description = files.parts() + "/partition.json";
  const std::size_t header = 128;
  CHECK(message(columns, [&] { patch(columns, header, std::int32_t{80}); }) ==
        "row 0 has column 80, expected columns from 0 to 79 in increasing order");
  CHECK(message(columns, [&] {
          patch(columns, header + 4, std::int32_t{0});
        }).find("row 0 has column 0, expected columns from ") == 0);
  CHECK(message(offsets, [&] {
          patch(offsets, header, std::int64_t{1});
        }).starts_with("the numbers go from 1 to "));
  CHECK(message(values, [&] {
          fs::resize_file(values, fs::file_size(values) - 1);
        }).starts_with("the file has "));
  CHECK(message(values, [&] { fs::remove(values); }).starts_with("cannot open "));
  CHECK(message(description, [&] {
          std::string text = read_bytes(description);
          text.replace(text.find("csr"), 3, "coo");
          write_bytes(description, text);
        }).find(".layout is coo, expected csr") != std::string::npos);
  CHECK(message(description, [&] {
          std::string text = read_bytes(description);
          text.replace(text.find("\"version\": 2"), 12, "\"version\": 3");
          write_bytes(description, text);
        }) == "the version is 3, expected 1 or 2");
}
