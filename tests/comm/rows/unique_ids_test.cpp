// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("an id that occurs twice is found, on one rank or on two") {
  const Communicator comm = Communicator::world();
  const auto n = Index{1000};
  for (const Index step : {Index{1}, Index{1'000'003}}) {  // dense and sparse
    std::vector<Index> ids;
    for (Index k = 0; k < n; ++k) ids.push_back((comm.rank() * n + k) * step);
    require_unique_ids(comm, ids, "ids");
    const Index twice = (n - 1) * step;
    if (comm.rank() == comm.size() - 1) ids.push_back(twice);
    CHECK(thrown_by_all<InputError>(comm, [&] { require_unique_ids(comm, ids, "ids"); }) ==
          concat("ids: ", twice, " occurs twice, expected each id once"));
  }
  require_unique_ids(comm, {}, "ids");
}

TEST_CASE("all ranks share the check of ids, whatever the ids have in common") {
  const Communicator comm = Communicator::world();
  const Index n = 20'000;
  std::vector<Index> ids(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) ids[static_cast<std::size_t>(k)] = (comm.rank() * n + k) * 256 * comm.size();
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  require_unique_ids(comm, ids, "ids");
  // 8 bytes an id, and of the one chunk 8 for what arrives and 4 for the route
  CHECK(peak_bytes() - before < ids.size() * 22);
}

TEST_CASE("all ranks receive as many dense ids, also where all are multiples of the number of ranks") {
  const Communicator comm = Communicator::world();
  const Index n = 20'000, ranks = comm.size();
  std::vector<Index> ids;
  for (Index k = 0; k < n; ++k) ids.push_back((comm.rank() * n + k) * 4 * ranks);
  const std::uint64_t before = comm.stats().bytes_received;
  require_unique_ids(comm, ids, "ids");
  const double mean = 8.0 * static_cast<double>(n * (ranks - 1)) / static_cast<double>(ranks);
  CHECK(static_cast<double>(comm.stats().bytes_received - before) < 1.4 * mean + 1000);
}

TEST_CASE("ids of several chunks are a permutation, or are not") {
  const Communicator comm = Communicator::world();
  const Index n = 700'001;
  std::vector<Index> ids;
  for (Index i = comm.size() - 1 - comm.rank(); i < n; i += comm.size()) ids.push_back(i * 3 % n);
  require_permutation(comm, ids, n, "ids");
  const auto failure = [&] {
    return thrown_by_all<InputError>(comm, [&] { require_permutation(comm, ids, n, "ids"); });
  };
  const bool last = comm.rank() == comm.size() - 1;  // it has id 0 first
  if (last) ids[0] = 3;
  CHECK(failure() == "ids: 3 occurs twice, expected each id once");
  if (last) ids[0] = n;
  CHECK(failure() == concat("ids: id ", n, " does not exist, expected 0 to ", n - 1));
  if (last) ids[0] = -1;
  CHECK(failure() == concat("ids: id -1 does not exist, expected 0 to ", n - 1));
  if (last) ids.push_back(0);
  CHECK(failure() == concat("ids: there are ", n + 1, " ids, expected ", n));
  require_permutation(comm, {}, 0, "ids");
}

}  // namespace
