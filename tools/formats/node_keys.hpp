// SPDX-License-Identifier: MIT

/// Numbers for nodes that have names: 0, 1, ... in the order of first appearance, whatever the number of
/// ranks. The hash of a word decides which rank owns it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Collects words in rounds, then numbers them.
class NodeKeys {
 public:
  explicit NodeKeys(const Communicator& comm) : comm_(comm) {}

  /// Collective. A handle for each word, for final_numbers(). Word i has the position first_position + i
  /// among all words; the first position of a word decides its number.
  [[nodiscard]] std::vector<Index> handles(std::span<const std::string_view> words, Index first_position);

  /// Collective. Numbers the words; called once, after the last of them. `num_positions` counts those of
  /// all ranks.
  void number(Index num_positions);
  [[nodiscard]] Index size() const noexcept { return owners_.num_nodes(); }  ///< words of all ranks
  /// Collective. Replaces handles by numbers.
  void final_numbers(std::span<Index> handles) const;

  /// Collective. The numbers of words, -1 for those that have not been seen; after number().
  [[nodiscard]] std::vector<Index> find(std::span<const std::string_view> words) const;

  /// Collective. How many words have their first position before `position`.
  [[nodiscard]] Index count_before(Index position) const;
  /// Collective. The word with this number, on all ranks.
  [[nodiscard]] std::string word(Index number) const;

  /// Writes the words, a line each, in the order of their numbers. Collective; throws InputError, the same on
  /// every rank, when writing fails.
  void write(const std::string& path) const;

 private:
  /// Collective. Asks the owner of each word for a number. At the owner, `answer` gets the word and the
  /// first position that it has on a rank.
  template <class Answer>
  [[nodiscard]] std::vector<Index> ask_owners(std::span<const std::string_view> words, Index first_position,
                                              const Answer& answer) const;

  Communicator comm_;
  KeyTable table_;
  Array<Index> first_positions_;  // of my words
  Array<Index> order_;            // my words in the order of first appearance
  Array<Index> numbers_;          // of my words
  PartitionBook owners_;          // words of each rank
};

}  // namespace sar::formats
