/// Dropout with masks that do not depend on the number of ranks and need not be stored.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/core/random.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/module.hpp>

namespace sar::inline SAR_PRECISION {

/// In training, each element becomes 0 with probability p, and is divided by 1 - p otherwise; in evaluation,
/// nothing happens (Srivastava et al. 2014). The draws of one call depend on the seed, on the module's
/// stream, on the number of training calls before, and on the row's original id; they are the same for every P.
class Dropout : public Module {
 public:
  /// Throws InputError unless 0 <= p < 1.
  Dropout(double p, Generator& gen);

  /// x [n, ...] and the original ids of its n rows, for example graph.src_ids() (see RowIds for who keeps them
  /// alive).
  /// Throws ShapeError when the numbers differ.
  [[nodiscard]] Variable operator()(Variable x, RowIds row_ids);

  [[nodiscard]] double p() const noexcept { return p_; }
  /// True when a call would change something: training and p > 0.
  [[nodiscard]] bool is_active() const noexcept { return is_training() && p_ > 0; }
  /// For operations that drop elements themselves: the key of the next call, which this counts.
  RandomKey next_call() noexcept;

 private:
  double p_;
  RandomKey key_;
  std::uint64_t calls_ = 0;  // registered as the counter "calls"
};

}  // namespace sar
