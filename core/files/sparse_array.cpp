// SPDX-License-Identifier: MIT

// Rows are compressed in two parallel passes over their elements: one counts, the other copies. Both compare
// bits: an element is 0 if all its bits but the sign of a floating-point number are.
#include <sar/core/error.hpp>
#include <sar/core/files/sparse_array.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
