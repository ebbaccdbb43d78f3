// SPDX-License-Identifier: MIT

/// HaloPlan: which rows are exchanged together, in which order, and in which format. A plain value: the
/// exchange (halo_exchange.hpp) and the driver of message passing only follow it.
///
/// The halo of a rank is the set of rows of other ranks that it reads. Halo rows are numbered in rotation
/// order: first the rows of the previous rank, then those of the rank before that, and so on; the rows of one
/// owner ascend. A stage is a fixed-length range of these numbers, whoever owns the rows. So the number of
/// stages depends on the size of the halo and not on the number of ranks.
///
/// Room comm/halo: The halo exchange: which rows change ranks, in which stages and formats, there and back.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/wire_format.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The rows exchanged in round r = 1 .. P-1 of the rotation, seen from rank p.
struct HaloRound {
  int reader = 0;                 ///< the rank that reads my rows `send_rows`: (p + r) mod P
  int owner = 0;                  ///< the rank whose rows I read: (p - r) mod P
  Array<std::int32_t> send_rows;  ///< my local rows that `reader` reads, ascending, without duplicates
  Index recv_rows = 0;            ///< number of rows of `owner` that I read
  Index first = 0;                ///< halo number of the first of these rows
  Index reader_first = 0;         ///< number of send_rows[0] in the halo of `reader`
  Index halo = 0;                 ///< a number that this rank gives to no other halo
};

/// Collective. Computes `first`, `reader_first` and `halo` of all rounds.
void number_halo_rows(const Communicator& comm, std::vector<HaloRound>& rounds);

/// The rounds of a halo, which graphs and plans share.
using HaloRounds = std::shared_ptr<const std::vector<HaloRound>>;

/// The round in which `rank` reads rows of the rank `owner`.
[[nodiscard]] inline const HaloRound& round_from(const std::vector<HaloRound>& rounds, int rank, int owner) {
  const int size = static_cast<int>(rounds.size()) + 1;
  return rounds[static_cast<std::size_t>((rank - owner + size) % size - 1)];
}
/// The round in which the rank `reader` reads rows of `rank`.
[[nodiscard]] inline const HaloRound& round_to(const std::vector<HaloRound>& rounds, int rank, int reader) {
  return round_from(rounds, reader, rank);
}

/// Rows [begin, end) of the halo, which are in memory together.
struct HaloStage {
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] Index size() const noexcept { return end - begin; }
};

/// The rows, stages and format of an exchange.
struct HaloPlan {
  HaloRounds rounds;
  Index stage_rows = 0;        ///< of every stage but the last
  PassVector<HaloStage> halo;  ///< the stages of this rank's halo; none is empty
  int depth = 1;               ///< stages in flight besides the one in use; at least 1
  WireFormatPtr wire;
};

/// Returns a plan with stages of `stage_rows` rows; 0: one stage of all rows. All ranks must pass the same
/// values.
HaloPlan plan_halo(HaloRounds rounds, Index stage_rows = 0, int depth = 1,
                   WireFormatPtr wire = stored_format(NumberType::reals));

/// Throws ShapeError if the rounds contain rows that a tensor of shape `owned` does not have.
void check_rounds(const std::vector<HaloRound>& rounds, const Shape& owned);

}}  // namespace sar
