// SPDX-License-Identifier: MIT

/// Numbers for nodes that have names: 0, 1, ... in the order of first appearance, whatever the number of
/// ranks. The hash of a word decides which rank owns it.
#pragma once

#include "source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// A hash that is the same on all ranks: it decides which rank owns a word.
std::uint64_t hash_of(std::string_view word) noexcept;

/// Words for NodeKeys, of which some may be the digits of numbers.
class KeyWords {
 public:
  explicit KeyWords(std::size_t count) : words_(count), digits_(count) {}
  void set(std::size_t i, std::string_view word) { words_[i] = word; }
  void set(std::size_t i, Index number);
  [[nodiscard]] std::span<const std::string_view> words() const noexcept { return words_; }

 private:
  std::vector<std::string_view> words_;
  std::vector<std::array<char, 20>> digits_;
};

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

/// Collective. The different words of all ranks; a word is a line without its end.
using WordSet = std::set<std::string, std::less<>>;
WordSet gather_words(const Communicator& comm, const WordSet& mine);

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

/// Reads a text with an id a line, or a table: its header calls a column id, node, key, name or x_id, or it
/// is a .csv or .tsv file without a header and has the ids in the first column. Row i, which is neither a
/// comment nor empty, has the id of node i. `take` gets the ids of consecutive rows of this rank and the
/// number of the first; every rank calls it the same number of times. Returns the number of rows. Collective;
/// throws InputError, the same on every rank.
Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take);

}  // namespace sar::formats
