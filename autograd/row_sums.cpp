// SPDX-License-Identifier: MIT
#include <sar/autograd/layout.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/exact_product.hpp>
#include <sar/core/rows/rows.hpp>

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

 private:
  std::span<const Index> ids_;
  Index ones_;
};

/// a^T b and, behind it, the column sums of b: of the rows of all ranks, rounded to double, or of a chunk.
std::vector<ExactSum> products_of(const RankSums& sums, const RowOperand* a, const RowOperand& b,
                                  bool column_sums) {
  if (sums.is_of_chunk()) return exact_products_of_chunk(a, b, column_sums);
  std::vector<ExactSum> totals;
  for (const double total :
       a != nullptr ? exact_products(sums, *a, b, column_sums) : exact_column_sums(sums, b))
    totals.push_back({total, 0});
  return totals;
}

/// total(i): an exact sum of a chunk; rounded on the first rank and 0 on others.
template <class Total>
TypedRows gradient_of(const RankSums& sums, const Shape& shape, const Total& total) {
  TypedRows gradient(shape, sums.is_of_chunk() ? NumberType::exact_sums : NumberType::reals);
  for (Index i = 0; i < gradient.size(); ++i)
    if (ExactSum* const exact = gradient.exact_sums(); exact != nullptr)
      exact[i] = total(i);
    else
      gradient.reals().data()[i] = sums.is_first() ? static_cast<real>(ExactSum(total(i)).value()) : 0;
  return gradient;
}

}  // namespace

TypedRows row_sums(const RankSumsPtr& sums, const Shape& result, const Tensor& terms) {
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
  TypedRows total;
  sums->agree([&] {
    const std::vector<ExactSum> totals =
        products_of(*sums, nullptr, RowOperand(rows.reshape({rows.num_rows(), result.size()})), true);
    total = gradient_of(*sums, result, [&](Index i) { return totals[static_cast<std::size_t>(i)]; });
  });
  return total;
}

void add_row_products(const RankSums& sums, const GradientPtr& dw, const GradientPtr& db, const RowOperand& a,
                      const RowOperand& b, bool transposed) {
  const Index k = dw != nullptr ? a.row_size() : 0, m = b.row_size();
  sums.agree([&] {
    const std::vector<ExactSum> products = products_of(sums, dw != nullptr ? &a : nullptr, b, db != nullptr);
    if (dw != nullptr)
      dw->add(gradient_of(sums, dw->shape(),
                          [&](Index i) { return products[transposed ? i % k * m + i / k : i]; }));
    if (db != nullptr) db->add(gradient_of(sums, db->shape(), [&](Index j) { return products[k * m + j]; }));
  });
}

TypedRows row_products(const RankSums& sums, const RowOperand& a, const RowOperand& b) {
  TypedRows result;
  sums.agree([&] {
    const std::vector<ExactSum> products = products_of(sums, &a, b, false);
    result = gradient_of(sums, {a.row_size(), b.row_size()}, [&](Index i) { return products[i]; });
  });
  return result;
}

void pass_on_sums(const RankSums& sums, OuterGradients& collected) {
  std::vector<std::pair<Gradient*, TypedRows>> gradients;
  std::vector<ExactSum> totals;
  std::vector<double> exact;  // of each gradient, whether a rank has an exact sum
  sums.agree([&] {
    gradients = collected.take();
    const auto count = static_cast<double>(gradients.size());
    std::vector<double> counts{count, -count};
    sums.maximum(counts);
    require<InputError>(counts[0] == -counts[1], "the gradients of ", gradients.size(),
                        " captured variables on this rank, of ", counts[0],
                        " on another: a message function does not compute the same on all ranks");
    for (const auto& [to, rows] : gradients) exact.push_back(rows.exact_sums() != nullptr ? 1 : 0);
    sums.maximum(exact);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (exact[i] == 0) continue;
      TypedRows terms(gradients[i].second.shape(), NumberType::exact_sums);
      add_rows(gradients[i].second, terms, false);
      totals.insert(totals.end(), terms.exact_sums(), terms.exact_sums() + terms.size());
    }
    sums.sum(totals);
  });
  const ExactSum* total = totals.data();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    auto& [to, rows] = gradients[i];
    if (exact[i] > 0) {
      rows = gradient_of(sums, to->shape(), [&](Index k) { return total[k]; });
      total += rows.size();
    }
    to->add(std::move(rows));
  }
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
  if (sums.is_of_chunk()) {
    TypedRows total(to->shape(), NumberType::exact_sums);
    total.set_zero();
    const Index width = rows.row_size(), ones = rows.num_rows() == 0 ? 0 : std::ssize(ids) / rows.num_rows();
    for (Index i = 0; i < rows.num_rows() * ones; ++i)
      for (Index j = 0; j < width; ++j)
        total.exact_sums()[ids[i] * width + j].add(static_cast<double>(rows.row(i / ones)[j]));
    return to->add(std::move(total));
  }
  const UnitRows units(rows.num_rows(), ids, to->shape()[0]);
  const Tensor flat = rows.reshape({rows.num_rows(), rows.row_size()});
  to->add(row_products(sums, RowOperand(units), flat).reshape(to->shape()));
}
}}  // namespace sar
