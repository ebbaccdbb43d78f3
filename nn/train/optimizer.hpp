// SPDX-License-Identifier: MIT

/// Optimizers: SGD with momentum, Adam, AdamW, with the formulas and defaults of torch.optim.
///
///     sar::Adam optimizer(model.named_parameters(), {.lr = 0.01, .weight_decay = 5e-4});
///     ...
///     tape.backward(loss);
///     gather_grads(comm, model);
///     optimizer.step();
///     optimizer.zero_grad();
///
/// All functions are local: after gather_grads every rank has the same gradients and takes the same step.
///
/// Room nn/train: What a training loop needs: losses, optimizers, schedules, gradients of all ranks, weights
/// and checkpoints.
#pragma once

#include <sar/config.hpp>
#include <sar/nn/modules/module.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// @code
/// Linear net(64, 4, gen);
/// Adam optimizer(net.named_parameters(), {.lr = 0.01});
/// Tape tape;
/// tape.backward(cross_entropy(net(features), data.labels, data.train_mask, comm));
/// gather_grads(comm, net);
/// optimizer.step();
/// optimizer.zero_grad();
/// @endcode
class Optimizer : NonCopyable {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient, in place, once if it has several names. Parameters without
  /// a gradient, and their state, stay unchanged. In a Transaction, keeps a copy of each parameter and its
  /// state until the end.
  void step();
  /// Clears the gradients.
  void zero_grad();

  /// "SGD", "Adam", "AdamW"
  [[nodiscard]] virtual std::string kind() const = 0;
  [[nodiscard]] double lr() const noexcept { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  /// Return the state for a checkpoint: tensors "<parameter>.<name>", for example "convs.0.bias.exp_avg", and
  /// the number of steps of each parameter, "<parameter>.step". They share the optimizer's memory, so that
  /// writing to them restores its state.
  [[nodiscard]] std::vector<NamedBuffer> named_buffers() const;
  [[nodiscard]] std::vector<NamedCounter> named_counters();

 protected:
  struct Slot {
    std::string name;
    Variable parameter;
    double weight_decay = 0;
    double lr_factor = 1;
    Recoverable<std::uint64_t> steps;  ///< including the current one
    std::vector<Tensor> state;         ///< one tensor per name in state_names, of the parameter's shape
  };

  /// `decay_only` lists the parameters with weight decay: a parameter, or a module that contains it
  /// ("layers.0" for "layers.0.weight"). If it is empty, all parameters decay. `lr_factors`: factors of the
  /// learning rate of parameters, or of all that a module contains; of names that cover a parameter the
  /// longest counts, and without one the factor is 1. Throws InputError if a name matches nothing, a factor
  /// is negative or not finite, or a parameter is in read-only memory.
  Optimizer(std::vector<NamedParameter> parameters, double lr, double weight_decay,
            const std::vector<std::string>& decay_only, const std::map<std::string, double>& lr_factors,
            std::vector<std::string> state_names);

  [[nodiscard]] double lr_of(const Slot& slot) const noexcept { return lr_ * slot.lr_factor; }

 private:
  virtual void update(Slot& slot, const Tensor& gradient) = 0;

  std::vector<Slot> slots_;
  std::vector<std::string> state_names_;
  Recoverable<double> lr_;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  std::vector<std::string> decay_only = {};       ///< see Optimizer
  std::map<std::string, double> lr_factors = {};  ///< see Optimizer
};

///     g <- g + weight_decay p        b <- momentum b + g        p <- p - lr b
///
/// b starts at zero. Dampening and Nesterov momentum are not supported.
class SGD final : public Optimizer {
 public:
  /// Throws InputError for a negative or NaN option.
  explicit SGD(std::vector<NamedParameter> parameters, const SGDOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "SGD"; }

 private:
  void update(Slot& slot, const Tensor& gradient) override;
  double momentum_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  std::vector<std::string> decay_only = {};       ///< see Optimizer
  std::map<std::string, double> lr_factors = {};  ///< see Optimizer
};

/// Kingma & Ba, arXiv 1412.6980; at step t:
///
///     g <- g + weight_decay p
///     m <- beta1 m + (1 - beta1) g        v <- beta2 v + (1 - beta2) g^2
///     p <- p - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)
class Adam : public Optimizer {
 public:
  /// Throws InputError for a negative or NaN option and for a beta of 1 or more.
  explicit Adam(std::vector<NamedParameter> parameters, const AdamOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "Adam"; }

 protected:
  enum class Decay { gradient, parameter };
  Adam(std::vector<NamedParameter> parameters, const AdamOptions& options, Decay decay);

 private:
  void update(Slot& slot, const Tensor& gradient) override;
  double beta1_, beta2_, eps_;
  Decay decay_;
};

/// Adam with decoupled weight decay (Loshchilov & Hutter, arXiv 1711.05101): before the step,
///
///     p <- (1 - lr weight_decay) p
///
/// and g does not include the decay. Unlike in torch, the default weight_decay is 0.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<NamedParameter> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, Decay::parameter) {}
  [[nodiscard]] std::string kind() const override { return "AdamW"; }
};

}}  // namespace sar
