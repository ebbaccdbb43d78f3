// SPDX-License-Identifier: MIT

/// Parallel loops on oneTBB whose results do not depend on the number of threads: the division into blocks
/// depends on the size only, and partial results are combined in block order. No oneTBB type is visible here.
///
/// Room core/threads: Parallel loops.
#pragma once

#include <sar/config.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(__SSE__)
#include <cfenv>
#endif

namespace sar { inline namespace SAR_PRECISION {

/// A non-owning reference to a callable: two pointers, no allocation. The callable must outlive it.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                              std::is_invocable_r_v<R, F&, Args...>>>
  FunctionRef(F&& f)                        // NOLINT: converts by design
      : object_((void*)std::addressof(f)),  // NOLINT: a function, too, and const objects
        call_([](void* object, Args... args) -> R {
          return (*(std::remove_reference_t<F>*)object)(std::forward<Args>(args)...);  // NOLINT
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// Returns the maximum number of threads for loops started by this thread.
int num_threads();

/// Limits oneTBB loops of this process to `threads` threads (at least 1) during its lifetime.
///
/// @code
/// const ThreadLimit threads(default_num_threads(comm));  // the cores of the node, shared by its ranks
/// @endcode
class ThreadLimit : NonCopyable {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While alive, this thread raises no floating-point exception, whatever the host has enabled: kernels divide
/// by zero in unused vector lanes and in means over nothing, and a loss that overflows is an InputError.
/// Parallel loops and the functions of sar.h have one. A C++ program that traps exceptions makes one around
/// the calls of the library. Local.
class QuietArithmetic : NonCopyable {
 public:
  QuietArithmetic();
  ~QuietArithmetic();

 private:
#if defined(__SSE__)
  unsigned of_host_;
#else
  std::fenv_t of_host_;
#endif
};

/// Lets communication progress while kernels run: during its lifetime, the thread that made it calls `poll`
/// between the blocks that it runs in parallel loops. No other thread calls it, and the same thread must
/// destroy it. Several may be alive, in any order of their ends; all are called.
class PollScope : NonCopyable {
 public:
  explicit PollScope(FunctionRef<void()> poll);
  ~PollScope();

 private:
  friend void poll_progress();
  FunctionRef<void()> poll_;
  PollScope* before_ = nullptr;
  PollScope* next_;
};

/// Calls the PollScopes of this thread. For loop bodies that take longer than communication should wait (a
/// few hundred microseconds).
void poll_progress();

/// Calls body(begin, end) for each block of `grain` elements of [0, n); the last block may be shorter. Blocks
/// run in any order on any thread. Exceptions of the body are rethrown in the caller.
void parallel_for(Index n, Index grain, FunctionRef<void(Index begin, Index end)> body);

/// Calls body(i) for each i of [0, n), in blocks of `grain` elements as parallel_for.
template <class Body>
void parallel_for_each(Index n, Index grain, const Body& body) {
  parallel_for(n, grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) body(i);
  });
}

/// Maps each block of `grain` elements of [0, n) to a value and combines the values in block order:
///
///     combine(... combine(combine(zero, map(block 0)), map(block 1)) ...)
///
/// The result is the same for every number of threads.
template <class T, class Map, class Combine>
T parallel_reduce(Index n, Index grain, T zero, const Map& map, const Combine& combine) {
  const Index blocks = n <= 0 ? 0 : (n + grain - 1) / grain;
  std::vector<T> partial(static_cast<std::size_t>(blocks), zero);
  parallel_for(n, grain, [&](Index begin, Index end) {
    partial[static_cast<std::size_t>(begin / grain)] = map(begin, end);
  });
  for (T& value : partial) zero = combine(std::move(zero), std::move(value));
  return zero;
}

}}  // namespace sar
