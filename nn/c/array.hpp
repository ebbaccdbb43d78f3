/// Between the arrays of sar.h and tensors.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/tensor.hpp>

#include <sar.h>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION::c_interface {

/// What an array of the caller has to be: its name and where its sizes come from, for the texts of errors.
struct Expected {
  const char* name;
  Index rows;
  Index fields;  ///< -1: any number from 1 on
};

/// Throws InputError for a null array or null data, negative sizes, an unknown precision or order, and a
/// leading dimension that is too short; ShapeError for other sizes than expected.
void check_array(const sar_array* array, const Expected& expected);

/// Whether the numbers can be used as they lie: of the library's precision, row after row without gaps.
bool lies_as_tensor(const sar_array& array) noexcept;

/// [rows, fields]: borrowed for reading where the numbers lie so, otherwise converted. Throws as
/// check_array().
Tensor read_array(const sar_array* array, const Expected& expected);
/// An array that is undefined where it is null. Throws as check_array().
Tensor read_optional_array(const sar_array* array, const Expected& expected);

/// The rows of edges of a model that takes `edge_feats` columns of them; undefined when it takes none. Throws
/// InputError for rows that it does not take, and as check_array().
Tensor read_edges(const sar_array* edges, Index num_edges, Index edge_feats);

/// Writes `values`, a checked array's rows and fields.
void write_array(const Tensor& values, const sar_array& array);

/// A list of the caller. Throws InputError for a negative length, and for a null pointer with another length
/// than 0.
template <class T>
std::span<T> list_of(T* values, std::int64_t length, const char* name) {
  require<InputError>(length >= 0, "the length of '", name, "' is ", length, ", expected 0 or more");
  require<InputError>(values != nullptr || length == 0, "the pointer '", name, "' is null, expected ", length,
                      " numbers");
  return {values, static_cast<std::size_t>(length)};
}

}  // namespace sar
