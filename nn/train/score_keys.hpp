// SPDX-License-Identifier: MIT

/// Scores as integers with the same order, for metrics that sort or count them. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

using ScoreKey = std::uint64_t;

/// Returns an integer with the order of the scores; 0 and -0 get the same one.
inline ScoreKey score_key(double score) {
  const auto bits = std::bit_cast<ScoreKey>(score + 0.0);
  constexpr ScoreKey sign = ScoreKey{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

/// Throws InputError for a NaN: "METRIC: score I of the WHAT is NaN".
inline Array<ScoreKey> score_keys(std::span<const real> scores, const char* metric, const char* what) {
  Array<ScoreKey> keys(scores.size());
  for (Index i = 0; i < std::ssize(scores); ++i) {
    require<InputError>(!std::isnan(scores[i]), metric, ": score ", i, " of the ", what, " is NaN");
    keys[i] = score_key(static_cast<double>(scores[i]));
  }
  return keys;
}

/// Numbers of scores on all ranks.
struct ScoreCounts {
  std::int64_t positives = 0, negatives = 0;
};

/// Collective. Throws InputError unless there are positives and negatives.
inline ScoreCounts count_scores(Index positives, Index negatives, const Communicator& comm,
                                const CollectiveCall& call) {
  const char* metric = call.operation();
  std::array<std::int64_t, 2> counts{positives, negatives};
  const CallScope compared(comm, call);
  comm.all_reduce(std::span<std::int64_t>(counts));
  require<InputError>(counts[0] > 0, metric, ": no rank has the score of a positive");
  require<InputError>(counts[1] > 0, metric, ": no rank has the score of a negative");
  return {counts[0], counts[1]};
}

}}  // namespace sar
