// SPDX-License-Identifier: MIT
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/gather_mm.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/gather_mm.hpp>
#include <sar/core/rows/rows.hpp>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// to[t] += the sum of a[i]^T b[i] over the rows i of type t on all ranks. Blocks outside of the diagonal are
/// computed and dropped.
void add_products_by_type(const RankSums& sums, Gradient& to, const TypeGroups& groups, const Tensor& a,
                          const Tensor& b) {
  const Shape& shape = to.shape();
  const Index in = a.row_size(), out = b.row_size(), blocks = shape.dims() == 4 ? shape[1] : 1;
  const NumberType type = sums.is_of_chunk() ? NumberType::exact_sums : NumberType::reals;
  TypedRows total(shape, type);
  Index at = 0;  // of the next number
  for (Index t = 0; t < shape[0]; ++t) {
    std::vector<Index> rows(groups.begin[t + 1] - groups.begin[t]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Index row = groups.begin[t] + static_cast<Index>(i);
      rows[i] = groups.rows.empty() ? row : groups.rows[row];
    }
    Tensor of_a({std::ssize(rows), in}), of_b({std::ssize(rows), out});
    gather_rows(a, rows, of_a);
    gather_rows(b, rows, of_b);
    const TypedRows all = row_products(sums, of_a, of_b);
    for (Index block = 0; block < blocks; ++block)
      for (Index i = block * in / blocks; i < (block + 1) * in / blocks; ++i)
        for (Index j = block * out / blocks; j < (block + 1) * out / blocks; ++j)
          std::memcpy(total.at(at++), all.at(i * out + j), static_cast<std::size_t>(bytes_of(type)));
  }
  to.add(std::move(total));
}

}  // namespace

Variable gather_mm(Variable x, Variable w, std::span<const Index> types) {
  const Shape& shape = w.shape();
  require<ShapeError>(x.shape().dims() == 2 && (shape.dims() == 3 || shape.dims() == 4) &&
                          static_cast<Index>(types.size()) == x.num_rows(),
                      "gather_mm: x of shape ", x.shape(), ", w of shape ", shape, ", ", types.size(),
                      " types");
  if (any_dual({&x, &w}))
    return apply_bilinear(x, w, [&](const Variable& a, const Variable& b) { return gather_mm(a, b, types); });
  const auto groups = std::make_shared<const TypeGroups>(types, w.num_rows());
  Tensor y({x.num_rows(), shape.dims() == 4 ? shape[1] * shape[3] : shape[2]});
  gather_mm(x.value(), w.value(), *groups, y);
  if (!recording({&x, &w})) return y;
  return record(std::move(y), [groups, sums = rank_sums(), dx = x.gradient(), dw = w.gradient(),
                               kept_x = w.requires_grad() ? x.value() : Tensor(),
                               kept_w = x.requires_grad() ? w.value() : Tensor()](const Tensor& grad) {
    if (dw != nullptr && sums != nullptr)
      add_products_by_type(*sums, *dw, *groups, kept_x, grad);
    else if (dw != nullptr)
      dw->add([&](Tensor& out, bool accumulate) { gather_mm_tn(kept_x, grad, *groups, out, accumulate); });
    if (dx != nullptr)
      dx->add([&](Tensor& out, bool accumulate) { gather_mm_nt(grad, kept_w, *groups, out, accumulate); });
  });
}

Variable bmm(Variable x, Variable w) {
  const RankSumsScope of_this_rank(nullptr);  // each matrix belongs to a row
  std::vector<Index> each(x.num_rows());
  std::iota(each.begin(), each.end(), 0);
  return gather_mm(std::move(x), std::move(w), each);
}

}}  // namespace sar
