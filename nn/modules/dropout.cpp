// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/dropout.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Dropout::Dropout(double p, Generator& gen) : p_(p), key_(gen.next_stream()) {
  require<InputError>(p >= 0 && p < 1, "the dropout probability is ", p,
                      ", expected 0 or more and less than 1");
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

}}  // namespace sar
