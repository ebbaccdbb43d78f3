// SPDX-License-Identifier: MIT

// One graph as pandas, NumPy, NetworkX, igraph and SciPy write it (tests/data/formats/text/make.py).
#include "source_file.hpp"

#include <formats/open_source.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::formats;

namespace {

const std::string folder = SAR_TEST_DATA "/formats/text/";

/// Edges with their weights; 0: the file has none.
using Graph = std::map<std::pair<Index, Index>, double>;

Graph graph_of(const Communicator& comm, const std::string& file, std::vector<std::string>* notes = nullptr) {
  const auto source = open_source(comm, folder + file);
  if (notes != nullptr) *notes = source->notes();
  const test::WholeSource whole = test::gather_source(*source);
  CHECK(whole.num_nodes == 8);
  CHECK(whole.edge_data.size() <= 1);
  Graph graph;
  for (std::size_t e = 0; e < whole.edges.size(); ++e)
    graph[whole.edges[e]] = whole.edge_data.empty() ? 0 : whole.edge_data.at("weight").at(e);
  return graph;
}

const Graph weighted{{{5, 7}, 0.5}, {{7, 2}, 1}, {{2, 5}, 1.5}, {{5, 6}, 2},
                     {{6, 0}, 2.5}, {{0, 1}, 3}, {{1, 3}, 3.5}, {{3, 4}, 4}};

std::string error_of(const Communicator& comm, const std::string& file) {
  return test::thrown_by_all<InputError>(comm, [&] { static_cast<void>(open_source(comm, folder + file)); });
}

}  // namespace

TEST_CASE("files of other programs are the graph that was written, with its weights or without any") {
  const Communicator comm = Communicator::world();
  Graph unweighted = weighted;
  for (auto& [edge, weight] : unweighted) weight = 0;
  for (const char* file :
       {"pandas_index.csv", "pandas_no_index.csv", "pandas_reversed.csv", "pandas_bom.csv", "pandas_tab.tsv",
        "pandas_semicolon.csv.gz", "pandas_float.csv", "pandas_two_indices.csv", "pandas_timestamp.csv",
        "pandas_numbered.csv", "pandas_unnamed_0.csv", "numpy.txt", "numpy_float.txt",
        "networkx_plain.edgelist", "igraph.edgelist"}) {
    CAPTURE(file);
    CHECK(graph_of(comm, file) == unweighted);
  }
  for (const char* file : {"pandas_index_weight.csv", "networkx.edgelist", "networkx_comma.edgelist",
                           "networkx_weighted.edgelist", "networkx_pandas.csv", "igraph.ncol",
                           "igraph_pandas.csv", "scipy.mtx"}) {
    CAPTURE(file);
    CHECK(graph_of(comm, file) == weighted);
  }
}

TEST_CASE("names with commas in quotes are names") {
  const Communicator comm = Communicator::world();
  const test::WholeSource whole = test::gather_source(*open_source(comm, folder + "pandas_names.csv"));
  CHECK(whole.num_nodes == 8);
  CHECK(whole.edges.at(0) == std::pair<Index, Index>{0, 1});
  CHECK(whole.edges.at(2) == std::pair<Index, Index>{2, 0});
}

TEST_CASE("the notes say which columns were read, and the range of the weights") {
  const Communicator comm = Communicator::world();
  std::vector<std::string> notes;
  graph_of(comm, "pandas_index_weight.csv", &notes);
  const std::string file = folder + "pandas_index_weight.csv: ";
  CHECK(notes ==
        std::vector<std::string>{
            file +
                "source: column 2 'source', target: column 3 'target', weight: column 4 'weight', ignored: "
                "column 1 (row numbers); separator: comma; header: line 1",
            file + "node ids: integers from 0 to 7", file + "weight of the edges: from 0.5 to 4",
            file + "no edge has its reverse in the file, and messages go from source to destination only; "
                   "--add-reverse-edges adds the others, as for a graph without directions"});
}

TEST_CASE("other formats are refused by their names") {
  const Communicator comm = Communicator::world();
  for (const auto& [file, format] : std::vector<std::pair<std::string, std::string>>{
           {"pandas_utf16.csv", "the text is in UTF-16"},
           {"networkx.graphml", "GraphML"},
           {"networkx.net", "Pajek"},
           {"networkx.gml", "GML"},
           {"networkx.adjlist", "line 5: there are 2 fields in '7 2'"},
           {"igraph.lgl", "LGL"},
           {"igraph.dimacs", "DIMACS"}}) {
    CAPTURE(file);
    CHECK(error_of(comm, file).find(format) != std::string::npos);
  }
}
