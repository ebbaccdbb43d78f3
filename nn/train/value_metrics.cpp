// SPDX-License-Identifier: MIT

// Sums of errors over the labelled elements of each column, added over the ranks in double precision; R^2
// takes a second pass around the mean of all ranks. O(n T) time, 32 bytes for each column.
#include <sar/comm/exact_sums.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/row_labels.hpp>
#include <sar/nn/train/value_metrics.hpp>

#include <algorithm>
#include <limits>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Calls use(target, error, column) for each labelled element.
template <class Use>
void for_each_error(const Tensor& predictions, const Tensor& targets, std::span<const std::uint8_t> mask,
                    const Use& use) {
  for (Index i = 0; i < targets.num_rows(); ++i)
    for (Index c = 0; c < targets.row_size(); ++c) {
      if (!is_labelled(mask, targets, i, c)) continue;
      const auto target = static_cast<double>(targets.row(i)[c]);
      use(target, static_cast<double>(predictions.row(i)[c]) - target, c);
    }
}

/// The sums of one column over all ranks.
struct ColumnSums {
  double count, targets, absolute, squared;
};

/// Returns the sums of each column. Collective.
Array<ColumnSums> sum_errors(const char* name, const Tensor& predictions, const Tensor& targets,
                             std::span<const std::uint8_t> mask, const Communicator& comm) {
  require_target_rows(name, predictions, targets, mask);
  const auto width = static_cast<std::size_t>(targets.row_size());
  std::vector<ExactSum> sums(4 * width);
  for_each_error(predictions, targets, mask, [&](double target, double error, Index c) {
    ExactSum* of = sums.data() + 4 * c;
    of[0].add(1);
    of[1].add(target);
    of[2].add(std::abs(error));
    of[3].add(error * error);
  });
  sums = exact_sum_over_ranks(comm, sums);
  Array<ColumnSums> columns;
  for (std::size_t c = 0; c < width; ++c)
    columns.push_back(
        {sums[4 * c].value(), sums[4 * c + 1].value(), sums[4 * c + 2].value(), sums[4 * c + 3].value()});
  return columns;
}

/// Returns the mean of value(c) over the columns with at least `least` targets.
double mean_of(const Array<ColumnSums>& columns, double least, FunctionRef<double(Index)> value) {
  double sum = 0;
  Index count = 0;
  for (Index c = 0; c < std::ssize(columns); ++c) {
    if (columns[c].count < least) continue;
    sum += value(c);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double mean_error(const char* name, const Tensor& predictions, const Tensor& targets,
                  std::span<const std::uint8_t> mask, const Communicator& comm,
                  FunctionRef<double(const ColumnSums&)> value) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall(name).equal("number of columns", predictions.shape()));
    const Array<ColumnSums> columns = sum_errors(name, predictions, targets, mask, comm);
    return mean_of(columns, 1, [&](Index c) { return value(columns[c]); });
  });
}

}  // namespace

double mean_absolute_error(const Tensor& predictions, const Tensor& targets,
                           std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("mean_absolute_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return sums.absolute / sums.count; });
}

double mean_squared_error(const Tensor& predictions, const Tensor& targets,
                          std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("mean_squared_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return sums.squared / sums.count; });
}

double root_mean_squared_error(const Tensor& predictions, const Tensor& targets,
                               std::span<const std::uint8_t> mask, const Communicator& comm) {
  return mean_error("root_mean_squared_error", predictions, targets, mask, comm,
                    [](const ColumnSums& sums) { return std::sqrt(sums.squared / sums.count); });
}

double r2_score(const Tensor& predictions, const Tensor& targets, std::span<const std::uint8_t> mask,
                const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm,
                             CollectiveCall("r2_score").equal("number of columns", predictions.shape()));
    const Array<ColumnSums> columns = sum_errors("r2_score", predictions, targets, mask, comm);
    std::vector<ExactSum> deviations(columns.size());
    for_each_error(predictions, targets, mask, [&](double target, double, Index c) {
      const double d = target - columns[c].targets / columns[c].count;
      deviations[static_cast<std::size_t>(c)].add(d * d);
    });
    deviations = exact_sum_over_ranks(comm, deviations);
    return mean_of(columns, 2, [&](Index c) {
      const double deviation = deviations[static_cast<std::size_t>(c)].value();
      if (deviation > 0) return 1 - columns[c].squared / deviation;
      return columns[c].squared == 0 ? 1.0 : 0.0;
    });
  });
}

}}  // namespace sar
