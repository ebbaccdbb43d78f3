// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "nn/train/curve.hpp"

#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/graph_view.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>

using namespace sar;
using namespace sar::test;

TEST_CASE("a training from a partition directory has the curve of partitioning in the process") {
  const Communicator comm = Communicator::world();
  const SbmOptions sbm{.nodes = 300, .degree = 6, .classes = 4, .features = 12};
  const int epochs = sizeof(real) == 8 ? 50 : 20;
  const double accepted = sizeof(real) == 8 ? 1e-9 : 1e-4;
  std::vector<PartitionMethod> methods{PartitionMethod::contiguous, PartitionMethod::random,
                                       PartitionMethod::ldg};
  if (has_metis()) methods.push_back(PartitionMethod::metis);
  const TemporaryDirectory scratch(comm);
  for (const PartitionMethod method : methods) {
    const std::vector<double> expected =
        curve(comm, make_sbm(comm, sbm, {.add_self_loops = true, .partition = method}), {}, epochs);
    for (const int parts : {comm.size(), 2 * comm.size() + 1}) {  // a rank may read several parts
      CAPTURE(std::string(to_string(method)));
      CAPTURE(parts);
      const std::string directory = scratch.path() + "/" + to_string(method) + std::to_string(parts);
      const auto source = sbm_source(comm, sbm);
      (void)partition_graph(*source, directory,
                            {.parts = parts, .data = {.add_self_loops = true, .partition = method}});
      NodeData data = to_node_data(comm, load_partition(comm, directory));
      CHECK(largest_difference(curve(comm, std::move(data), {}, epochs), expected) < accepted);
    }
  }
}
