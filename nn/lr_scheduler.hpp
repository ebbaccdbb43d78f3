/// Schedules of the learning rate, with the names and formulas of torch.optim.lr_scheduler:
///
///     Adam optimizer(model.named_parameters(), {.lr = 0.01});
///     CosineAnnealingLR schedule(optimizer, {.T_max = 190, .warm_up = LinearLROptions{.total_iters = 10}});
///     for (int epoch = 1; epoch <= 200; ++epoch) {
///       ...                                                // the steps of the epoch
///       schedule.step();                                   // ReduceLROnPlateau: schedule.step(loss)
///       checkpoints.save(epoch, model, optimizer, schedule);
///     }
///
/// The base rate is that of the optimizer when the schedule is made. Everything is local: with the same calls
/// on every rank, the rates are the same.
#pragma once

#include <sar/nn/optimizer.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

namespace sar::inline SAR_PRECISION {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// "StepLR", "CosineAnnealingLR", "LinearLR", "ReduceLROnPlateau"
  [[nodiscard]] virtual std::string kind() const = 0;
  /// At the end of an epoch: sets the optimizer's rate for the next one. `metric`: of the epoch, only for
  /// ReduceLROnPlateau, which throws InputError when it is NaN.
  virtual void step(double metric = std::numeric_limits<double>::quiet_NaN()) = 0;
  /// Goes on with another base rate. Throws InputError unless it is 0 or more.
  virtual void set_base_lr(double lr) = 0;

  /// What a checkpoint keeps, besides the optimizer's rate; load_state() takes it. Throws InputError, and
  /// changes nothing, when a number is missing or is none.
  [[nodiscard]] virtual std::map<std::string, std::string> state() const = 0;
  virtual void load_state(const std::map<std::string, std::string>& state) = 0;

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  [[nodiscard]] Optimizer& optimizer() const noexcept { return optimizer_; }

 private:
  Optimizer& optimizer_;  // lives longer
};

/// From start_factor to end_factor of the base rate, in equal steps over total_iters epochs:
///
///     lr_t = base (start_factor + (end_factor - start_factor) min(t, total_iters) / total_iters)
struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};

/// A schedule whose rate is a function of the number t of epochs that are done. With a warm-up, its first
/// total_iters epochs are those of LinearLR, and t counts from there (torch's SequentialLR of the two).
class EpochLR : public LRScheduler {
 public:
  void step(double metric = std::numeric_limits<double>::quiet_NaN()) final;
  void set_base_lr(double lr) final;
  [[nodiscard]] std::map<std::string, std::string> state() const final;
  void load_state(const std::map<std::string, std::string>& state) final;

 protected:
  /// Throws InputError for factors that are negative, a start_factor of 0, and total_iters below 1.
  EpochLR(Optimizer& optimizer, const std::optional<LinearLROptions>& warm_up);
  /// Sets the rate that belongs to the present epoch; constructors of schedules end with it.
  void apply();

 private:
  [[nodiscard]] virtual double rate(double base, double epoch) const = 0;

  std::optional<LinearLROptions> warm_up_;
  double base_;
  std::uint64_t epoch_ = 0;
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
  std::int64_t T_max = 100;  ///< epochs after the warm-up
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

/// A warm-up, and then the rate at its end.
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

/// When the metric has not been better than the best one for more than `patience` epochs:
///
///     lr <- max(factor lr, min_lr)        unless that changes lr by eps or less
///
/// Better in mode min: metric < best (1 - threshold), or best - threshold with Threshold::abs; in mode max:
/// metric > best (1 + threshold), or best + threshold. After a reduction, `cooldown` epochs do not count.
class ReduceLROnPlateau final : public LRScheduler {
 public:
  /// Throws InputError unless 0 <= factor < 1 and nothing else is negative.
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "ReduceLROnPlateau"; }
  void step(double metric = std::numeric_limits<double>::quiet_NaN()) override;
  /// The present rate becomes `lr`.
  void set_base_lr(double lr) override;
  [[nodiscard]] std::map<std::string, std::string> state() const override;
  void load_state(const std::map<std::string, std::string>& state) override;

 private:
  [[nodiscard]] bool is_better(double metric) const;

  ReduceLROnPlateauOptions options_;
  double best_;
  std::int64_t num_bad_epochs_ = 0, cooldown_counter_ = 0;
};

}  // namespace sar
