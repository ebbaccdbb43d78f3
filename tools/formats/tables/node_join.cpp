// SPDX-License-Identifier: MIT

// Keys become numbers of nodes where they are read; a route sends each row to the owner of its node, who
// sorts what arrives. O(rows / P log(rows)) time, 16 bytes a row and its data.

#include "node_join.hpp"

#include "formats/text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index none = std::numeric_limits<Index>::max();

/// A row on its way to the owner of its node.
struct SentRow {
  Index node, line;
  auto operator<=>(const SentRow&) const = default;
};

/// Throws the message of the rank with the least position, if any rank has one. Collective.
template <class Message>
void throw_first(const Communicator& comm, Index position, const Message& message) {
  const std::vector<Index> positions = comm.all_gather(position);
  const auto first = std::ranges::min_element(positions);
  if (*first == none) return;
  const auto rank = static_cast<int>(first - positions.begin());
  throw InputError(comm.broadcast(comm.rank() == rank ? message() : std::string(), rank));
}

std::string line_text(Index line) {
  return line > 0 ? concat("line ", line, ": ") : "";
}

/// The numbers of the nodes with these names; -1: there is none.
std::vector<Index> numbers_of(const FileSource::NodeNames& names, std::span<const std::string_view> keys) {
  std::vector<Index> numbers(keys.size());
  KeyWords words(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto number = to_whole_number(keys[i]);
    numbers[i] = number && *number >= names.first_id ? *number - names.first_id : -1;
    if (names.are_integers && numbers[i] >= 0)
      words.set(i, numbers[i]);
    else
      words.set(i, keys[i]);
  }
  return names.keys == nullptr ? numbers : names.keys->find(words.words());
}

std::string name_of(const FileSource::NodeNames& names, Index node) {
  return names.keys == nullptr ? std::to_string(node + names.first_id) : names.keys->word(node);
}

}  // namespace

void NodeJoin::add(std::span<const std::string_view> keys, std::span<const Index> lines) {
  const std::vector<Index> numbers = numbers_of(source_.node_names(), keys);
  const auto bad = static_cast<std::size_t>(std::ranges::find(numbers, -1) - numbers.begin());
  const bool has_line = bad < numbers.size() && !lines.empty();
  const Index line = has_line ? lines[bad] : 0;
  const Index position = has_line ? line : static_cast<Index>(bad);
  throw_first(source_.comm(), bad < numbers.size() ? position : none, [&] {
    return concat(place_, ": ", line_text(line), "the key ", formats::in_quotes(keys[bad]), " is no node of ",
                  source_.path(), ", expected the name of one");
  });
  nodes_.insert(nodes_.end(), numbers.begin(), numbers.end());
  if (lines.empty())
    lines_.resize(nodes_.size(), 0);
  else
    lines_.insert(lines_.end(), lines.begin(), lines.end());
}

void NodeJoin::finish() {
  const Communicator& comm = source_.comm();
  const Index rows = comm.all_reduce(std::ssize(nodes_));
  const bool may_grow = source_.node_names().keys == nullptr && !source_.has_node_fields();
  const Index num_nodes = may_grow ? std::max(rows, source_.num_nodes()) : source_.num_nodes();
  Index first = none, position = none;  // of the unknown node in the first line
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Index place = lines_[i] > 0 ? lines_[i] : static_cast<Index>(i);
    if (nodes_[i] < num_nodes || place >= position) continue;
    position = place;
    first = static_cast<Index>(i);
  }
  throw_first(comm, position, [&] {
    return concat(place_, ": ", line_text(lines_[first]), "the key '",
                  nodes_[first] + source_.node_names().first_id, "' is no node of ", source_.path(),
                  ", which has ", source_.num_nodes(), " nodes, and there are ", rows,
                  " rows, expected keys of ", num_nodes, " nodes without a gap");
  });
  slices_ = PartitionBook::even(num_nodes, comm.size());
  require_one_row_each();
}

void NodeJoin::require_one_row_each() {
  const Communicator& comm = source_.comm();
  std::vector<std::int32_t> targets;
  std::vector<SentRow> sent;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    targets.push_back(slices_.owner(nodes_[i]));
    sent.push_back({nodes_[i], lines_[i]});
  }
  route_.emplace(comm, targets);
  Array<SentRow> rows = route_->forward(std::span<const SentRow>(sent));
  arrived_.resize(rows.size());
  std::ranges::transform(rows, arrived_.begin(), &SentRow::node);
  std::ranges::sort(rows);
  SentRow twice{none, none};
  Index missing = none, before = slices_.begin(comm.rank()) - 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_second = i > 0 && rows[i].node == rows[i - 1].node;
    if (is_second && std::pair(rows[i].line, rows[i].node) < std::pair(twice.line, twice.node))
      twice = rows[i];
    if (missing == none && rows[i].node > before + 1) missing = before + 1;
    before = rows[i].node;
  }
  if (missing == none && before + 1 < slices_.end(comm.rank())) missing = before + 1;
  const Index line = comm.all_reduce(twice.line, ReduceOp::min);
  const Index node = comm.all_reduce(twice.line == line ? twice.node : none, ReduceOp::min);
  if (node != none)
    throw InputError(concat(place_, ": ", line_text(line), "the key ",
                            formats::in_quotes(name_of(source_.node_names(), node)),
                            " is there twice, expected each node once"));
  missing = comm.all_reduce(missing, ReduceOp::min);
  if (missing != none)
    throw InputError(concat(place_, ": node ", formats::in_quotes(name_of(source_.node_names(), missing)),
                            " of ", source_.path(), " has no row, expected one for each of ",
                            slices_.num_nodes(), " nodes"));
}

DataArray NodeJoin::to_slices(const DataArray& rows) const {
  const Communicator& comm = source_.comm();
  DataArray arrived, mine;
  comm.agree([&] {
    arrived = DataArray(rows.type, rows.row_shape, route_->num_arrived());
    mine = arrived;
  });
  route_->forward(rows.bytes.data(), rows.row_bytes(), arrived.bytes.data());
  for (std::size_t i = 0; i < arrived_.size(); ++i)
    std::copy_n(arrived.row(static_cast<Index>(i)), arrived.row_bytes(),
                mine.row(arrived_[i] - slices_.begin(comm.rank())));
  return mine;
}

}  // namespace sar::formats
