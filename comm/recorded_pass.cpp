// SPDX-License-Identifier: MIT

// A replay has two synchronization points: before its first fetch, and at the end of agree() in run(). If
// a rank leaves the record, end_record() first completes its exchanges in flight and then takes part in
// all remaining fetches, in the recorded order and with empty messages, so that every rank uses as many
// tags.
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/recorded_pass.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// A run, from the start of the body to its end.
struct RecordedPass::Run : NonCopyable {
  Run(RecordedPass& of, bool replays) : pass(of) {
    current(pass.comm_) = &pass;
    pass.replays_ = replays;
    pass.ended_ = false;
    pass.next_ = 0;
    if (replays) return;
    pass.exchanges_only_ = true;
    pass.exchanges_.clear();
  }
  ~Run() {
    if (pass.next() != nullptr) pass.end_record();
    current(pass.comm_) = nullptr;
  }

  RecordedPass& pass;
};

void RecordedPass::run(FunctionRef<void(bool)> body, const char* caller) {
  RunningPass*& running = current(comm_);
  const bool nested = running != nullptr;
  const std::size_t& failures = comm_.state_->failures;
  const bool replays = std::exchange(recorded_, false) && !nested && failures_ == failures;
  comm_.agree(
      [&] {
        if (nested) {
          running->end_record();
          return body(false);
        }
        const Run run(*this, replays);
        body(replays);
      },
      caller);
  recorded_ = !nested && !ended_;
  failures_ = failures;
}

RunningPass*& RecordedPass::current(const Communicator& comm) noexcept {
  return comm.state_->pass;
}

void RecordedPass::synchronize() const {
  comm_.state_->begin_call({.name = "exchange of rows"}, 0, true);
}

void RecordedPass::begin(std::unique_ptr<RecordedExchange> exchange) {
  sink_.resize(std::max(sink_.size(), exchange->largest_message()));
  exchanges_.push_back(std::move(exchange));
  synchronize();
}

const RecordedExchange* RecordedPass::next() const noexcept {
  const bool is_known = replays_ && exchanges_only_ && !ended_ && next_ < exchanges_.size();
  return is_known ? exchanges_[next_].get() : nullptr;
}

void RecordedPass::begin_next() {
  if (next_ == 0) synchronize();
  ++next_;
}

void RecordedPass::end_record() noexcept {
  if (!replays_) {
    exchanges_only_ = false;
    exchanges_.clear();
    return;
  }
  if (ended_ || !exchanges_only_) return;
  if (next_ > 0 && next_ < exchanges_.size()) {          // all ranks are in the pass
    for (PendingExchange* exchange : comm_.exchanges())  // a peer may wait for it first
      if (exchange->under_way_within(1)) exchange->drain();
    while (next_ < exchanges_.size()) exchanges_[next_++]->take_part_without_rows(sink_.data());
  }
  ended_ = true;
}

RecordedPass::Pause::Pause(const Communicator& comm) noexcept : current_(current(comm)), paused_(current_) {
  if (paused_ != nullptr && !paused_->replays()) current_ = nullptr;
}

}}  // namespace sar
