/// Normalization of fields by the mean and the deviation of all rows that were seen.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/module.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// For columns of different units, before and after a network:
///
///     Normalizer of_state(4, comm);
///     of_state.update(state);                               // once, or in every step that brings new rows
///     y = of_state.inverse(net(graph, of_state(state)));
///
///     normalized_ij = (x_ij - mean_j) / std_j        inverse_ij = x_ij std_j + mean_j
///
/// mean_j and std_j (biased) are those of all rows of all ranks in all updates, as if they had come at once:
/// merged without cancellation, the same bits on every rank. A column is constant when its deviation is not
/// above the rounding error of its mean; there std_j is 1, so that normalized values are 0. Before the first
/// update, both functions are the identity.
///
/// Buffers, which files of weights and checkpoints keep: mean and std [features], and the digits of both that
/// do not fit in `real`, mean_low and std_low. Counter, in state_dict(), too: count, the number of rows.
class Normalizer : public Module {
 public:
  /// Throws InputError unless num_features > 0.
  Normalizer(Index num_features, const Communicator& comm);

  /// Adds the rows x [n, num_features] of all ranks; a rank may have none. Throws, and changes nothing,
  /// ShapeError for another width and InputError for a column with a value that is not finite. Collective.
  void update(const Tensor& x);

  /// x [n, num_features], normalized. Keeps num_features numbers. Throws ShapeError for another width. Local.
  [[nodiscard]] Variable operator()(Variable x) const;
  /// The inverse: inverse((*this)(x)) is x to rounding. Local.
  [[nodiscard]] Variable inverse(Variable x) const;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }  ///< rows; local
  [[nodiscard]] const Tensor& mean() const noexcept { return mean_; }    ///< [num_features]; local
  [[nodiscard]] Tensor std() const;                                      ///< [num_features]; local

 private:
  void check_width(const Shape& shape) const;

  Tensor mean_, mean_low_, std_, std_low_;
  std::uint64_t count_ = 0;
  Communicator comm_;
};

}  // namespace sar
