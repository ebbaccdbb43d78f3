// SPDX-License-Identifier: MIT

/// Normalization of features by the mean and deviation of all rows seen so far.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Normalizes columns of different units before a network and restores the units after it:
///
/// @code
/// Normalizer of_state(4, comm);
/// const Tensor state = Tensor::full({graph.num_nodes(), 4}, 1e5);
/// of_state.update(state);                               // once, or in every step with new rows
/// GraphConv net(4, 4, gen);
/// const Variable y = of_state.inverse(net(graph, of_state(state)));
/// @endcode
///
///     normalized_ij = (x_ij - mean_j) / std_j        inverse_ij = x_ij std_j + mean_j
///
/// mean_j and std_j (biased) are taken over all rows of all ranks in all updates. They are merged without
/// cancellation, with the same bits on every rank. A column counts as constant if its deviation is not above
/// the rounding error of its mean; its std_j is 1, so that normalized values are 0. Before the first update,
/// both functions are the identity.
///
/// Buffers, saved in weight files and checkpoints: mean and std [features], and mean_low and std_low, the
/// digits of both that do not fit in `real`. Counter, also part of state_dict(): count, the number of rows.
class Normalizer : public Module {
 public:
  /// Throws InputError unless num_features > 0.
  Normalizer(Index num_features, const Communicator& comm);

  /// Collective. Adds the rows x [n, num_features] of all ranks; a rank may have none. Throws ShapeError if
  /// the width does not match and InputError for a value that is not finite, and then changes nothing.
  void update(const Tensor& x);

  /// Local. Returns the normalized rows of x [n, num_features]. The backward pass keeps num_features
  /// values. Throws ShapeError if the width does not match.
  [[nodiscard]] Variable operator()(Variable x) const;
  /// Local. Returns the inverse: inverse((*this)(x)) is x up to rounding.
  [[nodiscard]] Variable inverse(Variable x) const;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }  ///< number of rows; local
  [[nodiscard]] const Tensor& mean() const noexcept { return mean_; }    ///< [num_features]; local
  [[nodiscard]] Tensor std() const;                                      ///< [num_features]; local

 private:
  void check_width(const Shape& shape) const;

  Tensor mean_, mean_low_, std_, std_low_;
  Recoverable<std::uint64_t> count_;
  Communicator comm_;
};

}}  // namespace sar
