// SPDX-License-Identifier: MIT
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Computes the halo numbers locally; each owner learns the numbers of its rows from its readers in one
/// all_to_all.
void number_halo_rows(const Communicator& comm, std::vector<HaloRound>& rounds) {
  Index first = 0;
  std::vector<Index> first_of(comm.size(), 0);
  for (HaloRound& round : rounds) {
    round.first = first;
    first += round.recv_rows;
    if (round.recv_rows > 0) first_of[round.owner] = round.first;
  }
  const std::vector<Index> of_reader = comm.all_to_all(first_of);
  static std::atomic<Index> halos{0};
  const Index halo = ++halos;
  for (HaloRound& round : rounds) {
    round.reader_first = of_reader[round.reader];
    round.halo = halo;
  }
}

HaloPlan plan_halo(HaloRounds rounds, Index stage_rows, int depth, WireFormatPtr wire) {
  HaloPlan plan{.rounds = std::move(rounds),
                .stage_rows = stage_rows > 0 ? stage_rows : std::numeric_limits<Index>::max(),
                .halo = {},
                .depth = std::max(depth, 1),
                .wire = std::move(wire)};
  const Index rows = plan.rounds->empty() ? 0 : plan.rounds->back().first + plan.rounds->back().recv_rows;
  for (Index begin = 0; begin < rows;) {
    const Index end = begin + std::min(plan.stage_rows, rows - begin);
    plan.halo.push_back({begin, end});
    begin = end;
  }
  return plan;
}

void check_rounds(const std::vector<HaloRound>& rounds, const Shape& owned) {
  require<ShapeError>(owned.dims() > 0, "a halo exchange needs a defined tensor");
  for (const HaloRound& round : rounds)
    require<ShapeError>(
        round.send_rows.empty() || (round.send_rows.front() >= 0 && round.send_rows.back() < owned[0]),
        "rank ", round.reader, " reads rows up to ", round.send_rows.empty() ? 0 : round.send_rows.back(),
        " of a tensor of shape ", owned);
}

}}  // namespace sar
