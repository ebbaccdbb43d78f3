// SPDX-License-Identifier: MIT

/// Metrics of the classifications of all ranks, each of which has some of the rows.
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

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the area under the ROC curve of class 1 against class 0, by the difference of their logits. With
/// more than two classes: the mean over the classes of one against the rest, by their softmax
/// (multi_class="ovr", average="macro"). Classes without a positive or without a negative are left out.
/// InputError for a logit that is NaN. Also see nn/train/binary_metrics.hpp.
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

}}  // namespace sar
