/// Exact ranking metrics. Scores are mapped to 64-bit integers with the same order. The area under the ROC
/// curve uses a sample sort over the ranks, Hits at K a radix select.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/sort_targets.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/nn/links/ranking.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using Key = std::uint64_t;

/// Returns an integer with the order of the scores; 0 and -0 get the same one.
Key key_of(double score) {
  const auto bits = std::bit_cast<Key>(score + 0.0);
  constexpr Key sign = Key{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

Array<Key> keys_of(const Tensor& scores, const char* metric, const char* what) {
  Array<Key> keys(static_cast<std::size_t>(scores.size()));
  for (Index i = 0; i < scores.size(); ++i) {
    require<InputError>(!std::isnan(scores.data()[i]), metric, ": score ", i, " of the ", what, " is NaN");
    keys[i] = key_of(static_cast<double>(scores.data()[i]));
  }
  return keys;
}

/// Numbers of scores on all ranks.
struct Counts {
  std::int64_t positives, negatives;
};

Counts count_scores(const Tensor& positive, const Tensor& negative, const Communicator& comm,
                    const CollectiveCall& call) {
  const char* metric = call.operation();
  std::array<std::int64_t, 2> counts{positive.size(), negative.size()};
  const CallScope compared(comm, call);
  comm.all_reduce(std::span<std::int64_t>(counts));
  require<InputError>(counts[0] > 0, metric, ": no rank has the score of a positive");
  require<InputError>(counts[1] > 0, metric, ": no rank has the score of a negative");
  return {counts[0], counts[1]};
}

/// The scores of a rank that share one key.
struct Run {
  Key key;
  std::int64_t positives, negatives;
};

void join_equal(Array<Run>& runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.key < b.key; });
  Index count = 0;
  for (const Run& run : runs) {
    if (count > 0 && runs[count - 1].key == run.key) {
      runs[count - 1].positives += run.positives;
      runs[count - 1].negatives += run.negatives;
    } else {
      runs[count++] = run;
    }
  }
  runs.resize(static_cast<std::size_t>(count));
}

/// Returns this rank's part of the globally sorted runs; parts ascend with the rank.
Array<Run> sort_over_ranks(const Array<Run>& runs, const Communicator& comm) {
  const auto targets = sort_targets(comm, std::ssize(runs), [&](Index i) { return runs[i].key; });
  Array<Run> sorted = RowRoute(comm, targets).forward(std::span<const Run>(runs));
  join_equal(sorted);
  return sorted;
}

/// Returns the k-th largest key of all ranks, 1 <= k <= their number. A radix select: it fixes one digit at a
/// time, from the highest one.
Key kth_largest(const Array<Key>& keys, std::int64_t k, const Communicator& comm) {
  Key prefix = 0, known = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    std::array<std::int64_t, 256> counts{};
    for (const Key key : keys)
      if ((key & known) == prefix) ++counts[key >> shift & 255];
    comm.all_reduce(std::span<std::int64_t>(counts));
    Key digit = 255;
    for (; k > counts[digit]; --digit) k -= counts[digit];
    prefix |= digit << shift;
    known |= Key{255} << shift;
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

double roc_auc(const Tensor& positive, const Tensor& negative, const Communicator& comm) {
  return comm.agree([&] {
    Array<Run> runs;
    for (const Key key : keys_of(positive, "roc_auc", "positives")) runs.push_back({key, 1, 0});
    for (const Key key : keys_of(negative, "roc_auc", "negatives")) runs.push_back({key, 0, 1});
    const Counts counts = count_scores(positive, negative, comm, CollectiveCall("roc_auc"));
    const double pairs = static_cast<double>(counts.positives) * static_cast<double>(counts.negatives);
    require<InputError>(pairs < 0x1p62, "roc_auc of ", counts.positives, " positives and ", counts.negatives,
                        " negatives: there are 2^62 pairs of them or more");
    join_equal(runs);
    runs = sort_over_ranks(runs, comm);
    std::int64_t mine = 0, twice_won = 0;
    for (const Run& run : runs) mine += run.negatives;
    std::int64_t below = gather_book(comm, mine).begin(comm.rank());
    for (const Run& run : runs) {
      twice_won += run.positives * (2 * below + run.negatives);
      below += run.negatives;
    }
    return static_cast<double>(comm.all_reduce(twice_won)) / (2 * pairs);
  });
}

double hits_at_k(const Tensor& positive, const Tensor& negative, Index k, const Communicator& comm) {
  return comm.agree([&] {
    require<InputError>(k >= 1, "hits_at_k: K is ", k, ", expected 1 or more");
    const Array<Key> positives = keys_of(positive, "hits_at_k", "positives");
    const Array<Key> negatives = keys_of(negative, "hits_at_k", "negatives");
    const Counts counts = count_scores(positive, negative, comm, CollectiveCall("hits_at_k").equal("K", k));
    if (counts.negatives < k) return 1.0;
    const Key kth = kth_largest(negatives, k, comm);
    const std::int64_t hits =
        std::count_if(positives.begin(), positives.end(), [&](Key key) { return key > kth; });
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
    (void)keys_of(positive, "mean_reciprocal_rank", "positives");
    (void)keys_of(negative, "mean_reciprocal_rank", "negatives");
    const Counts counts = count_scores(positive, negative, comm, CollectiveCall("mean_reciprocal_rank"));
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
