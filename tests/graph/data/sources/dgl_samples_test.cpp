// SPDX-License-Identifier: MIT

/// Partitions that DGL 1.1.3 wrote, outside of the repository, against the graphs that were partitioned.
#include "graph/data/edge_type_of.hpp"
#include "graph/data/sources/dgl_checks.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/dgl_partition.hpp>

#include <filesystem>

using namespace sar;
using namespace sar::test;

namespace {

const std::string shared = std::string(SAR_SHARED_DATA) + "/";

bool have(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  MESSAGE("skipped: there is no dataset in ", path);
  return false;
}

void check_cora(const Communicator& comm, const std::string& directory) {
  const GraphData graph = load_dgl_partition(comm, directory + "/cora.json");
  CHECK(graph.node_types.size() == 1);
  CHECK(graph.edge_types.size() == 1);
  const NodeTypeData& nodes = graph.node_types[0];
  CHECK(nodes.book.num_nodes() == 2708);
  CHECK(numbers(nodes.data.at("orig_check")) == mapped(nodes.original_ids, identity));
  for (const std::string field : {"features", "labels", "train_mask", "val_mask", "test_mask"}) {
    CAPTURE(field);
    CHECK(same_rows(nodes.data.at(field), nodes.original_ids, shared + "cora/" + field + ".npy"));
  }
  check_edges(comm, graph, "_E", shared + "cora/edge_index.npy");
  const EdgeTypeData& edges = graph.edge_types[0];
  const Array<Index> src =
      fetch_values<Index>(comm, nodes.book, nodes.original_ids, std::span<const Index>(edges.edges.src));
  std::vector<double> weights;
  for (std::size_t k = 0; k < src.size(); ++k) {
    const Index dst = nodes.original_ids[edges.edges.dst[k] - nodes.book.begin(comm.rank())];
    weights.push_back(static_cast<float>((7 * src[k] + 13 * dst) % 101) / 101.0F);
  }
  CHECK(numbers(edges.data.at("weight")) == weights);
}

}  // namespace

TEST_CASE("partitions of Cora by DGL are Cora") {
  const Communicator comm = Communicator::world();
  for (const int parts : {2, 4}) {
    const std::string directory = concat(shared, "dgl-partition-cora-", parts);
    if (comm.size() <= parts && have(directory)) check_cora(comm, directory);
  }
}

TEST_CASE("a heterogeneous partition by DGL is its graph") {
  const Communicator comm = Communicator::world();
  const std::string directory = shared + "dgl-partition-hetero-3";
  if (comm.size() > 3 || !have(directory)) return;
  const GraphData graph = load_dgl_partition(comm, directory + "/hetero.json");
  CHECK(graph.node_type("author").book.num_nodes() == 120);
  CHECK(graph.node_type("author").data.empty());
  const NodeTypeData& papers = graph.node_type("paper");
  CHECK(papers.book.num_nodes() == 200);
  for (const std::string field : {"features", "labels", "train_mask"}) {
    CAPTURE(field);
    CHECK(same_rows(papers.data.at(field), papers.original_ids,
                    directory + "/original_paper." + field + ".npy"));
  }
  for (const std::string type : {"writes", "cites", "rev_writes"})
    check_edges(comm, graph, type, directory + "/original_edges." + type + ".npy");
  const EdgeTypeData& cites = edge_type_of(graph, "cites");
  CHECK(same_rows(cites.data.at("year"), cites.edges.id, directory + "/original_cites.year.npy"));
}
