// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/normalizer.hpp>
#include <sar/nn/modules/rank_moments.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Deviations below this fraction of the mean are rounding errors of the values or of their double precision
/// moments.
constexpr double resolution =
    std::max<double>(std::numeric_limits<real>::epsilon(), 16 * std::numeric_limits<double>::epsilon());

double joined(const Tensor& high, const Tensor& low, Index j) {
  return static_cast<double>(high.data()[j]) + static_cast<double>(low.data()[j]);
}

void split(double value, Tensor& high, Tensor& low, Index j) {
  high.data()[j] = static_cast<real>(value);
  low.data()[j] = static_cast<real>(value - static_cast<double>(high.data()[j]));
}

}  // namespace

Normalizer::Normalizer(Index num_features, const Communicator& comm) : comm_(comm) {
  require<InputError>(num_features > 0, "Normalizer of ", num_features, " features, expected 1 or more");
  mean_ = Tensor::zeros({num_features});
  mean_low_ = Tensor::zeros({num_features});
  std_ = Tensor::full({num_features}, 1);
  std_low_ = Tensor::zeros({num_features});
  register_buffer("mean", mean_);
  register_buffer("mean_low", mean_low_);
  register_buffer("std", std_);
  register_buffer("std_low", std_low_);
  register_counter("count", count_, /*in_state_dict=*/true);
}

void Normalizer::check_width(const Shape& shape) const {
  require<ShapeError>(shape.dims() == 2 && shape[1] == mean_.size(), "Normalizer of ", mean_.size(),
                      " features got a tensor of shape ", shape);
}

void Normalizer::update(const Tensor& x) {
  comm_.agree([&] {
    check_width(x.shape());
    const CallScope compared(comm_,
                             CollectiveCall("Normalizer::update").equal("number of features", mean_.size()));
    ColumnMoments all{static_cast<double>(count_), std::vector<double>(mean_.size()),
                       std::vector<double>(mean_.size())};
    for (Index j = 0; j < mean_.size(); ++j) {
      all.mean[j] = joined(mean_, mean_low_, j);
      const double deviation = joined(std_, std_low_, j);
      all.m2[j] = deviation * deviation * all.count;
    }
    all.merge(merge_over_ranks(comm_, column_moments(x)));
    for (Index j = 0; j < mean_.size(); ++j)
      require<InputError>(std::isfinite(all.mean[j]) && std::isfinite(all.m2[j]), "Normalizer: column ", j,
                          " has a value that is not finite");
    if (all.count == 0) return;
    for (const Tensor& buffer : {mean_, mean_low_, std_, std_low_}) buffer.save();
    count_ = static_cast<std::uint64_t>(all.count);
    for (Index j = 0; j < mean_.size(); ++j) {
      split(all.mean[j], mean_, mean_low_, j);
      split(std::sqrt(all.m2[j] / all.count), std_, std_low_, j);
    }
  });
}

Tensor Normalizer::std() const {
  Tensor result(mean_.shape());
  for (Index j = 0; j < mean_.size(); ++j) {
    const double deviation = joined(std_, std_low_, j);
    const double rounding = std::abs(joined(mean_, mean_low_, j)) * resolution;
    result.data()[j] = deviation > rounding ? static_cast<real>(deviation) : real{1};
  }
  return result;
}

Variable Normalizer::operator()(Variable x) const {
  check_width(x.shape());
  return sub(sub(std::move(x), mean_.clone()), mean_low_.clone()) / Variable(std());
}

Variable Normalizer::inverse(Variable x) const {
  check_width(x.shape());
  return std::move(x) * Variable(std()) + Variable(mean_low_.clone()) + Variable(mean_.clone());
}

}}  // namespace sar
