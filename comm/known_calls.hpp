/// KnownCalls: collective work that all ranks have done before, in the same way.
///
/// While it is alive, in the body of Communicator::agree, the calls of agree() inside of that body do not
/// synchronize, and the arguments of operations are not compared between ranks. What is left are the end of
/// the outer agree(), the start of an exchange of rows, and what communicates by itself. A rank that fails
/// still meets the others at the next of these, and all ranks throw.
///
/// Where all that the work does together are fetches of rows, one after the other, only the first of them
/// synchronizes: then all ranks are known to be in the work. A rank that fails later, or does less, still
/// takes part in the fetches that are left, without rows: it tells its peers that nothing will come, and
/// throws away what they send. So no rank waits for ever, and tags stay equal. For implementation files.
#pragma once

#include <sar/comm/pending_exchange.hpp>
#include <sar/config.hpp>
#include <sar/core/memory.hpp>

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// An exchange of the work, with all that it takes to give it up.
class KnownExchange {
 public:
  KnownExchange() = default;
  virtual ~KnownExchange() = default;
  KnownExchange(const KnownExchange&) = delete;
  KnownExchange& operator=(const KnownExchange&) = delete;

  /// Bytes of the largest message that this rank receives.
  [[nodiscard]] virtual std::size_t largest_message() const noexcept = 0;
  /// Takes part in the exchange without rows, from its start to its end; once. `sink`: memory for the largest
  /// message. Takes no memory.
  virtual void take_part_without_rows(std::byte* sink) noexcept = 0;
};

/// What the ranks have done in the work when they did it for the first time.
struct WorkRecord {
  explicit WorkRecord(MPI_Comm of);  ///< `of`: Communicator::handle(), which lives as long
  ~WorkRecord();
  WorkRecord(const WorkRecord&) = delete;
  WorkRecord& operator=(const WorkRecord&) = delete;

  /// Nothing is known any more on this communicator. All ranks learn of a failure of one of them together,
  /// also those that were not in the work.
  static void forget_all(MPI_Comm comm) noexcept;

  const MPI_Comm comm;
  bool known = false;         ///< the ranks have found their calls equal
  bool fetches_only = false;  ///< `exchanges` are all that they did together
  bool spent = false;         ///< the ranks have done something else, or given up: it must be made anew
  std::vector<std::unique_ptr<KnownExchange>> exchanges;
  Array<std::byte> sink;  ///< for the largest message
};

class KnownCalls {
 public:
  /// All ranks make it, as the first thing in the body of agree(). Where `known`, the ranks have done this
  /// work before, and `record` is of that; otherwise it is made now. `under_way`: Communicator::exchanges().
  /// Inside of another KnownCalls it does nothing, and the record of that one is not of fetches only. Local,
  /// for this thread.
  KnownCalls(WorkRecord& record, bool known, const std::vector<PendingExchange*>& under_way) noexcept;
  ~KnownCalls();  ///< takes part in the exchanges that are left
  KnownCalls(const KnownCalls&) = delete;
  KnownCalls& operator=(const KnownCalls&) = delete;

  /// That of this thread, or null.
  [[nodiscard]] static KnownCalls* current() noexcept;
  /// Whether the calls of this communicator are known on this thread.
  [[nodiscard]] static bool of(MPI_Comm comm) noexcept;
  /// The ranks are about to do something together that is not known.
  static void before_other_call() noexcept;

  /// While alive, the calls of the ranks are none of what this is about: they compare what is known later, or
  /// are the synchronization point of an exchange.
  class Expected {
   public:
    Expected() noexcept;
    ~Expected();
    Expected(const Expected&) = delete;
    Expected& operator=(const Expected&) = delete;

   private:
    KnownCalls* calls_;
    bool before_ = false;
  };
  /// While alive, the ranks do what they do for the first time only. It is not recorded.
  class Once {
   public:
    Once() noexcept;
    ~Once();
    Once(const Once&) = delete;
    Once& operator=(const Once&) = delete;

   private:
    KnownCalls* calls_;
    bool before_ = false;
  };

  [[nodiscard]] bool is_of(MPI_Comm comm) const noexcept { return record_.comm == comm; }
  /// Whether this is the first time, with fetches only so far.
  [[nodiscard]] bool records() const noexcept { return !known_ && record_.fetches_only && !once_; }
  /// Before the synchronization point of an exchange, if records().
  void record(std::unique_ptr<KnownExchange> exchange);
  /// The exchange that comes next, or null where this is not known.
  [[nodiscard]] const KnownExchange* next() const noexcept;
  /// Whether all ranks are known to be in the work.
  [[nodiscard]] bool all_are_here() const noexcept { return next_ > 0; }
  /// next() begins.
  void take_next() noexcept { ++next_; }
  /// From here on the ranks do something else: gives up what is left of the record.
  void leave() noexcept;

 private:
  WorkRecord& record_;
  const std::vector<PendingExchange*>& under_way_;
  KnownCalls* outer_;
  bool known_;
  bool expected_ = false, once_ = false;
  bool left_ = false;
  std::size_t next_ = 0;  // of record_.exchanges
};

}  // namespace sar
