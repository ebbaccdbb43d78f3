// SPDX-License-Identifier: MIT
#include "failures/injection.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

thread_local bool counting = false;
thread_local std::int64_t counted = 0;
thread_local std::int64_t failing = 0;

/// Whether the code at `address` is one of two parts of nlohmann::json that ask and cannot fail: destructors,
/// which end the program when they get nothing, and constructors from a list in braces, which lose what they
/// have got before.
bool in_json(const void* address) noexcept {
  Dl_info function{};
  if (::dladdr(address, &function) == 0 || function.dli_sname == nullptr) return false;
  const auto has = [&](const char* part) { return std::strstr(function.dli_sname, part) != nullptr; };
  return has("json_value7destroy") || (has("10basic_json") && has("St16initializer_list"));
}

/// Whether one of these parts asks. What was found of an address is kept: dladdr() reads all symbols of the
/// program.
bool json_asks() noexcept {
  struct Known {
    const void* address = nullptr;
    bool json = false;
  };
  static std::array<Known, 16384> known;  // only the thread of the test comes here
  std::array<void*, 32> frames{};
  const int size = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  return std::any_of(frames.begin(), frames.begin() + size, [](const void* address) {
    Known& slot = known[reinterpret_cast<std::uintptr_t>(address) % known.size()];
    if (slot.address != address) slot = {address, in_json(address)};
    return slot.json;
  });
}

/// Whether this allocation shall fail.
bool fails() noexcept {
  return counting && ++counted == failing && !json_asks();
}

void* allocate(std::size_t bytes) {
  if (void* block = fails() ? nullptr : std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}

void* allocate(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* block = fails() ? nullptr : std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit))
    return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, alignment);
}
// Those who ask in this way do without.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete[](void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

// sar::allocate_bytes(std::size_t), SAR_ALLOCATE_BYTES to the linker, which sends its calls here (--wrap).
extern "C" void* real_allocate_bytes(std::size_t bytes) __asm__("__real_" SAR_ALLOCATE_BYTES);
extern "C" void* wrap_allocate_bytes(std::size_t bytes) __asm__("__wrap_" SAR_ALLOCATE_BYTES);
void* wrap_allocate_bytes(std::size_t bytes) {
  if (fails()) throw std::bad_alloc();
  return real_allocate_bytes(bytes);
}

namespace sar::test {

FailingAllocation::FailingAllocation(std::int64_t number) noexcept {
  counted = 0;
  failing = number;
  counting = true;
}
FailingAllocation::~FailingAllocation() {
  counting = false;
}
std::int64_t FailingAllocation::count() const noexcept {
  return counted;
}

}  // namespace sar::test
