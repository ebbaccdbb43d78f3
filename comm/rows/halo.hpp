/// Halo exchange: rows of a distributed tensor travel between their owners and the ranks that read them, as a
/// HaloPlan says.
///
/// Forward, HaloFetch brings the rows that this rank reads; backward, HaloPush takes gradients of those rows
/// to their owners, where they are combined in an order that is always the same. Nothing blocks but the calls
/// that say so; communication moves on whenever this rank is inside MPI: call progress() from a PollScope
/// while kernels run.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/halo_plan.hpp>
#include <sar/core/tensor.hpp>

#include <memory>
#include <optional>

namespace sar::inline SAR_PRECISION {

/// When an exchange posts its first messages: in its constructor, or when start() is called.
enum class HaloStart { now, later };

/// The rows of a stage: [stage.size(), ...].
struct HaloRows {
  HaloStage stage;
  Tensor rows;
};

class HaloPush;

/// One pass of rows from their owners to their readers (SAR's fetch). Construction is collective in the sense
/// that all ranks make the matching object; it takes the memory that must not be missing later, calls start()
/// unless told not to, and returns. In the body of Communicator::agree a rank may fail anywhere: either no
/// rank starts, or those that wait for it throw.
///
/// An exchange that was started in the body is finished before the body's next collective call, for instance
/// the start of another one; otherwise that call throws CommunicationError. A rank that fails completes its
/// exchanges before it reaches the next synchronization point.
class HaloFetch {
 public:
  /// `owned` [local rows, ...] is read until finish().
  HaloFetch(const Communicator& comm, const Tensor& owned, HaloPlan plan, HaloStart start = HaloStart::now);
  /// Completes all requests. Unless finished, it gives up all exchanges of the communicator that are under
  /// way: the peers' calls throw CommunicationError.
  ~HaloFetch();
  /// A synchronization point, unless all ranks are known to come. Then posts first messages, also of `push`.
  void start(HaloPush* push = nullptr);
  HaloFetch(const HaloFetch&) = delete;
  HaloFetch& operator=(const HaloFetch&) = delete;

  /// Waits for the next stage of plan.halo and starts a later one; empty after the last. Drop the rows before
  /// asking for the next: at most depth + 1 stages are held then.
  std::optional<HaloRows> next();
  /// The rows that next() has given are dropped, or kept for good: a later stage starts now, and travels
  /// while the caller does something else before it asks for the next.
  void release();
  /// Moves packets on and packs further rows; never waits. Cheap enough to be called every few microseconds.
  void progress();
  /// Waits until all rows of this rank have left.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One pass of gradients from the readers of rows back to their owners, where they are combined with `sum`:
/// added, or its maximum or minimum with them.
///
/// This rank gives the rows of the stages of plan.halo in order. Incoming rows are combined in the order of
/// their readers' stages, within a stage in that of the rounds: those of stage k - depth in the k-th call of
/// send() (counted from 0), all others in finish(). In between, the caller may add its own rows to `sum`, and
/// the order of all additions is fixed.
class HaloPush {
 public:
  /// `sum` [local rows, ...] changes in send() and finish() only.
  /// Buffers: at most `depth` outgoing and `depth` incoming stages are held, besides the one that the caller
  /// is filling; more only where more of this rank's rows than a stage come together in stages of their
  /// readers.
  HaloPush(const Communicator& comm, Tensor& sum, HaloPlan plan, HaloStart start = HaloStart::now,
           ReduceOp op = ReduceOp::sum);
  ~HaloPush();   ///< as that of HaloFetch
  void start();  ///< as HaloFetch::start()
  HaloPush(const HaloPush&) = delete;
  HaloPush& operator=(const HaloPush&) = delete;

  /// Starts sending the rows of the next stage; keeps the tensor until it has left. Before, it waits while
  /// `depth` stages are in flight, so that the memory of an older one can be used for the one filled next;
  /// after, for the incoming rows that it adds. Throws CommunicationError after the last stage, ShapeError
  /// for rows that are not those of the stage.
  void send(Tensor rows);
  /// Moves packets on; never waits, never touches `sum`.
  void progress();
  /// Waits for everything: adds all incoming rows, completes all sends. Before the finish() of a fetch that
  /// is under way beside it: a peer may have to send gradients before it takes more rows. Throws
  /// CommunicationError when stages are left to be sent.
  void finish();

 private:
  friend class HaloFetch;
  void begin() noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sar
