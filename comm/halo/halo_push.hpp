// SPDX-License-Identifier: MIT

/// Halo exchange, backward: HaloPush sends the gradients of the rows that HaloFetch brought back to
/// their owners, where they are combined in a fixed order.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

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
  /// `rows`: the shape of `sum`. Rows of exact sums are added to such rows, and travel as
  /// exact_sum_format(), which must be the format of the plan. All others are added to reals. Buffers: at
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

}}  // namespace sar
