// SPDX-License-Identifier: MIT

/// From a field of any type to the labels of nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Sets the labels of `data` from a column with a row for each node of this rank:
///
///     classes   one number, or a row of one 1 and zeros (one-hot): a class from 0; -1 or NaN, or a row of
///               zeros: unlabelled
///     binary    [n] or [n, T] of 0 and 1; -1 or NaN: missing
///     values    [n] or [n, T] of finite numbers; NaN: missing
///
/// `automatic` takes one whole number and rows that are one-hot for a class, one number with a fraction for a
/// value, other rows of 0 and 1 for binary, and rows of other floating-point numbers for values. What these
/// rules do not tell is an InputError: rows of which some are one-hot and the others zeros, rows of whole
/// numbers, whole floating-point numbers that are too large for classes or below -1, and labels of -1 and one
/// class. Collective, inside agree(); InputError, which begins with `place`, for labels of another type, and
/// for binary labels of -1 and 1 only.
void take_labels(const Communicator& comm, DataArray column, const std::string& place, LabelType type,
                 NodeData& data);

}}  // namespace sar
