// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>

#include "support/thrown.hpp"

using namespace sar;
using namespace sar::test;

TEST_CASE("a call that is the same on all ranks runs; another one is named") {
  const Communicator comm = Communicator::world();
  const int rank = comm.rank();
  const auto call = [&](const char* operation, int number, const Shape& shape) {
    return collective(
        comm, [&] { return CollectiveCall(operation).equal("number", number).equal("shape", shape); },
        [&] { return number + 1; });
  };
  CHECK(call("op", 3, {rank, 2}) == 4);  // the number of rows may differ
  if (comm.size() == 1) return;
  CHECK(thrown_by_all<InputError>(comm, [&] {
          call("op", rank > 0 ? 1 : 0, {1, 2});
        }) == "op is called with a different number on different ranks: 0 on rank 0, 1 on rank 1");
  CHECK(thrown_by_all<InputError>(comm, [&] {
          call("op", 3, {1, rank > 0 ? 5 : 2});
        }) == "op is called with a different shape on different ranks: [*, 2] on rank 0, [*, 5] on rank 1");
  const auto name = [](std::int64_t number) { return std::string(number == 0 ? "sum" : "max"); };
  CHECK(thrown_by_all<InputError>(comm, [&] {
          comm.require_equal(CollectiveCall("op").equal("reduction", rank > 0 ? 2 : 0, name));
        }) == "op is called with a different reduction on different ranks: sum on rank 0, max on rank 1");
  CHECK(thrown_by_all<CommunicationError>(comm, [&] {
          call(rank > 0 ? "op" : "other", 3, {1, 2});
        }) == "the ranks make different calls: rank 0 calls other, rank 1 calls op");
}
