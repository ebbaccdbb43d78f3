#include <sar/core/parallel.hpp>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace sar {
namespace {

thread_local const FunctionRef<void()>* current_poll = nullptr;

}  // namespace

// Built in place: a global_control can be copied, but the copy's end would lift the limit of both.
struct ThreadLimit::Impl {
  explicit Impl(int threads)
      : control(tbb::global_control::max_allowed_parallelism,
                static_cast<std::size_t>(std::max(threads, 1))) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(int threads) : impl_(std::make_unique<Impl>(threads)) {}
ThreadLimit::~ThreadLimit() = default;

int num_threads() {
  const auto limit = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::max(1, std::min(static_cast<int>(limit), tbb::this_task_arena::max_concurrency()));
}

PollScope::PollScope(FunctionRef<void()> poll) : poll_(poll), outer_(current_poll) {
  current_poll = &poll_;
}
PollScope::~PollScope() {
  current_poll = outer_;
}

void poll() {
  if (current_poll != nullptr) (*current_poll)();
}

void parallel_for(Index n, Index grain, FunctionRef<void(Index, Index)> body) {
  if (n <= 0) return;
  grain = std::max<Index>(grain, 1);
  const Index blocks = (n + grain - 1) / grain;
  const auto run_blocks = [&](Index first, Index last) {
    for (Index b = first; b < last; ++b) {
      body(b * grain, std::min(n, (b + 1) * grain));
      poll();
    }
  };
  if (blocks == 1 || num_threads() == 1) {
    run_blocks(0, blocks);
    return;
  }
  tbb::parallel_for(tbb::blocked_range<Index>(0, blocks),
                    [&](const tbb::blocked_range<Index>& range) { run_blocks(range.begin(), range.end()); });
}

}  // namespace sar
