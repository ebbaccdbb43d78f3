/// The byte account: every tensor and every index array of a graph is counted, live and at its peak.
///
/// Blocks of 64 KB and more come from an Arena (arena.hpp) on huge pages, which keeps their pages for reuse.
/// The resident memory stays within 1.05 times the largest account so far, plus 16 MB. Smaller blocks come
/// from oneTBB's scalable allocator; no setting of the process is changed.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Bytes held by tensors and graph arrays of this process now.
std::size_t live_bytes() noexcept;

/// The largest value of live_bytes() since the program started or since reset_peak_bytes().
std::size_t peak_bytes() noexcept;

/// Starts a new measurement: peak_bytes() becomes live_bytes().
void reset_peak_bytes() noexcept;

/// Gives the pages of all blocks that are not in use back to the system, e.g. after a preparation that needed
/// more memory than the training will.
void release_cached_memory() noexcept;

/// Uninitialised memory aligned to 64 bytes, entered into the account. Throws MemoryError naming the size.
void* allocate_bytes(std::size_t bytes);

/// Returns a block of allocate_bytes with the same size.
void deallocate_bytes(void* block, std::size_t bytes) noexcept;

/// A standard allocator over the account that leaves new elements uninitialised.
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

/// A vector whose memory is in the account, with signed indices as all of the library; resize() does not
/// initialise.
template <class T>
class Array : public std::vector<T, AccountedAllocator<T>> {
 public:
  using Base = std::vector<T, AccountedAllocator<T>>;
  using Base::Base;
  Array() = default;
  Array(const Base& values) : Base(values) {}        // NOLINT: they are the same, but for the index
  Array(Base&& values) : Base(std::move(values)) {}  // NOLINT

  [[nodiscard]] T& operator[](Index i) noexcept { return this->data()[i]; }
  [[nodiscard]] const T& operator[](Index i) const noexcept { return this->data()[i]; }
};

}  // namespace sar
