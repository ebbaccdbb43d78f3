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

/// One text: its edges, which are integers or handles of NodeKeys that have become numbers.
class EdgeListFile {
 public:
  /// Reads everything. Collective.
  EdgeListFile(const Communicator& comm, const std::string& path, const SourceOptions& options)
      : comm_(comm), path_(path) {
    comm_.agree([&] {
      if (comm_.rank() == 0) format_ = guess_from_file(path_, options);
    });
    comm_.broadcast(std::span<EdgeListFormat>(&format_, 1), 0);
    if (options.node_ids == NodeIds::names) {
      read_names(options.block_bytes);
    } else {
      try {
        read_integers(options.block_bytes);
        if (options.node_ids == NodeIds::automatic && num_edges > 0 && largest_ / 4 >= num_edges)
          name_integers();
      } catch (const NotAnInteger&) {  // on all ranks
        if (options.node_ids == NodeIds::dense) throw;
        read_names(options.block_bytes);
      }
    }
    if (format_.data_columns > 0 && !format_.ignore_data) add_edge_data(options);
  }

  Index num_edges = 0;
  EdgeChunks chunks;
  FieldTable fields;  ///< of the edges
  std::unique_ptr<NodeKeys> keys;

 private:
  void read_integers(Index block_bytes);
  void read_names(Index block_bytes);
  void name_integers();
  void replace_handles();
  void add_edge_data(const SourceOptions& options);

  const Communicator& comm_;
  const std::string& path_;
  EdgeListFormat format_;
  Index largest_ = -1;  // node, when they are integers
};

/// Columns with names that are known are fields of their own.
void EdgeListFile::add_edge_data(const SourceOptions& options) {
  const PartitionBook slices = PartitionBook::even(num_edges, comm_.size());
  const DataArray all = chunks.take_data(comm_, slices, format_.data_columns);
  const auto add_columns = [&](const std::string& name, const std::vector<Index>& columns) {
    if (columns.empty() || fields.data.contains(name)) return;
    DataField field{name, NpyType::float64, {}};
    if (columns.size() > 1) field.row_shape.push_back(std::ssize(columns));
    DataArray data;
    comm_.agree([&] {
      data = DataArray(field.type, field.row_shape, all.num_rows);
      const auto bytes = static_cast<Index>(sizeof(double));
      for (Index row = 0; row < data.num_rows; ++row)
        for (Index i = 0; i < std::ssize(columns); ++i)
          std::copy_n(all.row(row) + columns[i] * bytes, bytes, data.row(row) + i * bytes);
    });
    fields.add(std::move(field), std::make_unique<SlicedFieldData>(slices, std::move(data)), path_);
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

void EdgeListFile::read_integers(Index block_bytes) {
  IntegerEdges edges;
  const TextCounts counts = read_lines(
      comm_, path_, format_.begin, block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](Index first, Index) { comm_.agree([&] { chunks.add(first, edges.src, edges.dst, edges.data); }); });
  num_edges = counts.rows;
  for (const EdgeChunk& chunk : chunks.chunks())
    for (const auto* ends : {&chunk.src, &chunk.dst})
      largest_ = std::max(largest_, *std::max_element(ends->begin(), ends->end()));
  largest_ = comm_.all_reduce(largest_, ReduceOp::max);
  require<InputError>(largest_ < (Index{1} << 62), path_, ": a node is ", largest_,
                      ", expected less than 2^62 (unless nodes are names)");
}

void EdgeListFile::read_names(Index block_bytes) {
  chunks = {};
  keys = std::make_unique<NodeKeys>(comm_);
  KeyedEdges edges;
  const TextCounts counts = read_lines(
      comm_, path_, format_.begin, block_bytes,
      [&](std::string_view text) { return parse_edges(text, format_, edges); },
      [&](Index first, Index) {
        const std::vector<Index> handles = keys->handles(edges.ends, 2 * first);
        comm_.agree([&] {
          std::vector<Index> src, dst;
          for (std::size_t i = 0; i < handles.size(); i += 2) {
            src.push_back(handles[i]);
            dst.push_back(handles[i + 1]);
          }
          chunks.add(first, src, dst, edges.data);
        });
      });
  num_edges = counts.rows;
  replace_handles();
}

/// Sparse integers become names; what has been read stays.
void EdgeListFile::name_integers() {
  keys = std::make_unique<NodeKeys>(comm_);
  std::vector<EdgeChunk>& list = chunks.chunks();
  const auto rounds = comm_.all_reduce(std::ssize(list), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < std::ssize(list) ? list[r] : none;
    std::vector<std::array<char, 20>> digits(2 * chunk.src.size());
    std::vector<std::string_view> words(digits.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Index node = i % 2 == 0 ? chunk.src[i / 2] : chunk.dst[i / 2];
      const auto end = std::to_chars(digits[i].data(), digits[i].data() + digits[i].size(), node).ptr;
      words[i] = {digits[i].data(), static_cast<std::size_t>(end - digits[i].data())};
    }
    const std::vector<Index> handles = keys->handles(words, 2 * chunk.first_id);
    for (std::size_t i = 0; i < handles.size(); ++i) (i % 2 == 0 ? chunk.src : chunk.dst)[i / 2] = handles[i];
  }
  replace_handles();
}

void EdgeListFile::replace_handles() {
  keys->number(2 * num_edges);
  std::vector<EdgeChunk>& list = chunks.chunks();
  const auto rounds = comm_.all_reduce(std::ssize(list), ReduceOp::max);
  EdgeChunk none;
  for (Index r = 0; r < rounds; ++r) {
    EdgeChunk& chunk = r < std::ssize(list) ? list[r] : none;
    keys->final_numbers(chunk.src);
    keys->final_numbers(chunk.dst);
  }
}

/// "author:writes:paper" -> its three names
SourceEdges type_named(const std::string& type) {
  std::vector<std::string> names{""};
  for (const char c : type) {
    if (c == ':')
      names.emplace_back();
    else
      names.back() += c;
  }
  const bool right = names.size() == 3 && std::ranges::none_of(names, &std::string::empty);
  require<InputError>(right, "--edges: '", type, "', expected SOURCE:RELATION:DESTINATION");
  return {names[0], names[1], names[2], 0, {}};
}

}  // namespace

EdgeListSource::EdgeListSource(const Communicator& comm_of_source, const std::string& path,
                               const SourceOptions& options)
    : FileSource(comm_of_source, options.relations.empty() ? "edge list" : "",
                 options.relations.empty() ? path : "edge lists") {
  const bool typed = !options.relations.empty();
  if (!typed) read_edges_of({}, path, options);
  for (const auto& [name, file] : options.relations) {
    SourceEdges type;
    comm().agree([&] { type = type_named(name); });
    SourceOptions of_file = options;
    of_file.node_ids = NodeIds::dense;
    read_edges_of(std::move(type), file, of_file);
  }
  comm().agree([&] {
    if (!typed) require_plausible_size(path);
    for (const auto& [key, file] : options.node_data) {
      const std::size_t slash = typed ? key.find('/') : 0;
      require<InputError>(slash != std::string::npos, "--node-data: '", key,
                          "', expected TYPE/NAME=FILE.npy");
      // rows of node data tell of nodes without edges behind the last one that has some
      if (typed)
        add_node_file(types_.node_type(key.substr(0, slash)), key.substr(slash + 1), file, true);
      else
        add_node_file(0, key, file, keys_ == nullptr);
    }
    list_fields();
    require_plausible_sizes(path_);
  });
}

/// Adds a type of edges, and the types of their ends where they are new.
void EdgeListSource::read_edges_of(SourceEdges type, const std::string& path, const SourceOptions& options) {
  EdgeListFile file(comm(), path, options);
  type.num_edges = file.num_edges;
  for (const auto& [name, ends] : {std::pair{type.src_type, &EdgeChunk::src}, {type.dst_type, &EdgeChunk::dst}}) {
    Index count = 0;
    for (const EdgeChunk& chunk : file.chunks.chunks())
      count = std::max(count, 1 + *std::ranges::max_element(chunk.*ends));
    count = comm().all_reduce(count, ReduceOp::max);
    if (std::ranges::find(types_.nodes, name, &SourceNodes::name) == types_.nodes.end()) add_nodes(name);
    SourceNodes& nodes = types_.nodes[types_.node_type(name)];
    nodes.num_nodes = std::max(nodes.num_nodes, count);
  }
  add_edges(std::move(type));
  chunks_.back() = std::move(file.chunks);
  edges_.back() = std::move(file.fields);
  keys_ = std::move(file.keys);
}

std::string EdgeListSource::description() const {
  return FileSource::description() + (keys_ != nullptr ? "; nodes are numbered by first appearance" : "");
}

void EdgeListSource::write_node_keys(const std::string& directory) const {
  if (keys_ != nullptr) keys_->write(directory + "/node_keys.txt");
}

}  // namespace sar::formats
