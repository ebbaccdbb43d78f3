// SPDX-License-Identifier: MIT
#include "edge_list_file.hpp"

#include "edge_list.hpp"
#include "first_lines.hpp"
#include "formats/packed/parquet_table.hpp"
#include "node_key_file.hpp"
#include "other_formats.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace sar::formats {
namespace {

/// Collective.
EdgeListFormat guess_from_file(const Communicator& comm, const std::string& path,
                               const SourceOptions& options) {
  const std::string text = read_first_lines(comm, path, "a text with an edge a line");
  EdgeListFormat format;
  comm.agree([&] {
    if (options.columns.empty()) refuse_other_formats(path, text, first_lines(text));
    SourceOptions known = options;
    if (is_parquet(path)) {
      require<InputError>(!options.header && !options.separator, path,
                          ": columns of Parquet have names and no separator, expected no --header and no "
                          "--separator");
      known.header = true;
      known.separator = ',';
    }
    try {
      format = guess_edge_list_format(text, known);
    } catch (const LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
  });
  format.first_id = options.node_ids == NodeIds::from_one ? 1 : 0;
  return format;
}

/// Words with the digits of integers.
class Digits {
 public:
  explicit Digits(const EdgeChunk& chunk) : digits_(2 * chunk.src.size()), words_(digits_.size()) {
    for (std::size_t i = 0; i < words_.size(); ++i)
      words_[i] = write(i % 2 == 0 ? chunk.src[i / 2] : chunk.dst[i / 2], digits_[i]);
  }
  [[nodiscard]] const std::vector<std::string_view>& words() const { return words_; }

  using Buffer = std::array<char, 20>;
  static std::string_view write(Index node, Buffer& digits) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), node).ptr;
    return {digits.data(), static_cast<std::size_t>(end - digits.data())};
  }

 private:
  std::vector<Buffer> digits_;
  std::vector<std::string_view> words_;
};

}  // namespace

EdgeListFile::EdgeListFile(const Communicator& comm, const std::string& path, const SourceOptions& options)
    : comm_(comm), path_(path), options_(options), format_(guess_from_file(comm, path, options)) {
  if (options.node_ids == NodeIds::names) {
    read_names();
  } else {
    try {
      read_integers();
      const bool is_sparse =
          options.node_ids == NodeIds::automatic && num_edges > 0 && largest_ / 4 >= num_edges;
      if (is_sparse || !options.node_keys.empty()) name_integers();
    } catch (const NotAnInteger&) {  // on all ranks
      if (options.node_ids != NodeIds::automatic) throw;
      read_names();
    }
  }
  if (keys == nullptr) require_edge_in_first_line();
  add_notes();
  if (format_.num_data() > 0) add_edge_data();
}

void EdgeListFile::read_integers() {
  IntegerEdges edges;
  Index smallest = std::numeric_limits<Index>::max(), largest = -1;
  const TextCounts counts = read_lines(
      comm_, path_, format_.begin, options_.block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](const BlockPlace& at) {
        for (const auto* ends : {&edges.src, &edges.dst})
          for (const Index node : *ends) {
            smallest = std::min(smallest, node);
            largest = std::max(largest, node);
          }
        comm_.agree([&] { chunks.add(at.first_row, edges.src, edges.dst, edges.data); });
      });
  num_edges = counts.rows;
  largest_ = comm_.all_reduce(largest, ReduceOp::max);
  smallest_ = num_edges > 0 ? comm_.all_reduce(smallest, ReduceOp::min) : -1;
  require<InputError>(largest_ < (Index{1} << 62), path_, ": a node is ", largest_,
                      ", expected less than 2^62 (unless nodes are names)");
}

void EdgeListFile::begin_names() {
  keys = std::make_unique<NodeKeys>(comm_);
  if (key_file().empty()) return;
  num_given_keys_ =
      read_node_keys(comm_, key_file(), options_, [&](std::span<const std::string_view> ids, Index first) {
        std::vector<Digits::Buffer> digits(ids.size());
        std::vector<std::string_view> words(ids.begin(), ids.end());
        for (std::size_t i = 0; i < ids.size(); ++i)
          if (const auto number = to_whole_number(ids[i]); number && smallest_ >= 0)
            words[i] = Digits::write(*number - format_.first_id, digits[i]);
        static_cast<void>(keys->handles(words, first));
      });
}

void EdgeListFile::read_names() {
  chunks = {};
  smallest_ = largest_ = -1;
  begin_names();
  KeyedEdges edges;
  const TextCounts counts = read_lines(
      comm_, path_, format_.begin, options_.block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](const BlockPlace& at) {
        const std::vector<Index> handles = keys->handles(edges.ends, num_given_keys_ + 2 * at.first_row);
        comm_.agree([&] {
          std::vector<Index> src, dst;
          for (std::size_t i = 0; i < handles.size(); i += 2) {
            src.push_back(handles[i]);
            dst.push_back(handles[i + 1]);
          }
          chunks.add(at.first_row, src, dst, edges.data);
        });
      });
  num_edges = counts.rows;
  replace_handles();
}

/// What has been read stays.
void EdgeListFile::name_integers() {
  begin_names();
  std::vector<EdgeChunk>& list = chunks.chunks();
  const auto rounds = comm_.all_reduce(std::ssize(list), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < std::ssize(list) ? list[r] : none;
    const Digits digits(chunk);
    const std::vector<Index> handles = keys->handles(digits.words(), num_given_keys_ + 2 * chunk.first_id);
    for (std::size_t i = 0; i < handles.size(); ++i) (i % 2 == 0 ? chunk.src : chunk.dst)[i / 2] = handles[i];
  }
  replace_handles();
}

void EdgeListFile::replace_handles() {
  keys->number(num_given_keys_ + 2 * num_edges);
  if (num_given_keys_ > 0) {
    const Index distinct = keys->count_before(num_given_keys_);
    require<InputError>(distinct == num_given_keys_, key_file(), ": there are ", num_given_keys_,
                        " ids, and ", distinct, " of them are different, expected each id once");
    const std::string unknown = keys->size() > num_given_keys_ ? keys->word(num_given_keys_) : "";
    require<InputError>(keys->size() == num_given_keys_, path_, ": node ", formats::in_quotes(unknown),
                        " and ", keys->size() - num_given_keys_ - 1, " others have no row in ", key_file(),
                        ", expected all nodes there");
  }
  std::vector<EdgeChunk>& list = chunks.chunks();
  const auto rounds = comm_.all_reduce(std::ssize(list), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < std::ssize(list) ? list[r] : none;
    keys->final_numbers(chunk.src);
    keys->final_numbers(chunk.dst);
  }
}

/// Refuses a first line that has counts, as those of METIS ("nodes edges") and of other programs, and is no
/// edge.
void EdgeListFile::require_edge_in_first_line() {
  if (format_.header_line >= 0 || options_.header || !options_.columns.empty() || num_edges < 3) return;
  std::array<Index, 2> first{-1, -1};  // known by one rank
  for (const EdgeChunk& chunk : chunks.chunks())
    if (chunk.first_id == 0) first = {chunk.src[0], chunk.dst[0]};
  for (Index& node : first) node = comm_.all_reduce(node, ReduceOp::max) + format_.first_id;
  if (first[1] != num_edges - 1) return;
  Index largest = -1;  // of the other lines
  for (const EdgeChunk& chunk : chunks.chunks())
    for (std::size_t e = chunk.first_id == 0 ? 1 : 0; e < chunk.src.size(); ++e)
      largest = std::max({largest, chunk.src[e], chunk.dst[e]});
  largest = comm_.all_reduce(largest, ReduceOp::max) + format_.first_id;
  require<InputError>(
      largest != first[0] && largest != first[0] - 1, path_, ": the first line is '", first[0], " ", first[1],
      "', and there are ", num_edges - 1, " others with nodes up to ", largest,
      ", so that it may have the numbers of nodes and edges, expected --header yes for these, --header "
      "no for an edge (the format of METIS is not read)");
}

void EdgeListFile::add_column_data(const std::string& name, const std::vector<Index>& slots,
                                   const DataArray& all) {
  DataField field{name, NpyType::float64, {}};
  if (slots.size() > 1) field.row_shape.push_back(std::ssize(slots));
  DataArray data;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  comm_.agree([&] {
    data = DataArray(field.type, field.row_shape, all.num_rows);
    constexpr auto bytes = static_cast<Index>(sizeof(double));
    for (Index row = 0; row < data.num_rows; ++row)
      for (Index i = 0; i < std::ssize(slots); ++i) {
        double value = 0;
        std::memcpy(&value, all.row(row) + slots[i] * bytes, sizeof value);
        std::memcpy(data.row(row) + i * bytes, &value, sizeof value);
        least = std::min(least, value);  // not NaN
        most = std::max(most, value);
      }
  });
  least = comm_.all_reduce(least, ReduceOp::min);
  most = comm_.all_reduce(most, ReduceOp::max);
  if (least <= most)
    notes_.push_back(concat(name, " of the edges: from ", exact_text(least), " to ", exact_text(most)));
  const PartitionBook slices = PartitionBook::even(num_edges, comm_.size());
  fields.add(std::move(field), std::make_unique<SlicedFieldData>(slices, std::move(data)), path_);
}

/// Columns of the same field stand side by side.
void EdgeListFile::add_edge_data() {
  std::vector<std::pair<std::string, std::vector<Index>>> slots;  // by field
  Index slot = 0;
  for (const EdgeColumn& column : format_.columns) {
    if (column.field.empty()) continue;
    auto found = std::ranges::find(slots, column.field, [](const auto& of) { return of.first; });
    if (found == slots.end()) found = slots.insert(slots.end(), {column.field, {}});
    found->second.push_back(slot++);
  }
  const DataArray all = chunks.take_data(comm_, PartitionBook::even(num_edges, comm_.size()), slot);
  for (const auto& [name, of] : slots) add_column_data(name, of, all);
}

void EdgeListFile::add_notes() {
  notes_.push_back(format_.describe());
  if (keys == nullptr && num_edges > 0) {
    const std::string range =
        concat("node ids: integers from ", smallest_ + format_.first_id, " to ", largest_ + format_.first_id);
    notes_.push_back(range + (smallest_ == 1 && format_.first_id == 0
                                  ? ", so that node 0 has no edges; --node-ids from-1 counts from 1"
                                  : ""));
  } else if (num_given_keys_ > 0) {
    notes_.push_back(concat("node ids: in the order of ", key_file()));
  } else if (keys != nullptr && largest_ >= 0) {
    notes_.push_back(
        concat("node ids: ", keys->size(), " integers from ", smallest_, " to ", largest_,
               ", numbered by first appearance; --node-ids dense takes them as numbers of nodes"));
  } else if (keys != nullptr) {
    notes_.push_back(concat("node ids: ", keys->size(), " names, numbered by first appearance"));
  }
  for (const std::string& warning : format_.warnings) notes_.push_back("WARNING: " + warning);
}

}  // namespace sar::formats
