// SPDX-License-Identifier: MIT

/// Folders of graph samples: those of the TU collection and of OGB, right and damaged, on any number of
/// ranks.
#include "whole_source.hpp"

#include "support/thrown.hpp"

#include <formats/open_source.hpp>
#include <formats/samples/sample_tables.hpp>
#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::gzip;
using sar::test::TemporaryDirectory;
using sar::test::thrown_by_all;

namespace {

/// Files of a folder by name.
using Files = std::map<std::string, std::string>;

/// Three graphs of 3, 1 and 2 nodes: edges of graph 3 come before those of graph 1, one is there twice, and
/// graph 2 has none.
Files tu_folder() {
  return {{"D_graph_indicator.txt", "1\n1\n1\n2\n3\n3\n"},
          {"D_A.txt", "6, 5\n1, 2\n2, 1\n3, 3\n1, 2\n5, 6\n"},
          {"D_graph_labels.txt", "1\n-1\n1\n"},
          {"D_node_labels.txt", "2\n0\n1\n2\n2\n1\n"},
          {"D_node_attributes.txt", "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, 6\n"},
          {"D_edge_labels.txt", "1\n0\n0\n0\n1\n1\n"}};
}

/// Three graphs of 2, 3 and 1 atoms, the last one without bonds.
Files ogb_folder() {
  return {
      {"raw/num-node-list.csv.gz", "2\n3\n1\n"}, {"raw/num-edge-list.csv.gz", "1\n2\n0\n"},
      {"raw/edge.csv.gz", "0,1\n1,2\n0,2\n"},    {"raw/node-feat.csv.gz", "5,0\n6,1\n7,0\n8,1\n0,0\n5,1\n"},
      {"raw/edge-feat.csv.gz", "3\n1\n2\n"},     {"raw/graph-label.csv.gz", "1,0\n,1\n0,0\n"},
      {"split/scaffold/train.csv.gz", "2\n0\n"}, {"split/scaffold/valid.csv.gz", "1\n"},
      {"split/scaffold/test.csv.gz", ""}};
}

SourceOptions blocks_of(Index bytes) {
  SourceOptions options;
  options.block_bytes = bytes;
  return options;
}

/// Writes the files into a folder, after a change of one of them. Collective.
std::string write(const Communicator& comm, const TemporaryDirectory& directory, const Files& files) {
  static int number = 0;
  const std::string path = concat(directory.path(), "/", number++);
  if (comm.rank() == 0)
    for (const auto& [name, text] : files) {
      const std::filesystem::path file = path + "/" + name;
      std::filesystem::create_directories(file.parent_path());
      sar::test::write_file(file.string(), name.ends_with(".gz") ? gzip(text) : text);
    }
  comm.barrier();
  return path;
}

/// A field of all ranks' graphs, row after row.
std::vector<double> whole(const Communicator& comm, const Tensor& mine) {
  std::vector<double> values(mine.values().begin(), mine.values().end());
  return comm.all_gather(std::span<const double>(values));
}
std::vector<Index> whole(const Communicator& comm, const Array<Index>& mine) {
  return comm.all_gather(std::span<const Index>(mine));
}
std::vector<Index> whole(const Communicator& comm, const Array<local_index>& mine) {
  return whole(comm, Array<Index>(mine.begin(), mine.end()));
}

}  // namespace

TEST_CASE("a TU folder") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Files files = tu_folder();
  for (const Index block_bytes : {Index{1} << 22, Index{3}}) {
    CAPTURE(block_bytes);
    const std::string path = write(comm, directory, files);
    const SampleDataset data = read_samples(comm, path, blocks_of(block_bytes), LabelType::automatic);
    CHECK(data.name == "D");
    CHECK(data.format == "TU folder");
    const GraphSamples& samples = data.samples;
    samples.check();
    CHECK(data.book.num_nodes() == 3);
    CHECK(samples.num_graphs() == data.book.num_nodes(comm.rank()));
    CHECK(whole(comm, samples.ids) == std::vector<Index>{0, 1, 2});
    CHECK(whole(comm, samples.src) == std::vector<Index>{1, 0, 0, 2, 1, 0});
    CHECK(whole(comm, samples.dst) == std::vector<Index>{0, 1, 1, 2, 0, 1});
    CHECK(whole(comm, samples.edges.tensors.at("features")) ==
          std::vector<double>{1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1});
    CHECK(whole(comm, samples.nodes.tensors.at("features")) ==
          std::vector<double>{0.5, 1, 0, 0, 1, 1.5, 2, 1, 0, 0, 2.5, 3, 0, 1, 0,
                              3.5, 4, 0, 0, 1, 4.5, 5, 0, 0, 1, 5.5, 6, 0, 1, 0});
    CHECK(whole(comm, data.labels.to_integers("labels")) == std::vector<Index>{1, 0, 1});
    CHECK(std::ranges::count(data.notes, "classes 0 to 1 are the graph labels -1, 1") == 1);
    CHECK_FALSE(data.has_split);
  }
  files.erase("D_node_labels.txt");
  files.erase("D_node_attributes.txt");
  files["D_graph_attributes.txt"] = "0.5, 1\n1.5, 2\n2.5, 3\n";
  const std::string path = write(comm, directory, files);
  const SampleDataset values = read_samples(comm, path, {}, LabelType::automatic);
  CHECK(whole(comm, values.labels.to_tensor()) == std::vector<double>{0.5, 1, 1.5, 2, 2.5, 3});
  CHECK(whole(comm, values.samples.nodes.tensors.at("features")) == std::vector<double>(6, 1));
  const SampleDataset classes = read_samples(comm, path, {}, LabelType::classes);
  CHECK(whole(comm, classes.labels.to_integers("labels")) == std::vector<Index>{1, 0, 1});
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)open_source(comm, path, {}); }) ==
        path + ": is a TU dataset of graph samples, expected --task graph, or a graph");
}

TEST_CASE("labels that only 64 bits tell apart") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Files files = tu_folder();
  files["D_graph_labels.txt"] = "202401012\n202401011\n9007199254740993\n";
  files["D_node_labels.txt"] = "16777216\n16777217\n16777218\n16777217\n16777216\n16777216\n";
  files["D_edge_labels.txt"] = "-16777217\n-16777216\n-16777216\n-16777216\n-16777216\n-16777217\n";
  files.erase("D_node_attributes.txt");
  const SampleDataset data = read_samples(comm, write(comm, directory, files), {}, LabelType::automatic);
  CHECK(whole(comm, data.labels.to_integers("labels")) == std::vector<Index>{1, 0, 2});
  CHECK(whole(comm, data.samples.nodes.tensors.at("features")) ==
        std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0});
  CHECK(whole(comm, data.samples.edges.tensors.at("features")) ==
        std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0});
  files["D_graph_labels.txt"] = "9007199254740992\n9007199254740993\n20240101100000000000\n";
  const std::string path = write(comm, directory, files);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)read_samples(comm, path, {}, LabelType::automatic);
        }).find("one has more than 64 bits") != std::string::npos);
  files["D_graph_labels.txt"] = "1\n1e39\n2.5\n";
  if (sizeof(real) == 4) {
    const std::string large = write(comm, directory, files);
    CHECK(thrown_by_all<InputError>(comm, [&] { (void)read_samples(comm, large, {}, LabelType::values); }) ==
          large +
              "/D_graph_labels.txt: line 2: column 1 is '1e39', expected a number that single "
              "precision can hold");
  }
  Files ogb = ogb_folder();
  ogb["raw/graph-label.csv.gz"] = "16777217\n16777216\n0.5\n";
  const SampleDataset of_ogb = read_samples(comm, write(comm, directory, ogb), {}, LabelType::automatic);
  CHECK(of_ogb.labels.type == NpyType::float64);
}

TEST_CASE("graphs without nodes") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Files files = tu_folder();
  files["D_graph_indicator.txt"] = "2\n2\n2\n3\n6\n6\n";  // of 7 graphs
  files["D_graph_labels.txt"] = "1\n0\n1\n0\n1\n0\n1\n";
  for (const Index block_bytes : {Index{1} << 22, Index{3}}) {
    const SampleDataset data =
        read_samples(comm, write(comm, directory, files), blocks_of(block_bytes), LabelType::automatic);
    data.samples.check();
    CHECK(data.book.num_nodes() == 7);
    std::vector<Index> sizes;
    for (Index g = 0; g < data.samples.num_graphs(); ++g) sizes.push_back(data.samples.num_nodes(g));
    CHECK(comm.all_gather(std::span<const Index>(sizes)) == std::vector<Index>{0, 3, 1, 0, 0, 2, 0});
    CHECK(whole(comm, data.samples.src) == std::vector<Index>{1, 0, 0, 2, 1, 0});
    CHECK(whole(comm, data.labels.to_integers("labels")) == std::vector<Index>{1, 0, 1, 0, 1, 0, 1});
    CHECK(std::ranges::count(data.notes, "4 graphs have no nodes, the first is graph 1: the readout is 0") ==
          1);
  }
  Files ogb = ogb_folder();
  ogb["raw/num-node-list.csv.gz"] = "2\n3\n0\n1\n";
  ogb["raw/num-edge-list.csv.gz"] = "1\n2\n0\n0\n";
  ogb["raw/graph-label.csv.gz"] = "1,0\n,1\n0,0\n1,1\n";
  const SampleDataset data = read_samples(comm, write(comm, directory, ogb), {}, LabelType::automatic);
  CHECK(whole(comm, data.samples.dst) == std::vector<Index>{1, 2, 2});
  CHECK(std::ranges::count(data.notes, "1 graph has no nodes, the first is graph 2: the readout is 0") == 1);
}

TEST_CASE("damaged TU folders") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const auto text = [&](const std::string& name, const std::string& content) {
    Files files = tu_folder();
    if (content == "none")
      files.erase("D_" + name + ".txt");
    else
      files["D_" + name + ".txt"] = content;
    const std::string path = write(comm, directory, files);
    const std::string message =
        thrown_by_all<InputError>(comm, [&] { (void)read_samples(comm, path, {}, LabelType::automatic); });
    const std::string place = path + "/D_";
    return message.starts_with(place) ? message.substr(place.size()) : message;
  };
  CHECK(
      text("graph_indicator", "1\n2\n1\n2\n3\n3\n") ==
      "graph_indicator.txt: line 3: the node is of graph 1 and that of the line before of graph 2, expected "
      "ascending numbers");
  CHECK(
      text("graph_indicator", "1\n1\n1\n2\n4\n4\n")
          .starts_with("graph_indicator.txt: line 5: the node is of graph 4, expected at most 3, the number "
                       "of lines of "));
  CHECK(text("graph_indicator", "0\n1\n1\n2\n3\n3\n").find("column 1 is '0', expected 1 to") !=
        std::string::npos);
  CHECK(text("graph_indicator", "") == "graph_indicator.txt: there are no nodes, expected at least one");
  CHECK(text("A", "6, 5\n1, 4\n") ==
        "A.txt: line 2: the edge joins node 1 of graph 1 and node 4 of graph 2, expected two nodes of one "
        "graph");
  CHECK(text("A", "6, 7\n").find("column 2 is '7', expected 1 to 6") != std::string::npos);
  CHECK(text("A", "none") ==
        "A.txt: there is no such file, expected one beside the graph_indicator of a TU dataset");
  CHECK(text("graph_labels", "none") ==
        "graph_labels.txt: there is no such file, expected one beside the graph_indicator of a TU dataset");
  CHECK(
      text("graph_labels", "1\n-1\n")
          .starts_with("graph_indicator.txt: line 5: the node is of graph 3, expected at most 2, the number "
                       "of lines of "));
  CHECK(
      text("graph_labels", "")
          .starts_with("graph_indicator.txt: line 1: the node is of graph 1, expected at most 0, the number "
                       "of lines of "));
  CHECK(text("graph_labels", "1\nnan\n1\n").find("column 1 is 'nan', expected a finite number") !=
        std::string::npos);
  CHECK(text("node_labels", "1\n2\n3\n") ==
        "node_labels.txt: there are 3 lines of numbers, expected 6, one for each node");
  CHECK(text("node_labels", "1\n2\n3\n1\n2\n0.5\n") ==
        "node_labels.txt: a label is 0.5, expected whole numbers of 64 bits");
  CHECK(text("node_labels", "1\n2\n3\n1\n2\n9999\n") ==
        "node_labels.txt: the labels are from 1 to 9999, expected at most 4096 of them for one-hot columns");
  CHECK(
      text("node_attributes", "0.5\nnan\n1\n2\n3\n4\n").find("column 1 is 'nan', expected a finite number") !=
      std::string::npos);
  CHECK(text("edge_labels", "1\n2\n3\n") ==
        "edge_labels.txt: there are 3 lines of numbers, expected 6, one for each edge");
}

TEST_CASE("an OGB folder of many graphs") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = write(comm, directory, ogb_folder());
  for (const Index block_bytes : {Index{1} << 22, Index{3}}) {
    const SampleDataset data = read_samples(comm, path, blocks_of(block_bytes), LabelType::automatic);
    CHECK(data.format == "OGB folder");
    const GraphSamples& samples = data.samples;
    samples.check();
    CHECK(whole(comm, samples.src) == std::vector<Index>{0, 0, 1});
    CHECK(whole(comm, samples.dst) == std::vector<Index>{1, 2, 2});
    CHECK(whole(comm, samples.nodes.integers.at("features").values) ==
          std::vector<Index>{5, 0, 6, 1, 7, 0, 8, 1, 0, 0, 5, 1});
    CHECK(whole(comm, samples.edges.integers.at("features").values) == std::vector<Index>{3, 2, 1});
    REQUIRE(data.has_split);
    const char* const masks[] = {"101", "010", "000"};
    for (int i = 0; i < 3; ++i) {
      std::string mask;
      for (const std::uint8_t bit : data.masks[i].to_mask("mask")) mask += bit != 0 ? '1' : '0';
      std::vector<char> all = comm.all_gather(std::span<const char>(mask));
      CHECK(std::string(all.begin(), all.end()) == masks[i]);
    }
  }
}

TEST_CASE("damaged OGB folders of many graphs") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const auto text = [&](const std::string& name, const std::string& content) {
    Files files = ogb_folder();
    files["raw/" + name + ".csv.gz"] = content;
    const std::string path = write(comm, directory, files);
    const std::string message =
        thrown_by_all<InputError>(comm, [&] { (void)read_samples(comm, path, {}, LabelType::automatic); });
    const std::string place = path + "/raw/";
    return message.starts_with(place) ? message.substr(place.size()) : message;
  };
  CHECK(text("num-node-list", "0\n0\n0\n") ==
        "num-node-list.csv.gz: there are no nodes, expected at least one");
  CHECK(text("num-edge-list", "1\n2\n") ==
        "num-edge-list.csv.gz: there are 2 lines, expected 3, one for each graph of num-node-list.csv.gz");
  CHECK(text("num-edge-list", "1\n1\n0\n") ==
        "edge.csv.gz: there are at least 3 edges, expected 2, the sum of num-edge-list.csv.gz");
  CHECK(text("edge", "0,1\n1,2\n").find("edge.csv.gz: there are 2 edges, expected 3") != std::string::npos);
  CHECK(text("edge", "0,2\n1,2\n0,2\n") ==
        "edge.csv.gz: line 1: edge (0, 2) is of graph 0, expected ends below 2, its number of nodes");
  CHECK(text("node-feat", "5\n6\n") ==
        "node-feat.csv.gz: there are 2 lines of numbers, expected 6, one for each node");
  CHECK(text("node-feat", "5\n6\n-1\n1\n1\n1\n") ==
        "node-feat.csv.gz: row 2, column 0 is -1 or missing, expected categories from 0 on");
  CHECK(text("node-feat", "5\n6\n\"\"\n1.5\n1\n1\n") ==
        "node-feat.csv.gz: row 2, column 0 is missing, expected finite numbers");
  CHECK(text("graph-label", "1\n0\n") ==
        "graph-label.csv.gz: there are 2 lines of numbers, expected 3, one for each graph");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)read_samples(comm, directory.path(), {}, LabelType::automatic);
        }).starts_with(directory.path() + ": there is no dataset of graph samples, expected a folder"));
}
