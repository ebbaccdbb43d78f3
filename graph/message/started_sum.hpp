// SPDX-License-Identifier: MIT

/// StartedSum: a sum over in-edges that has been started. While its rows are in flight, any other code may
/// run, collective calls and further sums among it:
///
///     StartedSum sums = graph.start_update_all(fn::copy_u(x), fn::mean);
///     Variable self = fc_self(x);               // computed while halo rows travel
///     Variable y = sums.finish(self);           // self[v] + mean over the in-edges of v
///
/// With a tape, the backward pass runs in the reverse order: it computes and sends the gradients of halo
/// rows, differentiates what ran in between, and then adds the gradients that have arrived.
///
/// If code between start and finish can fail on one rank only, put start, this code and finish into one
/// Communicator::agree. Then all ranks throw its exception. If a call of agree() fails between them, finish()
/// throws on all ranks.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>

#include <cstddef>
#include <exception>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

/// @code
/// StartedSum neighbors = graph.start_update_all(fn::copy_u(features), fn::mean);
/// const Variable self = features * 2;              // while the halo rows are in flight
/// const Variable y = neighbors.finish(self);       // self + the means
/// @endcode
class StartedSum {
 public:
  /// For authors of operations.
  class Operation : NonCopyable {
   public:
    virtual ~Operation() = default;
    static void* operator new(std::size_t bytes);
    static void operator delete(void* operation, std::size_t bytes) noexcept;

    [[nodiscard]] virtual Shape shape() const = 0;  ///< of the result
    virtual Variable finish(Variable base) = 0;     ///< base: of this shape, or undefined
    [[nodiscard]] virtual NumberType base_type() const;
    /// Takes part in the exchange and drops what arrives.
    virtual void discard() = 0;
    /// Whether an exchange of rows has begun.
    [[nodiscard]] virtual bool in_flight() const = 0;
  };
  /// Collective. Compares `call()` between all ranks, then makes the operation.
  template <class Call, class Make>
  StartedSum(const Communicator& comm, const Call& call, const Make& make,
             const char* caller = __builtin_FUNCTION())
      : comm_(comm) {
    comm.agree_to_start(
        [&] {
          comm.require_equal(call());
          operation_ = make();
          return operation_->in_flight();
        },
        caller);
  }
  StartedSum(StartedSum&&) noexcept = default;
  StartedSum& operator=(StartedSum&&) = delete;
  /// A sum that was not finished takes part in its exchange to the end, if all ranks drop it. If an exception
  /// drops it, it gives the exchange up: peers that finish the sum throw.
  ~StartedSum();

  /// Collective. Returns the sum, plus `base` if it is defined: [local destinations, ...]. The result
  /// reuses the memory of base if no other handle refers to it. Throws the same on all ranks: ShapeError if
  /// base has another shape than the result, InputError in a second call.
  [[nodiscard]] Variable finish(Variable base = {});

  /// Local. Returns the type of rows in which finish() adds to a base: one of another type is converted,
  /// which takes memory. In mixed precision, sums that come in several stages are rounded when they are
  /// complete. Throws InputError after finish().
  [[nodiscard]] NumberType base_type() const;

 private:
  Communicator comm_;
  std::unique_ptr<Operation> operation_;
  int exceptions_ = std::uncaught_exceptions();
};

}}  // namespace sar
