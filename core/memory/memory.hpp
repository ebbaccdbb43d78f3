// SPDX-License-Identifier: MIT

/// The byte account: counts the bytes of all tensors and of all index arrays of graphs, live and at the peak.
///
/// Blocks of 64 KB and more come from an Arena on huge pages, which keeps freed pages for reuse (arena.hpp).
/// The resident memory stays within 65/64 of the peak of the account since the last release_cached_memory()
/// plus 16 MB. Smaller blocks come from oneTBB's scalable allocator; the process's malloc is not changed.
///
/// Room core/memory: Allocation: the byte account, the arena of huge pages, buffers that are reused, sets of
/// ids; transactions, which restore memory after a failure.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the bytes that tensors and index arrays of this process hold now.
std::size_t live_bytes() noexcept;

/// Returns the maximum of live_bytes() since the program started or since reset_peak_bytes().
std::size_t peak_bytes() noexcept;

/// Starts a new measurement: sets peak_bytes() to live_bytes().
void reset_peak_bytes() noexcept;

/// Releases the pages of all free blocks to the system, for example after preprocessing that needed more
/// memory than training will.
void release_cached_memory() noexcept;

/// Allocates uninitialized memory aligned to 64 bytes and adds it to the account. Throws MemoryError.
void* allocate_bytes(std::size_t bytes);

/// Frees a block of allocate_bytes(); `bytes` is the size it was allocated with.
void deallocate_bytes(void* block, std::size_t bytes) noexcept;

/// Returns whether shrink_block() can leave `to` bytes of a block: not of small blocks, and not if this
/// thread has an active Workspace.
[[nodiscard]] bool can_shrink(const void* block, std::size_t to) noexcept;

/// Gives back all but the first `to` bytes of a block of `bytes` bytes, which is freed with `to` bytes then;
/// only if can_shrink().
void shrink_block(void* block, std::size_t bytes, std::size_t to) noexcept;

/// Frees a block of allocate_bytes() that a shared_ptr has.
struct BlockDeleter {
  std::size_t bytes;
  void operator()(void* block) const noexcept { deallocate_bytes(block, bytes); }
};

/// A standard allocator that uses the account and leaves new elements uninitialized.
template <class T>
class AccountedAllocator {
 public:
  using value_type = T;
  AccountedAllocator() = default;
  template <class U>
  AccountedAllocator(const AccountedAllocator<U>&) noexcept {}  // NOLINT: allocators convert
  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_bytes(n * sizeof(T)));
  }
  void deallocate(T* block, std::size_t n) noexcept { deallocate_bytes(block, n * sizeof(T)); }
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  template <class U>
  bool operator==(const AccountedAllocator<U>&) const noexcept {
    return true;
  }
};

/// A vector in the byte account, indexed with signed Index. resize() does not initialize new elements.
template <class T>
class Array : public std::vector<T, AccountedAllocator<T>> {
 public:
  using Base = std::vector<T, AccountedAllocator<T>>;
  using Base::Base;
  Array() = default;
  Array(const Base& values) : Base(values) {}        // NOLINT: converts by design
  Array(Base&& values) : Base(std::move(values)) {}  // NOLINT

  [[nodiscard]] T& operator[](Index i) noexcept { return this->data()[i]; }
  [[nodiscard]] const T& operator[](Index i) const noexcept { return this->data()[i]; }
};

}}  // namespace sar
