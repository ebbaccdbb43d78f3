// SPDX-License-Identifier: MIT

// to_tensor() converts in parallel blocks of about 2^14 elements; take() copies row by row in parallel
// blocks of 1,024 rows. Each element is read and written once. to_integers() and to_mask() run on one
// thread; a mask passes through a list of 8 bytes per row.
#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Index product(const std::vector<Index>& extents) noexcept {
  Index size = 1;
  for (const Index extent : extents) size *= extent;
  return size;
}

}  // namespace

Index DataField::row_size() const noexcept {
  return product(row_shape);
}

DataArray::DataArray(NpyType type_of_elements, std::vector<Index> shape_of_row, Index rows)
    : type(type_of_elements), row_shape(std::move(shape_of_row)), num_rows(rows) {
  bytes.resize(num_rows * row_bytes());
}

Index DataArray::row_size() const noexcept {
  return product(row_shape);
}

Tensor DataArray::to_tensor() const {
  std::vector<Index> extents{num_rows};
  extents.insert(extents.end(), row_shape.begin(), row_shape.end());
  Tensor tensor{Shape(std::span<const Index>(extents))};
  const Index size = row_size();
  parallel_for(num_rows, std::max<Index>(1, (1 << 14) / std::max<Index>(size, 1)),
               [&](Index first, Index last) {
                 convert_elements(type, row(first), (last - first) * size, tensor.data() + first * size);
               });
  return tensor;
}

Array<std::int64_t> DataArray::to_integers(const std::string& name, std::span<const Index> ids) const {
  require<InputError>(row_size() == 1, name, ": a row has shape ", shape_to_string(row_shape),
                      ", expected one number");
  Array<std::int64_t> values(num_rows);
  const Index held = convert_elements(type, bytes.data(), num_rows, values.data());
  if (held < num_rows)
    throw_not_held<std::int64_t>(name, concat("row ", ids.empty() ? held : ids[held]), type, row(held));
  return values;
}

Array<std::uint8_t> DataArray::to_mask(const std::string& name, std::span<const Index> ids) const {
  const Array<std::int64_t> values = to_integers(name, ids);
  Array<std::uint8_t> mask(values.size());
  for (Index i = 0; i < num_rows; ++i) {
    require<InputError>(values[i] == 0 || values[i] == 1, name, ": row ", ids.empty() ? i : ids[i], " is ",
                        values[i], ", expected 0 or 1, one for each row");
    mask[i] = values[i] == 1 ? 1 : 0;
  }
  return mask;
}

DataArray DataArray::take(const Array<Index>& rows) const {
  DataArray taken(type, row_shape, static_cast<Index>(rows.size()));
  const Index width = row_bytes();
  parallel_for_each(taken.num_rows, 1 << 10,
                    [&](Index i) { std::copy_n(row(rows[i]), width, taken.row(i)); });
  return taken;
}

DataField field_of(const std::string& name, const NpyFile& file) {
  return {name, file.type(), {file.shape().begin() + 1, file.shape().end()}};
}

std::vector<DataField> fields_of(const DataColumns& columns) {
  std::vector<DataField> fields;
  for (const auto& [name, column] : columns) fields.push_back({name, column.type, column.row_shape});
  return fields;
}

DataArray read_rows(const NpyFile& file, std::span<const Index> rows) {
  const DataField field = field_of("", file);
  DataArray data(field.type, field.row_shape, static_cast<Index>(rows.size()));
  file.read_rows_raw(rows, data.bytes);
  return data;
}

}}  // namespace sar
