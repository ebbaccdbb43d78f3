/// Sparse optimizers: SGD, Adagrad and Adam for the rows of distributed embeddings, with the formulas and
/// defaults of torch.optim for sparse gradients (SGD, Adagrad, SparseAdam).
///
/// A step moves the rows that have a gradient, at their owners; values and state of all other rows stay as
/// they are (Adam's moments do not decay meanwhile). The state of a row lies at its owner.
#pragma once

#include <sar/nn/distributed_embedding.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

using EmbeddingRefs = std::vector<std::reference_wrapper<DistributedEmbedding>>;

class SparseOptimizer {
 public:
  virtual ~SparseOptimizer() = default;
  SparseOptimizer(const SparseOptimizer&) = delete;
  SparseOptimizer& operator=(const SparseOptimizer&) = delete;

  /// Sums the gradients of all ranks and moves the rows that have some. All ranks see the new rows
  /// afterwards. A step counts for every row, also for those without a gradient, and where no row has one. On
  /// an error, the embedding concerned is as it was. Collective.
  void step();
  /// Forgets the gradients of the embeddings. Local.
  void zero_grad();

  /// "SparseSGD", "SparseAdagrad", "SparseAdam"
  [[nodiscard]] virtual std::string kind() const = 0;
  [[nodiscard]] double lr() const noexcept { return lr_; }
  void set_lr(double lr) noexcept { lr_ = lr; }

  /// Writes a new directory: for each embedding `<name>.rows.npy` and its state, `<name>.exp_avg.npy`, ...,
  /// each [N, width] in the order of the original ids, which are 0 .. N - 1; and the numbers of steps and the
  /// learning rate, `state.safetensors`. The directory has its name when it is complete. Collective. Throws
  /// InputError, the same on every rank, when there is something at `path`, and when writing fails.
  void save(const std::string& path) const;
  /// Puts embeddings and optimizer into the state that save() wrote, on any number of ranks and in either
  /// precision. On an error they are as they were. Collective. Throws InputError, the same on every rank, for
  /// another optimizer, other embeddings, and files that are damaged or not there.
  void load(const std::string& path);

 protected:
  /// `embeddings` outlive the optimizer, and have different names. The state has one tensor for each name, at
  /// first `initial_state` everywhere. Throws InputError for a negative or NaN lr and for a name that occurs
  /// twice.
  SparseOptimizer(const EmbeddingRefs& embeddings, double lr, std::vector<std::string> state_names,
                  double initial_state = 0);

 private:
  struct Slot {
    DistributedEmbedding* embedding;
    std::uint64_t steps = 0;
    std::vector<Tensor> state;  // of the shape of this rank's rows
  };
  /// Moves `rows` and their state, all [rows that have a gradient, width]; step counts from 1.
  virtual void update(std::uint64_t step, Tensor& rows, const Tensor& gradient,
                      std::vector<Tensor>& state) = 0;
  [[nodiscard]] std::vector<Tensor> tensors_of(const Slot& slot) const;
  [[nodiscard]] std::string file_of(const std::string& path, const Slot& slot, std::size_t tensor) const;

  std::vector<Slot> slots_;
  std::vector<std::string> state_names_;
  double lr_;
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
  double lr_decay_, eps_;
};

struct SparseAdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// Adam as torch.optim.SparseAdam has it, for the rows with a gradient:
///
///     m <- beta1 m + (1 - beta1) g        v <- beta2 v + (1 - beta2) g^2
///     p <- p - lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
///
/// t counts the steps of the embedding, as in torch, and not those of the row (as DGL's SparseAdam does); eps
/// is added after the bias correction is taken out of the root, other than in Adam.
class SparseAdam final : public SparseOptimizer {
 public:
  /// Throws InputError for a negative or NaN option and for a beta that is not below 1.
  explicit SparseAdam(const EmbeddingRefs& embeddings, const SparseAdamOptions& options = {});
  [[nodiscard]] std::string kind() const override { return "SparseAdam"; }

 private:
  void update(std::uint64_t step, Tensor& rows, const Tensor& gradient, std::vector<Tensor>& state) override;
  double beta1_, beta2_, eps_;
};

}  // namespace sar
