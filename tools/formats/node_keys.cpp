// SPDX-License-Identifier: MIT

// Words: open addressing with linear probing; the table doubles when it is half full. A look-up reads one
// slot (8 bytes) and the letters of the words that it meets.
//
// Keys: the owner of a word is its hash modulo ranks. In each round every distinct word of a rank is sent to
// its owner, who answers with a handle. For the final number of a word, the rank that has its first position
// among all words counts how many words appear before it: 8 bytes there and back for each word, O(words
// log(words) / P) time.

#include "node_keys.hpp"

#include "column_roles.hpp"
#include "line_blocks.hpp"
#include "text.hpp"

#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/memory/index_arrays.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

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

void KeyWords::set(std::size_t i, Index number) {
  const auto end = std::to_chars(digits_[i].data(), digits_[i].data() + digits_[i].size(), number).ptr;
  words_[i] = {digits_[i].data(), end};
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

WordSet gather_words(const Communicator& comm, const WordSet& mine) {
  std::string list;
  for (const std::string& word : mine) list += word + '\n';
  const std::vector<char> gathered = comm.all_gather(std::span<const char>(list));
  WordSet all;
  for (Lines lines(std::string_view(gathered.data(), gathered.size())); lines.next();)
    all.emplace(lines.line());
  return all;
}

namespace {

/// A word that is sent: its first position, or its number, and its length.
struct Parcel {
  Index position;
  Index length;
};

struct Delivery {
  Communicator::Received<Parcel> parcels;
  std::vector<char> letters;
};

/// Sends words to ranks: parcels and letters in the order of the ranks, `counts` parcels to each. Collective.
Delivery deliver(const Communicator& comm, const std::vector<Parcel>& parcels, const std::string& letters,
                 const std::vector<Index>& counts) {
  std::vector<Index> letter_counts(counts.size(), 0);
  auto parcel = parcels.begin();
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    for (Index i = 0; i < counts[rank]; ++i) letter_counts[rank] += (parcel++)->length;
  Delivery delivery;
  delivery.parcels = comm.all_to_all_v(std::span<const Parcel>(parcels), counts);
  delivery.letters =
      comm.all_to_all_v(std::span<const char>(letters.data(), letters.size()), letter_counts).values;
  return delivery;
}

}  // namespace

template <class Answer>
std::vector<Index> NodeKeys::ask_owners(std::span<const std::string_view> words, Index first_position,
                                        const Answer& answer) const {
  const auto ranks = static_cast<std::uint64_t>(comm_.size());
  KeyTable distinct;
  std::vector<Index> which(words.size());  // of the distinct words
  std::vector<Index> first_seen;
  for (std::size_t i = 0; i < words.size(); ++i) {
    which[i] = distinct.insert(words[i]);
    if (which[i] == static_cast<Index>(first_seen.size()))
      first_seen.push_back(first_position + static_cast<Index>(i));
  }
  std::vector<int> owners(first_seen.size());
  std::vector<Index> counts(ranks, 0);
  for (std::size_t d = 0; d < owners.size(); ++d) {
    // of the upper half: the slots of the owner's table are chosen by the lower bits
    owners[d] = static_cast<int>((hash_of(distinct.word(static_cast<Index>(d))) >> 32) * ranks >> 32);
    ++counts[owners[d]];
  }
  Array<Index> order = consecutive(0, std::ssize(owners));
  sort_by_digits(order, static_cast<Index>(ranks), [&](Index d) { return Index{owners[d]}; });
  std::vector<Parcel> parcels;
  std::string letters;
  for (const Index d : order) {
    const std::string_view word = distinct.word(d);
    parcels.push_back({first_seen[d], static_cast<Index>(word.size())});
    letters += word;
  }
  const Delivery got = deliver(comm_, parcels, letters, counts);

  std::vector<Index> numbers;
  const char* letter = got.letters.data();
  for (const Parcel& parcel : got.parcels.values) {
    numbers.push_back(
        answer(std::string_view(letter, static_cast<std::size_t>(parcel.length)), parcel.position));
    letter += parcel.length;
  }
  const auto answers = comm_.all_to_all_v(std::span<const Index>(numbers), got.parcels.counts).values;
  std::vector<Index> number_of(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) number_of[order[i]] = answers[i];
  for (Index& word : which) word = number_of[word];
  return which;
}

std::vector<Index> NodeKeys::handles(std::span<const std::string_view> words, Index first_position) {
  return ask_owners(words, first_position, [&](std::string_view word, Index position) {
    const Index entry = table_.insert(word);
    if (entry == static_cast<Index>(first_positions_.size())) first_positions_.push_back(position);
    Index& first = first_positions_[entry];
    first = std::min(first, position);
    return entry * comm_.size() + comm_.rank();
  });
}

std::vector<Index> NodeKeys::find(std::span<const std::string_view> words) const {
  return ask_owners(words, 0, [&](std::string_view word, Index) {
    const Index entry = table_.find(word);
    return entry < 0 ? entry : numbers_[entry];
  });
}

/// Each rank has a range of the positions and counts those at which a new word appears.
void NodeKeys::number(Index num_positions) {
  const PartitionBook slices = PartitionBook::even(num_positions, comm_.size());
  order_ = sorted_order(first_positions_);
  std::vector<Index> positions;
  std::vector<std::int32_t> targets;
  for (const Index entry : order_) {
    positions.push_back(first_positions_[entry]);
    targets.push_back(slices.owner(first_positions_[entry]));
  }
  const RowRoute route(comm_, targets);
  Array<Index> asked = route.forward(std::span<const Index>(positions));
  const Index begin = slices.begin(comm_.rank());
  IndexSet appearances(slices.num_nodes(comm_.rank()));
  for (const Index asked_position : asked) appearances.insert(asked_position - begin);
  appearances.make_numbers();
  const auto sizes = comm_.all_gather(route.num_arrived());
  const Index before = std::accumulate(sizes.begin(), sizes.begin() + comm_.rank(), Index{0});
  for (Index& value : asked) value = before + appearances.number(value - begin);
  const Array<Index> answers = route.back(std::span<const Index>(asked));
  numbers_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) numbers_[order_[i]] = answers[i];
  owners_ = gather_book(comm_, table_.size());
}

void NodeKeys::final_numbers(std::span<Index> handles) const {
  for (Index& handle : handles)
    handle = owners_.begin(static_cast<int>(handle % comm_.size())) + handle / comm_.size();
  replace_ids(comm_, owners_, std::span<const Index>(numbers_), handles);
}

Index NodeKeys::count_before(Index position) const {
  return comm_.all_reduce(static_cast<Index>(
      std::ranges::count_if(first_positions_, [&](Index first) { return first < position; })));
}

std::string NodeKeys::word(Index number) const {
  const auto found = std::ranges::find(numbers_, number);
  const bool is_mine = found != numbers_.end();
  const int owner =
      static_cast<int>(comm_.all_reduce(is_mine ? Index{comm_.rank()} : Index{-1}, ReduceOp::max));
  return comm_.broadcast(is_mine ? std::string(table_.word(found - numbers_.begin())) : std::string(), owner);
}

/// Rank 0 writes; the words come to it in windows of consecutive numbers.
void NodeKeys::write(const std::string& path) const {
  constexpr Index window = Index{1} << 18;
  std::optional<TemporaryFile> file;
  comm_.agree([&] {
    if (comm_.rank() == 0) file.emplace(path);
  });
  std::size_t next = 0;  // in order_
  for (Index begin = 0; begin < size(); begin += window) {
    std::vector<Parcel> parcels;
    std::string letters;
    for (; next < order_.size() && numbers_[order_[next]] < begin + window; ++next) {
      const std::string_view word = table_.word(order_[next]);
      parcels.push_back({numbers_[order_[next]], static_cast<Index>(word.size())});
      letters += word;
    }
    std::vector<Index> counts(static_cast<std::size_t>(comm_.size()), 0);
    counts[0] = static_cast<Index>(parcels.size());
    const Delivery got = deliver(comm_, parcels, letters, counts);
    comm_.agree([&] {
      if (comm_.rank() != 0) return;
      std::vector<std::string_view> words(got.parcels.values.size());
      const char* letter = got.letters.data();
      for (const Parcel& parcel : got.parcels.values) {
        words[parcel.position - begin] = {letter, static_cast<std::size_t>(parcel.length)};
        letter += parcel.length;
      }
      std::string text;
      for (const std::string_view word : words) (text += word) += '\n';
      file->write(text.data(), text.size());
    });
  }
  comm_.agree([&] {
    if (comm_.rank() == 0) file->commit();
  });
}

namespace {

struct KeyFormat {
  char separator = '\n';  ///< this one: a line is an id
  Index column = 0, num_fields = 1;
  TextPosition begin = {};
};

/// Of a table, the first column that is called as a key.
KeyFormat guess_key_format(const std::string& path, const FirstLines& first, const SourceOptions& options) {
  if (path == options.node_table) {
    const TextTable table = node_table_of(first, options);
    return {table.separator, static_cast<Index>(table.place_of(ColumnRole::key)), std::ssize(table.columns),
            table.begin};
  }
  if (first.lines.empty()) return {};
  const char separator = separator_of(first);
  const auto fields = fields_of(first.lines.front().text, separator);
  const auto key =
      std::ranges::find_if(fields, [](std::string_view field) { return is_key_name(unquoted(field)); });
  const Index num_fields = std::ssize(fields);
  if (key != fields.end()) return {separator, key - fields.begin(), num_fields, first.begin(true)};
  if (first.is_parquet) return {separator, 0, num_fields, first.begin(true)};
  const bool is_table = std::ranges::any_of(std::array{".csv", ".tsv", ".csv.gz", ".tsv.gz"},
                                            [&](const char* end) { return path.ends_with(end); });
  return {is_table ? separator : '\n', 0, num_fields, first.begin(false)};
}

/// The id of a line; empty: there is none.
std::string_view id_of(std::string_view line, const KeyFormat& format, KeptTexts& kept) {
  Fields fields(line, format.separator);
  for (Index column = 0; fields.next(); ++column)
    if (column == format.column) return unquoted_text(fields.field(), kept);
  return {};
}

}  // namespace

Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take) {
  const KeyFormat format =
      guess_from_first_lines(comm, path, "a text with the id of a node in each line",
                             [&](const FirstLines& first) { return guess_key_format(path, first, options); });
  std::vector<std::string_view> ids;
  KeptTexts kept;
  const auto parse = [&](std::string_view text) {
    ids.clear();
    kept.clear();
    const auto take_row = [&](std::string_view line, Index number) {
      const std::string_view id = id_of(line, format, kept);
      if (id.empty())
        throw LineError(number, "there is no id in column ", format.column + 1, " of ", in_quotes(line),
                        ", expected one");
      ids.push_back(id);
    };
    return for_each_row(text, take_row, [&](std::string_view comment, Index number) {
      require_no_row(comment, number, format.separator, format.num_fields, true);
    });
  };
  return read_lines(comm, path, format.begin, options.block_bytes, parse,
                    [&](const BlockPlace& at) { take(ids, at.first_row); })
      .rows;
}

}  // namespace sar::formats
