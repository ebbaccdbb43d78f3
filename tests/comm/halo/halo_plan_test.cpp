// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/error.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

using namespace sar;

namespace {

/// Rounds in which this rank reads 7, 0 and 6 rows and owns 2, 3 and 0 rows that others read.
std::vector<HaloRound> three_rounds() {
  std::vector<HaloRound> rounds(3);
  rounds[0].recv_rows = 7;
  rounds[2].recv_rows = 6;
  rounds[1].first = rounds[2].first = 7;
  rounds[0].send_rows = {1, 4};
  rounds[1].send_rows = {0, 2, 3};
  return rounds;
}

std::vector<std::pair<Index, Index>> rows_of(std::span<const HaloStage> stages) {
  std::vector<std::pair<Index, Index>> rows;
  for (const HaloStage& stage : stages) rows.emplace_back(stage.begin, stage.end);
  return rows;
}

HaloRounds share(std::vector<HaloRound> rounds) {
  return std::make_shared<const std::vector<HaloRound>>(std::move(rounds));
}

}  // namespace

TEST_CASE("stages are ranges of the halo, whatever rounds they come in") {
  using Ranges = std::vector<std::pair<Index, Index>>;
  const std::vector<HaloRound> rounds = three_rounds();
  const HaloPlan whole = plan_halo(share(rounds));
  CHECK(rows_of(whole.halo) == Ranges{{0, 13}});
  CHECK(whole.depth == 1);
  const HaloPlan plan = plan_halo(share(rounds), 5, 2);
  CHECK(rows_of(plan.halo) == Ranges{{0, 5}, {5, 10}, {10, 13}});
  CHECK(plan.stage_rows == 5);
  CHECK(plan.depth == 2);
  CHECK(plan_halo(share({}), 5).halo.empty());
}

TEST_CASE("halo rows are numbered in rotation order, and owners know the numbers") {
  const Communicator comm = Communicator::world();
  const int size = comm.size();
  // rank p reads p + 2 q rows of rank q, none where that is a multiple of 3
  const auto rows_read = [](int reader, int owner) {
    const Index rows = reader + Index{2} * owner;
    return rows % 3 == 0 ? Index{0} : rows;
  };
  const auto first_row = [&](int reader, int owner) {
    Index first = 0;
    for (int q = (reader - 1 + size) % size; q != owner; q = (q - 1 + size) % size)
      first += rows_read(reader, q);
    return first;
  };
  std::vector<HaloRound> rounds;
  for (int r = 1; r < size; ++r) {
    HaloRound round;
    round.reader = (comm.rank() + r) % size;
    round.owner = (comm.rank() - r + size) % size;
    round.recv_rows = rows_read(comm.rank(), round.owner);
    round.send_rows.assign(static_cast<std::size_t>(rows_read(round.reader, comm.rank())), 0);
    rounds.push_back(std::move(round));
  }
  number_halo_rows(comm, rounds);
  for (const HaloRound& round : rounds) {
    CHECK(round.first == first_row(comm.rank(), round.owner));
    if (!round.send_rows.empty()) CHECK(round.reader_first == first_row(round.reader, comm.rank()));
  }
}

TEST_CASE("rounds must name rows that there are") {
  const std::vector<HaloRound> rounds = three_rounds();
  CHECK_NOTHROW(check_rounds(rounds, Shape{5, 1}));
  CHECK_THROWS_AS(check_rounds(rounds, Shape{4, 1}), ShapeError);
  CHECK_THROWS_AS(check_rounds(rounds, Shape()), ShapeError);
}
