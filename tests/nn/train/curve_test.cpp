// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "nn/train/curve.hpp"

using namespace sar;
using namespace sar::test;

TEST_CASE("the curve on a generated graph does not depend on ranks, mode and partitioning") {
  check_curves([](const Communicator& comm, PartitionMethod method) {
    return make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = 12},
                    {.partition = method, .partition_seed = 1});
  });
}

TEST_CASE("training from a partition directory gives the curve of the partitioning in the process") {
  const Communicator comm = Communicator::world();
  const double accepted = sizeof(real) == 8 ? 1e-9 : 1e-4;
  std::vector<PartitionMethod> methods{PartitionMethod::random};
  if (has_metis()) methods.push_back(PartitionMethod::metis);
  const TemporaryDirectory scratch(comm);
  int count = 0;
  for (const bool karate : {false, true})
    for (const PartitionMethod method : methods) {
      CAPTURE(karate);
      CAPTURE(to_string(method));
      const DatasetOptions options{.partition = method, .partition_seed = 1};
      const SbmOptions sbm{.nodes = 300, .degree = 6, .classes = 4, .features = 12};
      const NodeData data = karate ? make_karate(comm, options) : make_sbm(comm, sbm, options);
      const std::string directory = concat(scratch.path(), "/", count++);
      save_partition(comm, directory, to_graph_data(data));
      const std::vector<double> expected = curve(comm, data, {}, 20);
      CHECK(largest_difference(curve(comm, load_dataset(comm, directory), {}, 20), expected) < accepted);
      const Communicator self = Communicator::self();  // all parts on one rank
      CHECK(largest_difference(curve(self, load_dataset(self, directory), {}, 20), expected) < accepted);
    }
}
