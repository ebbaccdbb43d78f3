// SPDX-License-Identifier: MIT

// A row of the product is a sum of rows of W [in, out], so a weight [out, in] is transposed first, and its
// gradient afterwards: 2 in out numbers moved, for 2 s out operations with s stored values.
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sparse_products.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/products/sparse_product.hpp>
#include <sar/core/rows/reduce.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the weight as [in, out].
Tensor by_inputs(const Tensor& weight, bool out_in) {
  if (!out_in) return weight;
  Tensor transposed({weight.row_size(), weight.num_rows()});
  transpose(weight, transposed);
  return transposed;
}

/// dw += x^T grad in the layout of the weight.
void add_weight_gradient(Gradient& dw, const SparseMatrix& x, const Tensor& grad, bool out_in) {
  dw.add([&](Tensor& sum, bool accumulate) {
    if (!out_in) return sparse_matmul_tn(x, grad, sum, accumulate);
    Tensor transposed({x.num_columns(), grad.row_size()});
    sparse_matmul_tn(x, grad, transposed);
    transpose(transposed, sum, accumulate);
  });
}

}  // namespace

Variable sparse_linear(std::shared_ptr<const SparseMatrix> x, const Variable& weight, const Variable& bias,
                       bool out_in) {
  const Tensor w = by_inputs(weight.value(), out_in);
  Tensor y({x->num_rows(), w.row_size()});
  bias.defined() ? sparse_matmul(*x, w, bias.value(), y) : sparse_matmul(*x, w, y);
  if (!recording({&weight, &bias})) return y;
  return record(std::move(y), [x = std::move(x), dw = weight.gradient(), db = bias.gradient(), out_in,
                               sums = rank_sums()](const Tensor& grad) {
    if (sums != nullptr) return add_row_products(*sums, dw, db, *x, grad, out_in);
    if (dw != nullptr) add_weight_gradient(*dw, *x, grad, out_in);
    if (db == nullptr) return;
    Tensor bias_gradient(db->shape());
    sum_to(grad, bias_gradient);
    db->add(std::move(bias_gradient));
  });
}

Variable add_sparse_linear(Variable base, std::shared_ptr<const SparseMatrix> x, const Variable& weight) {
  const bool recorded = recording({&base, &weight});
  const GradientPtr dbase = base.gradient();
  Tensor y = take_value(base);
  if (!y.unique()) y = y.clone();
  sparse_matmul(*x, by_inputs(weight.value(), true), y, true);
  if (!recorded) return y;
  return record(std::move(y),
                [x = std::move(x), dbase, dw = weight.gradient(), sums = rank_sums()](Tensor grad) {
                  if (dw != nullptr && sums != nullptr)
                    add_row_products(*sums, dw, nullptr, *x, grad, true);
                  else if (dw != nullptr)
                    add_weight_gradient(*dw, *x, grad, true);
                  if (dbase != nullptr) dbase->add(std::move(grad));
                });
}

}}  // namespace sar
