#include <doctest/doctest.h>

#include <sar/comm/rows/halo_plan.hpp>
#include <sar/core/error.hpp>

#include <tuple>
#include <vector>

using namespace sar;

namespace {

/// Rounds in which this rank reads 7, 0 and 6 rows and owns 2, 3 and 0 rows that others read.
std::vector<HaloRound> three_rounds() {
  std::vector<HaloRound> rounds(3);
  rounds[0].recv_rows = 7;
  rounds[2].recv_rows = 6;
  rounds[0].send_rows = {1, 4};
  rounds[1].send_rows = {0, 2, 3};
  return rounds;
}

using Row = std::tuple<std::size_t, std::size_t, Index, Index>;

std::vector<Row> rows_of(const std::vector<HaloStage>& stages) {
  std::vector<Row> rows;
  for (const HaloStage& stage : stages)
    rows.emplace_back(stage.round, stage.num_rounds, stage.begin, stage.end);
  return rows;
}

}  // namespace

TEST_CASE("single rounds: whole, or in stages of so many rows") {
  const std::vector<HaloRound> rounds = three_rounds();
  const HaloPlan whole = plan_single_rounds(rounds);
  CHECK(rows_of(whole.halo) == std::vector<Row>{{0, 1, 0, 7}, {2, 1, 0, 6}});
  CHECK(rows_of(whole.owned) == std::vector<Row>{{0, 1, 0, 2}, {1, 1, 0, 3}});
  CHECK(whole.depth == 1);
  const HaloPlan plan = plan_single_rounds(rounds, 3, 2);
  CHECK(rows_of(plan.halo) ==
        std::vector<Row>{{0, 1, 0, 3}, {0, 1, 3, 6}, {0, 1, 6, 7}, {2, 1, 0, 3}, {2, 1, 3, 6}});
  CHECK(rows_of(plan.owned) == std::vector<Row>{{0, 1, 0, 2}, {1, 1, 0, 3}});
  CHECK(plan.depth == 2);
}

TEST_CASE("merged rounds: the rows of several owners in one stage, none without rows") {
  const std::vector<HaloRound> rounds = three_rounds();
  CHECK(rows_of(plan_merged_rounds(rounds, 3).halo) == std::vector<Row>{{0, 3, 0, 13}});
  const HaloPlan pairs = plan_merged_rounds(rounds, 2);
  CHECK(rows_of(pairs.halo) == std::vector<Row>{{0, 2, 0, 7}, {2, 1, 0, 6}});
  CHECK(rows_of(pairs.owned) == std::vector<Row>{{0, 2, 0, 5}});
}

TEST_CASE("rounds must name rows that there are") {
  const std::vector<HaloRound> rounds = three_rounds();
  CHECK_NOTHROW(check_rounds(rounds, Tensor::zeros({5, 1})));
  CHECK_THROWS_AS(check_rounds(rounds, Tensor::zeros({4, 1})), ShapeError);
  CHECK_THROWS_AS(check_rounds(rounds, Tensor()), ShapeError);
}
