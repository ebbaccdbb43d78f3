// SPDX-License-Identifier: MIT

/// Local. The words that a rank has seen, each with a number.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <string_view>

namespace sar::formats {

/// A hash that is the same on all ranks: it decides which rank owns a word.
std::uint64_t hash_of(std::string_view word) noexcept;

/// Numbers words 0, 1, ... as they come. About 30 bytes a word besides its own.
class KeyTable {
 public:
  KeyTable();
  /// The number of a word. A new word gets the next number.
  Index insert(std::string_view word);
  /// The number of a word; -1: it is none of them.
  [[nodiscard]] Index find(std::string_view word) const noexcept;
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(ends_.size()); }
  [[nodiscard]] std::string_view word(Index number) const noexcept;

 private:
  /// The slot of a word, or the free one that it gets.
  [[nodiscard]] std::size_t slot_of(std::string_view word) const noexcept;
  void grow();

  Array<char> letters_;  // of all words
  Array<Index> ends_;    // where each of them ends
  Array<Index> slots_;   // open addressing: a word's number, or -1
};

}  // namespace sar::formats
