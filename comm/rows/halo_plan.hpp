/// HaloPlan: which rows change ranks together, in which order, and in which format. It is a value that is
/// built; the exchange (halo.hpp) and the driver of message passing follow it and never ask why it is so.
///
/// The rows that a rank reads of others are its halo. They are numbered in rotation order: first those of the
/// rank before it, then those of the one before that, and so on; the rows of one owner ascend. A stage is a
/// range of these numbers of a fixed length, whoever owns the rows. So the number of stages depends on how
/// many rows a rank reads, and not on the number of ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/wire_format.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/core/workspace.hpp>

#include <cstdint>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Which rows change ranks in round r = 1 .. P-1 of the rotation.
struct HaloRound {
  int reader = 0;                 ///< the rank that reads my rows `send_rows`: (p + r) mod P
  int owner = 0;                  ///< the rank whose rows I read: (p - r) mod P
  Array<std::int32_t> send_rows;  ///< my local rows that `reader` reads, ascending, each once
  Index recv_rows = 0;            ///< how many rows of `owner` I read
  Index first = 0;                ///< the number of the first of these in my halo
  Index reader_first = 0;         ///< the number of send_rows[0] in the halo of `reader`
};

/// Sets first and reader_first of all rounds. Collective.
void number_halo_rows(const Communicator& comm, std::vector<HaloRound>& rounds);

/// Rows [begin, end) of the halo, which are held at a time.
struct HaloStage {
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] Index size() const noexcept { return end - begin; }
};

struct HaloPlan {
  const std::vector<HaloRound>* rounds = nullptr;  ///< outlive the plan
  Index stage_rows = 0;                            ///< of every stage but the last
  PassVector<HaloStage> halo;                      ///< of the rows that this rank reads; none is empty
  int depth = 1;                                   ///< stages in flight besides the one in use; at least 1
  const WireFormat* wire = &wire_format<real>();
};

/// Stages of `stage_rows` rows; 0: one stage of all rows. All ranks give the same numbers.
HaloPlan plan_halo(const std::vector<HaloRound>& rounds, Index stage_rows = 0, int depth = 1);

/// Throws ShapeError when the rounds name rows that `owned` does not have.
void check_rounds(const std::vector<HaloRound>& rounds, const Tensor& owned);

}  // namespace sar
