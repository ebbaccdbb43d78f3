// SPDX-License-Identifier: MIT

// Open addressing with linear probing; the table doubles when it is half full. A look-up reads one slot (8
// bytes) and the letters of the words that it meets.

#include "key_table.hpp"

#include <cstring>

namespace sar::formats {

std::uint64_t hash_of(std::string_view word) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u ^ word.size();
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (; word.size() >= 8; word.remove_prefix(8)) {
    std::uint64_t value = 0;
    std::memcpy(&value, word.data(), 8);
    mix(value);
  }
  std::uint64_t value = 0;
  if (!word.empty()) std::memcpy(&value, word.data(), word.size());
  mix(value);
  mix(hash >> 7);
  return hash;
}

KeyTable::KeyTable() : slots_(16, Index{-1}) {}

std::string_view KeyTable::word(Index number) const noexcept {
  const Index begin = number == 0 ? 0 : ends_[static_cast<std::size_t>(number) - 1];
  return {letters_.data() + begin, static_cast<std::size_t>(ends_[number] - begin)};
}

std::size_t KeyTable::slot_of(std::string_view word_to_find) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(word_to_find) & mask;
  while (slots_[slot] >= 0 && word(slots_[slot]) != word_to_find) slot = (slot + 1) & mask;
  return slot;
}

Index KeyTable::find(std::string_view word_to_find) const noexcept {
  return slots_[slot_of(word_to_find)];
}

Index KeyTable::insert(std::string_view word_to_find) {
  if (2 * (ends_.size() + 1) > slots_.size()) grow();
  const std::size_t slot = slot_of(word_to_find);
  if (slots_[slot] >= 0) return slots_[slot];
  slots_[slot] = size();
  letters_.insert(letters_.end(), word_to_find.begin(), word_to_find.end());
  ends_.push_back(static_cast<Index>(letters_.size()));
  return slots_[slot];
}

void KeyTable::grow() {
  slots_.assign(2 * slots_.size(), -1);
  const std::size_t mask = slots_.size() - 1;
  for (Index number = 0; number < size(); ++number) {
    std::size_t slot = hash_of(word(number)) & mask;
    while (slots_[slot] >= 0) slot = (slot + 1) & mask;
    slots_[slot] = number;
  }
}

}  // namespace sar::formats
