// SPDX-License-Identifier: MIT

// The open transactions of a thread form a linked list. Each has a set of the states that it has saved,
// found in O(log n), and a list of their restoring functions in the order of the calls. A failure runs the
// functions from the last to the first. Success moves list and set to the outer transaction, except for
// states that the outer one has saved before: its values are older.
#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>

#include <cstring>
#include <exception>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local Transaction* innermost = nullptr;

}  // namespace

Transaction::Transaction(Inner inner) noexcept
    : inner_(inner),
      outer_(innermost),
      is_joined_(outer_ != nullptr && outer_->inner_ == Inner::joins),
      exceptions_(std::uncaught_exceptions()) {
  if (!is_joined_) innermost = this;
}

// Moves nodes of lists and sets, and therefore allocates nothing.
Transaction::~Transaction() {
  if (is_joined_) return;
  innermost = outer_;
  if (std::uncaught_exceptions() > exceptions_) {
    for (auto entry = restores_.rbegin(); entry != restores_.rend(); ++entry) entry->second();
  } else if (outer_ != nullptr) {
    restores_.remove_if([&](const auto& entry) { return outer_->saved_.contains(entry.first); });
    outer_->restores_.splice(outer_->restores_.end(), restores_);
    outer_->saved_.merge(saved_);
  }
}

bool Transaction::is_open() noexcept {
  return innermost != nullptr;
}

void Transaction::save_bytes(void* data, std::size_t bytes, std::shared_ptr<const void> owner) {
  if (bytes == 0) return;
  save(data, bytes, [&] {
    const auto* begin = static_cast<const std::byte*>(data);
    return [data, before = Array<std::byte>(begin, begin + bytes), owner = std::move(owner)] {
      std::memcpy(data, before.data(), before.size());
    };
  });
}

bool Transaction::is_saved(const State& state) noexcept {
  return innermost->saved_.contains(state);
}

void Transaction::add(const State& state, Restore restore) {
  std::list<std::pair<State, Restore>> entry;
  entry.emplace_back(state, std::move(restore));
  innermost->saved_.insert(state);
  innermost->restores_.splice(innermost->restores_.end(), entry);
}

void Transaction::remove(const State& state) noexcept {
  for (Transaction* each = innermost; each != nullptr; each = each->outer_)
    if (each->saved_.erase(state) > 0)
      each->restores_.remove_if([&](const auto& entry) { return entry.first == state; });
}

}}  // namespace sar
