/// Workspace: memory that the same work takes again and again.
///
/// A pass over a graph takes the same blocks in each call. While a Workspace is in use on a thread, blocks
/// that this thread gives back stay in the workspace, and requests of their size take them from there: the
/// second pass and all later ones take no memory from the system. A block of values stays in the byte account
/// (memory.hpp) meanwhile. Other threads are not concerned. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace sar::inline SAR_PRECISION {

class Workspace {
 public:
  Workspace() = default;
  ~Workspace();  ///< frees the blocks that were given back; not while it is in use
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// While alive, the workspace serves the thread that made this. Uses nest; the innermost serves.
  class Use {
   public:
    explicit Use(Workspace& workspace) noexcept;
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Workspace* outer_;
  };
  /// That of this thread now, or null.
  [[nodiscard]] static Workspace* current() noexcept;

  /// Blocks of one kind: where new ones come from, and where they go at the end.
  struct Source {
    void* (*allocate)(std::size_t bytes);
    void (*deallocate)(void* block, std::size_t bytes) noexcept;
  };
  /// Uninitialised. Throws what `source` throws.
  [[nodiscard]] void* take(std::size_t bytes, const Source& source);
  /// Keeps a block for later, unless it has given out fewer of this size: then it goes to its source.
  void give_back(void* block, std::size_t bytes, const Source& source) noexcept;

  // ---- the result of a pass in memory of the caller

  /// From now on a pass takes blocks of values: its requests are counted. Request number `request` gets
  /// `block`, which is not the workspace's, if it asks for `bytes` bytes.
  void start_pass(std::size_t request, std::size_t bytes, void* block) noexcept;
  void start_pass() noexcept { start_pass(no_request, 0, nullptr); }
  /// The number of the last request of this pass that got `block`, or no_request.
  [[nodiscard]] std::size_t request_of(const void* block) const noexcept;
  /// Whether the caller's block was given out and not given back.
  [[nodiscard]] bool holds_lent() const noexcept { return lent_in_use_; }
  static constexpr std::size_t no_request = static_cast<std::size_t>(-1);

  /// Memory of values; as take() and give_back(), with what start_pass() says.
  [[nodiscard]] void* take_values(std::size_t bytes, const Source& source);
  void give_back_values(void* block, std::size_t bytes, const Source& source) noexcept;

  /// Blocks that came from their source so far, because there was none to use again.
  [[nodiscard]] std::size_t taken_anew() const noexcept { return taken_anew_; }

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  struct Bin {
    const Source* source;
    std::size_t bytes;
    std::size_t in_use = 0;  // given out and not yet given back
    FreeBlock* free = nullptr;
  };
  [[nodiscard]] Bin* find(std::size_t bytes, const Source& source) noexcept;

  std::vector<Bin> bins_;
  std::vector<void*> requests_;  // the blocks that this pass got, in order
  std::size_t lent_request_ = no_request, lent_bytes_ = 0;
  void* lent_ = nullptr;
  bool lent_in_use_ = false;
  std::size_t taken_anew_ = 0;
};

/// Memory of objects, not in the byte account: from the workspace of this thread, or from operator new.
[[nodiscard]] void* allocate_object(std::size_t bytes);
void deallocate_object(void* block, std::size_t bytes) noexcept;

/// A standard allocator of such memory.
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

/// A vector for the time of a pass.
template <class T>
using PassVector = std::vector<T, WorkspaceAllocator<T>>;

}  // namespace sar
