#include <sar/comm/rows/halo_plan.hpp>
#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {
namespace {

Index halo_rows(const HaloRound& round) {
  return round.recv_rows;
}
Index owned_rows(const HaloRound& round) {
  return std::ssize(round.send_rows);
}

/// `stages(rows of a round)` for both directions.
template <class Stages>
HaloPlan plan(const std::vector<HaloRound>& rounds, int depth, const Stages& stages) {
  return {
      .rounds = &rounds, .halo = stages(halo_rows), .owned = stages(owned_rows), .depth = std::max(depth, 1)};
}

}  // namespace

HaloPlan plan_single_rounds(const std::vector<HaloRound>& rounds, Index stage_rows, int depth) {
  return plan(rounds, depth, [&](Index (*rows_of)(const HaloRound&)) {
    std::vector<HaloStage> stages;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      const Index rows = rows_of(rounds[r]);
      const Index step = stage_rows > 0 ? stage_rows : std::max<Index>(rows, 1);
      for (Index begin = 0; begin < rows; begin += step)
        stages.push_back({.round = r, .begin = begin, .end = std::min(begin + step, rows)});
    }
    return stages;
  });
}

HaloPlan plan_merged_rounds(const std::vector<HaloRound>& rounds, std::size_t rounds_per_stage, int depth) {
  rounds_per_stage = std::max<std::size_t>(rounds_per_stage, 1);
  return plan(rounds, depth, [&](Index (*rows_of)(const HaloRound&)) {
    std::vector<HaloStage> stages;
    for (std::size_t r = 0; r < rounds.size(); r += rounds_per_stage) {
      HaloStage stage{.round = r, .num_rounds = std::min(rounds_per_stage, rounds.size() - r)};
      for (std::size_t k = 0; k < stage.num_rounds; ++k) stage.end += rows_of(rounds[r + k]);
      if (stage.end > 0) stages.push_back(stage);
    }
    return stages;
  });
}

void check_rounds(const std::vector<HaloRound>& rounds, const Tensor& owned) {
  require<ShapeError>(owned.defined(), "a halo exchange needs a defined tensor");
  for (const HaloRound& round : rounds)
    require<ShapeError>(round.send_rows.empty() ||
                            (round.send_rows.front() >= 0 && round.send_rows.back() < owned.num_rows()),
                        "rank ", round.reader, " reads rows up to ",
                        round.send_rows.empty() ? 0 : round.send_rows.back(), " of a tensor of shape ",
                        owned.shape());
}

}  // namespace sar
