// SPDX-License-Identifier: MIT

// parallel_for() divides block numbers, not elements: oneTBB splits the range of block numbers as it
// likes, and a thread runs the blocks of its part in order. After each block, the thread polls the
// communication and runs one block of a side loop. A loop of one block, or on one thread, runs in the
// caller.
#include <sar/core/threads/in_loop.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/threads/side_blocks.hpp>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>

#if defined(__SSE__)
#include <immintrin.h>
#endif

#if defined(SAR_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// States for the thread sanitizer, which cannot see into oneTBB: everything before a loop happens before
/// each of its blocks, and each block happens before everything after the loop.
class LoopOrder : NonCopyable {
 public:
  LoopOrder() { release(&begin_); }
  ~LoopOrder() { acquire(&end_); }

  class Blocks : NonCopyable {
   public:
    explicit Blocks(LoopOrder& order) : order_(order) { acquire(&order_.begin_); }
    ~Blocks() { release(&order_.end_); }

   private:
    LoopOrder& order_;
  };

 private:
#if defined(SAR_THREAD_SANITIZER)
  static void acquire(void* event) {
    __tsan_acquire(event);
  }
  static void release(void* event) {
    __tsan_release(event);
  }
#else
  static void acquire(void*) {}
  static void release(void*) {}
#endif
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

thread_local PollScope* first_poll = nullptr;

}  // namespace

#if defined(__SSE__)  // std::fenv_t also saves the x87 unit, which is slow and not used
QuietArithmetic::QuietArithmetic() : of_host_(_mm_getcsr()) {
  _mm_setcsr((of_host_ | _MM_MASK_MASK) & ~static_cast<unsigned>(_MM_EXCEPT_MASK));
}
QuietArithmetic::~QuietArithmetic() {
  _mm_setcsr(of_host_);
}
#else
QuietArithmetic::QuietArithmetic() {
  std::feholdexcept(&of_host_);
}
QuietArithmetic::~QuietArithmetic() {
  std::fesetenv(&of_host_);
}
#endif

// Constructed in place: destroying a copy of a global_control would lift the limit of the original.
struct ThreadLimit::Impl {
  explicit Impl(int threads) : control(tbb::global_control::max_allowed_parallelism, std::max(threads, 1)) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(int threads) : impl_(std::make_unique<Impl>(threads)) {}
ThreadLimit::~ThreadLimit() = default;

int num_threads() {
  const auto limit = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::max(1, std::min(static_cast<int>(limit), tbb::this_task_arena::max_concurrency()));
}

PollScope::PollScope(FunctionRef<void()> poll) : poll_(poll), next_(first_poll) {
  if (next_ != nullptr) next_->before_ = this;
  first_poll = this;
}
PollScope::~PollScope() {
  (before_ != nullptr ? before_->next_ : first_poll) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

void poll_progress() {
  for (PollScope* scope = first_poll; scope != nullptr; scope = scope->next_) scope->poll_();
}

void parallel_for(Index n, Index grain, FunctionRef<void(Index, Index)> body) {
  if (n <= 0) return;
  const QuietArithmetic quiet;
  grain = std::max<Index>(grain, 1);
  const Index blocks = (n + grain - 1) / grain;
  // Blocks [first, last) in order; after each one, polls communication and runs a block of a side loop.
  const auto run_blocks = [&](Index first, Index last) {
    const InLoop in_loop;
    for (Index b = first; b < last; ++b) {
      body(b * grain, std::min(n, (b + 1) * grain));
      poll_progress();
      if (side_blocks_offered()) (void)run_side_block(nullptr);
    }
  };
  if (blocks == 1 || num_threads() == 1) {
    run_blocks(0, blocks);
    return;
  }
  LoopOrder order;
  // The loop is isolated and keeps this thread's floating-point settings. Without isolation, it would end
  // early if the host cancels the tasks that contain this call, and a thread waiting for the loop could run
  // an unrelated task (of the host or an outer loop) in the middle of a pass, on its tape.
  tbb::task_group_context context(tbb::task_group_context::isolated, tbb::task_group_context::fp_settings);
  const MatmulPrecision of_caller = matmul_precision();
  const bool mixed = mixed_precision();
  const auto body_of_range = [&](const tbb::blocked_range<Index>& range) {
    const LoopOrder::Blocks blocks_of_loop(order);
    const MatmulPrecisionScope precision(of_caller);
    const MixedPrecisionScope activations(mixed);
    run_blocks(range.begin(), range.end());
  };
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(tbb::blocked_range<Index>(0, blocks), body_of_range, context); });
}

}}  // namespace sar
