// SPDX-License-Identifier: MIT
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

struct Row {
  std::int32_t from, position;
  bool operator==(const Row&) const = default;
};

/// Which rows there are, and where they go.
struct Pattern {
  std::string name;
  std::function<Index(int rank)> num_rows;
  std::function<int(int rank, Index row)> target;
};

std::vector<Pattern> patterns(int ranks) {
  const auto anywhere = [=](int rank, Index row) {
    const Random random({7, static_cast<std::uint64_t>(rank)});
    return static_cast<int>(random.bits(static_cast<std::uint64_t>(row)) % static_cast<std::uint64_t>(ranks));
  };
  return {{"no rows at all", [](int) { return Index{0}; }, anywhere},
          {"one row each", [](int) { return Index{1}; }, anywhere},
          {"ranks without rows", [](int rank) { return rank % 2 == 0 ? Index{0} : Index{500}; }, anywhere},
          {"all to one", [](int) { return Index{700}; }, [=](int, Index) { return ranks - 1; }},
          {"all from one", [](int rank) { return rank == 0 ? Index{2000} : 0; }, anywhere},
          {"ascending targets", [](int) { return Index{300}; },
           [=](int, Index row) { return static_cast<int>(row * ranks / 300); }},
          {"a hub and some others", [](int) { return Index{900}; },
           [=](int rank, Index row) { return row % 10 == 0 ? anywhere(rank, row) : 0; }}};
}

std::vector<std::int32_t> targets_of(const Pattern& pattern, int rank) {
  std::vector<std::int32_t> targets;
  for (Index i = 0; i < pattern.num_rows(rank); ++i) targets.push_back(pattern.target(rank, i));
  return targets;
}

/// What shall arrive at a rank.
std::vector<Row> expected_at(const Pattern& pattern, int ranks, int rank) {
  std::vector<Row> rows;
  for (int q = 0; q < ranks; ++q)
    for (Index i = 0; i < pattern.num_rows(q); ++i)
      if (pattern.target(q, i) == rank) rows.push_back({q, static_cast<std::int32_t>(i)});
  return rows;
}

std::vector<Row> rows_of(const Pattern& pattern, int rank) {
  std::vector<Row> rows;
  for (Index i = 0; i < pattern.num_rows(rank); ++i) rows.push_back({rank, static_cast<std::int32_t>(i)});
  return rows;
}

}  // namespace

TEST_CASE("rows arrive by rank and position, and answers come back to where the rows were") {
  const Communicator comm = Communicator::world();
  for (const Pattern& pattern : patterns(comm.size())) {
    CAPTURE(pattern.name);
    const RowRoute route(comm, targets_of(pattern, comm.rank()));
    const std::vector<Row> rows = rows_of(pattern, comm.rank());
    const std::vector<Row> expected = expected_at(pattern, comm.size(), comm.rank());
    CHECK(route.num_rows() == static_cast<Index>(rows.size()));
    CHECK(route.num_arrived() == static_cast<Index>(expected.size()));
    const Array<Row> arrived = route.forward(std::span<const Row>(rows));
    CHECK(std::vector<Row>(arrived.begin(), arrived.end()) == expected);
    const Array<Row> back = route.back(std::span<const Row>(arrived));
    CHECK(std::vector<Row>(back.begin(), back.end()) == rows);
  }
}

TEST_CASE("rows of any length, also when a row is longer than a chunk") {
  const Communicator comm = Communicator::world();
  for (const auto& [num_rows, row_bytes] : {std::pair<Index, Index>{40, 0},
                                            {40, 1},
                                            {400'000, 4},
                                            {100'000, 16},
                                            {30'000, 300},
                                            {11, 1'000'000},
                                            {3, route_chunk_bytes + 1}}) {
    CAPTURE(row_bytes);
    const Index n = num_rows / comm.size() + comm.rank();
    std::vector<std::int32_t> targets;
    std::vector<char> rows(static_cast<std::size_t>(n * row_bytes));
    for (Index i = 0; i < n; ++i) {
      targets.push_back(static_cast<std::int32_t>((i * i + comm.rank()) % comm.size()));
      std::fill_n(rows.begin() + i * row_bytes, row_bytes, static_cast<char>((7 * i + comm.rank()) % 100));
    }
    const RowRoute route(comm, targets);
    std::vector<char> arrived(static_cast<std::size_t>(route.num_arrived() * row_bytes));
    route.forward(reinterpret_cast<const std::byte*>(rows.data()), row_bytes,
                  reinterpret_cast<std::byte*>(arrived.data()));
    std::size_t at = 0, wrong = 0;
    for (int q = 0; q < comm.size(); ++q)
      for (Index i = 0; i < num_rows / comm.size() + q; ++i) {
        if ((i * i + q) % comm.size() != comm.rank()) continue;
        for (Index k = 0; k < row_bytes; ++k) wrong += arrived[at++] != static_cast<char>((7 * i + q) % 100);
      }
    CHECK(wrong == 0);
    CHECK(at == arrived.size());
    std::vector<char> back(rows.size());
    route.back(reinterpret_cast<const std::byte*>(arrived.data()), row_bytes,
               reinterpret_cast<std::byte*>(back.data()));
    CHECK(back == rows);
  }
}

TEST_CASE("a route keeps 4 bytes a row, and none when targets ascend") {
  const Communicator comm = Communicator::world();
  std::vector<std::int32_t> targets(100'000, comm.size() - 1);
  const std::size_t before = live_bytes();
  const RowRoute ascending(comm, targets);
  CHECK(live_bytes() == before);
  targets.back() = 0;
  const RowRoute other(comm, targets);
  CHECK(live_bytes() - before == (comm.size() == 1 ? 0 : targets.size() * sizeof(std::int32_t)));
}

TEST_CASE("a list of several chunks, of another length on each rank") {
  const Communicator comm = Communicator::world();
  const Index chunk = route_chunk_bytes / (8 + 8);
  const Index n = comm.rank() == 0 ? 2 * chunk + 5 : 1000 * (comm.rank() - 1);
  const auto target = [&](int rank, Index i) { return static_cast<int>((i / 3 + rank) % comm.size()); };
  Index chunks = 0, sent = 0, wrong = 0;
  std::vector<Index> next(static_cast<std::size_t>(comm.size()), 0);  // of the rows from each rank
  std::vector<Row> rows;
  route_chunks(
      comm, n, sizeof(Row), [&](Index i) { return target(comm.rank(), i); },
      [&](const RowRoute& route, Index first, Index last) {
        ++chunks;
        CHECK(first == sent);
        CHECK(last - first <= chunk);
        CHECK(route.num_rows() == last - first);
        sent = last;
        rows.clear();
        for (Index i = first; i < last; ++i) rows.push_back({comm.rank(), static_cast<std::int32_t>(i)});
        const Array<Row> arrived = route.forward(std::span<const Row>(rows));
        for (const Row& row : arrived) {  // in their order, and none is left out
          Index& i = next[static_cast<std::size_t>(row.from)];
          while (target(row.from, i) != comm.rank()) ++i;
          wrong += row.position != i++;
        }
        const Array<Row> back = route.back(std::span<const Row>(arrived));
        CHECK(std::vector<Row>(back.begin(), back.end()) == rows);
      });
  CHECK(chunks == 3);
  CHECK(sent == n);
  CHECK(wrong == 0);
}

TEST_CASE("what a rank throws between the chunks is thrown on all ranks") {
  const Communicator comm = Communicator::world();
  const Index n = 300'000 * (comm.rank() + 1);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          route_chunks(
              comm, n, sizeof(Row), [&](Index i) { return static_cast<int>(i % comm.size()); },
              [&](const RowRoute&, Index first, Index) {
                require<InputError>(first == 0 || comm.rank() > 0, "row ", first, " is not wanted");
              });
        }) == "row 262144 is not wanted");
  CHECK(comm.all_reduce(1) == comm.size());
}
