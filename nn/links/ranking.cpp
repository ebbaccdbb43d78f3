// SPDX-License-Identifier: MIT

// Hits at K is a radix select of the keys of scores; MRR counts the negatives above each positive and adds
// the reciprocals of the counted ranks. O(n) and O(n k) time, 8 bytes per local score.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/nn/links/ranking.hpp>
#include <sar/nn/train/score_keys.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the k-th largest key of all ranks, 1 <= k <= their number. A radix select: it fixes one digit at a
/// time, from the highest one.
ScoreKey kth_largest(const Array<ScoreKey>& keys, std::int64_t k, const Communicator& comm) {
  ScoreKey prefix = 0, known = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    std::array<std::int64_t, 256> counts{};
    for (const ScoreKey key : keys)
      if ((key & known) == prefix) ++counts[key >> shift & 255];
    comm.all_reduce(std::span<std::int64_t>(counts));
    ScoreKey digit = 255;
    for (; k > counts[digit]; --digit) k -= counts[digit];
    prefix |= digit << shift;
    known |= ScoreKey{255} << shift;
  }
  return prefix;
}

/// Returns 2 (rank - 1) of one positive.
Index twice_rank(double positive, const real* negatives, Index k) {
  Index twice = 0;
  for (Index j = 0; j < k; ++j) {
    const auto negative = static_cast<double>(negatives[j]);
    twice += negative > positive ? 2 : negative == positive ? 1 : 0;
  }
  return twice;
}

}  // namespace

double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm) {
  return comm.agree([&] {
    require<InputError>(k >= 1, "hits_at_k: K is ", k, ", expected 1 or more");
    const Array<ScoreKey> positives = score_keys(positive.values(), "hits_at_k", "positives");
    const Array<ScoreKey> negatives = score_keys(negative.values(), "hits_at_k", "negatives");
    const ScoreCounts counts =
        count_scores(positive.size(), negative.size(), comm, CollectiveCall("hits_at_k").equal("K", k));
    if (counts.negatives < k) return 1.0;
    const ScoreKey kth = kth_largest(negatives, k, comm);
    const std::int64_t hits =
        std::count_if(positives.begin(), positives.end(), [&](ScoreKey key) { return key > kth; });
    return static_cast<double>(comm.all_reduce(hits)) / static_cast<double>(counts.positives);
  });
}

double mean_reciprocal_rank(const Tensor& positive, const Tensor& negative, const Communicator& comm) {
  return comm.agree([&] {
    const Index n = positive.size(), k = n == 0 ? 0 : negative.size() / n;
    const Shape& shape = negative.shape();
    require<ShapeError>(negative.size() == n * k && (shape.dims() != 2 || shape[0] == n),
                        "mean_reciprocal_rank: negatives have shape ", shape, ", expected [", n, ", k] for ",
                        n, " positives");
    (void)score_keys(positive.values(), "mean_reciprocal_rank", "positives");
    (void)score_keys(negative.values(), "mean_reciprocal_rank", "negatives");
    const ScoreCounts counts = count_scores(n, negative.size(), comm, CollectiveCall("mean_reciprocal_rank"));
    std::vector<std::int64_t> with_rank(static_cast<std::size_t>(2 * comm.all_reduce(k, ReduceOp::max) + 1));
    for (Index i = 0; i < n; ++i)
      ++with_rank[static_cast<std::size_t>(twice_rank(positive.data()[i], negative.data() + i * k, k))];
    comm.all_reduce(std::span<std::int64_t>(with_rank));
    double sum = 0;
    for (std::size_t twice = 0; twice < with_rank.size(); ++twice)
      sum += static_cast<double>(with_rank[twice]) / (1 + static_cast<double>(twice) / 2);
    return sum / static_cast<double>(counts.positives);
  });
}

}}  // namespace sar
