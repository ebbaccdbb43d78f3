// SPDX-License-Identifier: MIT

/// Metrics of predicted values (regression), of the rows of all ranks.
///
/// predictions and targets [n, T]; a target of NaN is missing. Rows outside of the mask and missing targets
/// do not count. Each metric is computed for each column and averaged over the columns, as scikit-learn's
/// functions of the same names do; a column without targets is left out, and the result is NaN if there are
/// none at all. Every function is collective and returns the same value on every rank, equal to rounding for
/// every number of ranks. Throws ShapeError if shapes or lengths differ.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
