// SPDX-License-Identifier: MIT

/// Conversions between the arrays of sar.h and tensors.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <sar.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// The expected sizes of a caller's array, with its name and the origin of the sizes for error messages.
struct Expected {
  const char* name;
  Index rows;    ///< -1: any number
  Index fields;  ///< -1: any positive number
};

/// Throws InputError for a null array or null data, negative sizes, an unknown precision or order, a leading
/// dimension that is too small, and reserved fields other than 0; ShapeError if sizes do not match.
void check_array(const sar_array* array, const Expected& expected);

/// Returns whether the array can be used without a copy: in the library's precision, row by row without gaps.
bool lies_as_tensor(const sar_array& array) noexcept;

/// Returns [rows, fields]: borrowed for reading if lies_as_tensor(), converted otherwise. Throws as
/// check_array().
Tensor read_array(const sar_array* array, const Expected& expected);
/// Returns the numbers of an array row by row, without rounding. Throws as check_array().
std::vector<double> read_doubles(const sar_array* array, const Expected& expected);
/// Returns read_array() for an optional array; undefined if it is null. Throws as check_array().
Tensor read_optional_array(const sar_array* array, const Expected& expected);

/// Returns the edge rows of a model with `edge_feats` edge features; undefined if it takes none. Throws
/// InputError if rows are given but not taken, and as check_array().
Tensor read_edges(const sar_array* edges, Index num_edges, Index edge_feats);

/// Writes `values` to an array that was checked.
void write_array(const Tensor& values, const sar_array& array);

/// Returns a list of the caller as a span. Throws InputError for a negative length, and for a null pointer
/// unless the length is 0.
template <class T>
std::span<T> list_of(T* values, std::int64_t length, const char* name) {
  require<InputError>(length >= 0, "the length of '", name, "' is ", length, ", expected 0 or more");
  require<InputError>(values != nullptr || length == 0, "the pointer '", name, "' is null, expected ", length,
                      " numbers");
  return {values, static_cast<std::size_t>(length)};
}

}}}  // namespace sar
