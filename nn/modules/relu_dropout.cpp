#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/nn/modules/relu_dropout.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids) {
  if (!dropout.is_active()) return relu(std::move(x));
  const Transaction transaction;
  const DropoutMask mask(dropout.next_call(), dropout.p());
  const bool recorded = recording({&x});
  Tensor y = compute_elementwise(
      take_value(x), [&](const Tensor& in, Tensor& out) { mask.apply_to_relu(in, row_ids.span(), out); });
  if (!recorded) return y;
  return record(y, [dx = x.gradient(), y, scale = mask.keep_scale()](Tensor grad) {
    pass_elementwise(*dx, std::move(grad), [&](const Tensor& g, Tensor& out, bool accumulate) {
      relu_dropout_backward(y, scale, g, out, accumulate);
    });
  });
}

}}  // namespace sar
