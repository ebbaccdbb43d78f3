// SPDX-License-Identifier: MIT

/// DGL's partitions against the graphs they were made of.
#include "graph/data/edge_type_of.hpp"
#include "graph/data/sources/dgl_checks.hpp"
#include "support/damage.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/data/graph_view.hpp>

#include <filesystem>

using namespace sar;
using namespace sar::test;

namespace {

const std::string own = std::string(SAR_TEST_DATA) + "/dgl/";

/// The data that make.py gives to papers.
void check_papers(const NodeTypeData& nodes) {
  CHECK(nodes.data.size() == 4);
  CHECK(numbers(nodes.data.at("labels")) ==
        mapped(nodes.original_ids, [](Index v) { return double(v % 3); }));
  CHECK(numbers(nodes.data.at("train_mask")) ==
        mapped(nodes.original_ids, [](Index v) { return double(v % 2 == 0); }));
  CHECK(numbers(nodes.data.at("orig_check")) == mapped(nodes.original_ids, identity));
  std::vector<double> features;
  for (const Index v : nodes.original_ids)
    for (const double x : {double(v), double(v) / 4, -double(v)}) features.push_back(x);
  CHECK(nodes.data.at("features").row_shape == std::vector<Index>{3});
  CHECK(numbers(nodes.data.at("features")) == features);
}

void check_heterogeneous(const Communicator& comm, const std::string& directory) {
  const GraphData graph = load_dgl_partition(comm, directory + "/papers.json");
  CHECK(graph.name == "papers");
  CHECK(graph.node_type("author").book.num_nodes() == 6);
  CHECK(graph.node_type("paper").book.num_nodes() == 9);
  check_papers(graph.node_type("paper"));
  const NodeTypeData& authors = graph.node_type("author");
  CHECK(numbers(authors.data.at("orig_check")) == mapped(authors.original_ids, identity));
  for (const std::string type : {"author:writes:paper", "paper:cites:paper", "paper:rev_writes:author"})
    check_edges(comm, graph, type, directory + "/original_edges." + edge_type_of(graph, type).name + ".npy");
  const EdgeTypeData& cites = edge_type_of(graph, "cites");
  CHECK(cites.data.at("year").type == NpyType::int32);
  CHECK(numbers(cites.data.at("year")) == mapped(cites.edges.id, [](Index e) { return double(1990 + e); }));
}

}  // namespace

TEST_CASE("a homogeneous partition is the graph it was made of") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 2) return;
  const GraphData graph = load_dgl_partition(comm, own + "homogeneous/cycle.json");
  CHECK(graph.name == "cycle");
  CHECK(graph.node_types.size() == 1);
  check_papers(graph.node_type("_N"));
  check_edges(comm, graph, "_N:_E:_N", own + "homogeneous/original_edges._E.npy");
  const EdgeTypeData& edges = graph.edge_types[0];
  CHECK(numbers(edges.data.at("orig_check")) == mapped(edges.edges.id, identity));
}

TEST_CASE("a heterogeneous partition in CSR and CSC, with a type that a part does not have") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 2) return;
  check_heterogeneous(comm, own + "heterogeneous");
}

TEST_CASE("a partition of an old DGL: 32-bit ids, types of edges without ends, original ids in the graph") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 3) return;
  check_heterogeneous(comm, own + "old");
}

TEST_CASE("a partition of DGL 2.1.0 in CSC, whose original ids are a field; and without the field") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 2) return;
  const GraphData graph = load_dgl_partition(comm, own + "formats/cycle.json");
  const NodeTypeData& nodes = graph.node_type("_N");
  CHECK(nodes.ids_are_original);
  CHECK(numbers(nodes.data.at("labels")) ==
        mapped(nodes.original_ids, [](Index v) { return double(v % 3); }));
  check_edges(comm, graph, "_N:_E:_N", own + "homogeneous/original_edges._E.npy");

  const TemporaryDirectory directory(comm);
  const std::string copy = directory.path() + "/copy";
  if (comm.rank() == 0) {
    std::filesystem::copy(own + "formats", copy, std::filesystem::copy_options::recursive);
    for (const char* file : {"/part0/node_feat.dgl", "/part1/node_feat.dgl"})
      replace(copy + file, "_N/orig_id", "_N/orig_it");
  }
  comm.barrier();
  const GraphData unknown = load_dgl_partition(comm, copy + "/cycle.json");
  const NodeTypeData& same = unknown.node_type("_N");
  CHECK_FALSE(same.ids_are_original);
  CHECK_FALSE(to_node_data(comm, unknown).ids_are_original);
  CHECK(numbers(same.data.at("orig_it")) == mapped(nodes.original_ids, identity));
  for (Index i = 0; i < std::ssize(same.original_ids); ++i)
    CHECK(same.original_ids[i] == same.book.begin(comm.rank()) + i);
}

TEST_CASE("more ranks than parts are refused by all of them") {
  const Communicator comm = Communicator::world();
  if (comm.size() <= 2) return;
  CHECK(thrown_by_all<InputError>(comm, [&] { load_dgl_partition(comm, own + "homogeneous/cycle.json"); }) ==
        concat(own, "homogeneous/cycle.json: there are 2 parts for ", comm.size(),
               " ranks, expected a part for each rank at least"));
}
