// SPDX-License-Identifier: MIT

/// Losses of rows of a mask whose targets may be missing: regression, and several labels a row.
///
/// prediction and target [n, T] for the n rows of this rank, mask [n]. The loss is the mean over the elements
/// of all ranks that are in a row with a nonzero mask and whose target is not NaN; the others get no
/// gradient, and the target gets none. With row weights a [n], on every rank or none, it is the sum over
/// these elements of a_i times the term of an element of row i. Every function is collective as those of
/// nn/train/loss.hpp are. Throws ShapeError if shapes or lengths differ, InputError if no element of any rank
/// has a target, and for row weights that are negative or not finite.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

using RowWeights = std::optional<std::span<const real>>;

/// Returns the mean binary cross entropy of logits x and targets t in [0, 1], as OGB's examples compute it
/// for several labels a node:
///
///     -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))
Variable bce_with_logits(const Variable& logits, const Tensor& target, std::span<const std::uint8_t> mask,
                         const Communicator& comm, const RowWeights& row_weights = std::nullopt);

/// Returns the mean of (prediction - target)^2.
Variable mse(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
             const Communicator& comm, const RowWeights& row_weights = std::nullopt);

/// Returns the mean of |prediction - target|. The gradient at 0 is 0.
Variable l1(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
            const Communicator& comm, const RowWeights& row_weights = std::nullopt);
}}  // namespace sar
