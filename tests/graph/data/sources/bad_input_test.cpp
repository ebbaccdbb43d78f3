// SPDX-License-Identifier: MIT

/// Every defect of a dataset gives one clear sentence, the same InputError on every rank.
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"
#include "support/write_npy.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/load_dataset.hpp>

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <utility>

using namespace sar;
using namespace sar::test;

namespace {

/// A dataset on disk, which rank 0 damages and all ranks load.
class Broken {
 public:
  explicit Broken(bool weighted = false)
      : directory_(comm_), graph_(small_graph(weighted)), weighted_(weighted) {}

  /// Changes the graph before it is written, and the files afterwards.
  std::string message(const std::function<void(WholeDataset&)>& change,
                      const std::function<void(const std::string&)>& damage,
                      const DatasetOptions& options = {}) const {
    comm_.barrier();
    if (comm_.rank() == 0) {
      WholeDataset graph = graph_;
      change(graph);
      write_dataset(path(), graph, weighted_);
      damage(path());
    }
    comm_.barrier();
    return thrown_by_all<InputError>(comm_, [&] { static_cast<void>(load_dataset(comm_, path(), options)); });
  }
  std::string with_graph(const std::function<void(WholeDataset&)>& change) const {
    return message(change, [](const std::string&) {});
  }
  std::string with_files(const std::function<void(const std::string&)>& damage) const {
    return message([](WholeDataset&) {}, damage);
  }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  [[nodiscard]] const Communicator& comm() const { return comm_; }

 private:
  Communicator comm_ = Communicator::world();
  TemporaryDirectory directory_;
  WholeDataset graph_;
  bool weighted_;
};

template <class T>
void rewrite(const std::string& path, std::vector<Index> shape, std::vector<T> values, NpyType type) {
  write_npy<T>(path, shape, values, type);
}

}  // namespace

TEST_CASE("no directory, missing and damaged files") {
  const Broken data;
  CHECK(thrown_by_all<InputError>(data.comm(), [&] {
          static_cast<void>(load_dataset(data.comm(), "/nowhere"));
        }) == "/nowhere/edge_index.npy: cannot open (No such file or directory), expected a .npy file");
  for (const std::string name : {"edge_index", "features", "labels", "train_mask", "val_mask", "test_mask"}) {
    const std::string file = "/" + name + ".npy";
    CHECK(data.with_files([&](const std::string& path) { std::filesystem::remove(path + file); }) ==
          data.path() + file + ": cannot open (No such file or directory), expected a .npy file");
    CHECK(data.with_files([&](const std::string& path) {
                std::filesystem::resize_file(path + file, std::filesystem::file_size(path + file) - 1);
              })
              .starts_with(data.path() + file + ": the file has "));
    CHECK(data.with_files([&](const std::string& path) {
      std::ofstream(path + file) << "src,dst,weight\n1,2,3\n";
    }) == data.path() + file + ": the file does not begin with \\x93NUMPY, expected a .npy file");
  }
}

TEST_CASE("types and dimensions") {
  const Broken data(true);
  const auto message = [&](const std::string& name, std::vector<Index> shape, NpyType type) {
    std::size_t size = 1;
    for (const Index extent : shape) size *= static_cast<std::size_t>(extent);
    const std::string text = data.with_files([&](const std::string& path) {
      rewrite<double>(path + "/" + name, shape, std::vector<double>(size, 1.0), type);
    });
    CHECK(text.starts_with(data.path() + "/" + name + ": "));
    return text.substr(text.find(": ") + 2);
  };
  CHECK(message("edge_index.npy", {420}, NpyType::int64) == "shape is (420,), expected (2, number of edges)");
  CHECK(message("edge_index.npy", {210, 2}, NpyType::int64) ==
        "shape is (210, 2), expected (2, number of edges), as numpy.save(path, edge_index.T) writes it");
  CHECK(message("edge_index.npy", {}, NpyType::int64) == "shape is (), expected (2, number of edges)");
  for (const std::vector<Index>& shape : {std::vector<Index>{37, 0}, {}})
    CHECK(message("features.npy", shape, NpyType::float32) ==
          "shape is " + shape_to_string(shape) + ", expected (number of nodes, number of features)");
  CHECK(message("labels.npy", {37, 2}, NpyType::int64) ==
        "a row has shape (2,), expected one number, or 1 for the class of the node and 0 for all others; "
        "node 0 "
        "has 2 ones and 0 other numbers");
  CHECK(message("labels.npy", {36}, NpyType::int64) ==
        "length is 36, expected 37, one for each row of " + data.path() + "/features.npy");
  CHECK(message("labels.npy", {}, NpyType::int64) ==
        "the array is a number, expected one for each row of " + data.path() + "/features.npy");
  for (const char* mask : {"train_mask.npy", "val_mask.npy", "test_mask.npy"}) {
    CHECK(message(mask, {38}, NpyType::boolean) ==
          "length is 38, expected 37, one for each row of " + data.path() + "/features.npy");
  }
  CHECK(message("edge_weight.npy", {209}, NpyType::float32) ==
        "length is 209, expected 210, one for each edge of " + data.path() + "/edge_index.npy");
}

TEST_CASE("values") {
  const Broken data(true);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto with_value = [&](const std::string& name, std::vector<Index> shape, std::size_t at, double value,
                              NpyType type) {
    return data.with_files([&](const std::string& path) {
      std::size_t size = 1;
      for (const Index extent : shape) size *= static_cast<std::size_t>(extent);
      std::vector<double> values(size, 1.0);
      values[at] = value;
      rewrite<double>(path + "/" + name, shape, values, type);
    });
  };
  const std::string whole = ", expected a whole number from -9223372036854775808 to 9223372036854775807";
  CHECK(with_value("edge_index.npy", {2, 210}, 213, none, NpyType::float64) ==
        data.path() + "/edge_index.npy: element (1, 3) is nan" + whole);
  CHECK(with_value("edge_index.npy", {2, 210}, 209, 2.5, NpyType::float32) ==
        data.path() + "/edge_index.npy: element (0, 209) is 2.5" + whole);
  CHECK(with_value("edge_index.npy", {2, 210}, 0, 0x1p63, NpyType::uint64) ==
        data.path() + "/edge_index.npy: element (0, 0) is 9223372036854775808" + whole);
  CHECK(
      with_value("labels.npy", {37}, 36, 1.5, NpyType::float32) ==
      data.path() +
          "/labels.npy: the label of node 36 is 1.5, expected a whole number or NaN for an unlabelled node");
  CHECK(with_value("labels.npy", {37}, 36, 0x1p63, NpyType::uint64) ==
        data.path() + "/labels.npy: row 36 is 9223372036854775808" + whole);
  CHECK(with_value("val_mask.npy", {37}, 30, 2, NpyType::int32) ==
        data.path() + "/val_mask.npy: row 30 is 2, expected 0 or 1, one for each row");
  CHECK(with_value("val_mask.npy", {37}, 30, none, NpyType::float32) ==
        data.path() + "/val_mask.npy: row 30 is nan" + whole);
  CHECK(data.with_graph([](WholeDataset& graph) {
    graph.features[23 * 5 + 2] = std::numeric_limits<double>::quiet_NaN();
  }) == data.path() + "/features.npy: row 23, column 2 is nan, expected a finite number");
  CHECK(data.with_graph([](WholeDataset& graph) { graph.features[36 * 5 + 4] = -infinity; }) ==
        data.path() + "/features.npy: row 36, column 4 is -inf, expected a finite number");
  CHECK(data.message([](WholeDataset& graph) { graph.features[9] = infinity; }, [](const std::string&) {},
                     {.partition = PartitionMethod::random}) ==
        data.path() + "/features.npy: row 1, column 4 is inf, expected a finite number");
  if (sizeof(real) == 4)
    CHECK(
        data.with_files([](const std::string& path) {
          std::vector<double> values(37 * 5, 1.0);
          values[7] = 1e300;
          rewrite<double>(path + "/features.npy", {37, 5}, values, NpyType::float64);
        }) ==
        data.path() +
            "/features.npy: row 1, column 2 is 1e+300, which single precision cannot hold, expected a finite "
            "number");
  CHECK(data.with_graph([](WholeDataset& graph) { graph.labels[35] = -2; }) ==
        data.path() +
            "/labels.npy: the label of node 35 is -2, expected a class from 0 to 2147483646 or -1 for an "
            "unlabelled node");
  CHECK(
      data.with_graph([](WholeDataset& graph) { graph.labels[0] = std::numeric_limits<std::int64_t>::max(); })
          .starts_with(data.path() + "/labels.npy: the label of node 0 is 9223372036854775807, expected"));
  CHECK(data.with_graph([](WholeDataset& graph) { graph.edges[209].src = 37; })
            .starts_with(data.path() + "/edge_index.npy: edge 209 is (37, "));
  CHECK(data.with_graph([](WholeDataset& graph) { graph.edges[3] = {4, -1, 3, 1}; }) ==
        data.path() + "/edge_index.npy: edge 3 is (4, -1), but there is no node -1, expected 0 to 36");
  CHECK(data.with_graph([](WholeDataset& graph) { graph.edges[150].weight = infinity; }) ==
        data.path() + "/edge_weight.npy: the weight of edge 150 is inf, expected a finite number");
  const auto inexact = [&](Index edge, std::int64_t weight) {
    return data.with_files([&](const std::string& path) {
      std::vector<std::int64_t> weights(210, 3);
      weights[static_cast<std::size_t>(edge)] = weight;
      rewrite<std::int64_t>(path + "/edge_weight.npy", {210}, weights, NpyType::int64);
    });
  };
  const std::int64_t odd = (std::int64_t{1} << (sizeof(real) == 8 ? 53 : 24)) + 1;
  const std::string precision = sizeof(real) == 8 ? "double" : "single";
  for (const std::int64_t weight : {odd, -odd, std::numeric_limits<std::int64_t>::max()})
    CHECK(inexact(150, weight) ==
          data.path() + "/edge_weight.npy: the weight of edge 150 is " + std::to_string(weight) + ", which " +
              precision +
              " precision cannot hold exactly, expected weights of which it holds all digits, or "
              "floating-point numbers, which are rounded");
}

TEST_CASE("nothing to train on") {
  const Broken data;
  CHECK(data.with_graph([](WholeDataset& graph) { graph.train_mask.assign(37, 0); }) ==
        data.path() +
            "/train_mask.npy: no node is a training node, expected a train_mask that selects at least one");
  CHECK(data.with_graph([](WholeDataset& graph) { graph.labels.assign(37, -1); }) ==
        data.path() +
            "/train_mask.npy: no node has a label, expected labels (or label) among the data of the nodes, "
            "with a class for at least one training node");
  CHECK(data.with_graph([](WholeDataset& graph) {
    for (std::size_t v = 0; v < 37; ++v)
      if (graph.train_mask[v]) graph.labels[v] = -1;
  }) == data.path() +
            "/train_mask.npy: the mask selects 13 training nodes, of which none has a label, expected one at "
            "least");
}

TEST_CASE("too few nodes") {
  const Broken data;
  const auto shrink = [](std::size_t nodes) {
    return [nodes](WholeDataset& graph) {
      graph.edges.clear();
      graph.features.resize(nodes * 5);
      graph.labels.resize(nodes);
      for (auto* mask : {&graph.train_mask, &graph.val_mask, &graph.test_mask}) mask->resize(nodes);
    };
  };
  const int ranks = data.comm().size();
  CHECK(data.with_graph(shrink(0)) ==
        data.path() + "/features.npy: the graph has 0 nodes, expected at least one for each of the " +
            std::to_string(ranks) + " ranks");
  for (int nodes = 1; nodes < ranks; ++nodes)
    CHECK(data.with_graph(shrink(static_cast<std::size_t>(nodes))) ==
          data.path() + "/features.npy: the graph has " + std::to_string(nodes) +
              " nodes, expected at least one for each of the " + std::to_string(ranks) + " ranks");
  if (ranks > 2) {
    CHECK(thrown_by_all<InputError>(
              data.comm(), [&] { static_cast<void>(make_sbm(data.comm(), {.nodes = 2, .classes = 1})); }) ==
          "sbm: the graph has 2 nodes, expected at least one for each of the " + std::to_string(ranks) +
              " ranks");
  }
}

TEST_CASE("a failure of one rank is the same error on all") {
  const Broken good;
  const Communicator& comm = good.comm();
  REQUIRE(good.with_files([](const std::string&) {}) == "nothing");
  const TemporaryDirectory other(comm);
  if (comm.size() == 1) return;
  const int odd = comm.size() - 1;
  // rank `odd` looks at its own copy of the dataset
  const auto message = [&](const std::function<void(WholeDataset&)>& change,
                           const std::function<void(const std::string&)>& damage) {
    comm.barrier();
    if (comm.rank() == odd) {
      WholeDataset graph = small_graph(false);
      change(graph);
      write_dataset(other.path(), graph, false);
      damage(other.path());
    }
    comm.barrier();
    return thrown_by_all<InputError>(comm, [&] {
      static_cast<void>(load_dataset(comm, comm.rank() == odd ? other.path() : good.path()));
    });
  };
  const auto keep = [](WholeDataset&) {};
  const auto nothing = [](const std::string&) {};
  CHECK(message(keep, nothing) == "nothing");
  CHECK(message(keep, [](const std::string& path) { std::filesystem::remove(path + "/val_mask.npy"); }) ==
        other.path() + "/val_mask.npy: cannot open (No such file or directory), expected a .npy file");
  CHECK(message([](WholeDataset& graph) { graph.edges[209].dst = 99; }, nothing)
            .starts_with(other.path() + "/edge_index.npy: edge 209"));
  CHECK(message([](WholeDataset& graph) { graph.features.back() = std::numeric_limits<double>::infinity(); },
                nothing) ==
        other.path() + "/features.npy: row 36, column 4 is inf, expected a finite number");
  CHECK(message([](WholeDataset& graph) { graph.edges.pop_back(); }, nothing) ==
        good.path() + ": rank " + std::to_string(odd) +
            " finds 37 nodes, 209 edges, 5 feature columns and no edge weights" +
            ", expected 37 nodes, 210 edges, 5 feature columns and no edge weights as on rank 0");
}

TEST_CASE("options of the built-in graphs") {
  const Communicator comm = Communicator::world();
  const auto message = [&](const SbmOptions& sbm) {
    return thrown_by_all<InputError>(comm, [&] { static_cast<void>(make_sbm(comm, sbm)); });
  };
  CHECK(message({.classes = 0}) == "sbm: 0 classes, expected at least 1");
  CHECK(message({.nodes = 31, .classes = 16}) ==
        "sbm: 31 nodes, expected at least two for each of the 16 classes");
  CHECK(message({.nodes = -1}).starts_with("sbm: -1 nodes"));
  CHECK(message({.degree = 0}).starts_with("sbm: degree 0 "));
  CHECK(message({.degree = std::numeric_limits<double>::quiet_NaN()}).starts_with("sbm: degree nan "));
  CHECK(message({.degree = 1e30}).starts_with("sbm: degree 1e+30 "));
  CHECK(message({.features = 0}) == "sbm: 0 features, expected at least 1");
  CHECK(message({.homophily = 1.5}) == "sbm: homophily 1.5, expected a number from 0 to 1");
  CHECK(message({.signal = std::numeric_limits<double>::infinity()}) ==
        "sbm: signal inf, expected a finite number");
  CHECK(message({.train_share = 0}) == "sbm: train_share 0, expected a positive number up to 1");
}
