// SPDX-License-Identifier: MIT

// Each rank picks its labelled rows, and one all_gather each for scores and labels gives all ranks the rows
// of all. O(n C) time, O(M C) bytes on each rank for the M rows of all.
#include <sar/nn/train/row_labels.hpp>
#include <sar/nn/train/row_metric.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr double no_rows = std::numeric_limits<double>::quiet_NaN();

/// Returns the chosen rows of all ranks, in rank order. Collective.
Tensor gather_chosen(const Tensor& from, const Array<Index>& rows, const Communicator& comm) {
  const Index width = from.row_size();
  Tensor chosen({std::ssize(rows), width});
  for (Index i = 0; i < chosen.num_rows(); ++i) std::copy_n(from.row(rows[i]), width, chosen.row(i));
  const std::vector<real> values = comm.all_gather(std::span<const real>(chosen.values()));
  Tensor all({width == 0 ? 0 : std::ssize(values) / width, width});
  std::ranges::copy(values, all.data());
  return all;
}

}  // namespace

double metric_of_all_rows(const Tensor& scores, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const Communicator& comm,
                          FunctionRef<double(const Tensor&, std::span<const std::int64_t>)> metric) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("metric_of_all_rows").equal("number of classes", scores.shape()));
    require_rows(scores.shape(), labels, mask);
    const Array<std::int32_t> targets = targets_of(labels, mask, scores.row_size());
    Array<Index> rows;
    Array<std::int64_t> mine;
    for (Index i = 0; i < scores.num_rows(); ++i)
      if (targets[i] >= 0) {
        rows.push_back(i);
        mine.push_back(labels[i]);
      }
    const std::vector<std::int64_t> all = comm.all_gather(std::span<const std::int64_t>(mine));
    const Tensor all_scores = gather_chosen(scores, rows, comm);
    return all.empty() ? no_rows : metric(all_scores, all);
  });
}

double metric_of_all_rows(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                          const Communicator& comm,
                          FunctionRef<double(const Tensor&, const Tensor&)> metric) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("metric_of_all_rows").equal("number of columns", scores.shape()));
    require_target_rows("metric_of_all_rows", scores, targets, mask);
    Array<Index> rows;
    for (Index i = 0; i < targets.num_rows(); ++i) {
      bool labelled = false;
      for (Index c = 0; c < targets.row_size(); ++c) labelled |= is_labelled(mask, targets, i, c);
      if (labelled) rows.push_back(i);
    }
    const Tensor all_targets = gather_chosen(targets, rows, comm);
    const Tensor all_scores = gather_chosen(scores, rows, comm);
    return all_targets.num_rows() == 0 ? no_rows : metric(all_scores, all_targets);
  });
}

}}  // namespace sar
