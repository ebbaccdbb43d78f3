/// RecordedPass: the exchanges of a pass that the ranks run again and again, such as a prediction.
///
/// The first run records them. Later runs replay: calls of agree() inside of the pass do not synchronize, and
/// the arguments of operations are not compared between ranks. Where the ranks do nothing else together than
/// to fetch rows, one fetch after the other, only the first fetch synchronizes: then all ranks are known to
/// be in the pass. A rank that fails later, or does less, still takes part in the fetches that are left,
/// without rows: it tells its peers that nothing will come, and discards what they send. So no rank waits for
/// ever, and tags stay equal. A run that does anything else than the record makes the next run record again,
/// as does a failure of any call of the communicator. For implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// An exchange of a recorded pass, with all that it takes to give it up.
class RecordedExchange {
 public:
  RecordedExchange() = default;
  virtual ~RecordedExchange() = default;
  RecordedExchange(const RecordedExchange&) = delete;
  RecordedExchange& operator=(const RecordedExchange&) = delete;

  /// Bytes of the largest message that this rank receives.
  [[nodiscard]] virtual std::size_t largest_message() const noexcept = 0;
  /// Takes part in the exchange without rows, from its start to its end. `sink`: memory for the largest
  /// message. Takes no memory.
  virtual void take_part_without_rows(std::byte* sink) noexcept = 0;
};

class RecordedPass final : public RunningPass {
 public:
  explicit RecordedPass(const Communicator& comm) : comm_(comm) {}
  RecordedPass(const RecordedPass&) = delete;
  RecordedPass& operator=(const RecordedPass&) = delete;

  /// Runs body(whether the pass is replayed) in agree(). In another RecordedPass it neither records nor
  /// replays. Collective.
  void run(FunctionRef<void(bool)> body, const char* caller);

  /// Returns the pass that is running on this communicator, or null. Local.
  [[nodiscard]] static RecordedPass* of(const Communicator& comm) noexcept;
  /// Whether this is a run that records, with exchanges only so far.
  [[nodiscard]] bool records() const noexcept { return !replays_ && exchanges_only_; }
  /// Records an exchange and synchronizes, before it starts.
  void begin(std::unique_ptr<RecordedExchange> exchange);
  /// The exchange that comes next in a replay, or null where this is not known.
  [[nodiscard]] const RecordedExchange* next() const noexcept;
  /// Synchronizes, if next() is the first one, before it starts.
  void begin_next();
  void end_record() noexcept override;

  /// While alive, a run that records leaves out what the ranks do, because no later run does it.
  class Pause {
   public:
    explicit Pause(const Communicator& comm) noexcept;
    ~Pause() { current_ = paused_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

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
