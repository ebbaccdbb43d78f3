// SPDX-License-Identifier: MIT

// compute() copies row by row and prefetches the row 8 positions ahead. Bytes moved: each gathered row is
// read once from the table and written to the caller's buffer, in the cache. The constructor checks all
// ids in parallel, once.
#include <sar/autograd/gathered_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {

void GatheredTable::detach() {
  const TypedRows own = GatheredRows(table, ids).stored();
  std::vector<Index> numbers(static_cast<std::size_t>(own.num_rows()));
  std::iota(numbers.begin(), numbers.end(), Index{0});
  table = own;
  ids = RowIds(std::move(numbers));
}

GatheredRows::GatheredRows(TypedRows table, RowIds ids)
    : DeferredRows(table.shape().with_rows(ids.size()), table.type()),
      source_(std::make_shared<GatheredTable>(GatheredTable{std::move(table), std::move(ids)})) {
  constexpr Index grain = 1 << 16;
  const Index num_rows = source_->table.num_rows();
  const std::span<const Index> numbers = rows();
  parallel_for_each(std::ssize(numbers), grain, [&](Index i) {
    require<ShapeError>(0 <= numbers[i] && numbers[i] < num_rows, "row number ", numbers[i], " at position ",
                        i, " for a tensor of ", num_rows, " rows");
  });
}

GatheredRows::GatheredRows(const GatheredRows& all, Index begin, Index end)
    : DeferredRows(all.shape().with_rows(end - begin), all.type()),
      source_(all.source_),
      begin_(all.begin_ + static_cast<std::size_t>(begin)) {}

std::shared_ptr<const GatheredRows> GatheredRows::slice(Index begin, Index end) const {
  require<ShapeError>(0 <= begin && begin <= end && end <= std::ssize(rows()), "rows ", begin, " to ", end,
                      " of a tensor of shape ", shape());
  return std::shared_ptr<const GatheredRows>(new GatheredRows(*this, begin, end));
}

void GatheredRows::compute(Index first, Index count, real* out) const {
  constexpr Index ahead = 8;  // prefetch distance in rows
  const TypedRows& table = source_->table;
  const std::span<const Index> numbers = rows();
  const Index width = table.row_size(), bytes = width * bytes_of(table.type());
  for (Index i = first; i < first + count; ++i, out += width) {
    if (i + ahead < first + count) prefetch_lines<0, 3>(table.at(numbers[i + ahead] * width), bytes);
    const Index at = numbers[i] * width;
    if (table.is_bfloat16())
      widen(table.bfloat16() + at, width, out);
    else
      std::copy_n(table.reals().data() + at, width, out);
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
