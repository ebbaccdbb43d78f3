// SPDX-License-Identifier: MIT

/// The byte account: counts the bytes of all tensors and of all index arrays of graphs, live and at the peak;
/// Workspace, which reuses blocks.
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

// Workspace: reuses the blocks of a pass in the next pass.
//
// A pass over a graph allocates the same blocks in each call. While a Workspace is active on a thread,
// blocks of less than 64 KB that this thread frees stay in the workspace, and allocations of the same size
// reuse them; larger ones are the arena's, which reuses its pages for blocks of any size. From the second
// pass on, nothing is allocated from the system. Cached blocks of values remain in the byte account. Other
// threads are not affected. For implementation files.

/// A cache of free blocks by size and source.
class Workspace : NonCopyable {
 public:
  ~Workspace();  ///< frees the cached blocks; the workspace must not be active

  /// Makes a workspace the active one of this thread during its lifetime. Uses nest; the innermost is active.
  class Use : NonCopyable {
   public:
    explicit Use(Workspace& workspace) noexcept;
    ~Use();

   private:
    Workspace* outer_;
  };
  /// Returns the active workspace of this thread, or null.
  [[nodiscard]] static Workspace* current() noexcept;

  /// The functions that allocate and free blocks, by which the workspace tells blocks of different allocators
  /// apart.
  struct Source {
    void* (*allocate)(std::size_t bytes);
    void (*deallocate)(void* block, std::size_t bytes) noexcept;
  };
  /// Returns an uninitialized block: a cached one, or a new one from `source`. Throws what `source` throws.
  [[nodiscard]] void* take(std::size_t bytes, const Source& source);
  /// Caches a block. A block of a size of which the workspace has none in use is freed to its source instead.
  void give_back(void* block, std::size_t bytes, const Source& source) noexcept;

  // ---- the result of a pass in memory of the caller

  /// Begins a pass: allocations of values are numbered from 0. Allocation number `request` returns the
  /// caller's `block` if it asks for exactly `bytes` bytes.
  void start_pass(std::size_t request, std::size_t bytes, void* block) noexcept;
  /// Begins a pass without a caller's block.
  void start_pass() noexcept { start_pass(no_request, 0, nullptr); }
  /// Returns the number of the last allocation of this pass that returned `block`, or no_request.
  [[nodiscard]] std::size_t request_of(const void* block) const noexcept;
  /// Returns whether the caller's block was allocated and not freed again.
  [[nodiscard]] bool holds_lent() const noexcept { return lent_in_use_; }
  static constexpr std::size_t no_request = static_cast<std::size_t>(-1);

  /// take() and give_back() for values, including the substitution of start_pass(). Blocks of the arena's
  /// size are not cached.
  [[nodiscard]] void* take_values(std::size_t bytes, const Source& source);
  void give_back_values(void* block, std::size_t bytes, const Source& source) noexcept;

  /// Returns how many blocks were allocated from their source because no cached block fitted.
  [[nodiscard]] std::size_t taken_anew() const noexcept { return taken_anew_; }

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  struct Bin {
    const Source* source;
    std::size_t bytes;
    std::size_t in_use = 0;  // blocks allocated and not freed
    FreeBlock* free = nullptr;
  };
  [[nodiscard]] Bin* find(std::size_t bytes, const Source& source) noexcept;

  std::vector<Bin> bins_;
  std::vector<void*> requests_;  // the blocks allocated in this pass, in order
  std::size_t lent_request_ = no_request, lent_bytes_ = 0;
  void* lent_ = nullptr;
  bool lent_in_use_ = false;
  std::size_t taken_anew_ = 0;
};

/// Allocates memory for objects, outside the byte account: from this thread's active workspace, or with
/// operator new.
[[nodiscard]] void* allocate_object(std::size_t bytes);
void deallocate_object(void* block, std::size_t bytes) noexcept;

/// A standard allocator over allocate_object().
template <class T>
class WorkspaceAllocator {
 public:
  using value_type = T;
  WorkspaceAllocator() = default;
  template <class U>
  WorkspaceAllocator(const WorkspaceAllocator<U>&) noexcept {}  // NOLINT: allocators convert
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_object(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { deallocate_object(block, n * sizeof(T)); }
  template <class U>
  bool operator==(const WorkspaceAllocator<U>&) const noexcept {
    return true;
  }
};

/// A vector that lives during one pass.
template <class T>
using PassVector = std::vector<T, WorkspaceAllocator<T>>;
}}  // namespace sar
