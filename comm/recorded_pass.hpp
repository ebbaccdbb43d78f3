// SPDX-License-Identifier: MIT

/// RecordedPass: records the exchanges of a pass that is repeated, such as a prediction, and replays them
/// with fewer synchronization points.
///
/// The first run records the exchanges. In later runs (replays), calls of agree() inside the pass do not
/// synchronize, and arguments are not compared between ranks. If the record contains only fetches, one after
/// another, only the first fetch synchronizes, which ensures that all ranks are in the pass.
///
/// Failures: a rank that fails in a replay, or makes fewer calls, still takes part in the remaining fetches
/// without rows: it sends empty messages and discards what it receives. No rank waits forever, and tags stay
/// equal. After a run that deviates from the record, or a failure of any call of the communicator, the next
/// run records again. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// An exchange of a recorded pass, with the buffers and packets needed to complete it without rows.
class RecordedExchange : NonCopyable {
 public:
  virtual ~RecordedExchange() = default;

  /// Bytes of the largest message that this rank receives.
  [[nodiscard]] virtual std::size_t largest_message() const noexcept = 0;
  /// Takes part in the exchange without rows, from its start to its end. `sink`: memory for the largest
  /// message. Takes no memory.
  virtual void take_part_without_rows(std::byte* sink) noexcept = 0;
};

class RecordedPass final : public RunningPass {
 public:
  explicit RecordedPass(const Communicator& comm) : comm_(comm) {}

  /// Collective. Runs body(whether the pass is replayed) in agree(). In another RecordedPass it neither
  /// records nor replays.
  void run(FunctionRef<void(bool)> body, const char* caller);

  /// Local. Returns the pass that is running on this communicator, or null.
  [[nodiscard]] static RecordedPass* of(const Communicator& comm) noexcept {
    return static_cast<RecordedPass*>(current(comm));
  }
  /// Returns whether this run records and has contained nothing but exchanges so far.
  [[nodiscard]] bool records() const noexcept { return !replays_ && exchanges_only_; }
  /// Records an exchange and synchronizes, before it starts.
  void begin(std::unique_ptr<RecordedExchange> exchange);
  /// The exchange that comes next in a replay, or null where this is not known.
  [[nodiscard]] const RecordedExchange* next() const noexcept;
  /// Synchronizes, if next() is the first one, before it starts.
  void begin_next();
  void end_record() noexcept override;

  /// During its lifetime, nothing is recorded: for communication that later runs do not repeat.
  class Pause : NonCopyable {
   public:
    explicit Pause(const Communicator& comm) noexcept;
    ~Pause() { current_ = paused_; }

   private:
    RunningPass*& current_;
    RunningPass* const paused_;
  };

 private:
  struct Run;
  [[nodiscard]] static RunningPass*& current(const Communicator& comm) noexcept;
  void synchronize() const;

  Communicator comm_;
  bool recorded_ = false;        // the last run has succeeded and did what the record says
  std::size_t failures_ = 0;     // of the communicator before that
  bool exchanges_only_ = false;  // `exchanges_` are all that the ranks did together
  std::vector<std::unique_ptr<RecordedExchange>> exchanges_;
  Array<std::byte> sink_;  // for the largest message
  std::size_t next_ = 0;   // of exchanges_, in this run
  bool ended_ = false;     // this run did something else than the record says
};

}}  // namespace sar
