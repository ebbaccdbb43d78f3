#include "edge_list_source.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// The first `most` bytes say how to read a text; mostly far fewer do.
EdgeListFormat guess_from_file(const std::string& path, const SourceOptions& options) {
  constexpr Index most = Index{1} << 26;
  for (Index bytes = Index{1} << 16;; bytes *= 4) {
    const std::string text = read_beginning(path, bytes);
    const bool whole = static_cast<Index>(text.size()) < bytes;
    require<InputError>(
        text.find('\0') == std::string::npos, path,
        ": the file is binary (it has bytes that are 0), expected a text with an edge a line");
    require<InputError>(trimmed(text).empty() || trimmed(text)[0] != '{', path,
                        ": the file begins with '{' as JSON does, expected a text with an edge a line");
    try {
      if (const auto format = guess_edge_list_format(text, whole, options)) return *format;
    } catch (const LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
    require<InputError>(bytes < most, path, ": the first ", bytes,
                        " bytes are comments or one line, expected a text with an edge a line");
  }
}

}  // namespace

EdgeListSource::EdgeListSource(const Communicator& comm_of_source, const std::string& path,
                               const SourceOptions& options)
    : FileSource(comm_of_source, "edge list", path) {
  guess_format(options);
  if (options.node_ids == NodeIds::names) {
    read_names(options.block_bytes);
  } else {
    try {
      read_integers(options.block_bytes);
      if (options.node_ids == NodeIds::automatic && num_edges_ > 0 && largest_ / 4 >= num_edges_)
        name_integers();
    } catch (const NotAnInteger&) {  // on all ranks
      if (options.node_ids == NodeIds::dense) throw;
      read_names(options.block_bytes);
    }
  }
  if (keys_ == nullptr) num_nodes_ = largest_ + 1;
  comm().agree([&] {
    // rows of node data tell of nodes without edges behind the last one that has some
    if (keys_ == nullptr && num_edges_ > 0 && !options.node_data.empty())
      num_nodes_ = std::max(num_nodes_, NpyFile(options.node_data.begin()->second).num_rows());
    require_plausible_size(path_);
  });
  add_node_files(options.node_data);
  if (format_.data_columns > 0 && !format_.ignore_data) add_edge_data(options);
}

/// Columns with names that are known are fields of their own.
void EdgeListSource::add_edge_data(const SourceOptions& options) {
  const PartitionBook slices = PartitionBook::even(num_edges_, comm().size());
  const DataArray all = chunks_.take_data(comm(), slices, format_.data_columns);
  const auto add_columns = [&](const std::string& name, const std::vector<Index>& columns) {
    if (columns.empty() || edges_.data.contains(name)) return;
    DataField field{name, NpyType::float64, {}};
    if (columns.size() > 1) field.row_shape.push_back(std::ssize(columns));
    DataArray data;
    comm().agree([&] {
      data = DataArray(field.type, field.row_shape, all.num_rows);
      const auto bytes = static_cast<Index>(sizeof(double));
      for (Index row = 0; row < data.num_rows; ++row)
        for (Index i = 0; i < std::ssize(columns); ++i)
          std::copy_n(all.row(row) + columns[i] * bytes, bytes, data.row(row) + i * bytes);
    });
    edges_.add(std::move(field), std::make_unique<SlicedFieldData>(slices, std::move(data)), path_);
  };
  bool has_weight = false;
  for (std::size_t i = 0; i < num_edge_fields; ++i) {
    const EdgeField field{static_cast<int>(i)};
    if (format_.named[i] < 0) continue;
    add_columns(name_of(field, format_, options), {format_.named[i]});
    has_weight = has_weight || field == EdgeField::weight;
  }
  std::vector<Index> others;
  for (Index column = 0; column < format_.data_columns; ++column)
    if (std::ranges::find(format_.named, column) == format_.named.end()) others.push_back(column);
  add_columns(others.size() == 1 && !has_weight ? "weight" : "features", others);
}

void EdgeListSource::guess_format(const SourceOptions& options) {
  comm().agree([&] {
    if (comm().rank() == 0) format_ = guess_from_file(path_, options);
  });
  comm().broadcast(std::span<EdgeListFormat>(&format_, 1), 0);
}

void EdgeListSource::read_integers(Index block_bytes) {
  IntegerEdges edges;
  const TextCounts counts = read_lines(
      comm(), path_, format_.begin, block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](Index first) { comm().agree([&] { chunks_.add(first, edges.src, edges.dst, edges.data); }); });
  num_edges_ = counts.rows;
  for (const EdgeChunk& chunk : chunks_.chunks())
    for (const auto* ends : {&chunk.src, &chunk.dst})
      largest_ = std::max(largest_, *std::max_element(ends->begin(), ends->end()));
  largest_ = comm().all_reduce(largest_, ReduceOp::max);
  require<InputError>(largest_ < (Index{1} << 62), path_, ": a node is ", largest_,
                      ", expected less than 2^62 (unless nodes are names)");
}

void EdgeListSource::read_names(Index block_bytes) {
  chunks_ = {};
  keys_ = std::make_unique<NodeKeys>(comm());
  KeyedEdges edges;
  const TextCounts counts = read_lines(
      comm(), path_, format_.begin, block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](Index first) {
        const std::vector<Index> handles = keys_->handles(edges.ends, 2 * first);
        comm().agree([&] {
          std::vector<Index> src, dst;
          for (std::size_t i = 0; i < handles.size(); i += 2) {
            src.push_back(handles[i]);
            dst.push_back(handles[i + 1]);
          }
          chunks_.add(first, src, dst, edges.data);
        });
      });
  num_edges_ = counts.rows;
  replace_handles();
}

/// Sparse integers become names; what has been read stays.
void EdgeListSource::name_integers() {
  keys_ = std::make_unique<NodeKeys>(comm());
  std::vector<EdgeChunk>& chunks = chunks_.chunks();
  const auto rounds = comm().all_reduce(static_cast<Index>(chunks.size()), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < static_cast<Index>(chunks.size()) ? chunks[r] : none;
    std::vector<std::array<char, 20>> digits(2 * chunk.src.size());
    std::vector<std::string_view> words(digits.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Index node = i % 2 == 0 ? chunk.src[i / 2] : chunk.dst[i / 2];
      const auto end = std::to_chars(digits[i].data(), digits[i].data() + digits[i].size(), node).ptr;
      words[i] = {digits[i].data(), static_cast<std::size_t>(end - digits[i].data())};
    }
    const std::vector<Index> handles = keys_->handles(words, 2 * chunk.first_id);
    for (std::size_t i = 0; i < handles.size(); ++i) (i % 2 == 0 ? chunk.src : chunk.dst)[i / 2] = handles[i];
  }
  replace_handles();
}

void EdgeListSource::replace_handles() {
  keys_->number(2 * num_edges_);
  num_nodes_ = keys_->size();
  std::vector<EdgeChunk>& chunks = chunks_.chunks();
  const auto rounds = comm().all_reduce(static_cast<Index>(chunks.size()), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < static_cast<Index>(chunks.size()) ? chunks[r] : none;
    keys_->final_numbers(chunk.src);
    keys_->final_numbers(chunk.dst);
  }
}

std::string EdgeListSource::description() const {
  return FileSource::description() + (has_node_keys() ? "; nodes are numbered by first appearance" : "");
}

void EdgeListSource::write_node_keys(const std::string& directory) const {
  if (has_node_keys()) keys_->write(directory + "/node_keys.txt");
}

}  // namespace sar::formats
