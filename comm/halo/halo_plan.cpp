#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <limits>

namespace sar { inline namespace SAR_PRECISION {

/// Computes the halo numbers locally; each owner learns the numbers of its rows from its readers in one
/// all_to_all.
void number_halo_rows(const Communicator& comm, std::vector<HaloRound>& rounds) {
  Index first = 0;
  std::vector<Index> told, counts(comm.size(), 0), first_of(comm.size(), 0);
  for (HaloRound& round : rounds) {
    round.first = first;
    first += round.recv_rows;
    first_of[round.owner] = round.first;
    counts[round.owner] = round.recv_rows > 0 ? 1 : 0;
  }
  for (std::size_t q = 0; q < counts.size(); ++q)
    if (counts[q] > 0) told.push_back(first_of[q]);
  const auto heard = comm.all_to_all_v<Index>(told, counts);
  std::vector<Index> of_reader;
  std::size_t next = 0;
  for (const Index count : heard.counts) of_reader.push_back(count > 0 ? heard.values[next++] : 0);
  for (HaloRound& round : rounds) round.reader_first = of_reader[round.reader];
}

HaloPlan plan_halo(const std::vector<HaloRound>& rounds, Index stage_rows, int depth) {
  HaloPlan plan{.rounds = &rounds,
                .stage_rows = stage_rows > 0 ? stage_rows : std::numeric_limits<Index>::max(),
                .halo = {},
                .depth = std::max(depth, 1)};
  const Index rows = rounds.empty() ? 0 : rounds.back().first + rounds.back().recv_rows;
  for (Index begin = 0; begin < rows;) {
    const Index end = begin + std::min(plan.stage_rows, rows - begin);
    plan.halo.push_back({begin, end});
    begin = end;
  }
  return plan;
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

}}  // namespace sar
