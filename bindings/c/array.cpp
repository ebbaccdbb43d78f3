// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/core/tensor/columns.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

static_assert(sizeof(sar_array) == 56, "programs compiled with an older sar.h have arrays of this size");

/// Distances between two rows and between two fields.
struct Strides {
  Index row, field;
};

Strides strides_of(const sar_array& array) {
  const bool by_nodes = array.order == SAR_NODE_FIELD;
  const Index inner = by_nodes ? array.fields : array.rows;
  const Index leading = std::max(Index{1}, array.leading == 0 ? inner : array.leading);
  return by_nodes ? Strides{leading, 1} : Strides{1, leading};
}

template <class Column, class T>
std::vector<Column> columns_of(T* values, const sar_array& array) {
  const Strides strides = strides_of(array);
  const Index length = array.rows == 0 ? 0 : (array.rows - 1) * strides.row + 1;
  std::vector<Column> columns;
  columns.reserve(static_cast<std::size_t>(array.fields));
  for (Index j = 0; j < array.fields; ++j)
    columns.emplace_back(length == 0 ? values : values + j * strides.field, length, strides.row);
  return columns;
}

template <class Column>
std::vector<Column> columns_of(const sar_array& array) {
  return array.precision == SAR_FLOAT64 ? columns_of<Column>(static_cast<double*>(array.data), array)
                                        : columns_of<Column>(static_cast<float*>(array.data), array);
}

sar_array dense_array(const void* data, std::int32_t precision, Index rows, Index fields) {
  return {const_cast<void*>(data), precision, SAR_NODE_FIELD, rows, fields, 0, {0, 0}};
}

}  // namespace

void check_array(const sar_array* array, const Expected& expected) {
  const char* name = expected.name;
  require<InputError>(array != nullptr, "the array '", name, "' is null");
  const sar_array& a = *array;
  require<InputError>(a.reserved[0] == 0 && a.reserved[1] == 0, "the reserved fields of the array '", name,
                      "' are ", a.reserved[0], " and ", a.reserved[1],
                      ", expected 0: begin with sar_array_float() or sar_array_double()");
  require<InputError>(a.precision == SAR_FLOAT32 || a.precision == SAR_FLOAT64,
                      "the precision of the array '", name, "' is ", a.precision,
                      ", expected SAR_FLOAT32 (0) or SAR_FLOAT64 (1)");
  require<InputError>(a.order == SAR_NODE_FIELD || a.order == SAR_FIELD_NODE, "the order of the array '",
                      name, "' is ", a.order, ", expected SAR_NODE_FIELD (0) or SAR_FIELD_NODE (1)");
  require<InputError>(a.rows >= 0 && a.fields >= 0, "the array '", name, "' has ", a.rows, " rows and ",
                      a.fields, " fields, expected numbers from 0 on");
  require<ShapeError>(expected.rows < 0 || a.rows == expected.rows, "the array '", name, "' has ", a.rows,
                      " rows, expected ", expected.rows);
  if (expected.fields >= 0)
    require<ShapeError>(a.fields == expected.fields, "the array '", name, "' has ", a.fields,
                        " fields, expected ", expected.fields);
  else
    require<ShapeError>(a.fields > 0, "the array '", name, "' has no fields, expected one at least");
  const Index inner = a.order == SAR_NODE_FIELD ? a.fields : a.rows;
  require<InputError>(a.leading == 0 || a.leading >= inner, "the leading dimension of the array '", name,
                      "' is ", a.leading, ", expected ", inner, " at least, or 0");
  require<InputError>(a.data != nullptr || a.rows == 0, "the data of the array '", name,
                      "' are null, expected ", a.rows, " rows");
}

bool lies_as_tensor(const sar_array& array) noexcept {
  const Strides strides = strides_of(array);
  return array.precision == sar_precision() && array.data != nullptr &&
         (strides.field == 1 || array.fields == 1) && (strides.row == array.fields || array.rows <= 1);
}

Tensor read_array(const sar_array* array, const Expected& expected) {
  check_array(array, expected);
  if (lies_as_tensor(*array))
    return Tensor::borrow(static_cast<const real*>(array->data), {array->rows, array->fields});
  return from_columns(columns_of<ConstHostColumn>(*array));
}

std::vector<double> read_doubles(const sar_array* array, const Expected& expected) {
  check_array(array, expected);
  const Strides strides = strides_of(*array);
  std::vector<double> numbers;
  for (Index i = 0; i < array->rows; ++i)
    for (Index j = 0; j < array->fields; ++j) {
      const Index at = i * strides.row + j * strides.field;
      numbers.push_back(array->precision == SAR_FLOAT64 ? static_cast<const double*>(array->data)[at]
                                                        : static_cast<const float*>(array->data)[at]);
    }
  return numbers;
}

Tensor read_optional_array(const sar_array* array, const Expected& expected) {
  return array == nullptr ? Tensor() : read_array(array, expected);
}

Tensor read_edges(const sar_array* edges, Index num_edges, Index edge_feats) {
  require<InputError>(edges == nullptr || edge_feats > 0,
                      "there is an array 'edges', but the model takes no rows of edges, expected null");
  return edge_feats > 0 ? read_array(edges, {"edges", num_edges, edge_feats}) : Tensor();
}

void write_array(const Tensor& values, const sar_array& array) {
  copy_to_columns(values, columns_of<HostColumn>(array));
}

}}}  // namespace sar

using namespace sar::c_interface;

sar_array sar_array_float(const float* data, int64_t rows, int64_t fields) {
  return dense_array(data, SAR_FLOAT32, rows, fields);
}

sar_array sar_array_double(const double* data, int64_t rows, int64_t fields) {
  return dense_array(data, SAR_FLOAT64, rows, fields);
}
