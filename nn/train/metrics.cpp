// SPDX-License-Identifier: MIT

// ROC-AUC and average precision sort the scores of one column at a time over the ranks: O(n log n) time for
// each column, 24 bytes a row. F1 counts true and false predictions: O(n C) time, 24 bytes for each class.
#include <sar/comm/exact_sums.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/nn/train/metrics.hpp>
#include <sar/nn/train/row_labels.hpp>
#include <sar/nn/train/score_keys.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr const char* in_classes = "number of classes";
constexpr const char* in_columns = "number of columns";

using BinaryMetric = double (*)(const ScoreKeys&, const Communicator&);

/// The logarithm of the softmax of each class of a row, which has the order of the probability also near 1:
/// z_c - max(z) - log1p(sum of the others' exp(z_j - max(z))).
class LogSoftmaxRow {
 public:
  LogSoftmaxRow() = default;
  explicit LogSoftmaxRow(std::span<const real> z) : z_(z) {
    const auto largest = std::ranges::max_element(z);
    ExactSum others;  // in any order: rows with the same probability of a class tie
    for (auto other = z.begin(); other != z.end(); ++other)
      if (other != largest) others.add(std::exp(static_cast<double>(*other) - static_cast<double>(*largest)));
    shift_ = static_cast<double>(*largest);
    log_sum_ = std::log1p(others.value());
  }
  double operator[](Index c) const { return static_cast<double>(z_[c]) - shift_ - log_sum_; }

 private:
  std::span<const real> z_;
  double shift_ = 0, log_sum_ = 0;
};

void add_to(std::int64_t& sum, std::int64_t part) {
  sum += part;
}
void add_to(ExactSum& sum, const ExactSum& part) {
  sum.add(part);
}

/// Returns `size` sums over the rows [0, n), to which add(sums, row) adds: integers or ExactSum, so that they
/// do not depend on the blocks, of which there are few, because each has sums of its own.
template <class Sum, class Add>
std::vector<Sum> sums_of_rows(Index n, Index size, const Add& add) {
  const std::vector<Sum> zero(static_cast<std::size_t>(size));
  return parallel_reduce(
      n, std::max<Index>(1024, n / 512), zero,
      [&](Index begin, Index end) {
        std::vector<Sum> sums = zero;
        for (Index i = begin; i < end; ++i) add(sums.data(), i);
        return sums;
      },
      [](std::vector<Sum> sums, const std::vector<Sum>& block) {
        for (std::size_t k = 0; k < sums.size(); ++k) add_to(sums[k], block[k]);
        return sums;
      });
}

double finite_score(double score, const char* name, Index row) {
  require<InputError>(!std::isnan(score), name, ": a logit of row ", row, " is NaN");
  return score;
}

/// Returns the mean of value(k) over the k < n that count.
double mean_where(Index n, FunctionRef<bool(Index)> counts, FunctionRef<double(Index)> value) {
  double sum = 0;
  Index count = 0;
  for (Index k = 0; k < n; ++k)
    if (counts(k)) sum += value(k), ++count;
  return count > 0 ? sum / static_cast<double>(count) : undefined;
}

/// `keys(c)` returns this rank's scores of column c, one of those that have positives and negatives.
double mean_over_columns(Index first, std::span<const std::int64_t> positives,
                         std::span<const std::int64_t> negatives, FunctionRef<ScoreKeys(Index)> keys,
                         BinaryMetric metric, const Communicator& comm) {
  const auto counts = [&](Index c) { return c >= first && positives[c] != 0 && negatives[c] != 0; };
  return mean_where(std::ssize(positives), counts, [&](Index c) { return metric(keys(c), comm); });
}

double of_classes(const char* name, BinaryMetric metric, const Tensor& logits,
                  std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask,
                  const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall(name).equal(in_classes, logits.shape()));
    require_rows(logits.shape(), labels, mask);
    const Index width = logits.row_size();
    const Array<std::int32_t> targets = targets_of(labels, mask, width);
    Array<std::int64_t> positives(static_cast<std::size_t>(width), 0), negatives = positives;
    Array<Index> labelled;
    for (Index i = 0; i < std::ssize(targets); ++i)
      if (targets[i] >= 0) {
        ++positives[targets[i]];
        labelled.push_back(i);
      }
    comm.all_reduce(std::span<std::int64_t>(positives));
    std::int64_t all = 0;
    for (const std::int64_t count : positives) all += count;
    for (Index c = 0; c < width; ++c) negatives[c] = all - positives[c];
    Array<LogSoftmaxRow> rows(width > 2 ? labelled.size() : 0);
    parallel_for_each(std::ssize(rows), 256, [&](Index k) {
      rows[k] = LogSoftmaxRow(std::span(logits.row(labelled[k]), static_cast<std::size_t>(width)));
    });
    const auto keys = [&](Index c) {
      ScoreKeys of;
      for (Index k = 0; k < std::ssize(labelled); ++k) {
        const Index i = labelled[k];
        const real* z = logits.row(i);
        const double score = width > 2 ? rows[k][c] : static_cast<double>(z[1]) - static_cast<double>(z[0]);
        (targets[i] == c ? of.positives : of.negatives).push_back(score_key(finite_score(score, name, i)));
      }
      return of;
    };
    return mean_over_columns(width == 2 ? 1 : 0, positives, negatives, keys, metric, comm);
  });
}

/// Whether a labelled target is 1. InputError unless it is 0 or 1.
bool is_positive(const char* name, const Tensor& targets, Index row, Index column) {
  const real target = targets.row(row)[column];
  require<InputError>(target == 0 || target == 1, name, ": the target of row ", row, ", column ", column,
                      " is ", target, ", expected 0, 1 or NaN (unlabelled)");
  return target == 1;
}

double of_columns(const char* name, BinaryMetric metric, const Tensor& scores, const Tensor& targets,
                  std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall(name).equal(in_columns, scores.shape()));
    require_target_rows(name, scores, targets, mask);
    const Index width = scores.row_size();
    std::vector<std::int64_t> counts = sums_of_rows<std::int64_t>(  // positives, then negatives
        scores.num_rows(), 2 * width, [&](std::int64_t* sums, Index i) {
          for (Index c = 0; c < width; ++c)
            if (is_labelled(mask, targets, i, c)) ++sums[is_positive(name, targets, i, c) ? c : width + c];
        });
    comm.all_reduce(std::span<std::int64_t>(counts));
    const auto keys = [&](Index c) {
      ScoreKeys of;
      for (Index i = 0; i < scores.num_rows(); ++i)
        if (is_labelled(mask, targets, i, c))
          (targets.row(i)[c] == 1 ? of.positives : of.negatives)
              .push_back(score_key(finite_score(static_cast<double>(scores.row(i)[c]), name, i)));
      return of;
    };
    const std::span<const std::int64_t> all(counts);
    return mean_over_columns(0, all.first(static_cast<std::size_t>(width)),
                             all.subspan(static_cast<std::size_t>(width)), keys, metric, comm);
  });
}

/// Numbers of true positives, false positives, false negatives and true negatives of each class or column.
class Outcomes {
 public:
  /// Adds the counts of the ranks, in this order: `width` each. Collective.
  Outcomes(std::vector<std::int64_t> counts, const Communicator& comm)
      : width_(std::ssize(counts) / 4), counts_(std::move(counts)) {
    comm.all_reduce(std::span<std::int64_t>(counts_));
  }
  [[nodiscard]] bool occurs(Index c) const { return of(0, c) + of(1, c) + of(2, c) > 0; }
  [[nodiscard]] bool is_labelled(Index c) const { return occurs(c) || of(3, c) > 0; }
  /// The F1 of those classes or columns that count, of the last one if `average` is binary.
  [[nodiscard]] double f1(F1 average, FunctionRef<bool(Index)> counts) const {
    const double mean = mean_where(width_, counts, [&](Index c) { return f1_of(c, c + 1); });
    if (average == F1::macro || std::isnan(mean)) return mean;
    return f1_of(average == F1::binary ? width_ - 1 : 0, width_);
  }

 private:
  [[nodiscard]] std::int64_t of(Index outcome, Index c) const {
    return counts_[static_cast<std::size_t>(outcome * width_ + c)];
  }
  [[nodiscard]] double f1_of(Index begin, Index end) const {
    std::int64_t correct = 0, wrong = 0;
    for (Index c = begin; c < end; ++c) {
      correct += of(0, c);
      wrong += of(1, c) + of(2, c);
    }
    const double all = 2 * static_cast<double>(correct) + static_cast<double>(wrong);
    return all == 0 ? 0 : 2 * static_cast<double>(correct) / all;
  }
  Index width_;
  std::vector<std::int64_t> counts_;
};

/// The class of the largest logit, -1 for a row with a NaN.
Index predicted_class(std::span<const real> z) {
  if (std::ranges::any_of(z, [](real value) { return std::isnan(value); })) return -1;
  return std::ranges::max_element(z) - z.begin();
}

}  // namespace

double roc_auc(const Tensor& logits, std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask,
               const Communicator& comm) {
  return of_classes("roc_auc of classes", roc_auc, logits, labels, mask, comm);
}
double roc_auc(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
               const Communicator& comm) {
  return of_columns("roc_auc of columns", roc_auc, scores, targets, mask, comm);
}

double average_precision(const Tensor& logits, std::span<const std::int64_t> labels,
                         std::span<const std::uint8_t> mask, const Communicator& comm) {
  return of_classes("average_precision of classes", average_precision, logits, labels, mask, comm);
}
double average_precision(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                         const Communicator& comm) {
  return of_columns("average_precision of columns", average_precision, scores, targets, mask, comm);
}

double f1_score(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, F1 average, const Communicator& comm) {
  return comm.agree([&] {
    CollectiveCall call("f1_score of classes");
    const CallScope compared(comm, call.equal(in_classes, logits.shape()).equal("average", average));
    require_rows(logits.shape(), labels, mask);
    const Index width = logits.row_size();
    require<InputError>(average != F1::binary || width == 2, "f1_score of class 1: there are ", width,
                        " classes, expected two, or the mean of all classes");
    const Array<std::int32_t> targets = targets_of(labels, mask, width);
    const auto count = [&](std::int64_t* counts, Index i) {
      if (targets[i] < 0) return;
      const Index predicted = predicted_class({logits.row(i), static_cast<std::size_t>(width)});
      ++counts[predicted == targets[i] ? predicted : 2 * width + targets[i]];
      if (predicted != targets[i] && predicted >= 0) ++counts[width + predicted];
    };
    const Outcomes outcomes(sums_of_rows<std::int64_t>(logits.num_rows(), 4 * width, count), comm);
    return outcomes.f1(average, [&](Index c) { return outcomes.occurs(c); });
  });
}

double f1_score(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask, F1 average,
                const Communicator& comm) {
  constexpr const char* name = "f1_score of columns";
  return comm.agree([&] {
    CollectiveCall call(name);
    const CallScope compared(comm, call.equal(in_columns, scores.shape()).equal("average", average));
    require_target_rows(name, scores, targets, mask);
    const Index width = scores.row_size();
    require<InputError>(average != F1::binary || width == 1, name, ": there are ", width,
                        ", expected one for F1::binary");
    const auto count = [&](std::int64_t* counts, Index i) {
      for (Index c = 0; c < width; ++c) {
        if (!is_labelled(mask, targets, i, c)) continue;
        const bool predicted = scores.row(i)[c] > 0;
        const Index outcome = is_positive(name, targets, i, c) ? (predicted ? 0 : 2) : (predicted ? 1 : 3);
        ++counts[outcome * width + c];
      }
    };
    const Outcomes outcomes(sums_of_rows<std::int64_t>(scores.num_rows(), 4 * width, count), comm);
    return outcomes.f1(average, [&](Index c) { return outcomes.is_labelled(c); });
  });
}

// Sums of errors over the labelled elements of each column, added over the ranks in double precision; R^2
// takes a second pass around the mean of all ranks. O(n T) time, 32 bytes for each column.

namespace {

/// Returns `of_column` sums for each column over all ranks, to which use(sums of the column, target, error,
/// column) adds each labelled element. Collective.
template <class Use>
std::vector<ExactSum> sums_of_errors(const Tensor& predictions, const Tensor& targets,
                                     std::span<const std::uint8_t> mask, const Communicator& comm,
                                     Index of_column, const Use& use) {
  const Index width = targets.row_size();
  const auto add = [&](ExactSum* sums, Index i) {
    for (Index c = 0; c < width; ++c) {
      if (!is_labelled(mask, targets, i, c)) continue;
      const auto target = static_cast<double>(targets.row(i)[c]);
      use(sums + of_column * c, target, static_cast<double>(predictions.row(i)[c]) - target, c);
    }
  };
  return exact_sum_over_ranks(comm, sums_of_rows<ExactSum>(targets.num_rows(), of_column * width, add));
}

/// The sums of one column over all ranks.
struct ColumnSums {
  double count, targets, absolute, squared;
};

/// Returns the sums of each column. Collective.
Array<ColumnSums> sum_errors(const char* name, const Tensor& predictions, const Tensor& targets,
                             std::span<const std::uint8_t> mask, const Communicator& comm) {
  require_target_rows(name, predictions, targets, mask);
  const auto width = static_cast<std::size_t>(targets.row_size());
  const auto add = [](ExactSum* of, double target, double error, Index) {
    of[0].add(1);
    of[1].add(target);
    of[2].add(std::abs(error));
    of[3].add(error * error);
  };
  const std::vector<ExactSum> sums = sums_of_errors(predictions, targets, mask, comm, 4, add);
  Array<ColumnSums> columns;
  for (std::size_t c = 0; c < width; ++c)
    columns.push_back(
        {sums[4 * c].value(), sums[4 * c + 1].value(), sums[4 * c + 2].value(), sums[4 * c + 3].value()});
  return columns;
}

/// Returns the mean of value(c) over the columns with at least `least` targets.
double mean_of(const Array<ColumnSums>& columns, double least, FunctionRef<double(Index)> value) {
  return mean_where(
      std::ssize(columns), [&](Index c) { return columns[c].count >= least; }, value);
}

double mean_error(const char* name, const Tensor& predictions, const Tensor& targets,
                  std::span<const std::uint8_t> mask, const Communicator& comm,
                  FunctionRef<double(const ColumnSums&)> value) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall(name).equal("number of columns", predictions.shape()));
    const Array<ColumnSums> columns = sum_errors(name, predictions, targets, mask, comm);
    return mean_of(columns, 1, [&](Index c) { return value(columns[c]); });
  });
}

}  // namespace

double mean_absolute_error(const Tensor& predictions, const Tensor& targets,
                           std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("mean_absolute_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return sums.absolute / sums.count; });
}

double mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("mean_squared_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return sums.squared / sums.count; });
}

double root_mean_squared_error(const Tensor& predictions, const Tensor& targets,
                               std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("root_mean_squared_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return std::sqrt(sums.squared / sums.count); });
}

double r2_score(const Tensor& predictions, const Tensor& targets, std::span<const std::uint8_t> mask,
                const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("r2_score").equal("number of columns", predictions.shape()));
    const Array<ColumnSums> columns = sum_errors("r2_score", predictions, targets, mask, comm);
    const auto add = [&](ExactSum* deviation, double target, double, Index c) {
      const double d = target - columns[c].targets / columns[c].count;
      deviation->add(d * d);
    };
    const std::vector<ExactSum> deviations = sums_of_errors(predictions, targets, mask, comm, 1, add);
    return mean_of(columns, 2, [&](Index c) {
      const double deviation = deviations[static_cast<std::size_t>(c)].value();
      const double mean = columns[c].targets / columns[c].count;
      const double rounding = 4 * std::numeric_limits<double>::epsilon() * mean;
      if (deviation > columns[c].count * rounding * rounding) return 1 - columns[c].squared / deviation;
      return columns[c].squared == 0 ? 1.0 : 0.0;
    });
  });
}

// Each rank picks its labelled rows, and one all_gather each for scores and labels gives all ranks the rows
// of all. O(n C) time, O(M C) bytes on each rank for the M rows of all.

namespace {

constexpr double no_rows = std::numeric_limits<double>::quiet_NaN();

/// Returns the chosen rows of all ranks, in rank order. Collective.
Tensor gather_chosen(const Tensor& from, const Array<Index>& rows, const Communicator& comm) {
  const Index width = from.row_size();
  Tensor chosen({std::ssize(rows), width});
  for (Index i = 0; i < chosen.num_rows(); ++i) std::copy_n(from.row(rows[i]), width, chosen.row(i));
  const std::vector<real> values = comm.all_gather(std::span<const real>(chosen.values()));
  Tensor all({width == 0 ? 0 : std::ssize(values) / width, width});
  std::ranges::copy(values, all.data());
  return all;
}

}  // namespace

double metric_of_all_rows(const Tensor& scores, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const Communicator& comm,
                          FunctionRef<double(const Tensor&, std::span<const std::int64_t>)> metric) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("metric_of_all_rows").equal("number of classes", scores.shape()));
    require_rows(scores.shape(), labels, mask);
    const Array<std::int32_t> targets = targets_of(labels, mask, scores.row_size());
    Array<Index> rows;
    Array<std::int64_t> mine;
    for (Index i = 0; i < scores.num_rows(); ++i)
      if (targets[i] >= 0) {
        rows.push_back(i);
        mine.push_back(labels[i]);
      }
    const std::vector<std::int64_t> all = comm.all_gather(std::span<const std::int64_t>(mine));
    const Tensor all_scores = gather_chosen(scores, rows, comm);
    return all.empty() ? no_rows : metric(all_scores, all);
  });
}

double metric_of_all_rows(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                          const Communicator& comm,
                          FunctionRef<double(const Tensor&, const Tensor&)> metric) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("metric_of_all_rows").equal("number of columns", scores.shape()));
    require_target_rows("metric_of_all_rows", scores, targets, mask);
    Array<Index> rows;
    for (Index i = 0; i < targets.num_rows(); ++i) {
      bool labelled = false;
      for (Index c = 0; c < targets.row_size(); ++c) labelled |= is_labelled(mask, targets, i, c);
      if (labelled) rows.push_back(i);
    }
    const Tensor all_targets = gather_chosen(targets, rows, comm);
    const Tensor all_scores = gather_chosen(scores, rows, comm);
    return all_targets.num_rows() == 0 ? no_rows : metric(all_scores, all_targets);
  });
}

// A sample sort over the ranks: equal scores are joined to runs with their numbers of positives and
// negatives, and each rank gets a range of the sorted runs. Then both metrics are one pass over these runs.
// O(n log n) time, 24 bytes per distinct score.

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
