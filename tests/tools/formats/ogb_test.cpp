// SPDX-License-Identifier: MIT
#include "whole_source.hpp"

#include "support/thrown.hpp"

#include <formats/open_source.hpp>
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::gzip;
using sar::test::TemporaryDirectory;
using sar::test::thrown_by_all;
using sar::test::WholeSource;

namespace {

constexpr Index nodes = 29, edges = 140, width = 5;

/// Files of a folder by name.
using Files = std::map<std::string, std::string>;

std::string lines_of(Index count, const std::function<std::string(Index)>& line) {
  std::string text;
  for (Index i = 0; i < count; ++i) text += line(i) + "\n";
  return text;
}

/// A small dataset as the ogb package downloads it; every sixth node has no label.
Files small_folder() {
  Files files;
  files["raw/num-node-list.csv.gz"] = "29\n";
  files["raw/num-edge-list.csv.gz"] = "140\n";
  files["raw/edge.csv.gz"] =
      lines_of(edges, [](Index e) { return concat(e * 11 % nodes, ',', e * e % nodes); });
  files["raw/node-feat.csv.gz"] = lines_of(nodes, [](Index v) {
    std::string line;
    for (Index j = 0; j < width; ++j)
      line += concat(j > 0 ? "," : "", static_cast<double>(v * width + j) / 4 - 9);
    return line;
  });
  files["raw/node-label.csv.gz"] =
      lines_of(nodes, [](Index v) { return v % 6 == 0 ? std::string("\"\"") : concat(v % 4, ".0"); });
  files["raw/node_year.csv.gz"] = lines_of(nodes, [](Index v) { return concat(2000 + v); });
  files["raw/edge-feat.csv.gz"] = lines_of(edges, [](Index e) { return concat(e, ",-1e-3"); });
  files["mapping/README.md"] = "ignored";
  files["split/time/train.csv.gz"] = lines_of(10, [](Index i) { return concat(2 * i + 1); });
  files["split/time/valid.csv.gz"] = "0\n2\n4\n";
  files["split/time/test.csv.gz"] = "28\n26";
  return files;
}

class Folder {
 public:
  Folder(const Communicator& comm, const Files& files) : comm_(comm), directory_(comm) {
    if (comm.rank() == 0) {
      for (const auto& [name, text] : files) {
        const std::filesystem::path path = directory_.path() + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        test::write_file(path.string(), name.ends_with(".gz") ? gzip(text) : text);
      }
    }
    comm.barrier();
  }
  [[nodiscard]] std::unique_ptr<GraphSource> open(const SourceOptions& options = {}) const {
    return open_source(comm_, directory_.path(), options);
  }
  [[nodiscard]] std::string error(const SourceOptions& options = {}) const {
    std::string text = thrown_by_all<InputError>(comm_, [&] { static_cast<void>(open(options)); });
    if (text.starts_with(directory_.path())) text.erase(0, directory_.path().size());
    return text;
  }

 private:
  Communicator comm_;
  TemporaryDirectory directory_;
};

SourceOptions blocks_of(Index bytes) {
  SourceOptions options;
  options.block_bytes = bytes;
  return options;
}

std::string error_of(const Communicator& comm, const std::string& name, const std::string& text) {
  Files files = small_folder();
  files[name] = text;
  return Folder(comm, files).error(blocks_of(16));
}

}  // namespace

TEST_CASE("an OGB folder is read whole, for every size of block, packed or not") {
  const Communicator comm = Communicator::world();
  Files plain;
  for (const auto& [name, text] : small_folder())
    plain[name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name] = text;
  for (const Files& files : {small_folder(), plain}) {
    const Folder folder(comm, files);
    for (const Index block : {5, 33, 333, 1 << 22}) {
      const auto source = folder.open(blocks_of(block));
      const WholeSource whole = test::gather_source(*source);
      REQUIRE(whole.num_nodes == nodes);
      REQUIRE(static_cast<Index>(whole.edges.size()) == edges);
      for (Index e = 0; e < edges; ++e) {
        CHECK(whole.edges[e] == std::pair<Index, Index>{e * 11 % nodes, e * e % nodes});
        CHECK(whole.edge_data.at("features")[2 * e] == static_cast<double>(e));
        CHECK(whole.edge_data.at("features")[2 * e + 1] == static_cast<double>(static_cast<real>(-1e-3)));
      }
      for (Index v = 0; v < nodes; ++v) {
        const auto i = static_cast<std::size_t>(v);
        for (Index j = 0; j < width; ++j)
          CHECK(whole.node_data.at("features")[v * width + j] == static_cast<double>(v * width + j) / 4 - 9);
        CHECK(whole.node_data.at("labels")[i] == static_cast<double>(v % 6 == 0 ? -1 : v % 4));
        CHECK(whole.node_data.at("node_year")[i] == static_cast<double>(2000 + v));
        CHECK(whole.node_data.at("train_mask")[i] == (v % 2 == 1 && v < 20 ? 1.0 : 0.0));
        CHECK(whole.node_data.at("val_mask")[i] == (v == 0 || v == 2 || v == 4 ? 1.0 : 0.0));
        CHECK(whole.node_data.at("test_mask")[i] == (v == 26 || v == 28 ? 1.0 : 0.0));
      }
    }
  }
}

TEST_CASE("labels of several tasks are rows; tables of other numbers are floating point") {
  const Communicator comm = Communicator::world();
  Files files = small_folder();
  files["raw/node-label.csv.gz"] = lines_of(nodes, [](Index v) { return concat(v % 2, ",0,1"); });
  files["raw/node_year.csv.gz"] = lines_of(nodes, [](Index v) { return v == 20 ? "0.5" : concat(v); });
  files.erase("raw/node-feat.csv.gz");
  const auto source = Folder(comm, files).open(blocks_of(8));
  std::map<std::string, DataField> fields;
  for (const DataField& field : source->types().node_types[0].unread) fields[field.name] = field;
  CHECK(fields.at("labels") == DataField{"labels", NpyType::int64, {3}});
  CHECK(fields.at("node_year") == DataField{"node_year", NpyType::float64, {1}});
  CHECK(!fields.contains("features"));
  const WholeSource whole = test::gather_source(*source);
  CHECK(whole.node_data.at("labels")[3] == 1);
  CHECK(whole.node_data.at("node_year")[20] == 0.5);
}

TEST_CASE("of several splits one is to be named") {
  const Communicator comm = Communicator::world();
  Files files = small_folder();
  for (const char* part : {"train", "valid", "test"}) files[concat("split/random/", part, ".csv.gz")] = "7\n";
  const Folder folder(comm, files);
  CHECK(folder.error() ==
        "/split: there are several splits (random, time), expected the name of one of them");
  SourceOptions options;
  options.split = "random";
  const WholeSource whole = test::gather_source(*folder.open(options));
  CHECK(whole.node_data.at("train_mask")[7] == 1);
  CHECK(whole.node_data.at("train_mask")[1] == 0);
  options.split = "space";
  CHECK(folder.error(options) == "/split: there is no split space, expected random, time");
}

namespace {

/// Of link prediction: 30 pairs to train on, 7 for validation with 20 negatives, 5 for the test with 3 each.
Files link_folder() {
  Files files = small_folder();
  for (const char* part : {"train", "valid", "test"}) files.erase(concat("split/time/", part, ".csv.gz"));
  const auto pair = [](Index i) { return concat(i * 5 % nodes, ',', i * 3 % nodes); };
  files["split/time/train/edge.csv.gz"] = lines_of(30, pair);
  files["split/time/valid/edge.csv.gz"] = lines_of(7, pair);
  files["split/time/valid/edge_neg.csv"] = lines_of(20, pair);
  files["split/time/test/source_node.csv.gz"] = lines_of(5, [](Index i) { return concat(i); });
  files["split/time/test/target_node.csv.gz"] = lines_of(5, [](Index i) { return concat(i + 6); });
  files["split/time/test/target_node_neg.csv"] =
      lines_of(5, [](Index i) { return concat(i + 1, ',', i + 2, ',', i + 3); });
  return files;
}

std::string error_of_lists(const Communicator& comm, const std::string& name, const std::string& text) {
  Files files = link_folder();
  files[name] = text;
  const Folder folder(comm, files);
  const auto source = folder.open(blocks_of(16));
  const std::string error =
      thrown_by_all<InputError>(comm, [&] { static_cast<void>(source->read_listed_pairs(0)); });
  return error.substr(error.find("/split"));
}

}  // namespace

TEST_CASE("a split of link prediction lists pairs, dealt to the ranks, with their negatives") {
  const Communicator comm = Communicator::world();
  for (const Index block : {5, 33, 1 << 22}) {
    const Folder folder(comm, link_folder());
    const auto source = folder.open(blocks_of(block));
    CHECK(test::gather_source(*source).node_data.count("train_mask") == 0);
    const std::vector<ListedPairs> lists = source->read_listed_pairs(0);
    REQUIRE(lists.size() == 3);
    const Index counts[] = {30, 7, 5}, negatives[] = {0, 20, 15}, of_edge[] = {0, 0, 3};
    for (std::size_t part = 0; part < 3; ++part) {
      const ListedPairs& list = lists[part];
      CHECK(comm.all_reduce(list.edges.size()) == counts[part]);
      CHECK(comm.all_reduce(list.negatives.size()) == negatives[part]);
      CHECK(list.negatives_per_edge == of_edge[part]);
      for (Index i = 0; i < list.edges.size(); ++i) {
        const Index id = list.edges.id[i];
        CHECK(list.edges.src[i] == (part == 2 ? id : id * 5 % nodes));
        CHECK(list.edges.dst[i] == (part == 2 ? id + 6 : id * 3 % nodes));
        for (Index j = 0; part == 2 && j < 3; ++j) {
          CHECK(list.negatives.src[3 * i + j] == id);
          CHECK(list.negatives.dst[3 * i + j] == id + 1 + j);
        }
      }
    }
  }
  // in terms of the nodes of a partition
  DatasetOptions options;
  options.partition = PartitionMethod::random;
  options.edge_data = true;
  const Folder folder(comm, link_folder());
  const auto source = folder.open();
  const NodeData data = load_dataset(*source, options);
  const EdgeList& positives = data.edge_data.lists[0].edges;
  const Array<Index> original = fetch_values(comm, data.book, std::span<const Index>(data.original_ids),
                                             std::span<const Index>(positives.src));
  for (std::size_t i = 0; i < original.size(); ++i)
    CHECK(original[i] == positives.id[static_cast<Index>(i)] * 5 % nodes);
}

TEST_CASE("damaged lists of pairs are refused on all ranks") {
  const Communicator comm = Communicator::world();
  CHECK(error_of_lists(comm, "split/time/valid/edge.csv.gz", "0,1\n0,29\n") ==
        "/split/time/valid/edge.csv.gz: line 2: column 2 is '29', expected 0 to 28");
  CHECK(error_of_lists(comm, "split/time/valid/edge.csv.gz", "0,1,2\n") ==
        "/split/time/valid/edge.csv.gz: a row has 3 numbers, expected 2");
  CHECK(error_of_lists(comm, "split/time/test/target_node.csv.gz", "1\n2\n") ==
        "/split/time/test: source_node has 5 rows, expected 2 as target_node");
  CHECK(error_of_lists(comm, "split/time/test/target_node_neg.csv", "1\n2\n") ==
        "/split/time/test: target_node_neg has 2 rows, expected 5 as source_node");
  Files missing = link_folder();
  missing.erase("split/time/test/target_node.csv.gz");
  const Folder folder(comm, missing);
  const auto source = folder.open();
  CHECK(thrown_by_all<InputError>(comm, [&] { static_cast<void>(source->read_listed_pairs(0)); })
            .ends_with("/split/time/test: source_node or target_node is missing, expected the array edge, or "
                       "source_node and target_node"));
}

TEST_CASE("from an OGB folder to a training") {
  const Communicator comm = Communicator::world();
  const auto source = Folder(comm, small_folder()).open();
  DatasetOptions options;
  options.add_reverse_edges = true;
  NodeData data = load_dataset(*source, options);
  CHECK(data.num_edges == 2 * edges);
  CHECK(data.num_classes == 4);
  require_training_labels(comm, data);
  const Graph graph = construct_full_graph(comm, data);
  Generator gen(0);
  SAGEConv conv(data.features.row_size(), data.num_classes, gen);
  Adam optimizer(conv.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  for (int epoch = 0; epoch < 20; ++epoch) {
    Tape tape;
    const Variable loss = cross_entropy(conv(graph, data.features), data.labels, data.train_mask, comm);
    losses.push_back(static_cast<double>(loss.value().data()[0]));
    tape.backward(loss);
    gather_grads(comm, conv);
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(std::isfinite(losses.back()));
  CHECK(losses.back() < 0.9 * losses.front());
}

TEST_CASE("more edges than num-edge-list promises are not read to their end") {
  const Communicator comm = Communicator::world();
  Files files = small_folder();
  files["raw/edge.csv.gz"] = lines_of(20000, [](Index) { return "0,1"; });
  const std::string text = Folder(comm, files).error(blocks_of(256));
  const std::size_t number = text.find("at least ") + 9;
  REQUIRE(text.ends_with(" edges, expected 140 by num-edge-list.csv.gz"));
  CHECK(std::stoi(text.substr(number)) > 140);
  CHECK(std::stoi(text.substr(number)) < 1000);
}

TEST_CASE("damaged folders are refused on all ranks, with file and line") {
  const Communicator comm = Communicator::world();
  const Files good = small_folder();
  CHECK(error_of(comm, "raw/edge.csv.gz", good.at("raw/edge.csv.gz") + "0,29\n") ==
        "/raw/edge.csv.gz: line 141: column 2 is '29', expected 0 to 28");
  CHECK(error_of(comm, "raw/edge.csv.gz", "0,1\n0,-1\n") ==
        "/raw/edge.csv.gz: line 2: column 2 is '-1', expected 0 to 28");
  CHECK(
      error_of(comm, "raw/edge.csv.gz", "0,1\n0,1,2\n") ==
      "/raw/edge.csv.gz: line 2: there are too many fields in '0,1,2', expected 2 with commas between them");
  CHECK(error_of(comm, "raw/edge.csv.gz", "0,1\n7\n") ==
        "/raw/edge.csv.gz: line 2: there are too few fields in '7', expected 2 with commas between them");
  CHECK(error_of(comm, "raw/edge.csv.gz", "0,1\n0,1.5\n") ==
        "/raw/edge.csv.gz: line 2: column 2 is '1.5', expected an integer");
  CHECK(error_of(comm, "raw/edge.csv.gz", "0,1\n") ==
        "/raw/edge.csv.gz: there are 1 edges, expected 140 by num-edge-list.csv.gz");
  CHECK(error_of(comm, "split/time/train.csv.gz", lines_of(30, [](Index) { return "1"; })) ==
        "/split/time/train.csv.gz: there are at least 30 nodes, expected each of the 29 once at most");
  CHECK(error_of(comm, "raw/node-feat.csv.gz", "1,2\n3,x\n") ==
        "/raw/node-feat.csv.gz: line 2: column 2 is 'x', expected a finite number");
  CHECK(error_of(comm, "raw/node-feat.csv.gz", "1,2\n3,inf\n") ==
        "/raw/node-feat.csv.gz: line 2: column 2 is 'inf', expected a finite number");
  if (sizeof(real) == sizeof(float))
    CHECK(error_of(comm, "raw/node-feat.csv.gz", "1,2\n3,1e39\n") ==
          "/raw/node-feat.csv.gz: line 2: column 2 is '1e39', expected a number that single precision can "
          "hold");
  CHECK(error_of(comm, "raw/node-feat.csv.gz", lines_of(28, [](Index) { return "1"; })) ==
        "/raw/node-feat.csv.gz: there are 28 lines of numbers, expected 29, one for each node or edge");
  CHECK(error_of(comm, "raw/node-feat.csv.gz", lines_of(40, [](Index) { return "1"; }))
            .ends_with(" lines of numbers, expected 29, one for each node or edge"));
  CHECK(error_of(comm, "raw/num-node-list.csv.gz", "29\n30\n") ==
        "/raw/num-node-list.csv.gz: there are at least 2 graphs, expected one (a dataset of node "
        "properties), or --task graph");
  CHECK(error_of(comm, "raw/num-node-list.csv.gz", "2900000000000\n") ==
        ": there are 2900000000000 nodes for 140 edges, expected at most 16777216");
  CHECK(error_of(comm, "raw/num-node-list.csv.gz", "1000000\n") ==
        "/raw/node-feat.csv.gz: the file is too small for 1000000 lines, expected one for each node or edge");
  CHECK(error_of(comm, "split/time/train.csv.gz", "3\n29\n") ==
        "/split/time/train.csv.gz: line 2: column 1 is '29', expected 0 to 28");
  CHECK(error_of(comm, "raw/triplet-type-list.csv.gz", "paper,cites,paper\n") ==
        "/raw/num-node-dict.csv.gz: there is no such file, expected an OGB folder");
  Files missing = good;
  missing.erase("raw/edge.csv.gz");
  CHECK(Folder(comm, missing).error() == "/raw/edge.csv.gz: there is no such file, expected an OGB folder");
}
