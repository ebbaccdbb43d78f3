// SPDX-License-Identifier: MIT

// Rows are checked and sorted in parallel blocks: O(stored values) if the columns are in order, which one
// comparison for each finds out, O(s log s) for a row of s values otherwise. gather() counts, then copies.
#include <sar/core/error.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index sparse_grain = 1 << 10;  // rows

Shape shape_of(Index num_columns, std::size_t num_offsets) {
  require<ShapeError>(num_offsets > 0, "sparse rows without row offsets, expected one more than rows");
  require<ShapeError>(0 <= num_columns && num_columns <= std::numeric_limits<std::int32_t>::max(),
                      "sparse rows of ", num_columns, " columns, expected 0 to 2^31 - 1");
  return {static_cast<Index>(num_offsets) - 1, num_columns};
}

void check_offsets(std::span<const Index> offsets, std::size_t columns, std::size_t values) {
  require<ShapeError>(columns == values, "sparse rows of ", columns, " columns and ", values,
                      " values, expected as many");
  require<ShapeError>(offsets.front() == 0 && offsets.back() == static_cast<Index>(columns),
                      "row offsets of sparse rows go from ", offsets.front(), " to ", offsets.back(),
                      ", expected 0 to ", columns, ", the number of stored values");
  const auto falls = std::ranges::adjacent_find(offsets, std::greater<>());
  if (falls != offsets.end())
    throw ShapeError(concat("row offsets of sparse rows fall from ", falls[0], " to ", falls[1], " at row ",
                            falls - offsets.begin(), ", expected numbers that do not decrease"));
}

/// Sorts the columns of a row, and their values with them.
void sort_row(std::span<std::int32_t> columns, std::span<real> values) {
  std::vector<std::pair<std::int32_t, real>> pairs;
  for (std::size_t i = 0; i < columns.size(); ++i) pairs.emplace_back(columns[i], values[i]);
  std::ranges::stable_sort(pairs, {}, &std::pair<std::int32_t, real>::first);
  for (std::size_t i = 0; i < columns.size(); ++i) std::tie(columns[i], values[i]) = pairs[i];
}

/// Checks the columns of row i after sorting them where necessary.
void check_row(Index i, Index num_columns, std::span<std::int32_t> columns, std::span<real> values) {
  if (!std::ranges::is_sorted(columns)) sort_row(columns, values);
  if (columns.empty()) return;
  for (const std::int32_t column : {columns.front(), columns.back()})
    require<InputError>(0 <= column && column < num_columns, "row ", i, " of sparse rows stores column ",
                        column, ", expected ", index_range(num_columns));
  const auto twice = std::ranges::adjacent_find(columns);
  if (twice != columns.end())
    throw InputError(concat("row ", i, " of sparse rows stores column ", *twice,
                            " twice, expected each column once (SciPy: sum_duplicates())"));
}

}  // namespace

SparseMatrix::SparseMatrix(Index num_columns, Array<Index> row_offsets, Array<std::int32_t> columns,
                           Array<real> values)
    : DeferredRows(shape_of(num_columns, row_offsets.size())) {
  check_offsets(row_offsets, columns.size(), values.size());
  parallel_for_each(num_rows(), sparse_grain, [&](Index i) {
    const Index begin = row_offsets[i], count = row_offsets[i + 1] - begin;
    check_row(i, num_columns, std::span(columns).subspan(begin, count),
              std::span(values).subspan(begin, count));
  });
  offsets_ = std::make_shared<const Array<Index>>(std::move(row_offsets));
  all_columns_ = std::make_shared<const Array<std::int32_t>>(std::move(columns));
  all_values_ = std::make_shared<const Array<real>>(std::move(values));
  columns_ = *all_columns_;
  values_ = *all_values_;
}

SparseMatrix::SparseMatrix(const Shape& shape, std::shared_ptr<const Array<Index>> offsets,
                           const SparseMatrix& of)
    : DeferredRows(shape),
      offsets_(std::move(offsets)),
      all_columns_(of.all_columns_),
      all_values_(of.all_values_),
      columns_(of.columns_),
      values_(of.values_) {}

std::shared_ptr<const SparseMatrix> SparseMatrix::with_values(Array<real> values) const {
  require<ShapeError>(static_cast<Index>(values.size()) == num_stored(), values.size(),
                      " values for sparse rows that store ", num_stored());
  std::shared_ptr<SparseMatrix> copy(new SparseMatrix(shape(), offsets_, *this));
  copy->all_values_ = std::make_shared<const Array<real>>(std::move(values));
  copy->values_ = *copy->all_values_;
  return copy;
}

std::shared_ptr<const SparseMatrix> SparseMatrix::slice(Index begin, Index end) const {
  require<ShapeError>(0 <= begin && begin <= end && end <= num_rows(), "rows ", begin, " to ", end,
                      " of sparse rows of shape ", shape());
  auto offsets = std::make_shared<Array<Index>>(offsets_->begin() + begin, offsets_->begin() + end + 1);
  const Index first = offsets->front(), count = offsets->back() - first;
  for (Index& offset : *offsets) offset -= first;
  std::shared_ptr<SparseMatrix> rows(
      new SparseMatrix(shape().with_rows(end - begin), std::move(offsets), *this));
  rows->columns_ = columns_.subspan(first, count);
  rows->values_ = values_.subspan(first, count);
  return rows;
}

std::shared_ptr<const SparseMatrix> SparseMatrix::gather(std::span<const Index> rows) const {
  auto offsets = std::make_shared<Array<Index>>(rows.size() + 1, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    require<ShapeError>(0 <= rows[i] && rows[i] < num_rows(), "row number ", rows[i], " at position ", i,
                        " for sparse rows of shape ", shape());
    (*offsets)[i + 1] = (*offsets)[i] + (*offsets_)[rows[i] + 1] - (*offsets_)[rows[i]];
  }
  const auto columns = std::make_shared<Array<std::int32_t>>(offsets->back());
  const auto values = std::make_shared<Array<real>>(offsets->back());
  parallel_for_each(std::ssize(rows), sparse_grain, [&](Index i) {
    const Index from = (*offsets_)[rows[i]], to = (*offsets)[i], count = (*offsets)[i + 1] - to;
    std::copy_n(columns_.begin() + from, count, columns->begin() + to);
    std::copy_n(values_.begin() + from, count, values->begin() + to);
  });
  std::shared_ptr<SparseMatrix> gathered(
      new SparseMatrix(shape().with_rows(std::ssize(rows)), std::move(offsets), *this));
  gathered->all_columns_ = columns;
  gathered->all_values_ = values;
  gathered->columns_ = *columns;
  gathered->values_ = *values;
  return gathered;
}

void SparseMatrix::compute(Index first, Index count, real* out) const {
  std::fill_n(out, count * num_columns(), real{0});
  for (Index i = first; i < first + count; ++i, out += num_columns())
    for (Index k = (*offsets_)[i]; k < (*offsets_)[i + 1]; ++k) out[columns_[k]] = values_[k];
}

}}  // namespace sar
