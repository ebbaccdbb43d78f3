// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"
#include "support/write_npy.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/data/label_columns.hpp>
#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/partition/node_partition.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The transforms by their definitions, on the edge list of the whole graph.
WholeDataset transformed(WholeDataset graph, const DatasetOptions& options, bool weighted) {
  const auto nodes = static_cast<Index>(graph.labels.size());
  auto next_id = static_cast<Index>(graph.edges.size());
  if (options.add_reverse_edges) {
    const std::vector<Edge> forward = graph.edges;
    for (const Edge& e : forward) graph.edges.push_back({e.dst, e.src, e.id + next_id, e.weight});
    next_id *= 2;
  }
  std::map<Index, Edge> loops;  // by node, the one of largest id
  for (const Edge& e : graph.edges)
    if (e.src == e.dst && (!loops.contains(e.src) || loops.at(e.src).id < e.id)) loops[e.src] = e;
  if (options.add_self_loops && options.remaining_self_loops)
    std::erase_if(graph.edges, [](const Edge& e) { return e.src == e.dst; });
  for (Index v = 0; options.add_self_loops && v < nodes; ++v) {
    const bool stays = options.remaining_self_loops && loops.contains(v);
    graph.edges.push_back(stays ? loops.at(v) : Edge{v, v, next_id + v, weighted ? 1.0 : 0.0});
  }
  if (options.drop_duplicates) {
    std::map<std::pair<Index, Index>, Edge> first;
    for (const Edge& e : graph.edges) {
      const auto [found, is_new] = first.try_emplace({e.src, e.dst}, e);
      if (!is_new && e.id < found->second.id) found->second = e;
    }
    graph.edges.clear();
    for (const auto& [ends, e] : first) graph.edges.push_back(e);
  }
  std::sort(graph.edges.begin(), graph.edges.end());
  if (!options.normalize_features) return graph;
  for (Index v = 0; v < nodes; ++v) {
    double sum = 0;
    for (Index f = 0; f < graph.width; ++f) sum += std::abs(graph.features[v * graph.width + f]);
    for (Index f = 0; sum > 0 && f < graph.width; ++f) {
      double& x = graph.features[v * graph.width + f];
      x = static_cast<real>(x / sum);
    }
  }
  return graph;
}

std::vector<PartitionMethod> methods() {
  std::vector<PartitionMethod> list{PartitionMethod::contiguous, PartitionMethod::random,
                                    PartitionMethod::ldg};
  if (has_metis()) list.push_back(PartitionMethod::metis);
  return list;
}

}  // namespace

TEST_CASE("a dataset is the same graph for every method, with every transform") {
  const Communicator comm = Communicator::world();
  for (const bool weighted : {false, true}) {
    const TemporaryDirectory directory(comm);
    const WholeDataset original = small_graph(weighted);
    if (comm.rank() == 0) write_dataset(directory.path(), original, weighted);
    comm.barrier();
    for (const PartitionMethod method : methods()) {
      for (int choice = 0; choice < 32; ++choice) {
        if ((choice & 16) != 0 && (choice & 10) != 2) continue;  // remaining: with self loops, plain features
        CAPTURE(to_string(method));
        CAPTURE(choice);
        const DatasetOptions options{.add_reverse_edges = (choice & 1) != 0,
                                     .add_self_loops = (choice & 2) != 0,
                                     .drop_duplicates = (choice & 4) != 0,
                                     .normalize_features = (choice & 8) != 0,
                                     .partition = method,
                                     .partition_seed = 3,
                                     .remaining_self_loops = (choice & 16) != 0};
        const NodeData data = load_dataset(comm, directory.path() + "/", options);
        CHECK(data.name == std::filesystem::path(directory.path()).filename());
        CHECK(data.num_nodes() == 37);
        CHECK(data.num_classes == 4);
        if (weighted) CHECK(data.edges.weight.size() == data.edges.src.size());
        const WholeDataset expected = transformed(original, options, weighted);
        CHECK(gather_graph(comm, data) == expected);
        if (method == PartitionMethod::contiguous) {
          CHECK(data.book == PartitionBook::even(37, comm.size()));
          for (std::size_t i = 0; i < data.original_ids.size(); ++i)
            CHECK(data.original_ids[i] == data.book.begin(comm.rank()) + static_cast<Index>(i));
        }
      }
    }
  }
}

TEST_CASE("features of every type") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original = small_graph(false);
  for (const NpyType type : {NpyType::float16, NpyType::float32, NpyType::float64, NpyType::uint8}) {
    if (type == NpyType::uint8)
      for (double& x : original.features) x = static_cast<std::uint8_t>(x);
    comm.barrier();
    if (comm.rank() == 0) {
      write_dataset(directory.path(), original, false);
      write_npy<double>(directory.path() + "/features.npy", std::array<Index, 2>{37, 5}, original.features,
                        type);
    }
    comm.barrier();
    const NodeData data = load_dataset(comm, directory.path(), {.partition = PartitionMethod::random});
    CHECK(gather_graph(comm, data).features == original.features);
  }
}

TEST_CASE("labels that are no classes") {
  const Communicator comm = Communicator::world();
  const std::string data = SAR_TEST_DATA "/formats/npy/";
  const auto load = [&](const std::string& labels, LabelType type) {
    const TemporaryDirectory directory(comm);
    namespace fs = std::filesystem;
    if (comm.rank() == 0) {
      for (const char* name : {"edge_index", "features", "train_mask", "val_mask", "test_mask"})
        fs::copy_file(data + name + ".npy", concat(directory.path(), "/", name, ".npy"));
      fs::copy_file(data + labels, directory.path() + "/labels.npy");
    }
    comm.barrier();
    return load_dataset(comm, directory.path(), {.label_type = type});
  };
  const auto is_unlabelled = [](Index v) { return v == 1 || v == 5 || v == 11; };
  const NodeData values = load("labels.values.npy", LabelType::automatic);
  CHECK(values.label_type == LabelType::values);
  CHECK(values.num_outputs() == 1);
  const NodeData several = load("labels.several.npy", LabelType::automatic);
  CHECK(several.label_type == LabelType::binary);
  CHECK(several.num_outputs() == 3);
  for (std::size_t i = 0; i < values.original_ids.size(); ++i) {
    const Index v = values.original_ids[i], row = static_cast<Index>(i);
    CHECK(values.labels[i] == (is_unlabelled(v) ? -1 : 0));
    CHECK(several.labels[i] == (is_unlabelled(v) ? -1 : 0));
    if (is_unlabelled(v)) {
      CHECK(std::isnan(values.targets.row(row)[0]));
      continue;
    }
    CHECK(values.targets.row(row)[0] == static_cast<real>(v) / 8);
    CHECK(several.targets.row(row)[0] == v % 2);
    CHECK(std::isnan(several.targets.row(row)[1]) == (v == 2));
    CHECK(several.targets.row(row)[2] == (v < 6 ? 1 : 0));
  }
  const NodeData classes = load("labels.one_hot.npy", LabelType::classes);
  CHECK(classes.num_classes == 3);
  for (std::size_t i = 0; i < classes.original_ids.size(); ++i)
    CHECK(classes.labels[i] == classes.original_ids[i] % 3);
  CHECK(load("labels.npy", LabelType::automatic).label_type == LabelType::classes);
  CHECK(load("labels.float32.npy", LabelType::automatic).label_type == LabelType::classes);
  CHECK(load("labels.npy", LabelType::values).num_outputs() == 1);
  CHECK(load("labels.one_hot.npy", LabelType::automatic).label_type == LabelType::classes);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)load("features.int64.npy", LabelType::automatic);
        }).find("rows of 5 whole numbers, and not only 0 and 1, expected to be told") != std::string::npos);
  CHECK(load("features.npy", LabelType::automatic).num_outputs() == 5);
  CHECK_THROWS_AS(load("labels.values.npy", LabelType::binary), InputError);
  CHECK_THROWS_AS(load("labels.values.npy", LabelType::classes), InputError);
}

TEST_CASE("a row with one 1 and another number is not one-hot") {
  const Communicator comm = Communicator::world();
  NodeData data;
  data.book = PartitionBook::even(comm.size(), comm.size());
  data.original_ids = {comm.rank()};
  DataArray column(NpyType::uint8, {2}, 1);
  column.bytes[0] = std::byte{1};
  column.bytes[1] = std::byte{2};
  CHECK(thrown_by_all<InputError>(comm, [&] {
          comm.agree([&] { take_labels(comm, column, "labels", LabelType::classes, data); });
        }).ends_with("node 0 has 1 ones and 1 other numbers"));
}

TEST_CASE("labels whose meaning nobody can know") {
  const Communicator comm = Communicator::world();
  const auto take = [&](std::vector<double> all, LabelType type) {  // label of node v: all[v % size]
    NodeData data;
    data.book = PartitionBook::even(3 * comm.size(), comm.size());
    DataArray column(NpyType::float64, {}, 3);
    for (Index i = 0; i < 3; ++i) {
      data.original_ids.push_back(3 * comm.rank() + i);
      std::memcpy(column.row(i), &all[static_cast<std::size_t>(3 * comm.rank() + i) % all.size()], 8);
    }
    comm.agree([&] { take_labels(comm, column, "labels", type, data); });
    return data;
  };
  const auto error = [&](const std::vector<double>& all, LabelType type) {
    return thrown_by_all<InputError>(comm, [&] { (void)take(all, type); });
  };
  CHECK(error({-1, 1}, LabelType::automatic) ==
        "labels: the labels are -1 and 1, and -1 is no class, but says that a node has no label, expected "
        "classes from 0, or to be told that there is one class (train: --loss cross-entropy)");
  CHECK(error({0, -1, -1}, LabelType::automatic).starts_with("labels: the labels are -1 and 0, "));
  CHECK(error({1, -1, NAN}, LabelType::binary).ends_with("expected 0 and 1, or NaN for a missing label"));
  CHECK(take({-1, 1}, LabelType::classes).num_classes == 2);
  CHECK(take({-1, 1, 2}, LabelType::automatic).num_classes == 3);
  CHECK(take({NAN, 1, 1}, LabelType::automatic).num_classes == 2);
  CHECK(take({-1, 0, 0}, LabelType::binary).label_type == LabelType::binary);
  CHECK(take({-1, 0, 1}, LabelType::binary).label_type == LabelType::binary);
  CHECK(error({3e9, 3e9 + 1, 0}, LabelType::automatic)
            .starts_with("labels: the labels are whole numbers, and not"));
  CHECK(error({-5, 1, 2}, LabelType::automatic).ends_with("(train: --loss mse or mae)"));
  CHECK(take({-5, 1, 2}, LabelType::values).label_type == LabelType::values);
  CHECK(take({-5, 1, 2.5}, LabelType::automatic).label_type == LabelType::values);
}

TEST_CASE("NumPy's files in every order, byte order and type are the same dataset") {
  const Communicator comm = Communicator::world();
  const std::string data = SAR_TEST_DATA "/formats/npy/";
  const auto load = [&](const std::vector<std::string>& files, DatasetOptions options = {}) {
    const TemporaryDirectory directory(comm);
    namespace fs = std::filesystem;
    if (comm.rank() == 0) {
      for (const char* name : {"edge_index", "features", "labels", "train_mask", "val_mask", "test_mask"})
        fs::copy_file(data + name + ".npy", concat(directory.path(), "/", name, ".npy"));
      for (const std::string& file : files)  // "features.big.npy" takes the place of "features.npy"
        fs::copy_file(data + file, concat(directory.path(), "/", file.substr(0, file.find('.')), ".npy"),
                      fs::copy_options::overwrite_existing);
      if (!options.fields.empty())
        fs::rename(directory.path() + "/features.npy", directory.path() + "/x.npy");
    }
    comm.barrier();
    return gather_graph(comm, load_dataset(comm, directory.path(), options));
  };
  const WholeDataset expected = load({});
  REQUIRE(expected.labels.size() == 12);
  for (const char* file : {"features.fortran.npy",     "features.big.npy",
                           "features.big_fortran.npy", "features.int8.npy",
                           "features.uint16.npy",      "features.uint32.npy",
                           "features.uint64.npy",      "features.int64.npy",
                           "features.float16.npy",     "features.float64.npy",
                           "features.version2.npy",    "features.version3.npy",
                           "features.python2.npy",     "edge_index.int8.npy",
                           "edge_index.int32.npy",     "edge_index.uint32.npy",
                           "edge_index.uint64.npy",    "edge_index.big.npy",
                           "edge_index.fortran.npy",   "edge_index.big_fortran.npy",
                           "edge_index.float64.npy",   "labels.int8.npy",
                           "labels.int16.npy",         "labels.float32.npy",
                           "labels.column.npy",        "labels.big.npy",
                           "train_mask.uint8.npy",     "train_mask.float64.npy",
                           "train_mask.column.npy"}) {
    CAPTURE(file);
    CHECK(load({file}, {.partition = PartitionMethod::random}) == expected);
  }
  CHECK(load({"features.fortran.npy"}, {.fields = {{"features", "x"}}}) == expected);
}

TEST_CASE("features that nothing wants are not read") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original = small_graph(false);
  for (double& x : original.features) x = std::numeric_limits<double>::quiet_NaN();
  if (comm.rank() == 0) write_dataset(directory.path(), original, false);
  comm.barrier();
  const NodeData data = load_dataset(comm, directory.path(), {.features = false});
  CHECK(data.features.shape() == Shape{data.book.num_nodes(comm.rank()), 0});
  CHECK(data.num_nodes() == 37);
  CHECK(data.num_classes == 4);
}

TEST_CASE("edge weights of every type") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original = small_graph(true);
  for (const NpyType type : {NpyType::float16, NpyType::float32, NpyType::float64, NpyType::uint8,
                             NpyType::int8, NpyType::int16, NpyType::int32, NpyType::int64}) {
    CAPTURE(to_string(type));
    // the largest integers of each type that float holds exactly
    const std::int64_t large = type == NpyType::int64   ? std::numeric_limits<std::int64_t>::min()
                               : type == NpyType::int32 ? -(std::int64_t{1} << 24)
                               : type == NpyType::int16 ? -32768
                               : type == NpyType::int8  ? -128
                                                        : 255;
    std::vector<std::int64_t> weights;
    for (Edge& e : original.edges) {
      weights.push_back(e.id % 7 == 0 ? large : e.id % 100);
      e.weight = static_cast<double>(weights.back());
    }
    if (comm.rank() == 0) {
      write_dataset(directory.path(), original, true);
      write_npy<std::int64_t>(directory.path() + "/edge_weight.npy",
                              std::array<Index, 1>{std::ssize(weights)}, weights, type);
    }
    comm.barrier();
    const NodeData data = load_dataset(comm, directory.path(), {.partition = PartitionMethod::random});
    WholeDataset sorted = original;
    std::sort(sorted.edges.begin(), sorted.edges.end());
    CHECK(gather_graph(comm, data) == sorted);
    comm.barrier();
  }
}

TEST_CASE("edges in Fortran order") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original = small_graph(true);
  // more edges on a rank than are read at once
  for (Index e = 210; e < 300000; ++e) original.edges.push_back({e % 37, e * 5 % 37, e, 0.5});
  if (comm.rank() == 0) {
    write_dataset(directory.path(), original, true);
    const std::string path = directory.path() + "/edge_index.npy";
    std::vector<Index> pairs;
    for (const Edge& e : original.edges) pairs.insert(pairs.end(), {e.src, e.dst});
    write_npy<Index>(path, std::array<Index, 2>{2, static_cast<Index>(original.edges.size())}, pairs,
                     NpyType::int64);
    mark_as_fortran_order(path);
  }
  comm.barrier();
  std::sort(original.edges.begin(), original.edges.end());
  CHECK(gather_graph(comm, load_dataset(comm, directory.path())) == original);
}

TEST_CASE("a graph without edges") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original = small_graph(false);
  original.edges.clear();
  if (comm.rank() == 0) write_dataset(directory.path(), original, false);
  comm.barrier();
  for (const PartitionMethod method : methods()) {
    CHECK(load_dataset(comm, directory.path(), {.partition = method}).num_edges == 0);
    const DatasetOptions all{true, true, true, true, method, 0};
    CHECK(gather_graph(comm, load_dataset(comm, directory.path(), all)) == transformed(original, all, false));
  }
}

TEST_CASE("a rank may hold no node, no edge, or neither share of the input") {
  const Communicator comm = Communicator::world();
  const WholeDataset original = small_graph(true);
  for (int empty = 0; empty < comm.size(); ++empty) {
    // all nodes but those of one rank; with one rank, none is empty
    std::vector<std::int32_t> part_of;
    for (int v = 0; v < 37; ++v)
      part_of.push_back(comm.size() == 1 ? 0 : (empty + 1 + v % (comm.size() - 1)) % comm.size());
    EdgeList mine;  // the last rank brings all edges
    if (comm.rank() == comm.size() - 1) {
      for (const Edge& e : original.edges) {
        mine.src.push_back(e.src);
        mine.dst.push_back(e.dst);
        mine.id.push_back(e.id);
        mine.weight.push_back(static_cast<real>(e.weight));
      }
    }
    const DatasetOptions options{true, true, true, true, PartitionMethod::contiguous, 0};
    const NodePartition partition =
        NodePartition::from_assignment(Communicator::self(), part_of, comm.size());
    NodeData given;
    given.book = partition.book();
    given.original_ids = partition.original_ids(comm.rank());
    partition.to_partitioned(mine.src);
    partition.to_partitioned(mine.dst);
    exchange_edges(comm, given.book, std::move(mine), true, given.edges);
    given.features = Tensor(Shape{static_cast<Index>(given.original_ids.size()), 5});
    for (std::size_t i = 0; i < given.original_ids.size(); ++i) {
      const auto v = static_cast<std::size_t>(given.original_ids[i]);
      for (std::size_t f = 0; f < 5; ++f)
        given.features.row(static_cast<Index>(i))[f] = static_cast<real>(original.features[v * 5 + f]);
      given.labels.push_back(original.labels[v]);
      given.train_mask.push_back(original.train_mask[v]);
      given.val_mask.push_back(original.val_mask[v]);
      given.test_mask.push_back(original.test_mask[v]);
    }
    const NodeData data = to_node_data(comm, to_graph_data(std::move(given)), options);
    if (comm.size() > 1) CHECK(data.book.num_nodes(empty) == 0);
    CHECK(data.num_classes == 4);
    CHECK(gather_graph(comm, data) == transformed(original, options, true));
  }
}

TEST_CASE("a rank holds its share") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  WholeDataset original;
  constexpr Index nodes = 4000;
  for (Index e = 0; e < 200000; ++e) original.edges.push_back({e * 7919 % nodes, e * 104729 % nodes, e, 0});
  original.width = 50;
  original.features.assign(nodes * 50, 1);
  original.labels.assign(nodes, 0);
  original.train_mask.assign(nodes, 1);
  original.val_mask = original.test_mask = original.train_mask;
  if (comm.rank() == 0) write_dataset(directory.path(), original, false);
  comm.barrier();
  reset_peak_bytes();
  const std::size_t before = live_bytes();
  const NodeData data = load_dataset(comm, directory.path(), {.partition = PartitionMethod::random});
  const auto ranks = static_cast<std::size_t>(comm.size());
  // 24 bytes for an edge: once as read, once as received, and 20 in transit
  const std::size_t edge_bytes = 200000 * (24 + 24 + 20) / ranks;
  const std::size_t node_bytes = nodes * (50 * sizeof(real) + 8 + 8 + 8 + 3) / ranks;
  CHECK(peak_bytes() - before <= edge_bytes * 11 / 10 + node_bytes);
  CHECK(live_bytes() - before <= (200000 * 24 * 11 / 10) / ranks + node_bytes);
  CHECK(data.num_edges == 200000);
}

TEST_CASE("Cora") {
  const Communicator comm = Communicator::world();
  const std::string directory = std::string(SAR_SHARED_DATA) + "/cora";
  if (!std::filesystem::exists(directory)) {
    MESSAGE("skipped: there is no " << directory);
    return;
  }
  WholeDataset expected;
  const NpyFile edge_index(directory + "/edge_index.npy"), features(directory + "/features.npy");
  REQUIRE(edge_index.fortran_order());
  std::vector<Index> ends(edge_index.size());
  edge_index.read<Index>(0, edge_index.size(), ends);
  for (std::size_t e = 0; e < ends.size() / 2; ++e)
    expected.edges.push_back({ends[2 * e], ends[2 * e + 1], static_cast<Index>(e), 0});
  std::sort(expected.edges.begin(), expected.edges.end());
  expected.features.resize(features.size());
  features.read<double>(0, features.size(), expected.features);
  for (const PartitionMethod method : methods()) {
    CAPTURE(to_string(method));
    const NodeData data = load_dataset(comm, directory, {.partition = method});
    CHECK(data.name == "cora");
    CHECK(data.num_nodes() == 2708);
    CHECK(data.num_edges == 10556);
    CHECK(data.num_classes == 7);
    const WholeDataset graph = gather_graph(comm, data);
    CHECK(graph.edges == expected.edges);
    CHECK(graph.width == 1433);
    CHECK(graph.features == expected.features);
    CHECK(std::count(graph.train_mask.begin(), graph.train_mask.end(), 1) == 140);
    CHECK(std::count(graph.val_mask.begin(), graph.val_mask.end(), 1) == 500);
    CHECK(std::count(graph.test_mask.begin(), graph.test_mask.end(), 1) == 1000);
    CHECK(std::vector<std::int64_t>(graph.labels.begin(), graph.labels.begin() + 6) ==
          std::vector<std::int64_t>{3, 4, 4, 0, 3, 2});
    // METIS cuts few edges; a random partition nearly all it can
    Index cut = 0;
    for (const Index src : data.edges.src) cut += data.book.owner(src) != comm.rank();
    const double share = static_cast<double>(comm.all_reduce(cut)) / 10556;
    if (method == PartitionMethod::metis) CHECK(share < 0.15);
    if (method == PartitionMethod::random)
      CHECK(share == doctest::Approx(1 - 1.0 / comm.size()).epsilon(0.05));
    // every edge has its reverse, and no node a loop: adding reverses and dropping repetitions changes
    // nothing
    const NodeData again = load_dataset(
        comm, directory, {.add_reverse_edges = true, .drop_duplicates = true, .partition = method});
    CHECK(gather_graph(comm, again).edges == expected.edges);
  }
}
