// SPDX-License-Identifier: MIT

/// Transactions: state that a failed call has changed is restored to what it was before the call.
///
/// Communicator::agree opens a transaction, and so do calls that change state and can fail afterwards, such
/// as a layer with dropout. State that outlives a call (counters of random draws, running statistics,
/// parameters, gradients, positions of loaders) is saved before it changes.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Local. A scope of changes. If an exception leaves the scope, its destructor restores what was saved in
/// it. Otherwise the enclosing transaction of the thread, if any, takes over what it has not saved itself.
/// A transaction keeps one copy of each state that changes in it.
class Transaction : NonCopyable {
 public:
  /// What a failure in an inner transaction means for this one.
  enum class Inner {
    ends,   ///< it restores its own changes; the caller may go on
    joins,  ///< it fails, too: inner transactions keep no copies of their own
  };
  explicit Transaction(Inner inner = Inner::ends) noexcept;
  ~Transaction();

  /// Returns whether a transaction is open on this thread. Without one, changes are final.
  static bool is_open() noexcept;

  /// To be called before `bytes` bytes of state at `state` change. If this is the first time in the innermost
  /// transaction, keeps the function that make_restore() returns: it restores the present state and does not
  /// throw. The state must live as long as the function, or end with forget(). Throws std::bad_alloc.
  template <class MakeRestore>
  static void save(const void* state, std::size_t bytes, const MakeRestore& make_restore) {
    if (is_open() && !is_saved({state, bytes})) add({state, bytes}, make_restore());
  }
  /// save() for plain bytes: keeps a copy. `owner` keeps `data` alive; if it is null, the caller does.
  static void save_bytes(void* data, std::size_t bytes, std::shared_ptr<const void> owner);
  /// Drops what open transactions of this thread have saved for the state, which ends.
  static void forget(const void* state, std::size_t bytes) noexcept {
    if (is_open()) remove({state, bytes});
  }

 private:
  using State = std::pair<const void*, std::size_t>;
  using Restore = std::function<void()>;
  static bool is_saved(const State& state) noexcept;
  static void add(const State& state, Restore restore);
  static void remove(const State& state) noexcept;

  Inner inner_;
  Transaction* outer_;
  bool is_joined_;  // to outer_
  int exceptions_;                                 // being handled when the scope began
  std::set<State> saved_;                          // the keys of `restores_`
  std::list<std::pair<State, Restore>> restores_;  // in the order of the calls
};

/// A value that a transaction restores. Copies have values of their own.
template <class T>
class Recoverable {
 public:
  Recoverable() = default;
  Recoverable(T value) : value_(std::move(value)) {}  // NOLINT: it is a T
  Recoverable(const Recoverable& other) : value_(other.value_) {}
  Recoverable& operator=(const Recoverable& other) { return *this = other.value_; }
  Recoverable& operator=(T value) {
    change() = std::move(value);
    return *this;
  }
  ~Recoverable() { Transaction::forget(&value_, sizeof(T)); }

  operator const T&() const noexcept { return value_; }  // NOLINT: it is a T
  [[nodiscard]] const T& get() const noexcept { return value_; }
  /// Saves the value in the open transaction and returns it for a change.
  T& change() {
    Transaction::save(&value_, sizeof(T),
                      [this] { return [this, before = value_]() mutable { std::swap(value_, before); }; });
    return value_;
  }

 private:
  T value_{};
};

}}  // namespace sar
