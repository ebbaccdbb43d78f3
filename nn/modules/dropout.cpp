// SPDX-License-Identifier: MIT
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/nn/modules/dropout.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Dropout::Dropout(double p, Generator& gen) : p_(p) {
  require<InputError>(p >= 0 && p < 1, "the dropout probability is ", p,
                      ", expected 0 or more and less than 1");
  key_ = gen.next_stream();
  register_counter("calls", calls_);
}

RandomKey Dropout::next_call() {
  RandomKey key = key_;
  key.step = calls_.change()++;
  return key;
}

Variable Dropout::operator()(Variable x, RowIds row_ids) {
  if (!is_active()) return x;
  const Transaction transaction;
  return dropout(std::move(x), p_, next_call(), std::move(row_ids));
}

Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids) {
  if (!dropout.is_active()) return relu(std::move(x));
  const Transaction transaction;
  const DropoutMask mask(dropout.next_call(), dropout.p());
  require<ShapeError>(row_ids.size() == x.num_rows(), "dropout of a tensor of shape ", x.shape(), " with ",
                      row_ids.size(), " row ids into one of shape ", x.shape());
  const bool recorded = recording({&x});
  TypedRows in = x.take_rows();
  TypedRows y = rows_for_result(in);
  mask.apply_to_relu(in, row_ids.span(), y);
  if (!recorded) return y;
  return record(y, [dx = x.gradient(), y, scale = mask.keep_scale()](TypedRows grad) {
    pass_rows(*dx, std::move(grad), [&](TypedRows& out, bool accumulate, const TypedRows& g) {
      relu_dropout_backward(y, scale, g, out, accumulate);
    });
  });
}
}}  // namespace sar
