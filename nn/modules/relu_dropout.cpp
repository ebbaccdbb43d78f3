#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/nn/modules/relu_dropout.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids) {
  if (!dropout.is_active()) return relu(std::move(x));
  const Transaction transaction;
  const DropoutMask mask(dropout.next_call(), dropout.p());
  require<ShapeError>(row_ids.size() == x.num_rows(), "dropout of a tensor of shape ", x.shape(), " with ",
                      row_ids.size(), " row ids into one of shape ", x.shape());
  const bool recorded = recording({&x});
  TypedRows y = compute_elementwise(x.take_rows(), [&](Index first, Tensor& out, const Tensor& in) {
    const auto ids =
        row_ids.span().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(in.num_rows()));
    mask.apply_to_relu(in, ids, out);
  });
  if (!recorded) return y;
  return record(y, [dx = x.gradient(), y, scale = mask.keep_scale()](TypedRows grad) {
    pass_elementwise(
        *dx, std::move(grad),
        [&](Index, Tensor& out, bool accumulate, const Tensor& g, const Tensor& of_y) {
          relu_dropout_backward(of_y, scale, g, out, accumulate);
        },
        y);
  });
}

}}  // namespace sar
