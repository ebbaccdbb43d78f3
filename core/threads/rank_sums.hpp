// SPDX-License-Identifier: MIT

/// Sums over the rows of all ranks whose bits do not depend on how the rows are distributed.
#pragma once

#include <sar/config.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/threads/parallel.hpp>

#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// What operations without knowledge of MPI need of the other ranks, while sums are reproducible: the
/// gradient of a parameter is then the sum over the rows of all ranks, which the first rank keeps; on other
/// ranks it is 0. Adding the gradients of all ranks (gather_grads) gives the same numbers as without.
class RankSums : NonCopyable {
 public:
  virtual ~RankSums() = default;
  /// Collective. Runs `body`, which may call maximum() and sum(). What it throws on a rank, all ranks throw.
  virtual void agree(FunctionRef<void()> body) const = 0;
  /// Collective. Replaces each number by its maximum over all ranks.
  virtual void maximum(std::span<double> numbers) const = 0;
  /// Collective. Replaces each number by its sum over all ranks. The caller sees to it that the sums are
  /// exact.
  virtual void sum(std::span<double> numbers) const = 0;
  /// Collective. The same for exact sums.
  virtual void sum(std::span<ExactSum> sums) const = 0;
  /// Local. Whether this rank keeps the sum.
  [[nodiscard]] virtual bool is_first() const = 0;
  /// Local. Whether an operation sees a part of the rows of this rank: chunk_sums().
  [[nodiscard]] virtual bool is_of_chunk() const { return false; }
};

using RankSumsPtr = std::shared_ptr<const RankSums>;

/// For operations on a chunk of the rows of a rank. Gradients of parameters are the exact sums over the rows
/// of the chunk (NumberType::exact_sums); who made the chunks adds those of all chunks and ranks and rounds
/// them once. agree() is local, and maximum() throws InputError: what a chunk cannot know.
[[nodiscard]] const RankSumsPtr& chunk_sums();

/// During its lifetime, rank_sums() of the thread that made it returns `sums`. Scopes nest.
class RankSumsScope : NonCopyable {
 public:
  explicit RankSumsScope(RankSumsPtr sums);
  ~RankSumsScope();

 private:
  RankSumsPtr outer_;
};

/// Returns what the innermost scope of this thread was made with; null without one.
[[nodiscard]] const RankSumsPtr& rank_sums() noexcept;

}}  // namespace sar
