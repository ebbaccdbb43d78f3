/// Communicator: RAII over MPI. Nothing outside comm/ calls MPI.
///
/// Every function here is collective unless its comment says "local". Each begins with a synchronization point,
/// an all_reduce of 40 bytes which compares the calls of the ranks: where they differ (another function,
/// another length, another root, one call more on a rank), all ranks throw the same CommunicationError, which
/// names two of the calls. Counts may exceed 2^31: no single message is larger than max_collective_size().
///
/// Room comm: Communication between ranks, and the agreement on failures. It is the only room that calls MPI,
/// and it does not know Variables.
#pragma once

#include <sar/comm/comm_stats.hpp>
#include <sar/config.hpp>
#include <sar/core/parallel.hpp>

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

#ifdef OPEN_MPI
static_assert(SAR_MPI[0] != 'M', "sar was built with " SAR_MPI ", this program is compiled with Open MPI");
#else
static_assert(SAR_MPI[0] != 'O', "sar was built with " SAR_MPI ", this program is compiled with another MPI");
#endif

class PendingExchange;
struct CommunicatorState;

enum class ReduceOp { sum, max, min };

/// A cheap handle to a duplicated communicator. The duplicate is freed with the last handle; the first one of a
/// program, when it has all processes, in MPI_Finalize, where ranks that end early are noticed.
class Communicator {
 public:
  /// Duplicates `comm`, which stays the caller's: its error handler and attributes are left alone. Errors of
  /// MPI become CommunicationError. So do: MPI_COMM_NULL, an inter-communicator, MPI_THREAD_SINGLE (as
  /// MPI_Init leaves it), MPI that is not initialized or is finalized, and another thread than the one that
  /// initialized MPI, unless MPI_THREAD_SERIALIZED allows that. Every collective call checks the last two
  /// again. The duplicate of the first communicator of all processes is kept until MPI_Finalize: there a rank
  /// that ends the program tells those that wait in a collective call, and they throw.
  explicit Communicator(MPI_Comm comm);
  static Communicator world();  ///< of all ranks (collective over MPI_COMM_WORLD)
  static Communicator self();   ///< of this rank alone (local)

  [[nodiscard]] int rank() const noexcept;         ///< local
  [[nodiscard]] int size() const noexcept;         ///< local
  [[nodiscard]] MPI_Comm handle() const noexcept;  ///< the duplicate, for comm/ only; local

  /// Largest message in bytes, 1 GiB unless set; the same on every rank. Local.
  [[nodiscard]] std::size_t max_collective_size() const noexcept;
  void set_max_collective_size(std::size_t bytes) const;

  void barrier() const;

  /// Elementwise reduction in place; every rank gets the same bits. T: float, double, 32- and 64-bit
  /// integers.
  template <class T>
  void all_reduce(std::span<T> values, ReduceOp op = ReduceOp::sum) const;
  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T all_reduce(T value, ReduceOp op = ReduceOp::sum) const {
    all_reduce(std::span<T>(&value, 1), op);
    return value;
  }

  /// The values of all ranks in rank order; the number per rank may differ. T is trivially copyable.
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
  /// One value per rank, in rank order.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) const {
    return agree_once("all_gather", [&] {
      std::vector<T> result(size());
      all_gather_bytes(&value, result.data(), std::vector<Index>(size(), 1), sizeof(T));
      return result;
    });
  }

  /// The values of rank `root` on every rank, in place; the length is the same on every rank.
  template <class T>
  void broadcast(std::span<T> values, int root) const {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(values.data(), values.size() * sizeof(T), root);
  }
  /// The text of rank `root` on every rank.
  [[nodiscard]] std::string broadcast(const std::string& text, int root) const;

  /// What all_to_all_v returns: the values from rank 0, then from rank 1, ..., and how many came from each.
  template <class T>
  struct Received {
    std::vector<T> values;
    std::vector<Index> counts;
  };
  /// Sends counts[q] consecutive elements of `values` to rank q. T is trivially copyable.
  template <class T>
  [[nodiscard]] Received<T> all_to_all_v(std::span<const T> values, std::span<const Index> counts) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return agree_once("all_to_all_v", [&] {
      Received<T> received;
      received.counts = exchange_counts(counts, values.size());
      Index total = 0;
      for (const Index count : received.counts) total += count;
      received.values.resize(static_cast<std::size_t>(total));
      all_to_all_bytes(values.data(), counts, received.values.data(), received.counts, sizeof(T));
      return received;
    });
  }

  /// Runs `body` and returns what it returns. When it throws on some ranks, all ranks throw: the exception of
  /// the lowest of them, with the same kind and the same text on all (a std::exception becomes sar::Error).
  /// The text begins with "rank 2: " unless all ranks have failed alike. The communicator can be used
  /// afterwards.
  ///
  /// `body` may communicate by this communicator. Its next collective call is a synchronization point: the
  /// other ranks learn there that a rank has failed, before they wait for it. So a program that may fail
  /// anywhere does not hang when its steps run in agree:
  ///
  ///     comm.agree([&] { forward(); backward(); step(); });
  ///
  /// Calls nest. An exception of an inner call is the same on all ranks, and may be caught in the outer one.
  /// Cost: one all_reduce of 40 bytes at the end. `caller` is the function that calls, for the texts of
  /// errors.
  template <class F>
  auto agree(F&& body, const char* caller = __builtin_FUNCTION()) const -> std::invoke_result_t<F&> {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      run_agreed(body, caller);
    } else {
      std::optional<std::invoke_result_t<F&>> result;
      run_agreed([&] { result.emplace(body()); }, caller);
      return std::move(*result);
    }
  }
  /// Whether all ranks give the same value. `call` names it where another rank makes another call.
  [[nodiscard]] bool all_equal(std::int64_t value, const char* call = "all_equal") const;
  /// A synchronization point: throws on all ranks when one of them has left the body of agree() by an
  /// exception, or comes with another `call`. All collective calls begin with one; an exchange of messages,
  /// which does not begin with a collective call, needs it by itself. For comm/ only.
  void synchronize(const char* call) const;

  /// Whether SAR_DEBUG is set in the environment of a rank: costly comparisons are wanted. Local.
  [[nodiscard]] bool debug() const noexcept;
  [[nodiscard]] CommStats stats() const noexcept;  ///< since the first handle was made; local
  /// Whether messages from `rank` come through memory that both ranks share. Local.
  [[nodiscard]] bool on_same_node(int rank) const;
  void add_to_stats(const CommStats& more) const noexcept;  ///< for comm/ only; local
  /// A tag for one exchange of messages, so that exchanges under way at the same time do not take each
  /// other's messages. The ranks call it in the same order, and then get the same tag. For comm/ only. Local.
  [[nodiscard]] int new_tag() const noexcept;
  /// The exchanges under way: a rank that waits for one of them moves all of them on. For comm/ only. Local.
  [[nodiscard]] std::vector<PendingExchange*>& exchanges() const noexcept;
  /// steady_nanoseconds() when all ranks left a barrier, the same for the ranks of a node. For comm/ only.
  [[nodiscard]] std::int64_t common_time() const;
  /// Whether a body of agree() is running on this rank. For comm/ only. Local.
  [[nodiscard]] bool in_agreement() const noexcept;

 private:
  std::shared_ptr<CommunicatorState> state_;

  void run_agreed(FunctionRef<void()> body, const char* caller) const;
  /// agree() for a call that takes memory, unless a body of agree() called it.
  template <class F>
  auto agree_once(const char* call, F&& body) const {
    return in_agreement() ? body() : agree(body, call);
  }
  [[nodiscard]] std::vector<Index> gather_counts(Index count) const;
  [[nodiscard]] std::vector<Index> exchange_counts(std::span<const Index> counts,
                                                   std::size_t num_values) const;
  void all_gather_bytes(const void* mine, void* all, const std::vector<Index>& counts,
                        std::size_t element_bytes) const;
  void broadcast_bytes(void* data, std::size_t bytes, int root) const;
  void all_to_all_bytes(const void* out, std::span<const Index> out_counts, void* in,
                        std::span<const Index> in_counts, std::size_t element_bytes) const;
};

}  // namespace sar
