// SPDX-License-Identifier: MIT

/// Learning rate schedules, with the names and formulas of torch.optim.lr_scheduler:
///
///     Adam optimizer(model.named_parameters(), {.lr = 0.01});
///     CosineAnnealingLR schedule(optimizer, {.T_max = 190, .warm_up = LinearLROptions{.total_iters = 10}});
///     for (int epoch = 1; epoch <= 200; ++epoch) {
///       ...                                                // the steps of the epoch
///       schedule.step();                                   // ReduceLROnPlateau: schedule.step(loss)
///       checkpoints.save(epoch, model, optimizer, schedule);
///     }
///
/// The base rate is the optimizer's rate when the schedule is constructed. Everything is local: the same
/// calls on every rank give the same rates.
#pragma once

#include <sar/nn/train/optimizer.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// @code
/// const Linear net(64, 4, gen);
/// SGD optimizer(net.named_parameters(), {.lr = 0.1});
/// CosineAnnealingLR schedule(optimizer, {.T_max = 200, .warm_up = LinearLROptions{.total_iters = 5}});
/// schedule.step();  // after each epoch
/// @endcode
class LRScheduler : NonCopyable {
 public:
  virtual ~LRScheduler() = default;

  /// "StepLR", "CosineAnnealingLR", "LinearLR", "ReduceLROnPlateau"
  [[nodiscard]] virtual std::string kind() const = 0;
  /// Ends an epoch: sets the optimizer's rate for the next one. `metric` is the metric of the epoch; only
  /// ReduceLROnPlateau reads it, and throws InputError if it is NaN.
  virtual void step(double metric = std::numeric_limits<double>::quiet_NaN()) = 0;
  /// Continues with another base rate. Throws InputError unless it is 0 or more.
  virtual void set_base_lr(double lr) = 0;

  /// Returns the state for a checkpoint, besides the optimizer's rate. load_state() restores it; it throws
  /// InputError, and changes nothing, if a value is missing or not a number.
  [[nodiscard]] virtual std::map<std::string, std::string> state() const = 0;
  virtual void load_state(const std::map<std::string, std::string>& state) = 0;

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  [[nodiscard]] Optimizer& optimizer() const noexcept { return optimizer_; }

 private:
  Optimizer& optimizer_;  // must outlive this object
};

/// A linear warm-up from start_factor to end_factor of the base rate over total_iters epochs:
///
///     lr_t = base (start_factor + (end_factor - start_factor) min(t, total_iters) / total_iters)
struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};

/// A schedule whose rate is a function of the number t of completed epochs. With a warm-up, the first
/// total_iters epochs follow LinearLR and t counts from its end (torch's SequentialLR of the two).
class EpochLR : public LRScheduler {
 public:
  void step(double metric = std::numeric_limits<double>::quiet_NaN()) final;
  void set_base_lr(double lr) final;
  [[nodiscard]] std::map<std::string, std::string> state() const final;
  void load_state(const std::map<std::string, std::string>& state) final;

 protected:
  /// Throws InputError for a negative factor, a start_factor of 0 or total_iters below 1.
  EpochLR(Optimizer& optimizer, const std::optional<LinearLROptions>& warm_up);
  /// Sets the rate of the current epoch. Constructors of schedules call it last.
  void apply();

 private:
  [[nodiscard]] virtual double rate(double base, double epoch) const = 0;

  std::optional<LinearLROptions> warm_up_;
  Recoverable<double> base_;
  Recoverable<std::uint64_t> epoch_;
};

struct StepLROptions {
  std::int64_t step_size = 30;
  double gamma = 0.1;
  std::optional<LinearLROptions> warm_up = {};
};

///     lr_t = base gamma^floor(t / step_size)
class StepLR final : public EpochLR {
 public:
  /// Throws InputError unless step_size >= 1 and gamma >= 0.
  explicit StepLR(Optimizer& optimizer, const StepLROptions& options = {});
  [[nodiscard]] std::string kind() const override { return "StepLR"; }

 private:
  [[nodiscard]] double rate(double base, double epoch) const override;
  StepLROptions options_;
};

struct CosineAnnealingLROptions {
  std::int64_t T_max = 100;  ///< number of epochs after the warm-up
  double eta_min = 0;
  std::optional<LinearLROptions> warm_up = {};
};

/// Loshchilov & Hutter, arXiv 1608.03983, without restarts:
///
///     lr_t = eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2
class CosineAnnealingLR final : public EpochLR {
 public:
  /// Throws InputError unless T_max >= 1 and eta_min >= 0.
  explicit CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options = {});
  [[nodiscard]] std::string kind() const override { return "CosineAnnealingLR"; }

 private:
  [[nodiscard]] double rate(double base, double epoch) const override;
  CosineAnnealingLROptions options_;
};

/// A warm-up, followed by its final rate.
class LinearLR final : public EpochLR {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});
  [[nodiscard]] std::string kind() const override { return "LinearLR"; }

 private:
  [[nodiscard]] double rate(double base, double epoch) const override;
  LinearLROptions options_;
};

struct ReduceLROnPlateauOptions {
  enum class Mode { min, max };
  enum class Threshold { rel, abs };
  Mode mode = Mode::min;  ///< whether a smaller or a larger metric is better
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  Threshold threshold_mode = Threshold::rel;
  std::int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;
};

/// Reduces the rate if the metric has not improved for more than `patience` epochs:
///
///     lr <- max(factor lr, min_lr)        unless that changes lr by eps or less
///
/// In mode min, a metric has improved if metric < best (1 - threshold), or metric < best - threshold with
/// Threshold::abs. In mode max it has if metric > best (1 + threshold), or metric > best + threshold. The
/// `cooldown` epochs after a reduction do not count.
class ReduceLROnPlateau final : public LRScheduler {
 public:
  /// Throws InputError unless 0 <= factor < 1 and nothing else is negative.
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "ReduceLROnPlateau"; }
  void step(double metric = std::numeric_limits<double>::quiet_NaN()) override;
  /// Replaces the current rate by `lr`.
  void set_base_lr(double lr) override;
  [[nodiscard]] std::map<std::string, std::string> state() const override;
  void load_state(const std::map<std::string, std::string>& state) override;

 private:
  [[nodiscard]] bool is_better(double metric) const;

  ReduceLROnPlateauOptions options_;
  Recoverable<double> best_;
  Recoverable<std::int64_t> num_bad_epochs_, cooldown_counter_;
};

}}  // namespace sar
