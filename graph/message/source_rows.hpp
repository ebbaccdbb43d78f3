// SPDX-License-Identifier: MIT

/// SourceRows: the rows of the remote shard's sources, stage by stage. They come from memory, from the ranks
/// that own them, or from an earlier pass that kept them; a pass over the stages is the same in all cases.
///
///     for (std::size_t k = 0; k < rows.num_stages(); ++k) {
///       kernel.accumulate(rows.next());
///       rows.release();
///     }
///     rows.finish();
#pragma once

#include <sar/comm/halo/halo_fetch.hpp>
#include <sar/comm/halo/halo_push.hpp>
#include <sar/core/memory/workspace.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <optional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

class SourceRows : NonCopyable {
 public:
  /// All rows are in memory, or no values are needed (undefined): one stage, or none if the shard
  /// has no sources.
  SourceRows(const GraphShard& remote, TypedRows rows);
  /// No values are needed; these stages.
  SourceRows(const GraphShard& remote, PassVector<HaloStage> stages);
  /// The rows were kept. The vector must live until the last stage was used.
  SourceRows(const GraphShard& remote, const std::vector<HaloRows>& kept);
  /// The rows of `owned` are fetched from their owners. `keep`: where the stages are kept; null: dropped
  /// after use. Call start().
  SourceRows(const GraphShard& remote, const Communicator& comm, const TypedRows& owned, HaloPlan plan,
             std::vector<HaloRows>* keep);

  /// Posts the first messages of the fetch, if there is one, and of `push`, if it is not null. Collective if
  /// one of them is there.
  void start(HaloPush* push);
  [[nodiscard]] bool in_flight() const noexcept { return fetch_.has_value(); }
  [[nodiscard]] std::size_t num_stages() const noexcept { return stages_.size(); }
  /// Returns the next stage; waits for its rows. They stay until release().
  Stage next();
  /// States that the stage is not used any more.
  void release();
  /// After the last stage: waits until the rows of this rank have been sent.
  void finish();

 private:
  const GraphShard& remote_;
  PassVector<HaloStage> stages_;
  TypedRows rows_;
  const std::vector<HaloRows>* kept_ = nullptr;
  std::vector<HaloRows>* keep_ = nullptr;
  std::optional<HaloFetch> fetch_;
  HaloRows held_;  // of the fetch, until release()
  std::size_t next_ = 0;
};

}}  // namespace sar
