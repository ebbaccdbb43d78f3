#include "nn/curve.hpp"

using namespace sar;
using namespace sar::test;

TEST_CASE("the curve on a generated graph does not depend on ranks, mode and partitioning") {
  check_curves([](const Communicator& comm, PartitionMethod method) {
    return make_sbm(comm, {.nodes = 300, .degree = 6, .classes = 4, .features = 12},
                    {.partition = method, .partition_seed = 1});
  });
}
