// SPDX-License-Identifier: MIT

// to_tensor() converts in parallel blocks of about 2^14 elements; take() copies row by row in parallel
// blocks of 1,024 rows. Each element is read and written once. to_integers() and to_mask() run on one
// thread; a mask passes through a list of 8 bytes per row.
#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
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
  const std::vector<Index> extents = shape_of_rows(num_rows, row_shape);
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

// Rows are compressed in two parallel passes over their elements: one counts, the other copies. Both compare
// bits: an element is 0 if all its bits but the sign of a floating-point number are.

namespace {

/// Calls use(bits) with an unsigned integer of the size of the elements.
template <class Use>
void with_bits(NpyType type, const Use& use) {
  switch (element_bytes(type)) {
    case 1:
      return use(std::uint8_t{});
    case 2:
      return use(std::uint16_t{});
    case 4:
      return use(std::uint32_t{});
    default:
      return use(std::uint64_t{});
  }
}

/// Calls visit(column) for the elements of a row that are not 0. A sign is the highest bit.
template <class Bits, class Visit>
void for_stored(const std::byte* row, Index width, bool has_sign, const Visit& visit) {
  for (Index j = 0; j < width; ++j) {
    Bits bits;
    std::memcpy(&bits, row + j * static_cast<Index>(sizeof bits), sizeof bits);
    if (static_cast<Bits>(has_sign ? bits << 1 : bits) != 0) visit(j);
  }
}

Index rows_of_block(const DataArray& rows) {
  return std::max<Index>(1, (1 << 16) / std::max<Index>(rows.row_size(), 1));
}

}  // namespace

void SparseArray::append(const DataArray& rows, Index rows_to_come, const std::string& place) {
  const Index width = rows.row_size(), before = num_rows(), element = element_bytes(type);
  require<InputError>(width <= std::numeric_limits<std::int32_t>::max(), place, ": a row has ", width,
                      " columns, expected at most 2^31 - 1 of sparse rows");
  row_offsets.resize(before + rows.num_rows + 1);
  const bool has_sign = is_floating_point(type);
  with_bits(type, [&]<class Bits>(Bits) {
    parallel_for_each(rows.num_rows, rows_of_block(rows), [&](Index i) {
      Index count = 0;
      for_stored<Bits>(rows.row(i), width, has_sign, [&](Index) { ++count; });
      row_offsets[before + i + 1] = count;
    });
    for (Index i = before; i < num_rows(); ++i) row_offsets[i + 1] += row_offsets[i];
    const Index stored = row_offsets.back();
    if (stored > static_cast<Index>(columns.capacity())) {
      const double of_row = static_cast<double>(stored) / static_cast<double>(num_rows());
      const Index likely = stored + static_cast<Index>(1.02 * of_row * static_cast<double>(rows_to_come));
      columns.reserve(likely);
      bytes.reserve(likely * element);
    }
    columns.resize(stored);
    bytes.resize(stored * element);
    parallel_for_each(rows.num_rows, rows_of_block(rows), [&](Index i) {
      Index to = row_offsets[before + i];
      for_stored<Bits>(rows.row(i), width, has_sign, [&](Index j) {
        columns[to] = static_cast<std::int32_t>(j);
        std::memcpy(bytes.data() + to++ * element, rows.row(i) + j * element, sizeof(Bits));
      });
    });
  });
}

DataArray SparseArray::dense_rows(std::span<const Index> rows) const {
  DataArray dense(type, row_shape, std::ssize(rows));
  const Index element = element_bytes(type);
  parallel_for_each(dense.num_rows, rows_of_block(dense), [&](Index i) {
    std::fill_n(dense.row(i), dense.row_bytes(), std::byte{0});
    for (Index k = row_offsets[rows[i]]; k < row_offsets[rows[i] + 1]; ++k)
      std::memcpy(dense.row(i) + columns[k] * element, bytes.data() + k * element, element);
  });
  return dense;
}

Array<real> SparseArray::values() const {
  Array<real> values(num_stored());
  constexpr Index grain = 1 << 14;
  parallel_for(num_stored(), grain, [&](Index begin, Index end) {
    convert_elements(type, bytes.data() + begin * element_bytes(type), end - begin, values.data() + begin);
  });
  return values;
}

std::shared_ptr<const SparseMatrix> to_sparse_matrix(SparseArray array) {
  Array<real> values = array.values();
  array.bytes = {};
  return std::make_shared<const SparseMatrix>(array.row_size(), std::move(array.row_offsets),
                                              std::move(array.columns), std::move(values));
}

Index count_stored(const DataArray& rows) {
  Index count = 0;
  with_bits(rows.type, [&]<class Bits>(Bits) {
    count = parallel_reduce(
        rows.num_rows, rows_of_block(rows), Index{0},
        [&](Index begin, Index end) {
          Index of_block = 0;
          for (Index i = begin; i < end; ++i)
            for_stored<Bits>(rows.row(i), rows.row_size(), is_floating_point(rows.type),
                             [&](Index) { ++of_block; });
          return of_block;
        },
        [](Index a, Index b) { return a + b; });
  });
  return count;
}

SparseArray to_sparse_array(const SparseMatrix& rows) {
  SparseArray array{.type = npy_real, .row_shape = {rows.num_columns()}};
  array.row_offsets.assign(rows.row_offsets().begin(), rows.row_offsets().end());
  array.columns.assign(rows.columns().begin(), rows.columns().end());
  const auto bytes = std::as_bytes(rows.values());
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}
}}  // namespace sar
