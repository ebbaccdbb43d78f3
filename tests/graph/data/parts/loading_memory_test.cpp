// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/load_dataset.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace sar;

namespace {

TEST_CASE("loading a graph of many nodes and few features takes memory of 1 / ranks on each rank") {
  const Communicator comm = Communicator::world();
  const SbmOptions sbm{.nodes = 300000, .degree = 1, .classes = 16, .features = 2};
  for (const PartitionMethod method :
       {PartitionMethod::contiguous, PartitionMethod::random, PartitionMethod::ldg}) {
    CAPTURE(std::string(to_string(method)));
    const auto peak_on = [&](const Communicator& ranks) {
      const std::size_t before = live_bytes();
      reset_peak_bytes();
      const auto source = sbm_source(ranks, sbm);
      const NodeData data = load_dataset(*source, {.partition = method});
      CHECK(ranks.all_reduce(data.edges.size()) == data.num_edges);
      return static_cast<double>(peak_bytes() - before);
    };
    const double most = comm.all_reduce(peak_on(comm), ReduceOp::max);
    const double alone = peak_on(Communicator::self());
    // one rank sends nothing
    CHECK(most < 1.3 * alone / comm.size());
  }
}

}  // namespace
