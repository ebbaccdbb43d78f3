// SPDX-License-Identifier: MIT
#include <sar/autograd/layout.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/exact_product.hpp>
#include <sar/core/rows/reduce.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Rows with a 1 in each of their columns `ids`, the same number in each row.
class UnitRows final : public DeferredRows {
 public:
  UnitRows(Index rows, std::span<const Index> ids, Index columns)
      : DeferredRows(Shape{rows, columns}), ids_(ids), ones_(rows == 0 ? 0 : std::ssize(ids) / rows) {}
  void compute(Index first, Index count, real* out) const override {
    std::fill_n(out, count * shape()[1], real{0});
    for (Index i = 0; i < count * ones_; ++i) out[i / ones_ * shape()[1] + ids_[first * ones_ + i]] += 1;
  }
  [[nodiscard]] std::span<const std::byte> reads(Index, Index) const override { return {}; }

 private:
  std::span<const Index> ids_;
  Index ones_;
};

/// value(i) on the first rank, 0 on others
template <class Value>
Tensor on_first(const RankSums& sums, const Shape& shape, const Value& value) {
  Tensor total(shape);
  for (Index i = 0; i < total.size(); ++i)
    total.data()[i] = sums.is_first() ? static_cast<real>(value(i)) : 0;
  return total;
}

}  // namespace

Tensor row_sums(const RankSumsPtr& sums, const Shape& result, const Tensor& terms) {
  const Shape& shape = terms.shape();
  if (sums == nullptr || shape.dims() == 0) return {};
  const int missing = shape.dims() - result.dims();
  if (missing == 0 && (result[0] != 1 || shape[0] == 1)) return {};
  std::vector<Index> extents{shape[0]};  // a row of the result for each row of the terms
  for (int d = 1; d < shape.dims(); ++d) extents.push_back(d < missing ? 1 : result[d - missing]);
  Tensor rows = terms;
  if (Shape(extents) != shape) {
    rows = Tensor{Shape(extents)};
    sum_to(terms, rows);
  }
  Tensor total;
  sums->agree([&] {
    const std::vector<double> totals =
        exact_column_sums(*sums, RowOperand(rows.reshape({rows.num_rows(), result.size()})));
    total = on_first(*sums, result, [&](Index i) { return totals[static_cast<std::size_t>(i)]; });
  });
  return total;
}

void add_row_products(const RankSums& sums, const GradientPtr& dw, const GradientPtr& db, const RowOperand& a,
                      const RowOperand& b, bool transposed) {
  const Index k = dw != nullptr ? a.row_size() : 0, m = b.row_size();
  sums.agree([&] {
    const std::vector<double> products =
        dw != nullptr ? exact_products(sums, &a, b, db != nullptr) : exact_column_sums(sums, b);
    if (dw != nullptr)
      dw->add(
          on_first(sums, dw->shape(), [&](Index i) { return products[transposed ? i % k * m + i / k : i]; }));
    if (db != nullptr) db->add(on_first(sums, db->shape(), [&](Index j) { return products[k * m + j]; }));
  });
}

Tensor row_products(const RankSums& sums, const RowOperand& a, const RowOperand& b) {
  Tensor result;
  sums.agree([&] {
    const std::vector<double> products = exact_products(sums, &a, b, false);
    result = on_first(sums, {a.row_size(), b.row_size()}, [&](Index i) { return products[i]; });
  });
  return result;
}

Variable gather_shared_rows(const Variable& table, RowIds ids) {
  if (rank_sums() == nullptr || table.is_dual() || !recording({&table}))
    return gather_rows(table, std::move(ids));
  Variable y = gather_rows(table.detach(), ids);
  return record(y.value(), [ids, sums = rank_sums(), to = table.gradient()](const Tensor& grad) {
    add_rows_by_id(*sums, to, ids.span(), grad);
  });
}

void add_rows_by_id(const RankSums& sums, const GradientPtr& to, std::span<const Index> ids,
                    const Tensor& rows) {
  const UnitRows units(rows.num_rows(), ids, to->shape()[0]);
  const Tensor flat = rows.reshape({rows.num_rows(), rows.row_size()});
  to->add(row_products(sums, RowOperand(units), flat).reshape(to->shape()));
}
}}  // namespace sar
