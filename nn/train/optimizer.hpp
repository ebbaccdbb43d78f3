// SPDX-License-Identifier: MIT

/// Optimizers: SGD with momentum, Adam, AdamW, with the formulas and defaults of torch.optim; those of
/// distributed embeddings; gradient clipping.
///
///     sar::Adam optimizer(model.named_parameters(), {.lr = 0.01, .weight_decay = 5e-4});
///     ...
///     tape.backward(loss);
///     gather_grads(comm, model);
///     optimizer.step();
///     optimizer.zero_grad();
///
/// Steps of replicated parameters are local: after gather_grads every rank has the same gradients and takes
/// the same step.
///
/// Room nn/train: What a training loop needs: losses, optimizers, schedules, gradients of all ranks, weights
/// and checkpoints.
#pragma once

#include <sar/config.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/embedding.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// The check that the options of optimizers have in common.

/// Throws InputError unless the value of the option `name` is 0 or more.
inline void require_not_negative(double value, const char* name) {
  require<InputError>(value >= 0, "the optimizer option ", name, " is ", value, ", expected 0 or more");
}

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
  /// Throws InputError unless `lr` is finite and 0 or more.
  void set_lr(double lr);

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

// Gradient clipping, equivalent to torch.nn.utils. Call it between gather_grads and the optimizer's step:
//
//     gather_grads(comm, model);
//     clip_grad_norm(model, 1.0);
//     optimizer.step();
//
// Local: after gather_grads the gradients are the same on every rank, and so are the clipped ones.

/// Local. Multiplies each gradient by
///
///     min(1, max_norm / (n + 1e-6))
///
/// where n is the Euclidean norm of the gradients of all parameters together, and returns n (torch's
/// clip_grad_norm_). If n is NaN, all gradients become NaN. Throws InputError unless max_norm >= 0.
double clip_grad_norm(Module& module, double max_norm);

/// Local. Clamps every element of every gradient to [-clip_value, clip_value] (torch's clip_grad_value_).
/// NaN stays NaN. Throws InputError unless clip_value >= 0.
void clip_grad_value(Module& module, double clip_value);

// Sparse optimizers of distributed embeddings: SGD, Adagrad and Adam, with the formulas and defaults of
// torch.optim for sparse gradients (SGD, Adagrad, SparseAdam).
//
// A step updates the rows that have a gradient, at their owners. Values and state of all other rows stay
// unchanged (Adam's moments do not decay). The owner of a row stores its state.

using EmbeddingRefs = std::vector<std::reference_wrapper<DistributedEmbedding>>;

class SparseOptimizer : NonCopyable {
 public:
  virtual ~SparseOptimizer() = default;

  /// Collective. Sums the gradients of all ranks and updates the rows that have one. All ranks see the new
  /// rows afterwards. A step counts for every row, also without a gradient. If it fails, the embedding
  /// concerned stays unchanged.
  void step();
  /// Local. Clears the gradients of the embeddings.
  void zero_grad();

  /// "SparseSGD", "SparseAdagrad", "SparseAdam"
  [[nodiscard]] virtual std::string kind() const = 0;
  [[nodiscard]] double lr() const noexcept { return lr_; }
  /// Throws InputError unless `lr` is finite and 0 or more.
  void set_lr(double lr);

  /// Collective. Writes a new directory. It contains the rows and the state of each embedding, for example
  /// `<name>.rows.npy` and `<name>.exp_avg.npy`, each [N, width] in the order of the original ids 0 .. N -
  /// 1, and in `state.safetensors` the numbers of steps and the learning rate. The directory gets its name
  /// when it is complete. Throws InputError on every rank if `path` exists or if writing fails.
  void save(const std::string& path) const;
  /// Collective. Restores the embeddings and the optimizer from the files of save(), on any number of ranks
  /// and in either precision. If it fails, they stay unchanged. Throws InputError on every rank if the
  /// optimizer or the embeddings differ, or if files are damaged or missing.
  void load(const std::string& path);

 protected:
  /// The `embeddings` must outlive the optimizer and have different names. The state has one tensor per name,
  /// filled with `initial_state`. Throws InputError for a negative or NaN lr and for duplicate names.
  SparseOptimizer(const EmbeddingRefs& embeddings, double lr, std::vector<std::string> state_names,
                  double initial_state = 0);

 private:
  struct Slot {
    DistributedEmbedding* embedding;
    Recoverable<std::uint64_t> steps;
    std::vector<Tensor> state;  // with the shape of this rank's rows
  };
  /// Updates `rows` and their state, all [rows with a gradient, width]; step counts from 1.
  virtual void update(std::uint64_t step, Tensor& rows, const Tensor& gradient,
                      std::vector<Tensor>& state) = 0;
  /// Adds the options other than lr, which must be the same on all ranks.
  virtual void describe(CollectiveCall& /*call*/) const {}
  [[nodiscard]] std::vector<Tensor> tensors_of(const Slot& slot) const;
  [[nodiscard]] std::string file_of(const std::string& path, const Slot& slot, std::size_t tensor) const;

  std::vector<Slot> slots_;
  std::vector<std::string> state_names_;
  Recoverable<double> lr_;
};

struct SparseSGDOptions {
  double lr = 1e-3;
};

///     p <- p - lr g
class SparseSGD final : public SparseOptimizer {
 public:
  explicit SparseSGD(const EmbeddingRefs& embeddings, const SparseSGDOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "SparseSGD"; }

 private:
  void update(std::uint64_t step, Tensor& rows, const Tensor& gradient, std::vector<Tensor>& state) override;
};

struct SparseAdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double initial_accumulator = 0;
  double eps = 1e-10;
};

/// Duchi, Hazan & Singer, JMLR 12 (2011); at step t of the embedding:
///
///     s <- s + g^2        p <- p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)
class SparseAdagrad final : public SparseOptimizer {
 public:
  /// Throws InputError for a negative or NaN option.
  explicit SparseAdagrad(const EmbeddingRefs& embeddings, const SparseAdagradOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "SparseAdagrad"; }

 private:
  void update(std::uint64_t step, Tensor& rows, const Tensor& gradient, std::vector<Tensor>& state) override;
  void describe(CollectiveCall& call) const override;
  double lr_decay_, eps_;
};

struct SparseAdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// Adam in the form of torch.optim.SparseAdam, for the rows with a gradient:
///
///     m <- beta1 m + (1 - beta1) g        v <- beta2 v + (1 - beta2) g^2
///     p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
///
/// As in torch, t counts the steps of the embedding (DGL's SparseAdam counts those of each row). Unlike in
/// Adam, eps is added to the root before the bias correction.
class SparseAdam final : public SparseOptimizer {
 public:
  /// Throws InputError for a negative or NaN option and for a beta of 1 or more.
  explicit SparseAdam(const EmbeddingRefs& embeddings, const SparseAdamOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "SparseAdam"; }

 private:
  void update(std::uint64_t step, Tensor& rows, const Tensor& gradient, std::vector<Tensor>& state) override;
  void describe(CollectiveCall& call) const override;
  double beta1_, beta2_, eps_;
};
}}  // namespace sar
