// SPDX-License-Identifier: MIT

/// A sparse field of the nodes of one part: three arrays in a folder of their own,
///     row_offsets.npy   [nodes + 1]       where the values of each row begin, and the end
///     columns.npy       [stored values]   32 bits; in increasing order within a row
///     values.npy        [stored values]   of the type of the field
#pragma once

#include <sar/core/files/sparse_array.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Writes the arrays. Throws ShapeError unless there are `num_rows` rows, InputError.
void write_sparse_part(const std::string& folder, const SparseArray& rows, Index num_rows);

/// Local. Appends the rows of a part to `all`. Throws InputError, naming the file, for another type or
/// length and for columns that are out of range or out of order.
void read_sparse_part(const std::string& folder, const DataField& field, Index num_rows, SparseArray& all);

}}  // namespace sar
