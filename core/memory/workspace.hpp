// SPDX-License-Identifier: MIT

/// Workspace: reuses the blocks of a pass in the next pass.
///
/// A pass over a graph allocates the same blocks in each call. While a Workspace is active on a thread,
/// blocks freed by this thread stay in the workspace, and allocations of the same size reuse them: from the
/// second pass on, nothing is allocated from the system. Cached blocks of values remain in the byte account
/// (memory.hpp). Other threads are not affected. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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

  /// take() and give_back() for values, including the substitution of start_pass().
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
