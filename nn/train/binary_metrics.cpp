// SPDX-License-Identifier: MIT

// A sample sort over the ranks: equal scores are joined to runs with their numbers of positives and
// negatives, and each rank gets a range of the sorted runs. Then both metrics are one pass over these runs.
// O(n log n) time, 24 bytes per distinct score.
#include <sar/comm/exact_sums.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/nn/train/binary_metrics.hpp>
#include <sar/nn/train/score_keys.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The scores of a rank that share one key.
struct ScoreRun {
  ScoreKey key;
  std::int64_t positives, negatives;
};

/// Joins the runs of equal keys, which are next to each other.
void join_equal(Array<ScoreRun>& runs) {
  Index count = 0;
  for (const ScoreRun& run : runs) {
    if (count > 0 && runs[count - 1].key == run.key) {
      runs[count - 1].positives += run.positives;
      runs[count - 1].negatives += run.negatives;
    } else {
      runs[count++] = run;
    }
  }
  runs.resize(static_cast<std::size_t>(count));
}

/// Returns this rank's runs, sorted: the sorted positives and negatives, merged.
Array<ScoreRun> runs_of(ScoreKeys scores) {
  std::ranges::sort(scores.positives);
  std::ranges::sort(scores.negatives);
  Array<ScoreRun> runs;
  runs.reserve(scores.positives.size() + scores.negatives.size());
  auto negative = scores.negatives.begin();
  for (const ScoreKey key : scores.positives) {
    for (; negative != scores.negatives.end() && *negative < key; ++negative)
      runs.push_back({*negative, 0, 1});
    runs.push_back({key, 1, 0});
  }
  for (; negative != scores.negatives.end(); ++negative) runs.push_back({*negative, 0, 1});
  join_equal(runs);
  return runs;
}

/// This rank's part of the sorted runs; parts ascend with the rank.
struct SortedScores {
  Array<ScoreRun> runs;
  ScoreCounts total;
  ScoreCounts below;  ///< scores of the ranks before this one
};

SortedScores sort_scores(const ScoreKeys& scores, const Communicator& comm, const CollectiveCall& call) {
  SortedScores sorted;
  sorted.total = count_scores(std::ssize(scores.positives), std::ssize(scores.negatives), comm, call);
  sorted.runs = runs_of(scores);
  if (comm.size() > 1) {
    const Array<ScoreRun> mine = std::move(sorted.runs);
    const auto targets = sort_targets(comm, std::ssize(mine), [&](Index i) { return mine[i].key; });
    sorted.runs = RowRoute(comm, targets).forward(std::span<const ScoreRun>(mine));
    std::ranges::sort(sorted.runs, {}, &ScoreRun::key);
    join_equal(sorted.runs);
  }
  ScoreCounts mine;
  for (const ScoreRun& run : sorted.runs) {
    mine.positives += run.positives;
    mine.negatives += run.negatives;
  }
  sorted.below = {gather_book(comm, mine.positives).begin(comm.rank()),
                  gather_book(comm, mine.negatives).begin(comm.rank())};
  return sorted;
}

ScoreKeys keys_of(const Tensor& positive, const Tensor& negative, const char* metric) {
  return {score_keys(positive.values(), metric, "positives"),
          score_keys(negative.values(), metric, "negatives")};
}

}  // namespace

double roc_auc(const ScoreKeys& scores, const Communicator& comm) {
  return comm.agree([&] {
    const SortedScores sorted = sort_scores(scores, comm, CollectiveCall("roc_auc"));
    const auto [positives, negatives] = sorted.total;
    const double pairs = static_cast<double>(positives) * static_cast<double>(negatives);
    require<InputError>(pairs < 0x1p62, "roc_auc of ", positives, " positives and ", negatives,
                        " negatives: there are 2^62 pairs of them or more");
    std::int64_t below = sorted.below.negatives, twice_won = 0;
    for (const ScoreRun& run : sorted.runs) {
      twice_won += run.positives * (2 * below + run.negatives);
      below += run.negatives;
    }
    return static_cast<double>(comm.all_reduce(twice_won)) / (2 * pairs);
  });
}

double average_precision(const ScoreKeys& scores, const Communicator& comm) {
  return comm.agree([&] {
    const SortedScores sorted = sort_scores(scores, comm, CollectiveCall("average_precision"));
    // Scores of at least that of a run: all but those below it.
    std::int64_t positives = sorted.total.positives - sorted.below.positives;
    std::int64_t negatives = sorted.total.negatives - sorted.below.negatives;
    ExactSum sum;
    for (const ScoreRun& run : sorted.runs) {
      if (run.positives > 0)
        sum.add(static_cast<double>(run.positives) * static_cast<double>(positives) /
                static_cast<double>(positives + negatives));
      positives -= run.positives;
      negatives -= run.negatives;
    }
    return exact_sum_over_ranks(comm, std::span(&sum, 1)).front().value() /
           static_cast<double>(sorted.total.positives);
  });
}

double roc_auc(const Tensor& positive, const Tensor& negative, const Communicator& comm) {
  return comm.agree([&] { return roc_auc(keys_of(positive, negative, "roc_auc"), comm); });
}

double average_precision(const Tensor& positive, const Tensor& negative, const Communicator& comm) {
  return comm.agree(
      [&] { return average_precision(keys_of(positive, negative, "average_precision"), comm); });
}

}}  // namespace sar
