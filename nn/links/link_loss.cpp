// SPDX-License-Identifier: MIT

// link_bce_with_logits and info_nce are losses of nn/train/loss.hpp on rearranged scores: one column with
// targets 1 and 0, and rows [positive, its negatives] of class 0. link_margin is a mean over all ranks of
// differences.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/links/link_loss.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/loss.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Variable column(const Variable& scores) {
  return reshape(scores, {scores.shape().size(), 1});
}

/// Returns the negatives as one row per positive: [n, k]. On a rank without positives the result has no rows.
Variable rows_of(const Variable& positive, const Variable& negative, const char* loss) {
  const Index n = positive.shape().size(), m = negative.shape().size();
  require<ShapeError>(n == 0 ? m == 0 : m % n == 0 && m > 0, loss, ": ", m, " negatives for ", n,
                      " positives, expected the same number, 1 or more, for each");
  return reshape(negative, {n, n == 0 ? Index{1} : m / n});
}

}  // namespace

Variable link_bce_with_logits(const Variable& positive, const Variable& negative, const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("link_bce_with_logits"));
    const Variable scores = concat_rows({column(positive), column(negative)});
    Tensor target = Tensor::zeros(scores.shape());
    std::fill_n(target.data(), positive.shape().size(), real{1});
    return bce_with_logits(scores, target, comm);
  });
}

Variable link_margin(const Variable& positive, const Variable& negative, const Communicator& comm,
                     double margin) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("link_margin").equal("margin", margin));
    const Variable rows = rows_of(positive, negative, "link_margin");
    return mean(relu(rows - column(positive) + static_cast<real>(margin)), comm);
  });
}

Variable info_nce(const Variable& positive, const Variable& negative, const Communicator& comm,
                  double temperature) {
  return comm.agree([&] {
    require<InputError>(temperature > 0, "info_nce: the temperature is ", temperature,
                        ", expected a positive number");
    const Variable rows = concat_columns({column(positive), rows_of(positive, negative, "info_nce")});
    const auto n = static_cast<std::size_t>(rows.num_rows());
    const std::vector<std::int64_t> first(n, 0);
    const std::vector<std::uint8_t> all(n, 1);
    return cross_entropy(rows * static_cast<real>(1 / temperature), first, all, comm,
                         CollectiveCall("info_nce").equal("temperature", temperature));
  });
}

}}  // namespace sar
