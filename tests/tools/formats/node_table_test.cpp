// SPDX-License-Identifier: MIT
#include "source_file.hpp"
#include "zip_bytes.hpp"

#include <sar/graph/data/load_dataset.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::SourceFile;
using sar::test::WholeSource;

namespace {

const std::string edge_text = "from,to\n0,1\n1,2\n2,3\n3,4\n4,0\n";
const std::string table_text =
    "id,days,mature,views,language,part,new_id\n"
    "70,5,True,10,DE,train,3\n"
    "71,2.5,False,20,\"EN\",val,0\n"
    "72,-1,TRUE,30,,test,4\n"
    "73,0,false,40,DE,train,1\n"
    "74,7,true,1e2,FR,train,2\n";

/// An edge list with a table, lists of features, or both beside it.
class Tables {
 public:
  Tables(const Communicator& comm, const std::string& table, const std::string& lists = "",
         const std::string& edges = edge_text)
      : comm_(comm),
        edges_(comm, "edges.csv", edges),
        table_(comm, "nodes.csv", table),
        lists_(comm, "x.json", lists) {
    if (!table.empty()) options.node_table = table_.path();
    if (!lists.empty()) options.node_features = lists_.path();
  }
  [[nodiscard]] WholeSource read() const { return edges_.read(options); }
  [[nodiscard]] std::string error() const {
    std::string text = test::thrown_by_all<InputError>(
        comm_, [&] { static_cast<void>(open_source(comm_, edges_.path(), options)); });
    for (const SourceFile* file : {&edges_, &table_, &lists_}) {
      const std::string name = file->path().substr(file->path().rfind('/') + 1);
      for (std::size_t at = text.find(file->path()); at != std::string::npos; at = text.find(file->path()))
        text.replace(at, file->path().size(), name);
    }
    return text;
  }
  void columns(const std::vector<std::pair<const std::string, std::string>>& roles) {
    options.node_columns = {roles.begin(), roles.end()};
  }

  SourceOptions options;

 private:
  Communicator comm_;
  SourceFile edges_, table_, lists_;
};

std::string table_error(const Communicator& comm, const std::string& text) {
  Tables tables(comm, text);
  tables.columns({{"key", "new_id"}, {"labels", "mature"}, {"features", "days"}});
  return tables.error();
}
std::string list_error(const Communicator& comm, const std::string& text,
                       FeatureLists lists = FeatureLists::automatic) {
  Tables tables(comm, "", text);
  tables.options.feature_lists = lists;
  return tables.error();
}

}  // namespace

TEST_CASE("rows of a table go to the nodes that their keys name, for every size of block") {
  const Communicator comm = Communicator::world();
  for (const Index block : {7, 50, 1 << 20}) {
    Tables tables(comm, table_text);
    tables.options.block_bytes = block;
    tables.columns({{"key", "new_id"},
                    {"labels", "mature"},
                    {"features", "days"},
                    {"features", "views"},
                    {"one-hot", "language"},
                    {"split", "part"}});
    const WholeSource whole = tables.read();
    CHECK(whole.num_nodes == 5);
    CHECK(whole.node_data.at("labels") == std::vector<double>{0, 0, 1, 1, 1});
    CHECK(whole.node_data.at("features") == std::vector<double>{2.5, 20, 0,   1,  0, 0, 40, 1,  0,
                                                                0,   7,  100, 0,  0, 1, 5,  10, 1,
                                                                0,   0,  -1,  30, 0, 0, 0});
    CHECK(whole.node_data.at("train_mask") == std::vector<double>{0, 1, 1, 1, 0});
    CHECK(whole.node_data.at("val_mask") == std::vector<double>{1, 0, 0, 0, 0});
    CHECK(whole.node_data.at("test_mask") == std::vector<double>{0, 0, 0, 0, 1});
  }
}

TEST_CASE("labels that are names are numbered in their order, and a table may have nodes without edges") {
  const Communicator comm = Communicator::world();
  Tables tables(comm, "key,label,x\n5,cat,1\n4,dog,2\n3,,3\n2,ant,4\n1,cat,5\n0,dog,6\n");
  tables.columns({{"features", "*"}});
  const WholeSource whole = tables.read();
  CHECK(whole.num_nodes == 6);
  CHECK(whole.node_data.at("features") == std::vector<double>{6, 5, 4, 3, 2, 1});
  const std::vector<double>& labels = whole.node_data.at("labels");
  CHECK(std::isnan(labels[3]));
  CHECK(labels[0] == 2);
  CHECK(labels[1] == 1);
  CHECK(labels[2] == 0);
}

TEST_CASE("nodes with names are numbered in the order of the table") {
  const Communicator comm = Communicator::world();
  Tables tables(comm, "name,y\ncarl,1\nann,2\nbob,0\ndora,1\n", "", "ann bob\nbob carl\n");
  const WholeSource whole = tables.read();
  CHECK(whole.num_nodes == 4);
  CHECK(whole.edges == std::vector<std::pair<Index, Index>>{{1, 2}, {2, 0}});
  CHECK(whole.node_data.at("labels") == std::vector<double>{1, 2, 0, 1});
  Tables missing(comm, "name,y\ncarl,1\nann,2\n", "", "ann bob\nbob carl\n");
  CHECK(missing.error() ==
        "edges.csv: node 'bob' and 0 others have no row in nodes.csv, expected all nodes there");
  Tables sparse(comm, "id,y\n900,1\n7,2\n31,0\n", "", "7 900\n900 31\n");
  const WholeSource gaps = sparse.read();
  CHECK(gaps.edges == std::vector<std::pair<Index, Index>>{{1, 0}, {0, 2}});
  CHECK(gaps.node_data.at("labels") == std::vector<double>{1, 2, 0});
}

TEST_CASE("a table without a header, lists of features in a field, and a word for no label") {
  const Communicator comm = Communicator::world();
  Tables numbers(comm, "900,1,0.5,3\n7,2,1,4\n31,0,-1,5\n", "", "7 900\n900 31\n");
  numbers.columns({{"key", "1"}, {"labels", "2"}, {"features", "*"}});
  const WholeSource whole = numbers.read();
  CHECK(whole.edges == std::vector<std::pair<Index, Index>>{{1, 0}, {0, 2}});
  CHECK(whole.node_data.at("labels") == std::vector<double>{1, 2, 0});
  CHECK(whole.node_data.at("features") == std::vector<double>{0.5, 3, 1, 4, -1, 5});
  numbers.columns({{"labels", "2"}});
  CHECK(numbers.error() ==
        "nodes.csv: line 1: the first line is '900,1,0.5,3', expected a header with the names of the "
        "columns, or "
        "the numbers of the columns in --node-columns, such as key=1");

  for (const char* text : {"900,bio,7\n7,chem,8\n31,math,9\n", "\"900\",bio,7\n7,bio,8\n31,bio,9\n"}) {
    Tables words(comm, text, "", "7 900\n900 31\n");
    words.columns({{"key", "1"}, {"labels", "2"}, {"features", "3"}});
    CHECK(words.read().node_data.at("features") == std::vector<double>{7, 8, 9});
  }
  Tables recurs(comm, "ann,bio,7\nbob,chem,8\ncid,bio,9\n", "", "bob ann\nann cid\n");
  recurs.columns({{"key", "1"}, {"labels", "2"}, {"features", "3"}});
  CHECK(recurs.read().node_data.at("labels") == std::vector<double>{0, 1, 0});
  Tables named(comm, "id,4,2,label\n900,5,7,bio\n7,6,8,chem\n31,7,9,bio\n", "", "7 900\n900 31\n");
  named.columns({{"key", "1"}, {"features", "2"}});  // a column that is called 2
  CHECK(named.read().node_data.at("features") == std::vector<double>{7, 8, 9});

  const std::string begin = "id\tx\tlabel\n0\t0,1,0.5\tcat\n1\t[1 2 3]\tunknown\n2\t4,5,";
  const std::string end = "\tdog\n3\t7,8,9\tcat\n4\t1,1,1\tant\n";
  Tables lists(comm, begin + "6" + end);
  lists.columns({{"features", "x"}});
  lists.options.missing_label = "unknown";
  const WholeSource of_lists = lists.read();
  CHECK(of_lists.node_data.at("features") ==
        std::vector<double>{0, 1, 0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1});
  const std::vector<double>& labels = of_lists.node_data.at("labels");
  CHECK(labels[0] == 1);
  CHECK(std::isnan(labels[1]));
  CHECK(labels[2] == 2);
  CHECK(labels[4] == 0);
  Tables shorter(comm, begin + end);
  shorter.columns({{"features", "x"}});
  CHECK(shorter.error() == "nodes.csv: line 4: column 'x' has 2 numbers, expected 3 as in the first row");
  Tables word(comm, begin + "nan" + end);
  word.columns({{"features", "x"}});
  CHECK(word.error() == "nodes.csv: line 4: column 'x' is 'nan', expected a finite number in the list");
}

TEST_CASE("numbers with commas are refused, and lists are told by their brackets") {
  const Communicator comm = Communicator::world();
  const auto table = [&](const std::string& header, const std::vector<std::string>& of_nodes) {
    std::string text = header + "\n";
    for (std::size_t v = 0; v < 5; ++v) text += concat(v, of_nodes[v % of_nodes.size()], "\n");
    return text;
  };
  const auto error = [&](const std::string& text) {
    Tables tables(comm, text);
    tables.columns({{"features", "x"}, {"features", "z"}});
    return tables.error();
  };
  const std::string expected =
      ", expected numbers as 1200.5, without a decimal comma and separators of thousands, and lists in "
      "brackets: [1,200]";
  CHECK(error(table("id,x,z", {",\"1,200\",1"})) == "nodes.csv: line 2: column 'x' is '1,200'" + expected);
  CHECK(error(table("id,x,z", {",950,1", ",\"1,200\",1"})) ==
        "nodes.csv: line 3: column 'x' is '1,200'" + expected);
  CHECK(error(table("id;x;z", {";0,5;1,25"})) == "nodes.csv: line 2: column 'x' is '0,5'" + expected);
  CHECK(error(table("id\tx\tz", {"\t1\t-3,5", "\t1\t2"})) ==
        "nodes.csv: line 2: column 'z' is '-3,5'" + expected);
  CHECK(error(table("id;x;z", {";1.200,50;1"})) == "nodes.csv: line 2: column 'x' is '1.200,50'" + expected);
  CHECK(error(table("id;x;z", {";1 200;1"})) == "nodes.csv: line 2: column 'x' is '1 200'" + expected);
  CHECK(error(table("id;x;z;label", {";1;1;0,5", ";2;1;3"})) ==
        "nodes.csv: column 'label' is '0,5'" + expected);
  Tables three(comm, table("id;x;z", {";1,200,5;[1,200]", ";1,200,6;[2,300]"}));
  three.columns({{"features", "x"}, {"features", "z"}});
  CHECK(three.read().node_data.at("features") == std::vector<double>{1, 200, 5, 1, 200, 1, 200, 6, 2, 300,
                                                                     1, 200, 5, 1, 200, 1, 200, 6, 2, 300,
                                                                     1, 200, 5, 1, 200});
  if (sizeof(real) == 4)
    CHECK(
        error(table("id,x,z", {",1,1", ",1e39,1"})) ==
        "nodes.csv: line 3: column 'x' is '1e39', expected a number that single precision can hold, or true "
        "or false; --node-columns one-hot=x takes names");
}

TEST_CASE("Excel's line of the separator, and line breaks in quotes") {
  const Communicator comm = Communicator::world();
  for (const char* end : {"\n", "\r\n"}) {
    std::string text = concat("sep=;", end, "id;x;label", end);
    for (int v = 0; v < 5; ++v) text += concat(v, ";", v, ";", v % 2, end);
    Tables tables(comm, text);
    tables.columns({{"features", "x"}});
    CHECK(tables.read().node_data.at("features") == std::vector<double>{0, 1, 2, 3, 4});
  }
  const std::string open =
      "a quote does not end in this line, expected fields without line breaks, each row in one line";
  std::string rows = "id,x,note\n";
  for (int v = 0; v < 5; ++v)
    rows += concat(v, ",", v, v == 3 ? ",\"good, 5\n7,1,b\"\n" : ",\"a, \"\"b\"\"\"\n");
  Tables broken(comm, rows);
  broken.columns({{"features", "x"}});
  CHECK(broken.error() == "nodes.csv: line 5: " + open);
  std::string long_rows = "id,x,note\n";
  for (int v = 0; v < 60; ++v)
    long_rows += concat(v % 5, ",", v, v == 55 ? ",\"good\n7,1,b\"\n" : ",\"a\"\n");
  Tables far(comm, long_rows);  // behind the lines that say what the columns are
  far.columns({{"features", "x"}});
  CHECK(far.error() == "nodes.csv: line 57: " + open);
}

TEST_CASE("a row whose key begins with # is refused, and read in quotes") {
  const Communicator comm = Communicator::world();
  const std::string edges = "\"#1\",\"#2\"\n\"#2\",\"#1\"\n";
  CHECK(Tables(comm, "id,label\n\"#1\",3\n#2,4\n", "", edges).error() ==
        "nodes.csv: line 3: '#2,4' is a comment by its #, and has as many fields as the rows, expected "
        "\"#2\" in "
        "quotes, or a blank behind the #");
  CHECK(Tables(comm, "id,label\n\"#2\",3\n# 2,4\n\"#1\",4\n", "", edges).read().node_data.at("labels") ==
        std::vector<double>{3, 4});
}

TEST_CASE("two quotes in a field in quotes are one: in names of nodes, labels and categories") {
  const Communicator comm = Communicator::world();
  const std::string edges = "\"\"\"ann\"\" a\",\"b \"\"c\"\"\"\n\"b \"\"c\"\"\",\"\"\"ann\"\" a\"\n";
  Tables tabs(comm, "id\tlabel\tx\nb \"c\"\tk \"1\"\tv\"\n\"\"\"ann\"\" a\"\t\"k \"\"1\"\"\"\t\"v\"\"\"\n",
              "", edges);
  tabs.columns({{"one-hot", "x"}});
  const WholeSource whole = tabs.read();
  CHECK(whole.edges == std::vector<std::pair<Index, Index>>{{1, 0}, {0, 1}});
  CHECK(whole.node_data.at("labels") == std::vector<double>{0, 0});
  CHECK(whole.node_data.at("features") == std::vector<double>{1, 1});
  SourceOptions options;
  const SourceFile keys(comm, "keys.csv", "id,x\n\"b \"\"c\"\"\",1\n\"\"\"ann\"\" a\",2\n");
  options.node_keys = keys.path();
  CHECK(SourceFile(comm, "edges.csv", edges).read(options).edges ==
        std::vector<std::pair<Index, Index>>{{1, 0}, {0, 1}});
}

TEST_CASE("lists of features in JSON: indices of those that are set, or values") {
  const Communicator comm = Communicator::world();
  const std::string sets = R"({"3": [2, 0, 2], "0": [], "1": [1], "4": [3, 1], "2": [0]})";
  const std::string values = R"({"3": [2, 0.5], "0": [1, 2], "1": [1, 1], "4": [3, 1], "2": [0, -1]})";
  CHECK(Tables(comm, "", sets).read().node_data.at("features") ==
        std::vector<double>{0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1});
  CHECK(Tables(comm, "", values).read().node_data.at("features") ==
        std::vector<double>{1, 2, 1, 1, 0, -1, 2, 0.5, 3, 1});
  const std::string either = R"({"3": [2, 1], "0": [1, 2], "1": [1, 0], "4": [3, 1], "2": [0, 1]})";
  CHECK(list_error(comm, either) ==
        "x.json: the lists have 2 whole numbers each, which may be values, or indices of features that are "
        "set, "
        "expected --feature-lists values or indices");
  Tables told(comm, "", either);
  told.options.feature_lists = FeatureLists::values;
  CHECK(told.read().node_data.at("features") == std::vector<double>{1, 2, 1, 0, 0, 1, 2, 1, 3, 1});
  told.options.feature_lists = FeatureLists::indices;
  CHECK(told.read().node_data.at("features").size() == 20);
}

TEST_CASE("words for a missing label among numbers, and row numbers of pandas, which are no feature") {
  const Communicator comm = Communicator::world();
  for (const char* word : {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "nan", "None"}) {
    Tables tables(comm, concat(",id,x,label\n0,0,1,0\n1,1,2,10\n2,2,3,2\n3,3,4,", word, "\n4,4,5,2\n"));
    tables.columns({{"features", "*"}});
    const WholeSource whole = tables.read();
    CHECK_MESSAGE(whole.node_data.at("labels")[2] == 2, word);
    CHECK_MESSAGE(whole.node_data.at("labels")[1] == 10, word);
    CHECK_MESSAGE((whole.node_data.at("features") == std::vector<double>{1, 2, 3, 4, 5}), word);
  }
}

TEST_CASE("a word among numbers that are labels is refused, and so is a missing label that no row has") {
  const Communicator comm = Communicator::world();
  const auto table = [&](const std::vector<const char*>& labels) {
    std::string text = "id,label\n";
    for (std::size_t v = 0; v < 5; ++v) text += concat(v, ",", labels[v % labels.size()], "\n");
    return text;
  };
  const std::string refused =
      "nodes.csv: column 'label' has numbers and 'unknown', expected numbers alone, names alone, or "
      "--missing-label unknown";
  CHECK(Tables(comm, table({"5.5", "6.5", "unknown", "7.25"})).error() == refused);
  CHECK(Tables(comm, table({"1", "2", "unknown"})).error() == refused);
  Tables missing(comm, table({"5.5", "6.5", "unknown", "7.25"}));
  missing.options.missing_label = "unknown";
  CHECK(missing.read().node_data.at("labels")[3] == 7.25);
  missing.options.missing_label = "Unknown";
  CHECK(missing.error() ==
        "nodes.csv: column 'label' has no 'Unknown', expected --missing-label with a word that it has");
  CHECK(Tables(comm, table({"1", "3a", "2", "3b"})).read().node_data.at("labels") ==
        std::vector<double>{0, 2, 1, 3, 0});
}

TEST_CASE("each wrong key and field of a table is one sentence with its line") {
  const Communicator comm = Communicator::world();
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = table_text;
    return text.replace(text.find(from), from.size(), to);
  };
  CHECK(table_error(comm, replaced("train,1\n", "train,9\n")) ==
        "nodes.csv: line 5: the key '9' is no node of edges.csv, which has 5 nodes, and there are 5 rows, "
        "expected keys of 5 nodes without a gap");
  CHECK(table_error(comm, replaced("train,1\n", "train,x\n")) ==
        "nodes.csv: line 5: the key 'x' is no node of edges.csv, expected the name of one");
  CHECK(table_error(comm, replaced("train,1\n", "train,0\n")) ==
        "nodes.csv: line 5: the key '0' is there twice, expected each node once");
  CHECK(table_error(comm, replaced("73,0,false,40,DE,train,1\n", "")) ==
        "nodes.csv: node '1' of edges.csv has no row, expected one for each of 5 nodes");
  CHECK(table_error(comm, replaced("train,1\n", "train,\n")) ==
        "nodes.csv: line 5: the key is empty, expected a node");
  CHECK(table_error(comm, replaced("73,0,", "73,none,")) ==
        "nodes.csv: line 5: column 'days' is 'none', expected a finite number, or true or false; "
        "--node-columns "
        "one-hot=days takes names");
  CHECK(table_error(comm, replaced("73,0,", "73,nan,")).find("nodes.csv: line 5: column 'days' is 'nan'") ==
        0);
  CHECK(table_error(comm, replaced("73,0,", "73,0,0,")) ==
        "nodes.csv: line 5: there are 8 fields in '73,0,0,false,40,DE,train,1', expected 7 as in the header");
  CHECK(table_error(comm, "1,2,3\n4,5,6\n")
            .starts_with("nodes.csv: line 1: the first line is '1,2,3', expected a header with the names"));
  CHECK(table_error(comm, "{\"0\": [1, 2]}\n") ==
        "nodes.csv: line 1: the text is JSON, expected a table; --node-features reads lists of features in "
        "JSON");
  CHECK(table_error(comm, "a,b\n1,2\n") ==
        "nodes.csv: line 1: there is no column 'new_id', expected one of a, b");
  CHECK(Tables(comm, table_text).error() ==
        "nodes.csv: line 1: the columns are id, days, mature, views, language, part, new_id, which does not "
        "say "
        "the one that has the nodes, expected --node-columns key=COLUMN");
  Tables parts(comm, replaced("train,1\n", "tests,1\n"));
  parts.columns({{"key", "new_id"}, {"split", "part"}});
  CHECK(parts.error() ==
        "nodes.csv: line 5: column 'part' is 'tests', expected train, val or test, or 0, 1, 2 or -1");
  for (const char* wrong : {"3", "0.5", "7"}) {
    Tables folds(comm, concat("id,split\n0,0\n1,1\n2,2\n3,-1\n4,", wrong, "\n"));
    CHECK(folds.error() == concat("nodes.csv: line 6: column 'split' is '", wrong,
                                  "', expected train, val or test, or 0, 1, 2 or -1"));
  }
  Tables twice(comm, table_text, R"({"0": [1], "1": [1, 2], "2": [], "3": [], "4": []})");
  twice.columns({{"key", "new_id"}, {"features", "days"}});
  CHECK(twice.error() == "x.json: node data features are in nodes.csv, too, expected them once");
}

TEST_CASE("each wrong list of features is one sentence") {
  const Communicator comm = Communicator::world();
  CHECK(list_error(comm, "[1, 2]") == "x.json: there is a list, expected {\"node\": [number, ...], ...}");
  CHECK(list_error(comm, "{\"0\": 1}") ==
        "x.json: node '0': there is 1, expected {\"node\": [number, ...], ...}");
  CHECK(list_error(comm, "{\"0\": [\"a\"]}") ==
        "x.json: node '0': there is 'a', expected {\"node\": [number, ...], ...}");
  CHECK(list_error(comm, "{\"0\": [1, 2").find("x.json: the file is no JSON at its byte ") == 0);
  CHECK(list_error(comm, "{}") == "x.json: there are no nodes, expected {\"node\": [number, ...], ...}");
  CHECK(list_error(comm, R"({"0": [1, -2], "1": []})") ==
        "x.json: node '0': an index of a feature is -2, expected a whole number from 0 to 16777215");
  CHECK(list_error(comm, R"({"0": [1.5, 2], "1": [1]})") ==
        "x.json: node '1' has 1 values, expected 2 as node '0' (--feature-lists indices: lists name the "
        "features "
        "that are set)");
  CHECK(list_error(comm, R"({"0": [1], "1": [1, 2], "2": [], "3": [], "x": []})") ==
        "x.json: the key 'x' is no node of edges.csv, expected the name of one");
  CHECK(list_error(comm, R"({"0": [1], "1": [1, 2], "2": [], "3": []})") ==
        "x.json: node '4' of edges.csv has no row, expected one for each of 5 nodes");
  CHECK(list_error(comm, R"({"0": [1], "1": [1, 2], "2": [], "3": [], "4": [], "2": [7]})") ==
        "x.json: the key '2' is there twice, expected each node once");
}
