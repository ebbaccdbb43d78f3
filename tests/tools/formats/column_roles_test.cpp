// SPDX-License-Identifier: MIT

// What the columns of an edge list mean, case by case.
#include "source_file.hpp"
#include "support/write_npy.hpp"

#include <formats/open_source.hpp>
#include <sar/core/files/file.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::SourceFile;
using sar::test::WholeSource;
using sar::test::write_npy;

namespace {

using Edges = std::vector<std::pair<Index, Index>>;

struct Read {
  Edges edges;
  std::map<std::string, std::vector<double>> data;
  std::string notes;  // all in one text
};

Read read(const std::string& text, const SourceOptions& options = {}) {
  const Communicator comm = Communicator::world();
  const SourceFile file(comm, "edges.csv", text);
  const auto source = open_source(comm, file.path(), options);
  Read result;
  for (const std::string& note : source->notes()) result.notes += note + "\n";
  const WholeSource whole = test::gather_source(*source);
  result.edges = whole.edges;
  result.data = whole.edge_data;
  return result;
}

std::string error(const std::string& text, const SourceOptions& options = {}) {
  return SourceFile(Communicator::world(), "edges.csv", text).error(options);
}

SourceOptions columns(const std::multimap<std::string, std::string>& roles) {
  SourceOptions options;
  options.columns = roles;
  return options;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("names of a header say which column is the source, in either order and in any spelling") {
  for (const char* header : {"target,source", "to,from", "dst,src", "Target,Source", "target_id,source_id",
                             "ToNodeId,FromNodeId", "id_target,id_source", "Destination,Source", "item,user",
                             "movieId,userId", "object,subject", "cited,citing"})
    CHECK_MESSAGE((read(std::string(header) + "\n1,0\n2,0\n").edges == Edges{{0, 1}, {0, 2}}), header);
  for (const char* header : {"source,target", ":START_ID,:END_ID", "u,v", "i,j", "a,b", "node1,node2",
                             "Id_1,Id_2", "head,tail", "user,film", "x,y", "row,col",
                             "source_node,target_node", "\"Source\",\"Target\"", "protein_a,protein_b"})
    CHECK_MESSAGE((read(std::string(header) + "\n0,1\n0,2\n").edges == Edges{{0, 1}, {0, 2}}), header);
}

TEST_CASE("names that do not decide are refused with the option that does") {
  for (const char* header : {"tail,head", "v,u", "j,i", "node2,node1", "film,customer",
                             "source_id,source_name", "user,follower", "col,row"})
    CHECK_MESSAGE((has(error(std::string(header) + "\n1,0\n2,0\n"), "expected --columns source=")), header);
  for (const char* header :
       {"person,contact,start,end", "from_station,to_station,t1,t2", "paper,reference,x1,x2"})
    CHECK_MESSAGE(has(error(std::string(header) + "\n1,2,100,110\n2,3,120,130\n"),
                      "does not say for sure that they are the two nodes of an edge"),
                  header);
  CHECK((read("id,x,y\n7,0,1\n8,0,2\n").edges == Edges{{0, 1}, {0, 2}}));
  CHECK(has(error("id,parent,weight\n1,0,3\n2,0,1\n"),
            "does not say which columns are the two nodes of an edge"));
  CHECK(has(error("source,target,weight\n0,1,0.5\n1,2,NA\n"), "line 3: "));
  CHECK(has(error("src,dst,from,to\n0,1,5,6\n"), "columns 1 and 3 are called 'src' and 'from'"));
  CHECK(read("tail,head\n1,0\n2,0\n", columns({{"source", "head"}, {"target", "tail"}})).edges ==
        Edges{{0, 1}, {0, 2}});
  CHECK(read("tail,head\n1,0\n2,0\n", columns({{"source", "2"}, {"target", "1"}})).edges ==
        Edges{{0, 1}, {0, 2}});
  CHECK(has(error("a,b\n1,0\n", columns({{"source", "c"}})),
            "there is no such column, expected one of 'a', 'b' or "
            "a number from 1 to 2"));
  CHECK(
      has(error("a,b\n1,0\n", columns({{"source", "a"}, {"target", "1"}})), "column 1 is source and target"));
}

TEST_CASE("columns of row numbers are no nodes") {
  for (const char* first : {"", "Unnamed: 0", "EdgeId", "id", "index", "edge ID", "Unnamed: 0.1"}) {
    CAPTURE(first);
    const Read named = read(std::string(first) + ",source,target\n0,5,7\n1,7,2\n");
    CHECK(named.edges == Edges{{5, 7}, {7, 2}});
    CHECK(named.data.empty());
    CHECK(read(std::string(first) + ",x,y\n0,5,7\n1,7,2\n").edges == Edges{{5, 7}, {7, 2}});
  }
  CHECK(read("\"source\" \"target\"\n\"1\" 5 7\n\"2\" 7 2\n").edges == Edges{{5, 7}, {7, 2}});  // R
  CHECK(has(error("source target\n1 5 7\n2 7 2\n"), "--columns source=2,target=3"));
  CHECK(read("source target\n1 5 7\n2 7 2\n", columns({{"source", "2"}, {"target", "3"}})).edges ==
        Edges{{5, 7}, {7, 2}});
  CHECK(has(read("0,5,7\n1,7,2\n2,2,5\n").notes, "WARNING: "));
  CHECK(!has(read("0,5,7\n0,7,2\n2,2,5\n").notes, "WARNING: "));
}

TEST_CASE("a named column that is no weight is none, an unnamed one is, with its range in the notes") {
  const Read named = read("src,dst,timestamp\n0,1,1217567877\n1,2,1217567977\n");
  CHECK(named.data.empty());
  CHECK(has(named.notes, "weight: none, ignored: column 3 'timestamp'"));
  const Read unnamed = read("0 1 0.5\n1 2 1217567977\n");
  CHECK(unnamed.data.at("weight") == std::vector<double>{0.5, 1217567977});
  CHECK(has(unnamed.notes, "weight of the edges: from 0.5 to 1217567977"));
  const std::string times = "0 1 1217567877\n1 2 1217567977\n";
  if (sizeof(real) == 4)
    CHECK(error(times) ==
          ": column 3 has integers such as 1217567977, which single precision cannot hold as weights, "
          "expected --columns source=1,target=2 (or weight=3), or train --ignore-edge-weights");
  CHECK(read(times, columns({{"weight", "3"}})).data.at("weight") ==
        std::vector<double>{1217567877, 1217567977});
  CHECK(read("0 1 7\n1 2 8\n", columns({{"source", "1"}, {"target", "2"}})).data.empty());
  CHECK(read("weight,from,to\n0.5,0,1\n2,1,0\n").data.at("weight") == std::vector<double>{0.5, 2});
  CHECK(read("from,to,x\n0,1,3\n", columns({{"weight", "x"}})).data.at("weight") == std::vector<double>{3});
  CHECK(read("from,to,feat_0,feat_1\n0,1,3,4\n").data.at("features") == std::vector<double>{3, 4});
  CHECK(read("from,to,p,q\n0,1,3,4\n", columns({{"features", "q"}, {"features", "p"}})).data.at("features") ==
        std::vector<double>{3, 4});
}

TEST_CASE("columns of texts are ignored and named") {
  const Read gephi = read(
      "Source,Target,Type,Id,Label,Weight\n0,1,Undirected,0,,2.5\n1,2,Undirected,1,,1\n2,0,Undirected,2,,"
      "3\n");
  CHECK(gephi.edges == Edges{{0, 1}, {1, 2}, {2, 0}});
  CHECK(gephi.data == std::map<std::string, std::vector<double>>{{"weight", {2.5, 1, 3}}});
  CHECK(has(gephi.notes,
            "ignored: column 3 'Type' (texts), column 4 'Id' (row numbers), column 5 'Label' (empty)"));
  CHECK(has(gephi.notes, "--add-reverse-edges"));
  CHECK(has(error("a\tknows\tb\nb\tlikes\tc\n"),
            "column 3 is 'b', expected a number; if it is no data, --columns"));
  CHECK(read("a\tknows\tb\nb\tlikes\tc\n", columns({{"source", "1"}, {"target", "3"}})).edges ==
        Edges{{0, 1}, {1, 2}});
}

TEST_CASE("a first line is a header, an edge, or refused with --header") {
  CHECK(read("user,item\nu1,i1\nu2,i1\n").edges == Edges{{0, 1}, {2, 1}});
  CHECK(read("a,b\nb,c\nc,a\n").edges.size() == 3);
  for (const char* text : {"u,v\nann,bob\nbob,cid\n", "customer,purchase\nc1,p1\nc2,p1\n",
                           "0,1,n/a\n1,2,5\n2,0,6\n", "0 a,b\na,b 0\n1 0\n"}) {
    CAPTURE(text);
    CHECK(has(error(text), "expected --header yes or --header no"));
  }
  SourceOptions options;
  options.header = true;
  CHECK(read("u,v\nann,bob\nbob,cid\n", options).edges == Edges{{0, 1}, {1, 2}});
  options.header = false;
  CHECK(read("u,v\nann,bob\nbob,cid\n", options).edges.size() == 3);
  const Read doubtful = read("client,ware\nann,milk\nbob,tea\n");
  CHECK(doubtful.edges.size() == 3);
  CHECK(has(doubtful.notes, "WARNING: "));
  CHECK(has(doubtful.notes, "is read as an edge; if it is a header, --header yes"));
  CHECK(has(error("4 4\n0 1\n1 2\n2 3\n3 0\n"), "the numbers of nodes and edges, expected --header yes"));
  options.header = true;
  CHECK(read("4 4\n0 1\n1 2\n2 3\n3 0\n", options).edges.size() == 4);
}

TEST_CASE("comments may name the columns") {
  CHECK(read("# Nodes: 3 Edges: 2\n# ToNodeId\tFromNodeId\n1\t0\n2\t0\n").edges == Edges{{0, 1}, {0, 2}});
  CHECK(read("#target,source\n1,0\n2,0\n").edges == Edges{{0, 1}, {0, 2}});
  const Read konect = read("% sym weighted\n% 2 3 3\n0 1 3 1111\n1 2 4 1112\n");
  CHECK(konect.data == std::map<std::string, std::vector<double>>{{"weight", {3, 4}}});
  CHECK(has(konect.notes, "--add-reverse-edges"));
  CHECK(has(error("% bip unweighted\n1 1\n2 1\n"), "--edges"));
}

TEST_CASE("a comment that may be a row is refused, and one that names columns is not") {
  const std::string refused =
      "' is a comment by its #, and has as many fields as the rows, expected \"#12\" in "
      "quotes, or a blank behind the #";
  CHECK(error("#12,#13\na,b\n") == ": line 1: '#12,#13" + refused);
  CHECK(error("0,1\n#12,13\n1,0\n") == ": line 2: '#12,13" + refused);
  CHECK(error("x,y,w\na,b,1\n#12,#13,2\n") == ": line 3: '#12,#13,2" + refused);
  for (const char* text :
       {"#12 3\n1 2\n", "#cats,bob\nbob,ann\n", "#cats,#dogs\nbob,ann\n", "%cats\t5\nbob\t%cats\n",
        "bob,ann\n  #cats,#dogs\nann,bob\n", "\"#a\" b\n#a b\nb \"#a\"\n"})
    CHECK_MESSAGE(has(error(text), "is a comment by its "), text);
  CHECK(read("\"#12\",\"#13\"\n\"#13\",a\n").edges == Edges{{0, 1}, {1, 2}});
  for (const char* text : {"#nodes 100\n0 1\n1 2\n", "0 1\n#graph 2\n1 2\n", "# 7 8\n0 1\n# 0 2\n1 2\n",
                           "#node1\tnode2\n0\t1\n1\t2\n", "#5\n0 1\n1 2\n#0 1 2\n"})
    CHECK_MESSAGE((read(text).edges == Edges{{0, 1}, {1, 2}}), text);
}

TEST_CASE("a byte order mark is no part of a text, plain or packed") {
  for (const std::string text : {"0,1\n1,2\n", "source,target\n0,1\n1,2\n",
                                 "%%MatrixMarket matrix coordinate pattern "
                                 "general\n3 3 2\n1 2\n2 3\n"}) {
    CAPTURE(text);
    const Communicator comm = Communicator::world();
    const std::string marked = "\xEF\xBB\xBF" + text;
    for (const Index block : {1, 3, 100}) {
      CHECK(SourceFile(comm, "e.csv", marked).read(test::blocks_of(block)).edges == Edges{{0, 1}, {1, 2}});
      CHECK(SourceFile(comm, "e.csv.gz", test::gzip(marked)).read(test::blocks_of(block)).edges ==
            Edges{{0, 1}, {1, 2}});
    }
  }
  CHECK(read("\xEF\xBB\xBF"
             "ann,bob\nbob,ann\n")
            .edges == Edges{{0, 1}, {1, 0}});
  const std::string utf16(
      "\xFF\xFE"
      "0\0,\0"
      "1\0\n\0",
      10);
  CHECK(has(error(utf16), ": the text is in UTF-16"));
  CHECK(has(SourceFile(Communicator::world(), "e.gz", test::gzip(utf16)).error(), ": the text is in UTF-16"));
}

TEST_CASE("separators: inside quotes they are none, two that could be one are refused") {
  CHECK(read("source,target\n\"Smith, J\",\"Doe, K\"\n\"Doe, K\",X\n").edges == Edges{{0, 1}, {1, 2}});
  CHECK(read("\"New York\" Boston\nBoston \"New York\"\n").edges == Edges{{0, 1}, {1, 0}});
  CHECK(read("0,1,\n1,2,\n").edges == Edges{{0, 1}, {1, 2}});
  for (const char* text : {"a b,x y\nc d,a b\n", "a b,x\nx,c d\n", "a b c,x\nc d,a b c\n", "0, 1\n1, 2\n"})
    CHECK_MESSAGE(has(read(text).notes, "separator: comma"), text);
  CHECK(read("source,target,\n0,1,\n1,2,\n").data.empty());
  CHECK(read("\tsource\ttarget\n0\t5\t7\n1\t7\t2\n").edges == Edges{{5, 7}, {7, 2}});
  for (const char* text : {"0;1;2,5\n1;2;3,5\n", "0 1 2,5\n1 2 3,5\n", "0::1\n1::2\n", "0 -> 1\n1 -> 2\n",
                           "0,\t1\n1,\t2\n", "a b x,y\nb c y,z\n", "0\t1,5\n1\t2,5\n",
                           "id name City, Country\n1 2 Rome, Italy\n2 3 Paris, France\n"}) {
    CAPTURE(text);
    CHECK(has(error(text), "--separator"));
  }
}

TEST_CASE("lines that end with carriage returns alone are refused, those with line feeds, too, are not") {
  CHECK(has(error("0,1\r1,2\r2,0\r"), ": lines end with carriage returns alone"));
  CHECK(read("0,1\r\n1,2\r\n").edges == Edges{{0, 1}, {1, 2}});
  CHECK(read("0,1\n1,2\r").edges == Edges{{0, 1}, {1, 2}});
}

TEST_CASE("a given separator is not guessed") {
  SourceOptions options;
  options.separator = ';';
  CHECK(read("1,000;2,000\n2,000;3,000\n", options).edges == Edges{{0, 1}, {1, 2}});
}

TEST_CASE("the weight in the dictionaries of NetworkX is read from all of them") {
  const Read weighted = read("0 1 {'color': 'red', 'weight': 2.0}\n1 2 {'weight': np.float64(0.5)}\n");
  CHECK(weighted.edges == Edges{{0, 1}, {1, 2}});
  CHECK(weighted.data.at("weight") == std::vector<double>{2, 0.5});
  CHECK(read("0 1 {}\n1 2 {}\n").data.empty());
  CHECK(has(error("0 1 {'weight': 2}\n1 2 {}\n"), ": line 2: the weight in '{}' is ''"));
}

TEST_CASE("node ids: integers as floating-point numbers, from 1, by a file of keys") {
  CHECK(read("2.0,0.0\n0.0,1e+00\n").edges == Edges{{2, 0}, {0, 1}});
  CHECK(has(error("1.5,0\n2,1\n"), "a node is '1.5', expected an integer"));
  CHECK(has(error("9007199254740993.0,1\n"), "not exact from 2^53 on"));
  SourceOptions options;
  options.node_ids = NodeIds::from_one;
  CHECK(read("1,2\n2,3\n", options).edges == Edges{{0, 1}, {1, 2}});
  CHECK(has(error("0,1\n1,2\n", options), "a node is '0', expected a number from 1 on"));
  CHECK(has(read("1,2\n2,3\n").notes, "--node-ids from-1 counts from 1"));

  const Communicator comm = Communicator::world();
  const auto keyed = [&](const std::string& edges, const std::string& name, const std::string& keys) {
    const SourceFile file(comm, name, keys);
    SourceOptions with_keys;
    with_keys.node_keys = file.path();
    with_keys.block_bytes = 3;
    return SourceFile(comm, "e.csv", edges).read(with_keys);
  };
  CHECK(keyed("30,10\n10,20\n20,30\n", "keys.txt", "10\n20\n30\n40\n").edges ==
        Edges{{2, 0}, {0, 1}, {1, 2}});
  CHECK(keyed("30,10\n10,20\n", "keys.txt", "10\n20\n30\n40\n").num_nodes == 4);
  CHECK(keyed("30.0,10.0\n10.0,20.0\n", "nodes.csv", "age,node_id\n1,10\n5,20\n6,30\n").edges ==
        Edges{{2, 0}, {0, 1}});
  CHECK(keyed("Boston\tNew York\n", "keys.txt", "New York\nBoston\n").edges == Edges{{1, 0}});
  const SourceFile twice(comm, "keys.txt", "10\n20\n10\n");
  options = {};
  options.node_keys = twice.path();
  CHECK(SourceFile(comm, "e.csv", "10,20\n").error(options) ==
        twice.path() + ": there are 3 ids, and 2 of them are different, expected each id once");
  options.node_ids = NodeIds::from_one;
  CHECK(SourceFile(comm, "e.csv", "1,2\n").error(options) ==
        twice.path() + ": --node-keys say which node has which id, expected no --node-ids from-1");
  options.node_ids = NodeIds::automatic;
  const SourceFile few(comm, "keys.txt", "10\n20\n");
  options.node_keys = few.path();
  CHECK(has(SourceFile(comm, "e.csv", "10,20\n20,30\n").error(options),
            ": node '30' and 0 others have no row in "));
}

TEST_CASE("rows of node data belong to ids for sure, or are refused") {
  const Communicator comm = Communicator::world();
  const SourceFile place(comm, "x.npy", "");
  if (comm.rank() == 0)
    write_npy<double>(place.path(), std::vector<Index>{3, 1}, std::vector<double>{1, 2, 3}, NpyType::float32);
  comm.barrier();
  SourceOptions options;
  options.node_data["features"] = place.path();
  for (const char* text : {"30,10\n10,20\n20,30\n", "ann,bob\nbob,cid\n"})
    CHECK(has(error(text, options), "expected --node-keys FILE"));
  CHECK(has(SourceFile(comm, "e.csv", "1,2\n2,3\n").error(options), "--node-ids from-1"));
  options.node_ids = NodeIds::from_one;
  CHECK(SourceFile(comm, "e.csv", "1,2\n2,3\n").read(options).node_data.at("features") ==
        std::vector<double>{1, 2, 3});
  const SourceFile keys(comm, "keys.txt", "cid\nbob\nann\n");
  options = {};
  options.node_data["features"] = place.path();
  options.node_keys = keys.path();
  CHECK(SourceFile(comm, "e.csv", "ann,bob\nbob,cid\n").read(options).edges == Edges{{2, 1}, {1, 0}});
}

TEST_CASE("options of edge lists are refused for other formats") {
  const SourceFile file(Communicator::world(), "e.mtx",
                        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n");
  SourceOptions ids, header, keys, separator, no_columns;
  ids.node_ids = NodeIds::dense;
  header.header = true;
  separator.separator = ' ';
  no_columns.ignore_data = true;
  keys.node_keys = file.path();
  for (const auto& [option, name] : {std::pair{columns({{"source", "1"}}), "--columns"},
                                     {header, "--header"},
                                     {keys, "--node-keys"},
                                     {separator, "--separator"},
                                     {no_columns, "--ignore-columns (train --ignore-edge-weights"},
                                     {ids, "--node-ids"}})
    CHECK(has(file.error(option), concat(": the file is no edge list, expected no ", name)));
  SourceOptions both = columns({{"weight", "3"}});
  both.ignore_data = true;
  CHECK(has(error("0,1,2\n1,0,3\n", both), "--columns: weight=3 is data, which --ignore-columns leaves"));
}

TEST_CASE("files of a dataset directory with names that other formats know are not left alone") {
  const Communicator comm = Communicator::world();
  const auto opened = [&](const std::string& name, const SourceOptions& options, bool has_types = false,
                          Index width = 1) {
    const test::TemporaryDirectory directory(comm);
    if (comm.rank() == 0) {
      const std::string nodes = directory.path() + (has_types ? "/nodes/p/" : "/"),
                        edges = directory.path() + (has_types ? "/edges/p:c:p/" : "/");
      make_directories(nodes);
      make_directories(edges);
      if (has_types)
        write_text(directory.path() + "/hetero.json",
                   R"({"format": "sar-dataset", "version": 1, "node_types": [{"name": "p", "num_nodes": 2}],)"
                   R"( "edge_types": [{"src_type": "p", "name": "c", "dst_type": "p", "num_edges": 2}]})");
      write_npy<Index>(edges + "edge_index.npy", std::vector<Index>{2, 2}, std::vector<Index>{0, 1, 1, 0},
                       NpyType::int64);
      write_npy<double>(nodes + "features.npy", std::vector<Index>{2, 1}, std::vector<double>{0, 1},
                        NpyType::float32);
      write_npy<double>((name.starts_with("edge_") ? edges : nodes) + name + ".npy",
                        std::vector<Index>{2, width},
                        std::vector<double>(static_cast<std::size_t>(2 * width)), NpyType::float32);
    }
    comm.barrier();
    try {
      static_cast<void>(open_source(comm, directory.path(), options));
    } catch (const InputError& error) {
      return std::string(error.what()).substr(directory.path().size());
    }
    return std::string();
  };
  CHECK(opened("valid_mask", {}) ==
        "/valid_mask.npy: is not read, expected val_mask.npy, or --fields val_mask=valid_mask");
  CHECK(opened("edge_weights", {}) ==
        "/edge_weights.npy: is not read, expected edge_weight.npy, or --fields weight=weights");
  CHECK(
      opened("edge_valid_mask", {}) ==
      "/edge_valid_mask.npy: is not read, expected edge_val_mask.npy, or --fields edge_val_mask=valid_mask");
  CHECK(opened("valid_mask", {}, true) ==
        "/nodes/p/valid_mask.npy: is not read, expected val_mask.npy, or --fields val_mask=valid_mask");
  CHECK(opened("edge_weights", {}, true) ==
        "/edges/p:c:p/edge_weights.npy: is not read, expected edge_weight.npy, or --fields weight=weights");
  CHECK(opened("edge_weights", {}, false, 3).empty());  // no weights
  for (const char* name : {"val_mask", "edge_weight", "edge_val_mask", "valid", "y"})
    for (const bool has_types : {false, true}) CHECK(opened(name, {}, has_types).empty());
  SourceOptions options;
  options.fields = {{"weight", "weights"}};
  CHECK(opened("edge_weights", options).empty());
  options.fields = {};
  options.edge_weights = false;
  CHECK(opened("edge_weights", options).empty());
}
