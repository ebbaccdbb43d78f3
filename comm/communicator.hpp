// SPDX-License-Identifier: MIT

/// Communicator: RAII over MPI. Nothing outside comm/ calls MPI.
///
/// Every function here is collective unless its comment says "local". Each collective call begins with a
/// synchronization point, an all_reduce of 40 bytes that compares the calls of the ranks. If they differ
/// (another function, length or root, or a rank that makes one more call), all ranks throw the same
/// CommunicationError, which names two of the calls; if an argument differs (CallScope), the same InputError.
/// Counts may exceed 2^31: no single message is larger than max_collective_size().
///
/// Room comm: Communication between ranks, and the agreement on failures. Only comm and its subfolders call
/// MPI; they do not know Variables.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/comm/comm_stats.hpp>
#include <sar/config.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

#ifdef OPEN_MPI
static_assert(SAR_MPI[0] != 'M', "sar was built with " SAR_MPI ", this program is compiled with Open MPI");
#else
static_assert(SAR_MPI[0] != 'O', "sar was built with " SAR_MPI ", this program is compiled with another MPI");
#endif

class PendingExchange;
struct CommunicatorState;

enum class ReduceOp { sum, max, min };

/// A handle to a duplicated communicator. The duplicate is freed with its last handle. Exception: the first
/// one of a program that contains all processes is freed in MPI_Finalize, where ranks that exit early are
/// detected.
///
/// @code
/// const Communicator comm = Communicator::world();
/// const int ranks = comm.all_reduce(1);                       // the sum over all ranks
/// comm.agree([&] {                                            // what one rank throws here, all throw
///   require<InputError>(ranks == comm.size(), "some ranks are missing");
/// });
/// @endcode
class Communicator {
 public:
  /// Duplicates `comm`, which stays the caller's; its error handler and attributes are not changed. Throws
  /// CommunicationError for errors of MPI, MPI_COMM_NULL, an inter-communicator, MPI_THREAD_SINGLE (the level
  /// of MPI_Init), MPI that is not initialized or is finalized, and a call from another thread than the one
  /// that initialized MPI, unless the level is MPI_THREAD_SERIALIZED or higher. Every collective call checks
  /// the last two again. At MPI_THREAD_SERIALIZED one thread at a time may call the library, at
  /// MPI_THREAD_MULTIPLE one thread at a time for each communicator. The duplicate of the first communicator
  /// of all processes is kept until MPI_Finalize: if a rank exits early, ranks that wait for it in a
  /// collective call throw.
  explicit Communicator(MPI_Comm comm);
  /// All ranks (collective over MPI_COMM_WORLD).
  static Communicator world() { return Communicator(MPI_COMM_WORLD); }
  /// This rank only (local).
  static Communicator self() { return Communicator(MPI_COMM_SELF); }

  [[nodiscard]] int rank() const noexcept;         ///< local
  [[nodiscard]] int size() const noexcept;         ///< local
  [[nodiscard]] MPI_Comm handle() const noexcept;  ///< the duplicate, for comm/ only; local

  /// Local. Returns the maximum size of a message in bytes, 1 GiB by default.
  [[nodiscard]] std::size_t max_collective_size() const noexcept;
  /// Local. Sets the maximum size of a message; call it with the same value on every rank.
  void set_max_collective_size(std::size_t bytes) const;

  /// Returns when all ranks have called it.
  void barrier() const;

  /// Reduces `values` elementwise over all ranks, in place; every rank gets the same bits. T: float, double,
  /// 32- or 64-bit integers.
  template <class T>
  void all_reduce(std::span<T> values, ReduceOp op = ReduceOp::sum) const;
  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T all_reduce(T value, ReduceOp op = ReduceOp::sum) const {
    all_reduce(std::span<T>(&value, 1), op);
    return value;
  }

  /// Returns the values of all ranks in rank order; ranks may contribute different numbers. T must be
  /// trivially copyable.
  template <class T>
  [[nodiscard]] std::vector<T> all_gather(std::span<const T> values) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return agree_once("all_gather", [&] {
      const std::vector<Index> counts = gather_counts(static_cast<Index>(values.size()));
      Index total = 0;
      for (const Index count : counts) total += count;
      std::vector<T> result(static_cast<std::size_t>(total));
      all_gather_bytes(values.data(), result.data(), counts, sizeof(T));
      return result;
    });
  }
  /// Returns one value per rank, in rank order.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) const {
    return agree_once("all_gather", [&] {
      std::vector<T> result(size());
      all_gather_bytes(&value, result.data(), std::vector<Index>(size(), 1), sizeof(T));
      return result;
    });
  }

  /// Replaces `values` by those of rank `root`. The length must be the same on every rank.
  template <class T>
  void broadcast(std::span<T> values, int root) const {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(values.data(), values.size() * sizeof(T), root);
  }
  /// Returns the text of rank `root`.
  [[nodiscard]] std::string broadcast(const std::string& text, int root) const;

  /// Sends counts[q] >= 0 to rank q, for all q. Returns the counts that arrive, by rank.
  [[nodiscard]] std::vector<Index> all_to_all(std::span<const Index> counts) const;
  /// The result of all_to_all_v(): the values from rank 0, then those from rank 1, ..., and the number from
  /// each.
  template <class T>
  struct Received {
    std::vector<T> values;
    std::vector<Index> counts;
  };
  /// Sends counts[q] consecutive elements of `values` to rank q, for all q. Only ranks with something to send
  /// exchange messages, all of them at once. T must be trivially copyable.
  template <class T>
  [[nodiscard]] Received<T> all_to_all_v(std::span<const T> values, std::span<const Index> counts) const {
    return agree_once("all_to_all_v", [&] {
      Received<T> received;
      received.counts = all_to_all(counts);
      received.values = all_to_all_v(values, counts, received.counts);
      return received;
    });
  }
  /// The same where each rank knows that arriving[q] elements come from rank q, so that counts need no
  /// exchange. Returns the values that arrive.
  template <class T>
  [[nodiscard]] std::vector<T> all_to_all_v(std::span<const T> values, std::span<const Index> counts,
                                            std::span<const Index> arriving) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return agree_once("all_to_all_v", [&] {
      std::vector<T> received(total_of(arriving));
      all_to_all_bytes(std::as_bytes(values), counts, received.data(), arriving, sizeof(T));
      return received;
    });
  }

  /// Runs `body` and returns its result. If it throws on some ranks, all ranks throw the exception of the
  /// lowest of these ranks, with the same kind and text (a std::exception becomes sar::Error). The text
  /// begins with "rank 2: " unless all ranks failed with the same text. The communicator remains usable.
  ///
  /// `body` may use this communicator. Its next collective call is a synchronization point at which the other
  /// ranks learn of the failure, before they wait for the failed rank. So a program that may fail anywhere
  /// does not hang if its steps run in agree():
  ///
  ///     comm.agree([&] { forward(); backward(); step(); });
  ///
  /// After a failure, every object of the library is on every rank as it was before the call: parameters,
  /// gradients, optimizers, running statistics, counters of random draws, loaders. Therefore agree() keeps
  /// one copy of each state that changes in it (see Transaction).
  ///
  /// Calls nest. An exception of an inner call is the same on all ranks, and the outer body may catch it.
  /// Cost: one all_reduce of 40 bytes at the end. `caller` names the calling function in error messages.
  template <class F>
  auto agree(F&& body, const char* caller = __builtin_FUNCTION()) const -> std::invoke_result_t<F&> {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      run_agreed([&] { return body(), false; }, caller);
    } else {
      std::optional<std::invoke_result_t<F&>> result;
      run_agreed([&] { return result.emplace(body()), false; }, caller);
      return std::move(*result);
    }
  }
  /// The same for the first half of an operation that is finished later. `body` returns whether its last act
  /// that could fail was a synchronization point, as at the start of an exchange. If so, it has returned on
  /// all ranks, and there is no synchronization at the end.
  void agree_to_start(FunctionRef<bool()> body, const char* caller = __builtin_FUNCTION()) const {
    run_agreed(body, caller);
  }
  /// Returns whether all ranks pass the same value. `call` names this call in messages about differing calls.
  [[nodiscard]] bool all_equal(std::int64_t value, const char* call = "all_equal") const;
  /// A synchronization point that compares a call, as a CallScope does. Call it in a body of agree(), after
  /// the checks that each rank makes alone. Compares nothing while a RecordedPass is replayed.
  void require_equal(const CollectiveCall& call) const;
  /// A synchronization point: throws on all ranks if one of them has left the body of agree() by an exception
  /// or arrives with another `call`. Every collective call begins with one; an exchange of messages, which
  /// does not begin with a collective call, needs an explicit one. For comm/ only.
  void synchronize(const char* call) const;

  /// Local. Returns whether SAR_DEBUG is set in the environment of any rank: it enables costly checks.
  [[nodiscard]] bool debug() const noexcept;
  [[nodiscard]] CommStats stats() const noexcept;  ///< totals since the first handle was made; local
  /// Local. Returns whether messages from `rank` go through shared memory.
  [[nodiscard]] bool on_same_node(int rank) const;
  void add_to_stats(const CommStats& more) const noexcept;  ///< for comm/ only; local
  /// Local. Returns a tag for one exchange of messages, so that exchanges in flight at the same time do not
  /// receive each other's messages. All ranks must call it in the same order; they get the same tags. For
  /// comm/ only.
  [[nodiscard]] int new_tag() const noexcept;
  /// Local. Returns the exchanges in flight. A rank that waits for one of them advances all of them. For
  /// comm/ only.
  [[nodiscard]] std::vector<PendingExchange*>& exchanges() const noexcept;
  /// Returns steady_nanoseconds() at the end of a barrier, the same for all ranks of a node. For comm/ only.
  [[nodiscard]] std::int64_t common_time() const;
  /// Local. Returns in how many nested bodies of agree() this rank is. For comm/ only.
  [[nodiscard]] int agree_depth() const noexcept;

 private:
  friend class CallScope;
  friend class RecordedPass;
  std::shared_ptr<CommunicatorState> state_;

  /// `body` returns whether all ranks are known to have returned from it.
  void run_agreed(FunctionRef<bool()> body, const char* caller) const;
  /// agree() for a call that allocates; without agree() if it is called from a body of agree().
  template <class F>
  auto agree_once(const char* call, F&& body) const {
    return agree_depth() > 0 ? body() : agree(body, call);
  }
  [[nodiscard]] std::vector<Index> gather_counts(Index count) const;
  /// Returns the sum of one count for each rank. Throws CommunicationError for others.
  [[nodiscard]] std::size_t total_of(std::span<const Index> counts) const;
  void all_gather_bytes(const void* mine, void* all, const std::vector<Index>& counts,
                        std::size_t element_bytes) const;
  void broadcast_bytes(void* data, std::size_t bytes, int root) const;
  void all_to_all_bytes(std::span<const std::byte> out, std::span<const Index> out_counts, void* in,
                        std::span<const Index> in_counts, std::size_t element_bytes) const;
};

/// Local. While it lives, each synchronization point of `comm` compares a call. Throws there on all ranks:
/// CommunicationError if the operations differ, InputError if arguments differ: "<operation> is called with
/// a different <what> on different ranks: ...". Scopes nest; outer calls are compared first.
class CallScope : NonCopyable {
 public:
  CallScope(const Communicator& comm, CollectiveCall call) noexcept;
  ~CallScope();

  /// Returns the call, for adding arguments. A scope outside of agree() gets them inside: they need memory.
  [[nodiscard]] CollectiveCall& call() noexcept { return call_; }

 private:
  std::shared_ptr<CommunicatorState> state_;
  CollectiveCall call_;
  CallChain calls_;
};

}}  // namespace sar
