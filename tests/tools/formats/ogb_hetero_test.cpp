// SPDX-License-Identifier: MIT
#include "graph/data/edge_type_of.hpp"
#include "whole_source.hpp"

#include "graph/data/typed_graph.hpp"
#include "support/thrown.hpp"

#include <formats/open_source.hpp>
#include <sar/core/error.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

using namespace sar;
using namespace sar::formats;
using sar::test::gzip;
using sar::test::TemporaryDirectory;
using sar::test::thrown_by_all;

namespace {

using Files = std::map<std::string, std::string>;

std::string lines_of(Index count, const std::function<std::string(Index)>& line) {
  std::string text;
  for (Index i = 0; i < count; ++i) text += line(i) + "\n";
  return text;
}

constexpr Index papers = 23, authors = 17, institutions = 3;

/// A folder of the form of ogbn-mag: only papers have features, years, labels and a split.
Files small_mag() {
  Files files;
  files["raw/num-node-dict.csv.gz"] = "paper,author,institution,venue\n23,17,3,0\n";
  files["raw/triplet-type-list.csv.gz"] =
      "paper,cites,paper\nauthor,writes,paper\nauthor,affiliated_with,institution\n";
  files["raw/nodetype-has-feat.csv.gz"] = "author,institution,paper,venue\nFalse,False,True,False\n";
  files["raw/nodetype-has-label.csv.gz"] = "author,institution,paper,venue\nFalse,False,True,False\n";
  const auto relation = [&](const std::string& name, Index count,
                            const std::function<std::string(Index)>& line) {
    files["raw/relations/" + name + "/edge.csv.gz"] = lines_of(count, line);
    files["raw/relations/" + name + "/num-edge-list.csv.gz"] = concat(count, "\n");
    files["raw/relations/" + name + "/edge_reltype.csv.gz"] =
        lines_of(count, [&](Index) { return concat(count); });
  };
  relation("paper___cites___paper", 60,
           [](Index e) { return concat(e * 7 % papers, ",", e % 11 == 0 ? e * 7 % papers : e % papers); });
  relation("author___writes___paper", 41,
           [](Index e) { return concat(e % 4 == 0 ? 0 : e % authors, ",", e * 5 % papers); });
  relation("author___affiliated_with___institution", 0, [](Index) { return ""; });
  files["raw/node-feat/paper/node-feat.csv.gz"] =
      lines_of(papers, [](Index v) { return concat(v, ",-0.5"); });
  files["raw/node-label/paper/node-label.csv.gz"] = lines_of(papers, [](Index v) { return concat(v % 5); });
  files["raw/node_year/paper/node_year.csv.gz"] = lines_of(papers, [](Index v) { return concat(2000 + v); });
  files["split/time/nodetype-has-split.csv.gz"] = "author,institution,paper,venue\nFalse,False,True,False\n";
  files["split/time/paper/train.csv.gz"] = lines_of(10, [](Index i) { return concat(2 * i); });
  files["split/time/paper/valid.csv.gz"] = "1\n3\n";
  files["split/time/paper/test.csv.gz"] = "22\n21\n";
  return files;
}

class Folder {
 public:
  Folder(const Communicator& comm, const Files& files) : comm_(comm), directory_(comm) {
    if (comm.rank() == 0)
      for (const auto& [name, text] : files) {
        const std::filesystem::path path = directory_.path() + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        test::write_file(path.string(), name.ends_with(".gz") ? gzip(text) : text);
      }
    comm.barrier();
  }
  [[nodiscard]] std::unique_ptr<GraphSource> open(Index block_bytes = 1 << 20) const {
    SourceOptions options;
    options.block_bytes = block_bytes;
    return open_source(comm_, directory_.path(), options);
  }
  [[nodiscard]] std::string error() const {
    std::string text = thrown_by_all<InputError>(comm_, [&] { static_cast<void>(open(16)); });
    if (text.starts_with(directory_.path())) text.erase(0, directory_.path().size());
    return text;
  }

 private:
  Communicator comm_;
  TemporaryDirectory directory_;
};

std::string error_of(const Communicator& comm, const std::string& name, const std::string& text) {
  Files files = small_mag();
  files[name] = text;
  return Folder(comm, files).error();
}

}  // namespace

TEST_CASE("an OGB folder with types is read whole, for every size of block and way of dividing it") {
  const Communicator comm = Communicator::world();
  const Folder folder(comm, small_mag());
  for (const Index block : {7, 64, 1 << 20})
    for (const PartitionMethod method : {PartitionMethod::contiguous, PartitionMethod::random}) {
      const auto source = folder.open(block);
      const GraphData graph = load_graph(*source, {.partition = method});
      REQUIRE(graph.node_types.size() == 4);
      CHECK(graph.node_types[0].name == "author");
      CHECK(graph.node_type("author").book.num_nodes() == authors);
      CHECK(graph.node_type("institution").book.num_nodes() == institutions);
      CHECK(graph.node_type("venue").book.num_nodes() == 0);
      REQUIRE(graph.edge_types.size() == 3);
      CHECK(graph.edge_types[0].canonical_name() == "author:affiliated_with:institution");
      CHECK(graph.edge_types[0].num_edges == 0);
      const auto whole = test::gather_typed(comm, graph);
      const auto& cites = whole.ends.at("paper:cites:paper");
      REQUIRE(cites.size() == 60);
      for (Index e = 0; e < 60; ++e)
        CHECK(cites.at(e) == std::pair{e * 7 % papers, e % 11 == 0 ? e * 7 % papers : e % papers});
      const auto& writes = whole.ends.at("author:writes:paper");
      REQUIRE(writes.size() == 41);
      for (Index e = 0; e < 41; ++e)
        CHECK(writes.at(e) == std::pair{e % 4 == 0 ? 0 : e % authors, e * 5 % papers});
      const NodeData data = category_data(comm, graph, "paper");
      CHECK(data.num_classes == 5);
      for (std::size_t i = 0; i < data.labels.size(); ++i) {
        const Index v = data.original_ids[i];
        CHECK(data.labels[i] == v % 5);
        CHECK(data.features.row(static_cast<Index>(i))[0] == static_cast<real>(v));
        CHECK(data.train_mask[i] == (v % 2 == 0 && v < 20 ? 1 : 0));
        CHECK(data.test_mask[i] == (v > 20 ? 1 : 0));
        CHECK(graph.node_type("paper").data.at("node_year").to_integers("")[i] == 2000 + v);
      }
      for (const std::int64_t type :
           test::edge_type_of(graph, "writes").data.at("edge_reltype").to_integers(""))
        CHECK(type == 41);
    }
}

TEST_CASE("what is wrong in an OGB folder with types is said with the file, the same on every rank") {
  const Communicator comm = Communicator::world();
  CHECK(error_of(comm, "raw/num-node-dict.csv.gz", "paper,author\n23\n") ==
        "/raw/num-node-dict.csv.gz: there are 2 names and 1 values, expected one for each");
  CHECK(error_of(comm, "raw/num-node-dict.csv.gz", "paper,author,institution\n23,many,3\n") ==
        "/raw/num-node-dict.csv.gz: the number of nodes of author is 'many', expected a whole number from 0 "
        "on");
  CHECK(error_of(comm, "raw/num-node-dict.csv.gz", "paper,paper,institution\n23,17,3\n") ==
        "/raw/num-node-dict.csv.gz: there are several types named paper, expected one");
  CHECK(
      error_of(comm, "raw/num-node-dict.csv.gz", "paper,author,institution\n23,9,3\n") ==
      "/raw/relations/author___writes___paper/edge.csv.gz: edge 9 is (9, 22), expected nodes below 9 and 23");
  CHECK(error_of(comm, "raw/num-node-dict.csv.gz", "paper,author,institution\n24,17,3\n") ==
        "/raw/node-feat/paper/node-feat.csv.gz: there are 23 lines of numbers, expected 24, one for each "
        "node or edge");
  CHECK(error_of(comm, "raw/triplet-type-list.csv.gz", "paper,cites\n") ==
        "/raw/triplet-type-list.csv.gz: a line is 'paper,cites', expected source type, relation and "
        "destination type");
  CHECK(error_of(comm, "raw/triplet-type-list.csv.gz", "paper,cites,journal\n") ==
        "/raw/triplet-type-list.csv.gz: there is no node type journal, expected one of num-node-dict.csv.gz");
  CHECK(error_of(comm, "raw/relations/paper___cites___paper/num-edge-list.csv.gz", "61\n") ==
        "/raw/relations/paper___cites___paper/edge.csv.gz: there are 60 edges, expected 61 by "
        "num-edge-list.csv.gz");
  CHECK(error_of(comm, "raw/nodetype-has-label.csv.gz",
                 "author,institution,paper,venue\nTrue,False,True,False\n") ==
        "/raw/nodetype-has-label.csv.gz: author has 'True', and raw/node-label/author/node-label.csv.gz is "
        "not there, "
        "expected the same of both");
  CHECK(error_of(comm, "split/time/paper/train.csv.gz", "23\n") ==
        "/split/time/paper/train.csv.gz: line 1: column 1 is '23', expected 0 to 22");
  Files missing = small_mag();
  missing.erase("raw/relations/author___writes___paper/edge.csv.gz");
  CHECK(Folder(comm, missing).error() ==
        "/raw/relations/author___writes___paper/edge.csv.gz: there is no such file, expected an OGB folder");
}
