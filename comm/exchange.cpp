// SPDX-License-Identifier: MIT

// Loops call progress() after each block; it works at most every 20 microseconds. A rank that waits
// advances all exchanges of the communicator in turn, because a peer may need another one first, and
// yields its core after 100 passes in which nothing moved.
//
// A failure gives up the exchange: the outbox sends an empty message for the rest of each round, and what
// arrives is discarded. drain() goes on until all own messages are complete, so that no request refers to
// freed memory.
#include <sar/comm/exchange.hpp>
#include <sar/comm/status.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>

#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

// minimum time between two progress() calls that do work
constexpr std::chrono::microseconds progress_interval{20};
constexpr int passes_before_yield = 100;

}  // namespace

Exchange::Exchange(const Communicator& comm) : comm_(comm) {
  comm_.exchanges().push_back(this);
}
Exchange::~Exchange() {
  std::erase(comm_.exchanges(), this);
}

// Packing and adding run parallel loops, which may poll: busy_ prevents recursion into the same exchange.
bool Exchange::advance_once(bool waiting) {
  if (busy_ || broken_ || !begun_) return false;
  busy_ = true;
  try {
    const bool moved = advance(waiting);
    busy_ = false;
    return moved;
  } catch (const CommunicationError&) {
    busy_ = false;
    broken_ = true;
    throw;
  } catch (...) {
    busy_ = false;
    throw;
  }
}

PendingExchange::Progress Exchange::advance_in_wait() {
  const bool moved = advance_once(true);
  return {moved, std::exchange(work_seconds_, 0.0)};
}

void Exchange::progress() {
  const Clock::time_point now = Clock::now();
  if (now - last_progress_ < progress_interval) return;
  advance_once(false);
  last_progress_ = Clock::now();
}

void Exchange::start_more() {
  advance_once(true);
  work_seconds_ = 0;
}

void Exchange::advance_all() {
  const Clock::time_point start = Clock::now();
  bool moved = false;
  double worked = 0;
  // One exchange may not complete before others of the communicator do, so advance all of them.
  for (PendingExchange* exchange : comm_.exchanges()) {
    const Progress progress = exchange->advance_in_wait();
    moved |= progress.moved;
    worked += progress.work_seconds;
  }
  // Ranks may share a core, so yield eventually; most messages arrive sooner than a yield returns.
  idle_ = moved ? 0 : idle_ + 1;
  if (idle_ >= passes_before_yield) std::this_thread::yield();
  comm_.add_to_stats({.wait_seconds = std::chrono::duration<double>(Clock::now() - start).count() - worked});
}

void Exchange::wait_until(FunctionRef<bool()> done) {
  const TraceScope scope("wait for messages", TraceKind::wait);
  while (true) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    require<PeerGaveUp>(failed_peer() < 0, "rank ", failed_peer(), " gave up an exchange of rows with rank ",
                        comm_.rank());
    require<PeerGaveUp>(!given_up_, "rank ", comm_.rank(), " gave up an exchange of rows");
    require<CommunicationError>(!broken_, "an exchange of rows cannot go on after a failure of MPI");
    if (done()) return;
    advance_all();
  }
}

void Exchange::give_up_unless_done() noexcept {
  if (!begun_ || given_up_ || done()) return;
  given_up_ = true;
  give_up();
}

void Exchange::fail() noexcept {
  if (failure_ == nullptr) failure_ = std::current_exception();
  give_up_unless_done();
}

// Loops until this exchange is done, ignoring failures: the memory of its requests must not be freed before.
void Exchange::drain() noexcept {
  if (!begun_) return;
  if (!done())
    for (PendingExchange* exchange : comm_.exchanges()) exchange->give_up_unless_done();
  while (!broken_ && !done()) {
    for (PendingExchange* exchange : comm_.exchanges()) {
      try {
        exchange->advance_in_wait();
      } catch (...) {
        exchange->give_up_unless_done();
      }
    }
    std::this_thread::yield();
  }
  end();
}

void Exchange::work(bool waiting, FunctionRef<void()> body) {
  if (!waiting) return body();
  const Clock::time_point start = Clock::now();
  body();
  work_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
}

}}  // namespace sar
