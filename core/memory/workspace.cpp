// SPDX-License-Identifier: MIT

// Blocks of one size and source form a bin. A bin links its free blocks through their first bytes (last
// in, first out), so a cache of any size needs no memory of its own. Bins are searched one after the
// other: O(bins) time per allocation and release.
#include <sar/core/memory/workspace.hpp>
#include <sar/core/threads/in_loop.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

thread_local Workspace* in_use_here = nullptr;

/// Sizes are rounded up to a multiple, so that blocks are reused more often and a free block can store the
/// pointer to the next one.
constexpr std::size_t unit = 64;

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

constexpr Workspace::Source of_objects{
    [](std::size_t bytes) { return ::operator new(rounded(bytes)); },
    [](void* block, std::size_t) noexcept { ::operator delete(block); },
};

}  // namespace

Workspace::~Workspace() {
  for (const Bin& bin : bins_)
    for (FreeBlock* block = bin.free; block != nullptr;)
      bin.source->deallocate(std::exchange(block, block->next), bin.bytes);
}

Workspace::Use::Use(Workspace& workspace) noexcept : outer_(std::exchange(in_use_here, &workspace)) {}
Workspace::Use::~Use() {
  in_use_here = outer_;
}

Workspace* Workspace::current() noexcept {
  return in_use_here;
}

Workspace::Bin* Workspace::find(std::size_t bytes, const Source& source) noexcept {
  const auto found = std::ranges::find_if(
      bins_, [&](const Bin& bin) { return bin.bytes == bytes && bin.source == &source; });
  return found != bins_.end() ? &*found : nullptr;
}

void* Workspace::take(std::size_t bytes, const Source& source) {
  Bin* bin = find(bytes, source);
  if (bin == nullptr) bin = &bins_.emplace_back(Bin{.source = &source, .bytes = bytes});
  void* block = bin->free;
  if (block != nullptr) {
    bin->free = bin->free->next;
  } else {
    block = source.allocate(bytes);
    ++taken_anew_;
  }
  ++bin->in_use;
  return block;
}

void Workspace::give_back(void* block, std::size_t bytes, const Source& source) noexcept {
  Bin* const bin = find(bytes, source);
  if (bin == nullptr || bin->in_use == 0) return source.deallocate(block, bytes);
  --bin->in_use;
  bin->free = ::new (block) FreeBlock{bin->free};
}

void Workspace::start_pass(std::size_t request, std::size_t bytes, void* block) noexcept {
  requests_.clear();
  lent_request_ = request;
  lent_bytes_ = bytes;
  lent_ = block;
  lent_in_use_ = false;
}

std::size_t Workspace::request_of(const void* block) const noexcept {
  for (std::size_t i = requests_.size(); i-- > 0;)
    if (requests_[i] == block) return i;
  return no_request;
}

void* Workspace::take_values(std::size_t bytes, const Source& source) {
  if (InLoop::here()) return take(bytes, source);
  const bool lends = requests_.size() == lent_request_ && bytes == lent_bytes_;
  requests_.push_back(nullptr);  // reserve the entry first: this may throw
  void* const block = lends ? lent_ : take(bytes, source);
  lent_in_use_ |= lends;
  return requests_.back() = block;
}

void Workspace::give_back_values(void* block, std::size_t bytes, const Source& source) noexcept {
  if (lent_in_use_ && block == lent_)
    lent_in_use_ = false;
  else
    give_back(block, bytes, source);
}

void* allocate_object(std::size_t bytes) {
  Workspace* const workspace = Workspace::current();
  return workspace != nullptr ? workspace->take(rounded(bytes), of_objects) : of_objects.allocate(bytes);
}

void deallocate_object(void* block, std::size_t bytes) noexcept {
  Workspace* const workspace = Workspace::current();
  if (workspace != nullptr)
    workspace->give_back(block, rounded(bytes), of_objects);
  else
    of_objects.deallocate(block, bytes);
}

}}  // namespace sar
