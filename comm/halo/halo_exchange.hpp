// SPDX-License-Identifier: MIT

/// The halo exchange: HaloFetch brings rows of other ranks, HaloPush sends their gradients back.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Halo exchange, backward: HaloPush sends the gradients of the rows that HaloFetch brought back to
// their owners, where they are combined in a fixed order.

/// Whether an exchange posts its first messages in its constructor or in start().
enum class HaloStart { now, later };

/// One pass of gradients from the readers of rows back to their owners, where they are combined with `sum`
/// [local rows, ...]: added, or reduced to the maximum or minimum.
///
/// This rank sends the stages of plan.halo in order. Incoming rows are combined in the order of their
/// readers' stages, and within a stage in the order of the rounds: stage k - depth in the k-th call of send()
/// (counted from 0), all remaining ones in finish(). Between these calls, the caller may add its own rows to
/// `sum`, or move it to other memory; the order of all additions is fixed.
class HaloPush : NonCopyable {
 public:
  /// `rows`: the shape of `sum`. Rows of exact sums are added to such rows, and travel as they
  /// are stored: stored_format() must be the format of the plan. All others are added to reals. Buffers: at
  /// most `depth` outgoing and `depth` incoming stages, besides the one that the caller is filling; more only
  /// if more of this rank's rows than one stage belong to the same stage of their readers.
  HaloPush(const Communicator& comm, const Shape& rows, HaloPlan plan, HaloStart start = HaloStart::now,
           ReduceOp op = ReduceOp::sum);
  ~HaloPush();   ///< as HaloFetch::~HaloFetch()
  void start();  ///< as HaloFetch::start()

  /// Starts sending the rows of the next stage; keeps the tensor until it has been sent. Before that, waits
  /// while `depth` stages are in flight, so that the memory of an older one can be reused; afterwards, waits
  /// for the incoming rows of stage k - depth and adds them to `sum`. Throws CommunicationError after the
  /// last stage, ShapeError if the rows do not match the stage.
  void send(TypedRows rows, TypedRows sum);
  /// Advances packets; never waits.
  void progress();
  /// Waits until all incoming rows are added to `sum` and all sends are complete. Call it before finish() of
  /// a fetch in flight: a peer may have to send gradients before it can receive more rows. Throws
  /// CommunicationError if stages were not sent.
  void finish(TypedRows sum);

 private:
  friend class HaloFetch;
  void begin() noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Halo exchange, forward: HaloFetch sends rows of a distributed tensor from their owners to the ranks that
// read them, following a HaloPlan (backward: HaloPush). Only the calls documented as waiting block.
// Communication progresses whenever this rank is inside MPI: call progress() from a PollScope while kernels
// run.

/// The rows of a stage: [stage.size(), ...].
struct HaloRows {
  HaloStage stage;
  TypedRows rows;
};

/// One pass of rows from their owners to their readers (SAR's fetch). All ranks must construct the matching
/// object. The constructor allocates the buffers that it must not lack later, calls start() unless
/// HaloStart::later is given, and returns. In a body of Communicator::agree a rank may fail anywhere: either
/// no rank starts the exchange, or the ranks that wait for the failed one throw. Between start and finish the
/// ranks may make other collective calls, and start other exchanges.
class HaloFetch : NonCopyable {
 public:
  /// `owned` [local rows, ...] is read until finish(); it must not change before. Rows arrive in its type:
  /// reals, or bfloat16 with the format bf16.
  HaloFetch(const Communicator& comm, const TypedRows& owned, HaloPlan plan,
            HaloStart start = HaloStart::now);
  /// Completes all requests. If the exchange is not finished, gives up all exchanges of the communicator in
  /// flight: the calls of peers throw CommunicationError.
  ~HaloFetch();
  /// Collective. Synchronizes (unless all ranks are known to arrive), then posts the first messages, also
  /// those of `push`. What fails after the synchronization is thrown by the next call that waits.
  void start(HaloPush* push = nullptr);

  /// Waits for the next stage of plan.halo, starts a later one, and returns the rows; empty after the last
  /// stage. Drop the rows before calling it again, so that at most depth + 1 stages are in memory.
  std::optional<HaloRows> next();
  /// States that the rows returned by next() are dropped or kept for good: starts a later stage now, so that
  /// it is in flight while the caller computes before it calls next().
  void release();
  /// Advances packets and packs further rows; never waits. Cheap enough to be called every few microseconds.
  void progress();
  /// Waits until all rows of this rank have been sent.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All halo rows at once, exactly: for numbers of nodes, which a graph fetches once and keeps.

/// Collective. Fetches all halo rows of `owned` at once: [halo rows, ...].
[[nodiscard]] Tensor fetch_halo(const Communicator& comm, const Tensor& owned, HaloRounds rounds);

/// Collective. Fetches the integer of each halo row: [halo rows]. `owned` has one for each row of this rank.
[[nodiscard]] Array<Index> fetch_halo(const Communicator& comm, std::span<const Index> owned,
                                      const std::vector<HaloRound>& rounds);
}}  // namespace sar
