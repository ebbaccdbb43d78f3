// SPDX-License-Identifier: MIT
#include "nn/links/link_task.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

using namespace sar;
using namespace sar::test;

TEST_CASE("link prediction on Cora: AUC of the test at least 0.90 over 5 seeds") {
  const std::string cora = std::string(SAR_SHARED_DATA) + "/cora";
  if (!std::filesystem::exists(cora + "/edge_index.npy")) {
    MESSAGE("skipped: there is no dataset in ", cora);
    return;
  }
  const Communicator comm = Communicator::world();
  double sum = 0;
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    const Task task(comm, load_dataset(comm, cora, {.normalize_features = true}), seed);
    sum += train(task, 96, 100, seed).back();
  }
  CAPTURE(sum / 5);
  CHECK(sum / 5 >= 0.90);
}
