// SPDX-License-Identifier: MIT

// What --describe says of a graph.
#include "source_file.hpp"
#include "support/write_npy.hpp"

#include <formats/describe_source.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Lines = std::vector<std::string>;

/// A .npy file of one column, or of rows of `width`.
struct Column : SourceFile {
  Column(const Communicator& comm, const std::vector<double>& values, Index width = 1)
      : SourceFile(comm, "column.npy", "") {
    std::vector<Index> shape{static_cast<Index>(values.size()) / width};
    if (width > 1) shape.push_back(width);
    if (comm.rank() == 0) write_npy<double>(path(), shape, values, NpyType::float32);
    comm.barrier();
  }
};

Lines describe(const Communicator& comm, const std::string& path, const formats::SourceOptions& options) {
  const auto source = formats::open_source(comm, path, options);
  return formats::describe_source(*source, options.fields);
}

}  // namespace

TEST_CASE("duplicates, self loops, opposite edges and nodes without edges are counted") {
  const Communicator comm = Communicator::world();
  const SourceFile file(comm, "edges.csv", "0,1\n1,0\n0,1\n2,2\n2,2\n5,3\n");
  CHECK(describe(comm, file.path(), {}) ==
        Lines{"6 nodes, 1 without edges, 2 without in-edges",
              "6 edges, 2 duplicates, 2 self loops, 3 have an opposite edge"});
}

TEST_CASE("ranges of data, NaN, unlabelled nodes and those of masks") {
  const Communicator comm = Communicator::world();
  const double nan = std::nan("");
  const SourceFile file(comm, "edges.csv", "0,1,0.1\n1,2,-7\n2,3,1217567877\n");
  const Column x(comm, {0.1, 1, 2, 3, nan, nan, 4, INFINITY}, 2);
  const Column y(comm, {0, 3, nan, -1});
  const Column mask(comm, {0, 1, 1, 1});
  formats::SourceOptions options;
  options.node_data = {{"x", x.path()}, {"labels", y.path()}, {"val_mask", mask.path()}};
  CHECK(describe(comm, file.path(), options) ==
        Lines{"4 nodes, 0 without edges, 1 without in-edges",
              "nodes: labels: from 0 to 3, 2 nodes without a label",
              "nodes: val_mask: 3 nodes, 2 of them without a label",
              "nodes: x (2,): from 0.1 to 4, 2 NaN in 1 rows, the first in row 2, 1 infinite",
              "3 edges, 0 duplicates, 0 self loops, 0 have an opposite edge",
              "edges: weight: from -7 to 1217567877"});
  options.fields = {{"labels", "x"}};  // rows of two are no labels
  CHECK(describe(comm, file.path(), options)[2] == "nodes: val_mask: 3 nodes");
}

TEST_CASE("types are described by their names") {
  const Communicator comm = Communicator::world();
  const SourceFile writes(comm, "writes.csv", "0,1\n0,1\n2,0\n");
  const SourceFile cites(comm, "cites.csv", "0,1\n1,0\n1,1\n");
  formats::SourceOptions options;
  options.relations = {{"author:writes:paper", writes.path()}, {"paper:cites:paper", cites.path()}};
  options.node_ids = formats::NodeIds::names;
  CHECK(thrown_by_all<InputError>(comm, [&] { describe(comm, "", options); }) ==
        "--node-ids: names are for one edge list, expected dense or from-1 with --edges");
  options.node_ids = formats::NodeIds::automatic;
  CHECK(describe(comm, "", options) ==
        Lines{"author: 3 nodes, 1 without edges, 3 without in-edges",
              "paper: 2 nodes, 0 without edges, 0 without in-edges",
              "author:writes:paper: 3 edges, 1 duplicates",
              "paper:cites:paper: 3 edges, 0 duplicates, 1 self loops, 2 have an opposite edge"});
}
