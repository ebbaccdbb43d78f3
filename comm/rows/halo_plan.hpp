/// HaloPlan: which rows change ranks together, in which order, and in which format. It is a value that is
/// built; the exchange (halo.hpp) and the driver of message passing follow it and never ask why it is so.
///
/// Rounds in rotation order: in round r = 1 .. P-1 this rank sends to rank (p + r) mod P and receives from
/// (p - r) mod P, so that every link is used by one pair at a time.
#pragma once

#include <sar/comm/rows/wire_format.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>

#include <cstdint>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Which rows change ranks in one round of the rotation.
struct HaloRound {
  int reader = 0;                 ///< the rank that reads my rows `send_rows`: (p + r) mod P
  int owner = 0;                  ///< the rank whose rows I read: (p - r) mod P
  Array<std::int32_t> send_rows;  ///< my local rows that `reader` reads, ascending, each once
  Index recv_rows = 0;            ///< how many rows of `owner` I read
};

/// Rows that are held at a time: rows [begin, end) of a round, or all rows of several rounds, one round after
/// the other, which are then counted from the first row of the first round.
struct HaloStage {
  std::size_t round = 0;       ///< the (first) round: an index into the rounds
  std::size_t num_rounds = 1;  ///< more than 1: whole rounds
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] Index size() const noexcept { return end - begin; }
};

struct HaloPlan {
  const std::vector<HaloRound>* rounds = nullptr;  ///< outlive the plan
  std::vector<HaloStage> halo;                     ///< of the rows that this rank reads; none is empty
  std::vector<HaloStage> owned;  ///< of the rows that it owns, as their readers have them in `halo`
  int depth = 1;                 ///< stages in flight besides the one in use; at least 1
  const WireFormat* wire = &wire_format<real>();
};

// Builders. All ranks give the same numbers.

/// Every round by itself, in stages of at most `stage_rows` rows; 0: whole rounds.
HaloPlan plan_single_rounds(const std::vector<HaloRound>& rounds, Index stage_rows = 0, int depth = 1);
/// Stages of `rounds_per_stage` whole rounds (0 counts as 1): as many owners' rows at once.
HaloPlan plan_merged_rounds(const std::vector<HaloRound>& rounds, std::size_t rounds_per_stage,
                            int depth = 1);

/// Throws ShapeError when the rounds name rows that `owned` does not have.
void check_rounds(const std::vector<HaloRound>& rounds, const Tensor& owned);

}  // namespace sar
