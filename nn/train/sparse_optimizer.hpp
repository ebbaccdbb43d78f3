// SPDX-License-Identifier: MIT

/// Sparse optimizers of distributed embeddings: SGD, Adagrad and Adam, with the formulas and defaults of
/// torch.optim for sparse gradients (SGD, Adagrad, SparseAdam).
///
/// A step updates the rows that have a gradient, at their owners. Values and state of all other rows stay
/// unchanged (Adam's moments do not decay). The owner of a row stores its state.
#pragma once

#include <sar/config.hpp>
#include <sar/nn/modules/distributed_embedding.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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
  void set_lr(double lr) { lr_ = lr; }

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
