/// Between arrays of one value per node ("structure of arrays") and the tensor that has them as columns.
#pragma once

#include <sar/core/tensor.hpp>

#include <initializer_list>
#include <span>

namespace sar::inline SAR_PRECISION {

/// [n, k] from k arrays of n values each, of the library's precision or the other: column j is columns[j].
/// Throws ShapeError for arrays of different lengths, and when there is none.
Tensor from_columns(std::span<const std::span<const float>> columns);
Tensor from_columns(std::span<const std::span<const double>> columns);
Tensor from_columns(std::initializer_list<std::span<const float>> columns);
Tensor from_columns(std::initializer_list<std::span<const double>> columns);

/// The inverse: columns[j] = x[:, j], rows of x flattened. Throws ShapeError unless there is an array of
/// x.num_rows() values for each column.
void copy_to_columns(const Tensor& x, std::span<const std::span<float>> columns);
void copy_to_columns(const Tensor& x, std::span<const std::span<double>> columns);
void copy_to_columns(const Tensor& x, std::initializer_list<std::span<float>> columns);
void copy_to_columns(const Tensor& x, std::initializer_list<std::span<double>> columns);

}  // namespace sar
