// SPDX-License-Identifier: MIT

/// Metrics of classifications, values and scores of all ranks, each of which has some of the rows.
///
/// Every function is collective and returns the same value on every rank, whichever ranks have which rows.
/// Definitions and names are scikit-learn's. The type of the argument says what labels are:
///
/// - classes: logits [n, C], labels [n]; -1 is unlabelled. Throws like accuracy() of nn/train/loss.hpp.
/// - columns: scores and targets [n, T]; a target of NaN is unlabelled. For classification, targets are 0 or
///   1 (several labels a row), and a score is a logit. Throws ShapeError if the shapes differ, InputError for
///   another target.
///
/// Rows outside of the mask, and what is unlabelled, do not count. If nothing counts, the result is NaN. A
/// mean over classes or columns leaves out those for which the metric is not defined.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the area under the ROC curve of class 1 against class 0, by the difference of their logits. With
/// more than two classes: the mean over the classes of one against the rest, by their softmax
/// (multi_class="ovr", average="macro"). Classes without a positive or without a negative are left out.
/// InputError for a logit that is NaN.
double roc_auc(const Tensor& logits, std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask,
               const Communicator& comm);
/// Returns the mean over the columns that have a 1 and a 0, as OGB's evaluator does. InputError for a score
/// that is NaN.
double roc_auc(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
               const Communicator& comm);

/// Returns the average precision of class 1, or the mean over classes or columns, as roc_auc().
double average_precision(const Tensor& logits, std::span<const std::int64_t> labels,
                         std::span<const std::uint8_t> mask, const Communicator& comm);
double average_precision(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                         const Communicator& comm);

/// Of which class F1 is, or how classes or columns are combined.
enum class F1 {
  binary,  ///< of class 1 of two classes, or of the only column
  micro,   ///< of the sums of TP, FP and FN; for classes equal to the accuracy
  macro    ///< the mean over the classes that are labels or predictions, or over the columns
};

/// Returns F1 = 2 TP / (2 TP + FP + FN), 0 if the denominator is 0. The prediction is the class of the
/// largest logit (the first of equal ones), or 1 for a positive score. A row with a NaN predicts no class.
/// InputError for F1::binary of another number of classes or columns.
double f1_score(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, F1 average, const Communicator& comm);
double f1_score(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask, F1 average,
                const Communicator& comm);

// Metrics of predicted values (regression), of the rows of all ranks.
//
// predictions and targets [n, T]; a target of NaN is missing. Rows outside of the mask and missing targets
// do not count. Each metric is computed for each column and averaged over the columns, as scikit-learn's
// functions of the same names do; a column without targets is left out, and the result is NaN if there are
// none at all. Every function is collective and returns the same value on every rank, equal to rounding for
// every number of ranks. Throws ShapeError if shapes or lengths differ.

/// Returns the mean of |p - t|.
double mean_absolute_error(const Tensor& predictions, const Tensor& targets,
                           std::span<const std::uint8_t> mask, const Communicator& comm);

/// Returns the mean of (p - t)^2.
double mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          std::span<const std::uint8_t> mask, const Communicator& comm);

/// Returns the root of the mean of (p - t)^2; the roots of the columns are averaged.
double root_mean_squared_error(const Tensor& predictions, const Tensor& targets,
                               std::span<const std::uint8_t> mask, const Communicator& comm);

/// Returns the coefficient of determination:
///
///     R^2 = 1 - sum_i (p_i - t_i)^2 / sum_i (t_i - mean(t))^2
///
/// If all targets of a column are equal, 1 if the predictions equal them, and otherwise 0. A column with
/// fewer than two targets is left out.
double r2_score(const Tensor& predictions, const Tensor& targets, std::span<const std::uint8_t> mask,
                const Communicator& comm);

// A metric of a program's own, as a function of the rows of all ranks.

/// Collective. Returns metric(scores [M, C], labels [M]), or metric(scores [M, T], targets [M, T]), of the
/// M rows of all ranks that are in the mask and have a label: a class other than -1, or a target that is
/// not NaN. NaN if there are none.
///
/// The metric is any local function whose value does not depend on the order of the rows. Every rank calls
/// it with all rows, so that memory for them is needed on each rank; a metric of sums or counts needs only
/// Communicator::all_reduce. Throws as accuracy() does for labels outside of the classes, ShapeError if
/// shapes or lengths differ.
double metric_of_all_rows(const Tensor& scores, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const Communicator& comm,
                          FunctionRef<double(const Tensor&, std::span<const std::int64_t>)> metric);
double metric_of_all_rows(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                          const Communicator& comm, FunctionRef<double(const Tensor&, const Tensor&)> metric);

// Metrics of how well scores separate positives from negatives, over the scores of all ranks.
//
// Every function is collective and exact: the scores of all ranks are sorted together. A rank may have no
// scores. Throws InputError on every rank if no rank has a positive, or no rank has a negative, or a score
// is NaN. Equal scores are ties; -0 equals 0.
//
// Each rank sorts its own scores and sends each distinct one once. A rank receives at most about twice its
// share, 24 bytes per score, and P^2 samples of 8 bytes.

/// Returns the area under the ROC curve: the fraction of (positive, negative) pairs in which the positive has
/// the larger score. Ties count as 1/2 (scikit-learn's roc_auc_score). The bits are the same for any number
/// of ranks.
double roc_auc(const Tensor& positive, const Tensor& negative, const Communicator& comm);

/// Returns the average precision (scikit-learn's average_precision_score), the sum over the distinct scores s
/// in descending order
///
///     sum_s (R_s - R_before) P_s
///
/// where recall R_s is the fraction of the positives that score s or more, and precision P_s the fraction of
/// positives among all that score s or more.
double average_precision(const Tensor& positive, const Tensor& negative, const Communicator& comm);

/// Scores as score_keys.hpp makes them.
struct ScoreKeys {
  Array<std::uint64_t> positives, negatives;
};
/// The same of keys.
double roc_auc(const ScoreKeys& scores, const Communicator& comm);
double average_precision(const ScoreKeys& scores, const Communicator& comm);
}}  // namespace sar
