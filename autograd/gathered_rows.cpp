// SPDX-License-Identifier: MIT

// compute() copies row by row and prefetches the row 8 positions ahead. Bytes moved: each gathered row is
// read once from the table and written to the caller's buffer, in the cache. The constructor checks all
// ids in parallel, once.
#include <sar/autograd/gathered_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/simd/prefetch.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

GatheredRows::GatheredRows(TypedRows table, RowIds ids)
    : DeferredRows(table.shape().with_rows(ids.size()), table.type()),
      table_(std::move(table)),
      ids_(std::move(ids)),
      rows_(ids_.span()) {
  constexpr Index grain = 1 << 16;
  const Index num_rows = table_.num_rows();
  parallel_for_each(ids_.size(), grain, [&](Index i) {
    require<ShapeError>(0 <= rows_[i] && rows_[i] < num_rows, "row number ", rows_[i], " at position ", i,
                        " for a tensor of ", num_rows, " rows");
  });
}

GatheredRows::GatheredRows(const GatheredRows& all, Index begin, Index end)
    : DeferredRows(all.shape().with_rows(end - begin), all.type()),
      table_(all.table_),
      ids_(all.ids_),
      rows_(all.rows_.subspan(begin, end - begin)) {}

std::shared_ptr<const GatheredRows> GatheredRows::slice(Index begin, Index end) const {
  require<ShapeError>(0 <= begin && begin <= end && end <= std::ssize(rows_), "rows ", begin, " to ", end,
                      " of a tensor of shape ", shape());
  return std::shared_ptr<const GatheredRows>(new GatheredRows(*this, begin, end));
}

void GatheredRows::compute(Index first, Index count, real* out) const {
  constexpr Index ahead = 8;  // prefetch distance in rows
  const Index width = table_.row_size(), bytes = width * bytes_of(table_.type());
  for (Index i = first; i < first + count; ++i, out += width) {
    if (i + ahead < first + count) prefetch_lines<0, 3>(table_.at(rows_[i + ahead] * width), bytes);
    const Index at = rows_[i] * width;
    if (table_.is_bfloat16())
      widen(table_.bfloat16() + at, width, out);
    else
      std::copy_n(table_.reals().data() + at, width, out);
  }
}

std::shared_ptr<const GatheredRows> gathered_rows(const Variable& x) {
  return std::dynamic_pointer_cast<const GatheredRows>(x.deferred());
}

Variable deferred_gather_rows(TypedRows x, RowIds ids) {
  require<ShapeError>(x.defined(), "deferred_gather_rows of an undefined tensor");
  return Variable(std::make_shared<const GatheredRows>(std::move(x), std::move(ids)));
}
}}  // namespace sar
