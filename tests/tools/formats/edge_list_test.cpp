// SPDX-License-Identifier: MIT
#include "source_file.hpp"

#include "support/thrown.hpp"
#include "support/write_npy.hpp"

#include <formats/open_source.hpp>
#include <formats/text.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::blocks_of;
using sar::test::gzip;
using sar::test::SourceFile;
using sar::test::TemporaryDirectory;
using sar::test::thrown_by_all;
using sar::test::WholeSource;
using sar::test::write_npy;

namespace {

using Edges = std::vector<std::pair<Index, Index>>;

WholeSource read_text(const Communicator& comm, const std::string& text, const SourceOptions& options = {}) {
  return SourceFile(comm, "edges.txt", text).read(options);
}
std::string error_of(const Communicator& comm, const std::string& text, const SourceOptions& options = {}) {
  return SourceFile(comm, "edges.txt", text).error(options);
}

/// Edge e of the generated files.
std::pair<Index, Index> edge(Index e) {
  return {e * 7 % 31, (e * e + 3) % 31};
}

}  // namespace

TEST_CASE(
    "blocks cut a text anywhere: the same edges and numbers for every size of block, plain and packed") {
  const Communicator comm = Communicator::world();
  std::string text = "# a comment\n\n";
  Edges expected;
  std::vector<double> weights;
  for (Index e = 0; e < 60; ++e) {
    expected.push_back(edge(e));
    weights.push_back(static_cast<double>(e) / 8 - 2);
    if (e % 13 == 5) text += "  % another one, 1 2 3\r\n \t\n";
    text += concat(edge(e).first, e % 3 == 0 ? "\t " : " ", edge(e).second, "  ", weights.back(),
                   e % 5 == 0 ? " \r\n" : "\n");
  }
  for (const bool newline_at_end : {true, false}) {
    if (!newline_at_end) text.pop_back();
    const SourceFile plain(comm, "edges.txt", text);
    const SourceFile packed(comm, "edges.txt.gz", gzip(text));
    const SourceFile members(comm, "edges.csv.gz", gzip(text, 7) + std::string(100, '\0'));
    for (const SourceFile* file : {&plain, &packed, &members}) {
      for (const Index block : {1, 7, 16, 61, 1 << 22}) {
        CAPTURE(block);
        const WholeSource whole = file->read(blocks_of(block));
        CHECK(whole.num_nodes == 31);
        CHECK(whole.edges == expected);
        CHECK(whole.edge_data.at("weight") == weights);
      }
    }
  }
}

TEST_CASE("separators, headers and quotes are seen, or taken as given") {
  const Communicator comm = Communicator::world();
  const Edges expected{{0, 1}, {1, 2}, {2, 0}};
  for (const char* text : {"0 1\n1 2\n2 0\n", "0\t1\n1\t2\n2\t0", "0,1\r\n1,2\r\n2,0\r\n",
                           "0;1\n1; 2\n 2 ;0\n", "  0   1\n1 2\n2 \t 0\n", "source,target\n0,1\n1,2\n2,0\n",
                           "a b\n0 1\n1 2\n2 0\n", "\"0\",\"1\"\n\"1\",\"2\"\n\"2\",\"0\"\n",
                           "% c\nnode1;node2\n# c\n0;1\n1;2\n2;0\n", "0, 1\n1, 2\n2, 0\n\n\n"}) {
    CAPTURE(text);
    const WholeSource whole = read_text(comm, text);
    CHECK(whole.edges == expected);
    CHECK(whole.edge_data.empty());
  }
  SourceOptions options;
  options.separator = '|';
  CHECK(read_text(comm, "0|1\n1|2\n2|0\n", options).edges == expected);
  options = {};
  options.header = true;
  CHECK(read_text(comm, "9 9\n0 1\n1 2\n2 0\n", options).edges == expected);
  options.header = false;
  CHECK(read_text(comm, "from to\nto from\n", options).edges == Edges{{0, 1}, {1, 0}});
  CHECK(read_text(comm, "src dst w\nx y 1\ny z 2.5\n").edges == Edges{{0, 1}, {1, 2}});
  // names with blanks in them
  CHECK(read_text(comm, "New York\tBoston\nBoston\tLos Angeles\n").edges == Edges{{0, 1}, {1, 2}});
}

TEST_CASE("Excel's line of the separator, numbers with commas, line breaks in quotes") {
  const Communicator comm = Communicator::world();
  const Edges edges{{0, 1}, {1, 2}, {2, 0}};
  CHECK(read_text(comm, "sep=;\n0;1\n1;2\n2;0\n").edges == edges);
  CHECK(read_text(comm, "sep=;\r\nsource;target\r\n0;1\r\n1;2\r\n2;0\r\n").edges == edges);
  CHECK(read_text(comm, "sep=|\nsource|target\n0|1\n1|2\n2|0\n").edges == edges);
  CHECK(error_of(comm, "source;target;feat\n0;1;0,5\n1;2;1,5\n") ==
        ": line 1: column 3 'feat' has '0,5', expected numbers as 1200.5, without a decimal comma and "
        "separators of thousands, and lists in brackets: [1,200]; if it is no data, --columns "
        "source=1,target=2 or --ignore-columns");
  CHECK(error_of(comm, "source;target;weight\n0;1;0,5\n1;2;1,5\n").find("column 3 is '0,5'") !=
        std::string::npos);
  CHECK(error_of(comm, "source,target,note\n0,1,\"good\n1,2,bad\"\n") ==
        ": line 2: a quote does not end in this line, expected fields without line breaks, each row "
        "in one line");
  if (sizeof(real) == 4)
    CHECK(error_of(comm, "0 1 2\n1 2 1e39\n")
              .find("line 2: column 3 is '1e39', expected a number that single "
                    "precision can hold") != std::string::npos);
  CHECK(formats::in_quotes(std::string(39, 'a') + "\xc3\xa9" + "b") == "'" + std::string(39, 'a') + "...'");
}

TEST_CASE("columns behind the two nodes are edge data, or are ignored") {
  const Communicator comm = Communicator::world();
  const WholeSource several = read_text(comm, "0,1,0.5,-3\n1,0,1e3,+4\n");
  CHECK(several.edge_data.at("features") == std::vector<double>{0.5, -3, 1000, 4});
  SourceOptions options;
  options.ignore_data = true;
  const WholeSource ignored = read_text(comm, "0,1,yesterday\n1,0,today\n", options);
  CHECK(ignored.edges == Edges{{0, 1}, {1, 0}});
  CHECK(ignored.edge_data.empty());
}

TEST_CASE("columns that the header calls split, label or type are edge data of their own") {
  const Communicator comm = Communicator::world();
  const WholeSource named = read_text(
      comm, "src,dst,Type,weight,label,split\n0,1,2,0.5,1,train\n1,0,0,1.5,nan,valid\n1,1,1,-1,0,test\n");
  CHECK(named.edge_data.at("type") == std::vector<double>{2, 0, 1});
  CHECK(named.edge_data.at("weight") == std::vector<double>{0.5, 1.5, -1});
  CHECK(named.edge_data.at("split") == std::vector<double>{0, 1, 2});
  CHECK(named.edge_data.at("labels")[0] == 1);
  CHECK(std::isnan(named.edge_data.at("labels")[1]));
  CHECK(error_of(comm, "src,dst,split\n0,1,train\n1,0,later\n") ==
        ": line 3: the split of the edge is 'later', expected train, val or test");
  CHECK(error_of(comm, "src,dst,label,w\n0,1,1,2\n1,0,1,nan\n").starts_with(": line 3: column 4 is 'nan'"));
  for (const char* text :
       {"user,item,split\na,b,train\nb,a,\nb,b,nan\n", "a,b,Split\n0,1,train\n1,0,\n1,1,nan\n"}) {
    const std::vector<double> parts = read_text(comm, text).edge_data.at("split");
    REQUIRE(parts.size() == 3);
    CHECK(parts[0] == 0);
    CHECK((std::isnan(parts[1]) && std::isnan(parts[2])));
  }
  CHECK(read_text(comm, "x,y,\nann,bob,5\nbob,ann,6\n").edge_data.at("weight") == std::vector<double>{5, 6});
}

TEST_CASE("columns that the header calls masks are masks of the edges") {
  const Communicator comm = Communicator::world();
  const WholeSource masks =
      read_text(comm, "src,dst,train_mask,valid_mask,TestMask\n0,1,True,0,False\n1,0,False,1,True\n");
  CHECK(masks.edge_data.at("train_mask") == std::vector<double>{1, 0});
  CHECK(masks.edge_data.at("val_mask") == std::vector<double>{0, 1});
  CHECK(masks.edge_data.at("test_mask") == std::vector<double>{0, 1});
  CHECK(error_of(comm, "src,dst,train_mask\n0,1,1\n1,0,0.5\n") ==
        ": line 3: column 3 is '0.5', expected 0 or 1, or true or false, or --ignore-columns");
}

TEST_CASE("columns that the options name, and headers that do not fit") {
  const Communicator comm = Communicator::world();
  const std::string text = "user,item,Stars,rating\n0,1,4,5\n1,0,2,1\n";
  SourceOptions options;
  options.edge_labels = true;
  CHECK(read_text(comm, text, options).edge_data.at("labels") == std::vector<double>{5, 1});
  CHECK(!read_text(comm, text, options).edge_data.contains("weight"));
  options.fields = {{"edge_labels", "Stars"}, {"weight", "rating"}};
  const WholeSource named = read_text(comm, text, options);
  CHECK(named.edge_data.size() == 2);
  CHECK(named.edge_data.at("Stars") == std::vector<double>{4, 2});
  CHECK(named.edge_data.at("rating") == std::vector<double>{5, 1});
  options.fields = {{"edge_labels", "label"}, {"edge_type", "label"}};
  CHECK(read_text(comm, "src,dst,label\n0,1,3\n", options).edge_data.at("label") == std::vector<double>{3});
  options.fields = {{"edge_train_mask", "is_train"}};
  CHECK(read_text(comm, "src,dst,is_train\n0,1,True\n1,0,False\n1,1,1\n", options).edge_data.at("is_train") ==
        std::vector<double>{1, 0, 1});
  CHECK(error_of(comm, "src,dst,is_train\n0,1,True\n1,0,yes\n", options)
            .starts_with(": line 3: column 3 is 'yes', expected 0 or 1, or true or false"));
  CHECK(error_of(comm, "# c\nsrc,dst,weight,split\n0,1,0.5\n") ==
        ": line 2: the header has 4 fields and the first edge has 3, expected as many; if the first column "
        "is row "
        "numbers, --columns source=2,target=3");
  CHECK(error_of(comm, "src,dst,label,labels\n0,1,3,4\n")
            .starts_with(": line 1: columns 3 and 4 are called 'label' and 'labels'"));
}

TEST_CASE("few lines: one, fewer than ranks, none") {
  const Communicator comm = Communicator::world();
  CHECK(read_text(comm, "1 0").edges == Edges{{1, 0}});
  CHECK(read_text(comm, "1 0\n").num_nodes == 2);
  CHECK(read_text(comm, "0 1\n1 1\n", blocks_of(1)).edges == Edges{{0, 1}, {1, 1}});
  for (const char* text : {"", "\n", "# nothing\n\n", "source target\n"})
    CHECK(error_of(comm, text) == ": there are no edges, expected at least one");
  CHECK(SourceFile(comm, "e.gz", gzip("")).error() == ": there are no edges, expected at least one");
}

TEST_CASE("names are numbered by their first appearance, whatever the number of ranks and blocks") {
  const Communicator comm = Communicator::world();
  std::string text;
  std::vector<std::string> names;  // by first appearance
  Edges expected;
  const auto number = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<Index>(found - names.begin());
    names.push_back(name);
    return static_cast<Index>(names.size()) - 1;
  };
  for (Index e = 0; e < 120; ++e) {
    const std::string source = concat("user", e * 37 % 61), target = concat("p", e * e % 53, "-long-name");
    const Index first = number(source);
    expected.emplace_back(first, number(target));
    text += source + "\t" + target + "\n";
  }
  std::string lines;
  for (const std::string& name : names) lines += name + "\n";
  for (const bool packed : {false, true}) {
    const SourceFile file(comm, packed ? "e.tsv.gz" : "e.tsv", packed ? gzip(text, 3) : text);
    for (const Index block : {9, 400, 1 << 22}) {
      const auto source = open_source(comm, file.path(), blocks_of(block));
      const WholeSource whole = test::gather_source(*source);
      CHECK(whole.edges == expected);
      CHECK(whole.num_nodes == static_cast<Index>(names.size()));
      const std::string directory = std::filesystem::path(file.path()).parent_path().string();
      source->write_node_keys(directory);
      CHECK(sar::read_text(directory + "/node_keys.txt", "names") == lines);
      comm.barrier();
    }
  }
}

TEST_CASE("integers are numbers of nodes when they are dense, names when they are sparse or asked to be") {
  const Communicator comm = Communicator::world();
  const std::string dense = "3 1\n1 7\n";  // 7 < 4 * 2
  CHECK(read_text(comm, dense).edges == Edges{{3, 1}, {1, 7}});
  CHECK(read_text(comm, dense).num_nodes == 8);
  CHECK(read_text(comm, dense, blocks_of(4, NodeIds::names)).edges == Edges{{0, 1}, {1, 2}});
  const std::string sparse = "30 1\n1 8000000000 \n30 30\n";
  for (const Index block : {1, 5, 100}) {
    CHECK(read_text(comm, sparse, blocks_of(block)).edges == Edges{{0, 1}, {1, 2}, {0, 0}});
    CHECK(read_text(comm, sparse, blocks_of(block, NodeIds::names)).edges == Edges{{0, 1}, {1, 2}, {0, 0}});
  }
  CHECK(read_text(comm, "30 1\n1 8\n", blocks_of(1, NodeIds::dense)).num_nodes == 31);
  // names are different by their zeros ahead; beyond 2^62, all are names
  CHECK(read_text(comm, "00701 80000\n701 80000\n").edges == Edges{{0, 1}, {2, 1}});
  CHECK(read_text(comm, "00701 80000\n701 80000\n", blocks_of(1, NodeIds::dense)).edges ==
        Edges{{701, 80000}, {701, 80000}});
  CHECK(read_text(comm, "0.0 1\n1 0\n").edges == Edges{{0, 1}, {1, 0}});
  for (const char* large : {"4611686018427387904", "4611686018427387905", "9223372036854775809"})
    CHECK(read_text(comm, concat("7 ", large, "\n", large, " 8\n")).edges == Edges{{0, 1}, {1, 2}});
  // a word at the end makes names of all integers, and weights stay with their edges
  const WholeSource late =
      read_text(comm, "5 1 0.5\n1 5 1.5\n5 5 2.5\n1 x 3.5\n", blocks_of(1, NodeIds::names));
  CHECK(late.edges == Edges{{0, 1}, {1, 0}, {0, 0}, {1, 2}});
  CHECK(late.edge_data.at("weight") == std::vector<double>{0.5, 1.5, 2.5, 3.5});
}

TEST_CASE("a word among integers is refused, and a column of words, or of both, makes names") {
  const Communicator comm = Communicator::world();
  const auto refused = [](const char* line, const char* word) {
    return concat(": line ", line, ": a node is '", word,
                  "', and others of the column are integers, expected an integer, or --node-ids names");
  };
  for (const Index block : {1, 7, 1000}) {
    const SourceOptions options = blocks_of(block);
    CHECK(error_of(comm, "1,2\n2,3\n3,1\nNA,1\n", options) == refused("4", "NA"));
    CHECK(error_of(comm, "# c\n1,2\n1.0,3\n\nbob,1\n4,5\n", options) == refused("5", "bob"));
    CHECK(error_of(comm, "a,2\n2,3\nNA,1\nb,6\nNA,7\n5,7\n7,8\n8,9\n9,7\n", options) == refused("3", "NA"));
    CHECK(read_text(comm, "1,a\n2,b\n1,NA\n", options).num_nodes == 5);
    CHECK(read_text(comm, "A1,7\n7,8\nB1,A1\n8,B1\n", options).num_nodes == 4);
    CHECK(read_text(comm, "1,2\n2,3\nNA,1\n", blocks_of(block, NodeIds::names)).num_nodes == 4);
  }
}

TEST_CASE("node data come from .npy files, whose rows may tell of nodes without edges") {
  const Communicator comm = Communicator::world();
  const SourceFile file(comm, "edges.csv", "0,1\n1,2\n");
  const std::string features = file.path() + ".npy";
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  if (comm.rank() == 0) write_npy<double>(features, std::array<Index, 2>{4, 2}, values, NpyType::float32);
  comm.barrier();
  SourceOptions options;
  options.node_data["features"] = features;
  const WholeSource whole = file.read(options);
  CHECK(whole.num_nodes == 4);
  CHECK(whole.node_data.at("features") == values);
  const SourceFile larger(comm, "edges.csv", "0,1\n1,2\n4,5\n");
  CHECK(larger.error(options) ==
        features + ": the array has 4 rows, expected 6, one for each node of " + larger.path() +
            "; if ids have gaps, --node-keys FILE says which row belongs to which id");
}

TEST_CASE("what is wrong in a line is said with its number, on all ranks") {
  const Communicator comm = Communicator::world();
  const std::string good = "0 1\n1 2\n2 3\n3 4\n4 5\n";
  for (const Index block : {1, 9, 1000}) {
    const SourceOptions options = blocks_of(block);
    CHECK(error_of(comm, good + "5\n" + good, options) ==
          ": line 6: there is 1 field in '5', expected 2: source and destination");
    CHECK(error_of(comm, good + "# c\n1 2 3\n" + good, options) ==
          ": line 7: there are 3 fields in '1 2 3', expected 2: source and destination");
    CHECK(error_of(comm, good + "\n-1 2\n0 x\n", options) ==
          ": line 7: a node is '-1', expected no negative number (unless nodes are names: --node-ids names)");
    CHECK(error_of(comm, "0,1,2\n1,2,nan\n1,0,x\n", options) ==
          ": line 2: column 3 is 'nan', expected a finite number, or --ignore-columns");
    CHECK(error_of(comm, "0,1,2\n1,2,1e999\n", options) ==
          ": line 2: column 3 is '1e999', expected a finite number, or --ignore-columns");
    CHECK(error_of(comm, "0,1\n1,\n", options) ==
          ": line 2: a node is '' in '1,', expected a number or a name without separators");
    CHECK(error_of(comm, good + "0 one-and-a-half-that-goes-on-and-on-for-ever-and-ever\n",
                   blocks_of(block, NodeIds::dense)) ==
          ": line 6: a node is 'one-and-a-half-that-goes-on-and-on-for-e...', expected an integer from 0 on");
    CHECK(error_of(comm, good + "0 1.5\n", blocks_of(block, NodeIds::dense)) ==
          ": line 6: a node is '1.5', expected an integer from 0 on (unless nodes are names: --node-ids "
          "names)");
  }
  CHECK(
      error_of(comm, "0 9000000000000000000\n", blocks_of(1, NodeIds::dense)) ==
      ": a node is 9000000000000000000, expected less than 2^62 (unless nodes are names: --node-ids names)");
  CHECK(error_of(comm, "0 90000000000\n", blocks_of(1, NodeIds::dense)) ==
        ": there are 90000000001 nodes for 1 edges, expected at most 16777216");
  CHECK(error_of(comm, std::string("0 1\n\0\0\0", 7)) ==
        ": the file is binary (it has bytes that are 0), expected a text with an edge a line");
}

TEST_CASE("damaged gzip files are refused on all ranks") {
  const Communicator comm = Communicator::world();
  std::string text;
  for (Index e = 0; e < 20000; ++e) text += concat(e % 1000, ' ', e * 7919 % 1000, '\n');
  const std::string packed = gzip(text);
  const auto error = [&](const std::string& content) { return SourceFile(comm, "e.gz", content).error(); };
  CHECK(error(packed.substr(0, packed.size() / 2)) ==
        ": the packed data end in the middle, expected a complete file");
  CHECK(error(packed.substr(0, packed.size() - 3)) ==
        ": the packed data end in the middle, expected a complete file");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] = static_cast<char>(~wrong_sum[packed.size() - 8]);
  CHECK(error(wrong_sum) == ": cannot be unpacked (incorrect data check), expected gzip data");
  CHECK(error(packed + "tail") ==
        ": there is something else behind the packed data, expected the end of the file");
  CHECK(error(text) == ": the file does not begin as gzip does, expected gzip data by its name");
}

TEST_CASE("a path that is nothing we know says what was looked for") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const auto error = [&](const std::string& path) {
    return thrown_by_all<InputError>(comm, [&] { static_cast<void>(open_source(comm, path)); });
  };
  CHECK(error(directory.path() + "/nothing") ==
        directory.path() + "/nothing: there is no such file or directory");
  CHECK(error(directory.path()) ==
        directory.path() +
            ": the directory has no edge_index.npy, no hetero.json, no raw/, no .parquet files and no JSON "
            "file of a "
            "partition, expected a dataset directory, an OGB folder, or to train from, a partition");
}
